//! The second core: as `serve`, and garbage in its own segment where the first one has said so.
#![no_std]
#![no_main]

use an521::Board;
use pair::Statics;

an521::vectors!(1);

static STATICS: Statics<Board<1>> = Statics::new();

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let _ = pair::serve_and_scribble(&STATICS);
    sinew_rt::exit(4)
}
