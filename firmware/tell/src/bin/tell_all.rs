//! The demo, and everything of itself: what is served, what happens, and how it fares.
#![no_std]
#![no_main]

use tell::{device, log, uart};

tell::tells!(uart, log);

// ANCHOR: image
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    if let Some(log) = log::serve() {
        let services = (log::Logged(tell::demo()), tell::reflection(tell::ALL), log);
        uart::serve_counted(device::observed(services, log::Counted(uart::Counted)));
    }
    sinew_rt::exit(3)
}
// ANCHOR_END: image
