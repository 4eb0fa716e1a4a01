//! The first core: scribbles, and calls a second one that serves. See [`pair::calls::besieger`].
#![no_std]
#![no_main]

use an521::Board;

an521::vectors!(0);

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let wrong = pair::calls::besieger::<Board<0>>().err();
    sinew_rt::exit(wrong.map_or(0, |wrong| wrong as u32))
}
