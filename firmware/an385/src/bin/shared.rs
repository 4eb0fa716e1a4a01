//! `demo.Cache` and `demo.Kinds` over memory that the board shares with a Linux process.
//!
//! The doorbell's interrupt handler looks at the link; the main loop serves, and sleeps where there is
//! nothing. A packet is taken up only with a place for its answer in hand; streams leave by a port
//! that keeps one place free for it. Either side may start again at any time.
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use an385::lock::{Late, Masked, sleep_unless};
use an385::shared::{self, Board};
use an385::{CALLS, MTU, board};
use sinew::rpc::{Channels, Slot, Via};
use sinew::time::Instant;
use sinew_demo::{CacheService, cache};
use sinew_drive::domain::Later;
use sinew_drive::{Link, Serving};
use sinew_shm::Bell;
use sinew_shm::domain::{End, Incoming, Outgoing, Receiver, Sender};
use static_cell::StaticCell;

sinew_rt::board!("machine=mps2-an385 link=shm mtu={}", an385::MTU);

type Shared = &'static End<Board<Masked, true>>;

static SLOTS: [Slot; CALLS] = [const { Slot::new() }; CALLS];
static LINK: Late<End<Board<Masked, true>>> = Late::new();
/// What the main loop sleeps on.
static BELL: Bell<Masked> = Bell::new();
/// For the handler, which has no clock of its own.
static MILLIS: AtomicU32 = AtomicU32::new(0);

an385::interrupts!(board::nothing, board::fault, rung);

extern "C" fn rung() {
    board::bell_rang();
    if let Some(link) = LINK.get() {
        shared::look(link, MILLIS.load(Relaxed));
    }
    BELL.ring();
}

fn serve() -> Option<()> {
    static END: StaticCell<End<Board<Masked, true>>> = StaticCell::new();
    static PORT: StaticCell<Later<Shared, Masked>> = StaticCell::new();
    board::start_clock();
    board::start_bell();
    let mut clock = board::Clock::start();
    let link: Shared = END.try_init(shared::open()?)?;
    LINK.set(link);
    sinew_rt::unmask();

    let via = Via {
        link: 0,
        channels: Channels::Any,
        port: Some(PORT.try_init(Later::new(link, shared::CALLS, &BELL))?),
        bulk: None,
    };
    let tx = Outgoing::new(Sender::new(&link, shared::CALLS)?);
    let rx = Incoming::new(Receiver::new(&link, shared::CALLS)?, [0; MTU])?;
    let services = (cache::Serve(CacheService::new()), an385::kinds());
    let mut serving = Serving::new(&SLOTS, services, Link::new(tx, rx, &via));
    let look = || {
        let micros = clock.micros();
        let millis = (micros >> 10) as u32;
        MILLIS.store(millis, Relaxed);
        shared::look(link, millis);
        Instant::from_micros(micros)
    };
    sinew_drive::run(&mut serving, look, || sleep_unless(|| BELL.take()))
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let _ = serve();
    sinew_rt::exit(3)
}
