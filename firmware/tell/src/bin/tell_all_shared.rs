//! `tell_all` over shared memory.
#![no_std]
#![no_main]

use tell::{device, log, memory};

tell::tells!(memory, log);

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    if let Some(log) = log::serve() {
        let services = (log::Logged(tell::demo()), tell::reflection(tell::ALL), log);
        let _ = memory::serve(device::observed(services, log::Counted(memory::Counted)));
    }
    sinew_rt::exit(3)
}
