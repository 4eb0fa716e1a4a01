//! Calls over UART0 with everything in statics: one buffer for the packet that arrives, and one for the packet
//! that leaves.
//!
//! What arrives while the core sends is decoded meanwhile, up to the end of a packet; the UART keeps one
//! byte more. So there is no buffer between UART and decoder.
//!
//! One context: nothing here may be used by an interrupt handler.

use core::task::Waker;

use sinew::frame::hdlc::{Decoder, RPC_ADDRESS, put_frame};
use sinew::link::{Port, SendError};

use sinew_drive::bytes::Device as _;

use crate::board::UART;
use crate::lock::Exclusive;

/// The link over UART0, for packets of at most `N` bytes.
pub struct Line<const N: usize> {
    /// Apart from each other, as only one of the three does not start as zeros.
    pub decoding: &'static Exclusive<Decoding>,
    /// The packet that arrives.
    pub arriving: &'static Exclusive<[u8; N]>,
    /// The packet that leaves.
    pub leaving: &'static Exclusive<[u8; N]>,
}

/// A static [`Line`] with what it needs, for packets of at most so many bytes: `line!(LINE, 512);`.
#[macro_export]
macro_rules! line {
    ($name:ident, $size:literal) => {
        static $name: $crate::line::Line<$size> = {
            use $crate::{line::Decoding, lock::Exclusive};
            static DECODING: Exclusive<Decoding> = Exclusive::new(Decoding::new());
            static ARRIVING: Exclusive<[u8; $size]> = Exclusive::new([0; $size]);
            static LEAVING: Exclusive<[u8; $size]> = Exclusive::new([0; $size]);
            $crate::line::Line {
                decoding: &DECODING,
                arriving: &ARRIVING,
                leaving: &LEAVING,
            }
        };
    };
}

/// How far the packet has arrived.
pub struct Decoding {
    decoder: Decoder,
    /// Length of the packet that waits to be handled; 0 where there is none.
    waiting: usize,
}

impl Decoding {
    /// At the start of the stream.
    pub const fn new() -> Self {
        Decoding {
            decoder: Decoder::new(RPC_ADDRESS),
            waiting: 0,
        }
    }
}

impl Default for Decoding {
    fn default() -> Self {
        Decoding::new()
    }
}

impl<const N: usize> Line<N> {
    /// Takes what the UART has received, up to the end of a packet; `false` where there is nothing, or a packet
    /// waits.
    #[inline(never)] // one copy for the loop and for what sends
    fn collect(&self) -> bool {
        let collected = self.arriving.with(|place| {
            self.decoding.with(|Decoding { decoder, waiting }| {
                if *waiting > 0 {
                    return false;
                }
                let byte = UART.receive();
                let packet = decoder.decode(place, &mut byte.as_slice());
                *waiting = packet.map_or(0, |packet| packet.len());
                byte.is_some()
            })
        });
        matches!(collected, Some(Some(true)))
    }

    /// One turn: gives the packet that has arrived, if any, and the place for an answer to `step`, and sends as
    /// much of that as `step` says. Whether there was anything to do.
    pub fn turn(&self, step: impl FnOnce(Option<&[u8]>, &mut [u8]) -> usize) -> bool {
        while self.collect() {}
        let done = self.leaving.with(|place| {
            let len = self.arriving.with(|arrived| {
                let waiting = self.decoding.with(|it| core::mem::take(&mut it.waiting));
                let packet = arrived.get(..waiting.unwrap_or(0));
                let packet = packet.filter(|packet| !packet.is_empty());
                (packet.is_some(), step(packet, place))
            });
            let (received, len) = len.unwrap_or_default();
            self.send(place, len);
            received || len > 0
        });
        done == Some(true)
    }

    fn send(&self, place: &[u8], len: usize) {
        if let Some(packet @ [_, ..]) = place.get(..len) {
            put_frame(RPC_ADDRESS, packet, &mut |byte| self.put(byte));
        }
    }

    #[inline(never)] // one copy: a closure behind `dyn` has two
    fn put(&self, byte: u8) {
        while !UART.has_room() {
            self.collect();
        }
        UART.send(byte);
    }
}

impl<const N: usize> Port for Line<N> {
    fn mtu(&self) -> usize {
        N
    }

    fn send(&self, min: usize, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> Result<(), SendError> {
        if min > N {
            return Err(SendError::TooLarge);
        }
        let sent = self.leaving.with(|place| {
            let len = fill(place);
            self.send(place, len);
        });
        // In a step of the engine its place is in use.
        sent.ok_or(SendError::Full)
    }

    fn arm(&self, waker: &Waker) {
        waker.wake_by_ref();
    }

    /// The loop looks at every turn.
    fn ring(&self) {}
}
