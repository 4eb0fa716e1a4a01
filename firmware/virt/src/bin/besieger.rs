//! Hart 0: scribbles, and calls hart 1, which serves. See [`pair::calls::besieger`].
#![no_std]
#![no_main]

use virt::Board;

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let wrong = pair::calls::besieger::<Board<0, 1>>().err();
    sinew_rt::exit(wrong.map_or(0, |wrong| wrong as u32))
}
