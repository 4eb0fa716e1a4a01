//! `demo.Cache` and `demo.Kinds` over memory that the core shares with Linux.
//!
//! One loop, which looks and serves, and never sleeps: nothing could wake it. A packet is taken up only
//! with a place for its answer in hand; streams leave by a port that keeps one place free for it. Either
//! side may start again at any time.
#![no_std]
#![no_main]

use core::task::Waker;

use sinew::link::{Port, SendError};
use sinew::rpc::{Channels, Server, Service, Slot, Via};
use sinew::time::Instant;
use sinew_demo::{CacheService, KindsService, cache, kinds};
use sinew_shm::domain::{End, Incoming, Lost, Outgoing, Receiver, Refused, Sender};
use static_cell::StaticCell;
use zcu102::agreed::{self, MTU};
use zcu102::board::{self, Board, Clock};

/// Calls that outlive their receive step, at a time.
const CALLS: usize = 4;

static SLOTS: [Slot; CALLS] = [const { Slot::new() }; CALLS];

type Link = &'static End<Board>;

/// The way out for streams and late answers.
struct Later(Link);

impl Port for Later {
    fn mtu(&self) -> usize {
        MTU
    }

    fn send(&self, min: usize, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> Result<(), SendError> {
        let sender = Sender::new(&self.0, agreed::CALLS).ok_or(SendError::Closed)?;
        let sender = sender.with_reserve(1);
        let mut place = sender.place(min)?;
        match fill(&mut place) {
            0 => Ok(()),
            len => Ok(place.send(len).map(drop)?),
        }
    }

    fn arm(&self, waker: &Waker) {
        waker.wake_by_ref();
    }

    fn ring(&self) {} // the loop looks at every turn
}

struct Serve {
    tx: Outgoing<Link>,
    rx: Incoming<Link, [u8; MTU]>,
    server: Server<CALLS>,
    services: (
        cache::Serve<CacheService>,
        kinds::Serve<KindsService<CALLS>>,
    ),
    via: Via,
}

impl Serve {
    /// Serves one packet, or what is due, unless there is no place for an answer.
    fn turn(&mut self, now: Instant) -> Result<(), Lost> {
        let place = match self.tx.place(MTU) {
            Ok(place) => place,
            Err(Refused::Lost(lost)) => return Err(lost),
            Err(_) => return Ok(()),
        };
        let (server, services) = (&mut self.server, &mut self.services);
        let len = match self.rx.peek()? {
            Some(packet) => server.handle(packet, &self.via, place, services, now),
            None => server.poll(&self.via, place, services, now).unwrap_or(0),
        };
        self.rx.release();
        // Whatever keeps the answer back, a link that is lost is found at the next turn.
        let _ = self.tx.commit(len);
        self.tx.flush();
        self.services.poll(now);
        Ok(())
    }

    /// Begins again with a peer that has.
    fn renew(&mut self, now: Instant) {
        self.server.link_down(&self.via, &mut self.services, now);
        self.tx.renew();
        self.rx.renew();
    }
}

fn serve() -> Option<()> {
    static END: StaticCell<End<Board>> = StaticCell::new();
    static PORT: StaticCell<Later> = StaticCell::new();
    let mut clock = Clock::start();
    let link: Link = END.try_init(board::open()?)?;
    let mut serve = Serve {
        tx: Outgoing::new(Sender::new(&link, agreed::CALLS)?),
        rx: Incoming::new(Receiver::new(&link, agreed::CALLS)?, [0; MTU])?,
        server: Server::new(&SLOTS),
        services: (
            cache::Serve(CacheService::new()),
            kinds::Serve(KindsService::new()),
        ),
        via: Via {
            link: 0,
            channels: Channels::Any,
            port: Some(PORT.try_init(Later(link))?),
            bulk: None,
        },
    };
    loop {
        let micros = clock.micros();
        let now = Instant::from_micros(micros);
        link.look((micros >> 10) as u32);
        // One that was stopped by what Linux wrote begins again: the next process need not be like it.
        link.recover();
        if serve.turn(now).is_err() {
            serve.renew(now);
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let _ = serve();
    sinew_rt::cortex_r::end()
}
