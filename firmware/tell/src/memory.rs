//! The link over memory that the board shares with a Linux process. The doorbell's handler looks at it.

use sinew::rpc::{Channels, Service, Via};
use sinew_drive::domain::Later;
use sinew_drive::{Link, Serving, run};
use sinew_services::device::{Counters, Show};
use sinew_shm::Bell;
use sinew_shm::domain::{End, Incoming, Outgoing, Receiver, Sender};
use static_cell::StaticCell;

use crate::{MTU, SLOTS, now};
use an385::board;
use an385::lock::{Late, Masked, sleep_unless};
use an385::shared::{self, Board};

type Side = End<Board<Masked, true, MTU>>;

static LINK: Late<Side> = Late::new();
/// What the main loop sleeps on.
pub static BELL: Bell<Masked> = Bell::new();

/// The doorbell's handler.
pub extern "C" fn rung() {
    board::bell_rang();
    look();
    BELL.ring();
}

fn look() {
    if let Some(link) = LINK.get() {
        shared::look(link, (now().as_micros() >> 10) as u32);
    }
}

/// Serves for ever; returns where it is called twice.
#[inline(always)]
pub fn serve(services: impl Service) -> Option<()> {
    static END: StaticCell<Side> = StaticCell::new();
    static PORT: StaticCell<Later<&Side, Masked>> = StaticCell::new();
    board::start_clock();
    board::start_bell();
    let link: &'static Side = END.try_init(shared::open()?)?;
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
    let mut serving = Serving::new(&SLOTS, services, Link::new(tx, rx, &via));
    let look = || {
        look();
        now()
    };
    run(&mut serving, look, || sleep_unless(|| BELL.take()))
}

/// What has passed over the shared memory.
pub struct Counted;

impl Counters for Counted {
    fn each(&self, show: &mut Show<'_>) {
        let Some(link) = LINK.get() else { return };
        let Some(counts) = link.counts(shared::CALLS) else {
            return;
        };
        for (name, value) in [
            ("packets_in", counts.received),
            ("packets_out", counts.sent),
            ("full", counts.full),
            ("too_large", counts.too_large),
            ("violations", counts.violations),
        ] {
            show("link 0", name, value.into());
        }
    }
}
