//! Hart 1: `demo.Cache` and `demo.Kinds` for hart 0.
#![no_std]
#![no_main]

use pair::Statics;
use virt::Board;

static STATICS: Statics<Board<1, 0>> = Statics::new();

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let _ = pair::serve(&STATICS);
    sinew_rt::exit(4)
}
