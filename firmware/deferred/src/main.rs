//! Serves `demo.Cache` and `sinew.Log` over UART0. Records are frames of `defmt`: their texts are in the ELF file, and
//! not in the image.
//!
//! The main loop writes one at its start and for each value that is set, and SysTick's handler one at each of its
//! periods, 0.67 s.
#![no_std]
#![no_main]

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use an385::CALLS;
use an385::board::{self, UART, Uart0};
use an385::lock::{Masked, sleep_unless};
use sinew::rpc::{Channels, Cx, Responder, Slot, Stop, Via};
use sinew::time::Instant;
use sinew_demo::cache::{self, Cache};
use sinew_demo::{
    CacheService, GetValueRequest, GetValueResponse, SetValueRequest, SetValueResponse,
};
use sinew_drive::bytes::Interrupted;
use sinew_drive::frames::{Direct, Receiver, Sender};
use sinew_drive::{Link, Serving, run};
use sinew_services::log::{self, Clock, Logger};

sinew_rt::board!("machine=mps2-an385 link=uart mtu={}", MTU);
an385::interrupts!(time_passed, byte_came, an385::board::fault);

/// The largest packet in bytes.
const MTU: usize = 256;

type Line = Interrupted<Uart0, Masked, 1024>;

static SLOTS: [Slot; CALLS] = [const { Slot::new() }; CALLS];
static LINE: Line = Interrupted::new(UART);
static VIA: Via = Via {
    link: 0,
    channels: Channels::Any,
    port: Some(&Direct::<_, MTU>(&LINE)),
    bulk: None,
};
static LOG: Logger<Masked, Uptime, 8> = Logger::new();

// ANCHOR: global
/// What the macros of `defmt` call.
mod global {
    use core::sync::atomic::AtomicU32;
    use core::sync::atomic::Ordering::Relaxed;

    use an385::lock::{mask, unmask};
    use sinew_services::log::Frame;

    static FRAME: Frame = Frame::new();
    /// What interrupts were before.
    static BEFORE: AtomicU32 = AtomicU32::new(0);

    #[defmt::global_logger]
    struct Global;

    // SAFETY: from `acquire` to `release` interrupts are masked, so nobody else writes a frame on this core.
    unsafe impl defmt::Logger for Global {
        fn acquire() {
            BEFORE.store(mask(), Relaxed);
        }

        unsafe fn write(bytes: &[u8]) {
            FRAME.write(bytes);
        }

        unsafe fn release() {
            FRAME.end(&super::LOG);
            // SAFETY: from `acquire`, which `defmt` calls once before.
            unsafe { unmask(BEFORE.load(Relaxed)) }
        }

        unsafe fn flush() {}
    }
}
// ANCHOR_END: global

/// Periods of SysTick since the start.
static PERIODS: AtomicU32 = AtomicU32::new(0);
/// So long is one, in microseconds: 2^24 ticks of 25 MHz.
const PERIOD: u64 = (1 << 24) / 25;

struct Uptime;

impl Clock for Uptime {
    fn now() -> Instant {
        Instant::from_micros(u64::from(PERIODS.load(Relaxed)) * PERIOD)
    }
}

extern "C" fn time_passed() {
    let periods = PERIODS.load(Relaxed).wrapping_add(1);
    PERIODS.store(periods, Relaxed);
    defmt::trace!("period {}", periods);
}

extern "C" fn byte_came() {
    UART.acknowledge();
    LINE.arrived();
}

/// `demo.Cache`, with a record of each value that is set.
struct Logged {
    cache: CacheService,
    /// The values before, the last one first.
    before: [i32; 2],
}

impl Cache for Logged {
    fn set_value(
        &mut self,
        request: &SetValueRequest,
        cx: Cx<'_, Responder<SetValueResponse>>,
    ) -> Result<SetValueResponse, Stop> {
        defmt::warn!(
            "value {=i32}, before {=[?]}",
            request.value,
            &self.before[..]
        );
        self.before = [request.value, self.before[0]];
        self.cache.set_value(request, cx)
    }

    fn get_value(
        &mut self,
        request: &GetValueRequest,
        cx: Cx<'_, Responder<GetValueResponse>>,
    ) -> Result<GetValueResponse, Stop> {
        self.cache.get_value(request, cx)
    }
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let Some(records) = LOG.records() else {
        sinew_rt::exit(3)
    };
    board::start();
    defmt::info!("started, with {=usize} bytes a packet", MTU);
    sinew_rt::unmask();
    let cache = Logged {
        cache: CacheService::new(),
        before: [0; 2],
    };
    let services = (cache::Serve(cache), log::Serve(records));
    let link = Link::new(
        Sender::<_, MTU>::new(&LINE),
        Receiver::<_, MTU>::new(&LINE),
        &VIA,
    );
    let mut serving = Serving::new(&SLOTS, services, link);
    run(&mut serving, Uptime::now, || {
        sleep_unless(|| LINE.take_ring())
    })
}
