//! The demo services on the UART, without a queue, on one hart.
#![no_std]
#![no_main]

use sinew::rpc::{Channels, Slot, Via};
use sinew::time::Instant;
use sinew_demo::{CacheService, KindsService, cache, kinds};
use sinew_drive::bytes::Polled;
use sinew_drive::frames::{Direct, Receiver, Sender};
use sinew_drive::{Link, Serving, run};
use virt::{TIMER, UART, Uart0, sleep, start_uart};

sinew_rt::board!("machine=virt link=uart mtu={}", MTU);

/// The largest packet in bytes.
const MTU: usize = 64;
/// Calls that outlive their receive step, at a time.
const CALLS: usize = 4;

// ANCHOR: image
/// What arrives while the hart does something else: the UART keeps 16 bytes.
static BYTES: Polled<Uart0, 128> = Polled::new(UART);
static SLOTS: [Slot; CALLS] = [const { Slot::new() }; CALLS];
static VIA: Via = Via {
    link: 0,
    channels: Channels::Any,
    port: Some(&Direct::<_, MTU>(&BYTES)),
    bulk: None,
};

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    start_uart();
    let link = Link::new(
        Sender::<_, MTU>::new(&BYTES),
        Receiver::<_, MTU>::new(&BYTES),
        &VIA,
    );
    let services = (
        cache::Serve(CacheService::new()),
        kinds::Serve(KindsService::<CALLS>::new()),
    );
    let mut serving = Serving::new(&SLOTS, services, link);
    run(&mut serving, || Instant::from_micros(TIMER.micros()), sleep)
}
// ANCHOR_END: image
