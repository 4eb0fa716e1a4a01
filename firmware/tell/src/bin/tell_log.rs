//! The demo, and what happens: a record of each call, and those of interrupt handlers.
#![no_std]
#![no_main]

use tell::{log, uart};

tell::tells!(uart, log);

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    if let Some(log) = log::serve() {
        uart::serve((log::Logged(tell::demo()), log));
    }
    sinew_rt::exit(3)
}
