//! The demo over the UART, and nothing of itself: what the other images `tell_*` are compared with.
#![no_std]
#![no_main]

use tell::uart;

tell::tells!(uart);

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    uart::serve(tell::demo())
}
