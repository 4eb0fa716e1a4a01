//! The demo, and how it fares: counters, and what each method does.
#![no_std]
#![no_main]

use tell::{device, uart};

tell::tells!(uart);

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    uart::serve_counted(device::observed(tell::demo(), uart::Counted))
}
