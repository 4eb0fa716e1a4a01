//! Hart 1: as `serve`, and garbage in its own segment where hart 0 has said so.
#![no_std]
#![no_main]

use pair::Statics;
use virt::Board;

static STATICS: Statics<Board<1, 0>> = Statics::new();

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let _ = pair::serve_and_scribble(&STATICS);
    sinew_rt::exit(4)
}
