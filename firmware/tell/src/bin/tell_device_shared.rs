//! `tell_device` over shared memory.
#![no_std]
#![no_main]

use tell::{device, memory};

tell::tells!(memory);

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let _ = memory::serve(device::observed(tell::demo(), memory::Counted));
    sinew_rt::exit(3)
}
