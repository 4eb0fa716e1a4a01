//! The link over UART0, whose receive interrupt has a handler.

use core::cell::Cell;
use core::task::Waker;

use critical_section::Mutex;
use sinew::frame::FrameStats;
use sinew::link::{RecvError, Rx};
use sinew::rpc::{Channels, Service, Via};
use sinew_drive::bytes::Interrupted;
use sinew_drive::frames::{Direct, Receiver, Sender};
use sinew_drive::{Link, Renew, Serving, run};
use sinew_services::device::{Counters, Show};

use crate::{MTU, SLOTS, now};
use an385::board::{self, UART, Uart0};
use an385::lock::{Masked, sleep_unless};

type Line = Interrupted<Uart0, Masked, 1024>;
/// What arrives while the loop does something else: the UART itself keeps one byte.
pub static LINE: Line = Interrupted::new(UART);
static VIA: Via = Via {
    link: 0,
    channels: Channels::Any,
    port: Some(&Direct::<_, MTU>(&LINE)),
    bulk: None,
};

/// UART0's handler.
pub extern "C" fn byte_came() {
    UART.acknowledge();
    LINE.arrived();
}

/// Serves for ever.
#[inline(always)]
pub fn serve(services: impl Service) -> ! {
    serve_by(Receiver::<_, MTU>::new(&LINE), services)
}

/// The same, with what [`Counted`] shows.
#[inline(always)]
pub fn serve_counted(services: impl Service) -> ! {
    serve_by(Seen(Receiver::new(&LINE)), services)
}

#[inline(always)]
fn serve_by(rx: impl Rx + Renew, services: impl Service) -> ! {
    board::start();
    sinew_rt::unmask();
    let link = Link::new(Sender::<_, MTU>::new(&LINE), rx, &VIA);
    let mut serving = Serving::new(&SLOTS, services, link);
    run(&mut serving, now, || sleep_unless(|| LINE.take_ring()))
}

static FRAMES: Mutex<Cell<Option<FrameStats>>> = Mutex::new(Cell::new(None));

/// What has come over the UART.
pub struct Counted;

impl Counters for Counted {
    fn each(&self, show: &mut Show<'_>) {
        let frames = critical_section::with(|cs| FRAMES.borrow(cs).get()).unwrap_or_default();
        for (name, value) in [
            ("packets_in", frames.frames),
            ("bad_escape", frames.bad_escape),
            ("too_short", frames.too_short),
            ("bad_crc", frames.bad_crc),
            ("other_address", frames.other_address),
            ("too_large", frames.too_large),
            ("noise_bytes", frames.noise_bytes),
            ("lost_bytes", LINE.lost() as u32),
        ] {
            show("link 0", name, value.into());
        }
    }
}

/// A receiver whose counts are there for all to see.
struct Seen(Receiver<&'static Line, MTU>);

impl Rx for Seen {
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError> {
        let is_packet = self.0.packet().is_some();
        let stats = *self.0.stats();
        critical_section::with(|cs| FRAMES.borrow(cs).set(Some(stats)));
        match is_packet {
            true => self.0.peek(),
            false => Ok(None),
        }
    }

    fn release(&mut self) {
        self.0.release();
    }

    fn arm(&mut self, waker: &Waker) {
        self.0.arm(waker);
    }
}

impl Renew for Seen {
    const CLOSES: bool = false;
    fn renew(&mut self) {}
}
