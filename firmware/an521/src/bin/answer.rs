//! The second core: answers messages of five words.
#![no_std]
#![no_main]

use an521::Board;

an521::vectors!(1);

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let _ = pair::answer::<Board<1>>();
    sinew_rt::exit(4)
}
