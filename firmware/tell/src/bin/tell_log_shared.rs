//! `tell_log` over shared memory.
#![no_std]
#![no_main]

use tell::{log, memory};

tell::tells!(memory, log);

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    if let Some(log) = log::serve() {
        let _ = memory::serve((log::Logged(tell::demo()), log));
    }
    sinew_rt::exit(3)
}
