//! What the images `tell_*` are made of: the demo over UART0 or over shared memory, and of the services by which a
//! device tells of itself those that the image names.
//!
//! Interrupts have handlers: they keep what comes on the UART, look at the shared memory, and write records of their
//! own where the image has a log.
#![no_std]
#![forbid(unsafe_code)]

use core::cell::Cell;

use cortex_m as _; // its critical section
use critical_section::Mutex;
use sinew::rpc::{Schema, Slot};
use sinew::time::Instant;
use sinew_demo::pw::rpc::benchmark;
use sinew_demo::{BENCHMARK_SCHEMA, BenchmarkService, CacheService, KindsService, cache, kinds};
use sinew_services::reflection::{self, Schemas};

use an385::board::Clock;

pub mod device;
pub mod log;
pub mod memory;
pub mod uart;

/// The largest packet in bytes.
pub const MTU: usize = 512;
/// Calls that outlive their receive step, at a time.
pub const CALLS: usize = 5;

static SLOTS: [Slot; CALLS] = [const { Slot::new() }; CALLS];
static CLOCK: Mutex<Cell<Clock>> = Mutex::new(Cell::new(Clock::start()));

/// The time since the start, in any context.
pub fn now() -> Instant {
    let micros = critical_section::with(|cs| {
        let mut clock = CLOCK.borrow(cs).get();
        let micros = clock.micros();
        CLOCK.borrow(cs).set(clock);
        micros
    });
    Instant::from_micros(micros)
}

/// SysTick's handler: each of its periods is counted.
pub extern "C" fn time_passed() {
    now();
}

/// The services of the demo.
pub type Demo = (
    cache::Serve<CacheService>,
    kinds::Serve<KindsService<CALLS>>,
    benchmark::Serve<BenchmarkService>,
);

/// [`Demo`] without calls.
pub const fn demo() -> Demo {
    (
        cache::Serve(CacheService::new()),
        kinds::Serve(KindsService::new()),
        benchmark::Serve(BenchmarkService),
    )
}

/// Says what is served, by what the generator keeps for it.
pub const fn reflection(schemas: &'static [Schema]) -> reflection::Serve<Schemas> {
    reflection::Serve(Schemas(schemas))
}

/// The schema of the demo without the comments of its .proto files.
pub mod plain {
    #![allow(missing_docs)]
    sinew::include_proto!("plain");
}

/// What is served, without comments.
pub static PLAIN: &[Schema] = &[plain::SCHEMA];
/// The same of an image that tells everything.
pub static ALL: &[Schema] = &[
    plain::SCHEMA,
    sinew_services::log::SCHEMA.by_hash(),
    sinew_services::device::SCHEMA.by_hash(),
];
/// What is served, with the comments of the .proto files.
pub static WITH_COMMENTS: &[Schema] = &[sinew_demo::SCHEMA, BENCHMARK_SCHEMA];

/// What the emulator is told of an image, and its interrupt handlers: `tells!(uart)`, and `tells!(uart, log)` where they
/// write records.
#[macro_export]
macro_rules! tells {
    ($link:ident) => {
        $crate::tells!($link, $crate::time_passed, $crate::uart::byte_came);
    };
    ($link:ident, log) => {
        $crate::tells!($link, $crate::log::time_passed, $crate::log::byte_came);
    };
    (uart, $time:path, $byte:path) => {
        sinew_rt::board!("machine=mps2-an385 link=uart mtu={}", $crate::MTU);
        an385::interrupts!($time, $byte, an385::board::fault);
    };
    (memory, $time:path, $byte:path) => {
        sinew_rt::board!("machine=mps2-an385 link=shm mtu={}", $crate::MTU);
        an385::interrupts!($time, an385::board::fault, $crate::memory::rung);
    };
}
