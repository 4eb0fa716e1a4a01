//! `tell_nothing` over shared memory.
#![no_std]
#![no_main]

use tell::memory;

tell::tells!(memory);

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let _ = memory::serve(tell::demo());
    sinew_rt::exit(3)
}
