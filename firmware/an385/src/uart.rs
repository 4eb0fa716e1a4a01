//! Frames on UART0, which the loop looks at.

use core::task::Waker;

use sinew_drive::bytes::{Bytes, Polled};
use sinew_drive::frames;

use crate::MTU;
use crate::board::{UART, Uart0};

/// UART0, with what arrives while the core sends: the UART itself keeps only one byte.
static UART0: Polled<Uart0, 128> = Polled::new(UART);

/// [`UART0`] as a value without size: half a dozen addresses less in the image.
#[derive(Clone, Copy, Debug)]
pub struct Line;

impl Bytes for Line {
    fn receive(&self) -> Option<u8> {
        (&UART0).receive()
    }

    fn send(&self, byte: u8) {
        (&UART0).send(byte);
    }

    fn arm(&self, waker: &Waker) {
        (&UART0).arm(waker);
    }

    fn ring(&self) {
        (&UART0).ring();
    }
}

/// The receiving half.
pub type Receiver<const N: usize = MTU> = frames::Receiver<Line, N>;
/// The sending half.
pub type Sender<const N: usize = MTU> = frames::Sender<Line, N>;

/// Both halves, for packets of at most `N` bytes.
pub const fn halves<const N: usize>() -> (Sender<N>, Receiver<N>) {
    (Sender::new(Line), Receiver::new(Line))
}
