//! Hart 1: answers messages of five words.
#![no_std]
#![no_main]

use virt::Board;

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let _ = pair::answer::<Board<1, 0>>();
    sinew_rt::exit(4)
}
