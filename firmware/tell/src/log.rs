//! `sinew.Log` in an image: the main loop writes a record of each call, and interrupt handlers write theirs.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use core::task::Waker;

use sinew::rpc::{Call, Input, MethodKind, Service};
use sinew::time::Instant;
use sinew_services::Severity;
use sinew_services::device::{Counters, Show};
pub use sinew_services::log::Serve;
use sinew_services::log::{Clock, Logger, Records};

use crate::{now, uart};
use an385::lock::Masked;

/// Records that wait for who reads.
const RECORDS: usize = 8;

static LOG: Logger<Masked, Uptime, RECORDS> = Logger::new();

/// [`now`].
pub struct Uptime;

impl Clock for Uptime {
    fn now() -> Instant {
        now()
    }
}

/// The service, which says that the board has started; `None` where it is called twice.
pub fn serve() -> Option<Serve<Records<Masked, Uptime, RECORDS>>> {
    let records = LOG.records()?;
    LOG.write(Severity::Info, "board", format_args!("started"));
    Some(Serve(records))
}

/// These counters, and how many records found no room.
pub struct Counted<C>(pub C);

impl<C: Counters> Counters for Counted<C> {
    fn each(&self, show: &mut Show<'_>) {
        self.0.each(show);
        show("log", "dropped", LOG.dropped().into());
    }
}

/// SysTick's handler: a sign of life at each of its periods, 0.67 s.
pub extern "C" fn time_passed() {
    static PERIODS: AtomicUsize = AtomicUsize::new(0);
    let periods = PERIODS.load(Relaxed) + 1;
    PERIODS.store(periods, Relaxed);
    LOG.write(Severity::Trace, "systick", format_args!("period {periods}"));
}

/// UART0's handler: bytes that are lost are said.
pub extern "C" fn byte_came() {
    static SAID: AtomicUsize = AtomicUsize::new(0);
    uart::byte_came();
    let lost = uart::LINE.lost();
    let new = lost.wrapping_sub(SAID.load(Relaxed));
    if new > 0 {
        SAID.store(lost, Relaxed);
        LOG.write(Severity::Warn, "uart", format_args!("{new} bytes lost"));
    }
}

/// Services of whose calls a record is written each.
pub struct Logged<S>(pub S);

impl<S: Service> Service for Logged<S> {
    fn kind(&self, service: u32, method: u32) -> Option<MethodKind> {
        self.0.kind(service, method)
    }

    fn handle(&mut self, call: &mut Call<'_>, input: Input<'_>) -> bool {
        let is_new = matches!(input, Input::Request(_));
        let is_served = self.0.handle(call, input);
        if is_new && is_served {
            let (service, method) = (call.service(), call.method());
            LOG.write(
                Severity::Debug,
                "calls",
                format_args!("{service:08x} {method:08x}"),
            );
        }
        is_served
    }

    fn poll(&mut self, now: Instant) -> bool {
        self.0.poll(now)
    }

    fn arm(&mut self, waker: &Waker) {
        self.0.arm(waker);
    }
}
