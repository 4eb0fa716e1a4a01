//! Hart 0: calls to hart 1, and restarts of either. See [`pair::calls::all`].
#![no_std]
#![no_main]

use virt::Board;

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let wrong = pair::calls::all::<Board<0, 1>>().err();
    sinew_rt::exit(wrong.map_or(0, |wrong| wrong as u32))
}
