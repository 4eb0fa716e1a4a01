//! The demo, and what is served.
#![no_std]
#![no_main]

use tell::uart;

tell::tells!(uart);

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    uart::serve((tell::demo(), tell::reflection(tell::PLAIN)))
}
