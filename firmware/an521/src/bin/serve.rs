//! The second core: `demo.Cache` and `demo.Kinds` for the first one.
#![no_std]
#![no_main]

use an521::Board;
use pair::Statics;

an521::vectors!(1);

static STATICS: Statics<Board<1>> = Statics::new();

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let _ = pair::serve(&STATICS);
    sinew_rt::exit(4)
}
