//! `tell_reflection` over shared memory.
#![no_std]
#![no_main]

use tell::memory;

tell::tells!(memory);

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let _ = memory::serve((tell::demo(), tell::reflection(tell::PLAIN)));
    sinew_rt::exit(3)
}
