//! The same with the comments of the .proto files.
#![no_std]
#![no_main]

use tell::uart;

tell::tells!(uart);

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    uart::serve((tell::demo(), tell::reflection(tell::WITH_COMMENTS)))
}
