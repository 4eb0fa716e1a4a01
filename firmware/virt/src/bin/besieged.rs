//! Hart 0: calls to a hart 1 that scribbles. See [`pair::calls::besieged`].
#![no_std]
#![no_main]

use virt::Board;

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let wrong = pair::calls::besieged::<Board<0, 1>>().err();
    sinew_rt::exit(wrong.map_or(0, |wrong| wrong as u32))
}
