//! The first core: passes packets on between UART0 and the second core. Whoever calls a service at the UART is served
//! there, and neither side knows.
#![no_std]
#![no_main]

use an521::{Board, UART, Uart0, start_uart};
use pair::agreed::MTU;
use sinew_drive::bytes::Polled;
use sinew_drive::frames::{Receiver, Sender};

an521::vectors!(0);
sinew_rt::board!("machine=mps2-an521 link=uart mtu={} second=serve", MTU);

/// What arrives while the core does something else: the UART keeps one byte.
static BYTES: Polled<Uart0, 256> = Polled::new(UART);

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    start_uart();
    let _ = pair::relay::<Board<0>>(
        Sender::<_, MTU>::new(&BYTES),
        Receiver::<_, MTU>::new(&BYTES),
    );
    sinew_rt::exit(3)
}
