//! `demo.Cache` and `demo.Kinds` over memory that the board shares with a Linux process.
//!
//! The doorbell's interrupt handler looks at the link; the main loop serves, and sleeps where there is
//! nothing. A packet is taken up only with a place for its answer in hand; streams leave by a port
//! that keeps one place free for it. Either side may start again at any time.
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use core::task::Waker;

use an385::lock::{Late, Masked, sleep_unless};
use an385::shared::{self, Board};
use an385::{CALLS, MTU, board};
use sinew::link::{Port, SendError};
use sinew::rpc::{Channels, Server, Service, Slot, Via};
use sinew::time::Instant;
use sinew_demo::{CacheService, cache};
use sinew_shm::Bell;
use sinew_shm::domain::{End, Incoming, Lost, Outgoing, Receiver, Refused, Sender};
use static_cell::StaticCell;

type Link = &'static End<Board<Masked, true>>;

static SLOTS: [Slot; CALLS] = [const { Slot::new() }; CALLS];
static LINK: Late<End<Board<Masked, true>>> = Late::new();
/// What the main loop sleeps on.
static BELL: Bell<Masked> = Bell::new();
/// For the handler, which has no clock of its own.
static MILLIS: AtomicU32 = AtomicU32::new(0);

an385::bell_interrupt!(rung);

extern "C" fn rung() {
    board::take_bell();
    if let Some(link) = LINK.get() {
        link.look(MILLIS.load(Relaxed));
    }
    BELL.ring();
}

/// The way out for streams and late answers.
struct Later(Link);

impl Port for Later {
    fn mtu(&self) -> usize {
        MTU
    }

    fn send(&self, min: usize, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> Result<(), SendError> {
        let sender = Sender::new(&self.0, shared::CALLS).ok_or(SendError::Closed)?;
        let sender = sender.with_reserve(1);
        let mut place = sender.place(min).map_err(refused)?;
        match fill(&mut place) {
            0 => Ok(()),
            len => place.send(len).map(drop).map_err(refused),
        }
    }

    fn arm(&self, waker: &Waker) {
        if let Some(sender) = Sender::new(&self.0, shared::CALLS) {
            sender.with_reserve(1).arm(waker);
        }
    }

    fn ring(&self) {
        BELL.ring();
    }
}

fn refused(refused: Refused) -> SendError {
    match refused {
        Refused::Full => SendError::Full,
        Refused::TooLarge => SendError::TooLarge,
        Refused::Lost(_) => SendError::Closed,
    }
}

type Services = (cache::Serve<CacheService>, an385::Kinds);

struct Serve {
    tx: Outgoing<Link>,
    rx: Incoming<Link, [u8; MTU]>,
    server: Server<CALLS>,
    services: Services,
    via: Via,
}

impl Serve {
    /// Serves one packet, or what is due; `false` where there is nothing, or no place for an answer.
    fn turn(&mut self, now: Instant) -> Result<bool, Lost> {
        let place = match self.tx.place(MTU) {
            Ok(place) => place,
            Err(Refused::Lost(lost)) => return Err(lost),
            Err(_) => return Ok(false),
        };
        let packet = self.rx.peek()?;
        let received = packet.is_some();
        let (server, services) = (&mut self.server, &mut self.services);
        let len = match packet {
            Some(packet) => server.handle(packet, &self.via, place, services, now),
            None => server.poll(&self.via, place, services, now).unwrap_or(0),
        };
        self.rx.release();
        // Whatever keeps the answer back, a link that is lost is found at the next turn.
        let _ = self.tx.commit(len);
        self.tx.flush();
        Ok(received || len > 0 || self.services.poll(now))
    }

    /// Asks to be rung. Nobody is to be woken: what came before is found by one more turn.
    fn arm(&mut self) {
        self.tx.arm(Waker::noop());
        self.rx.arm(Waker::noop());
    }

    /// Begins again with a peer that has.
    fn renew(&mut self, now: Instant) {
        self.server.link_down(&self.via, &mut self.services, now);
        self.tx.renew();
        self.rx.renew();
    }
}

fn serve() -> Option<()> {
    static END: StaticCell<End<Board<Masked, true>>> = StaticCell::new();
    static PORT: StaticCell<Later> = StaticCell::new();
    board::start_clock();
    board::start_bell();
    let mut clock = board::Clock::start();
    let link: Link = END.try_init(shared::open()?)?;
    LINK.set(link);
    sinew_rt::unmask();

    let mut serve = Serve {
        tx: Outgoing::new(Sender::new(&link, shared::CALLS)?),
        rx: Incoming::new(Receiver::new(&link, shared::CALLS)?, [0; MTU])?,
        server: Server::new(&SLOTS),
        services: (cache::Serve(CacheService::new()), an385::kinds()),
        via: Via {
            link: 0,
            channels: Channels::Any,
            port: Some(PORT.try_init(Later(link))?),
            bulk: None,
        },
    };
    loop {
        let micros = clock.micros();
        let (now, millis) = (Instant::from_micros(micros), (micros >> 10) as u32);
        MILLIS.store(millis, Relaxed);
        link.look(millis);
        let mut result = serve.turn(now);
        if let Ok(false) = result {
            serve.arm();
            result = serve.turn(now);
        }
        match result {
            Ok(true) => {}
            Ok(false) => sleep_unless(|| BELL.take()),
            Err(_) => serve.renew(now),
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let _ = serve();
    sinew_rt::exit(3)
}
