//! The plainest link over a UART: frames both ways, and no buffer between the device and the decoder.
//!
//! What arrives while the core sends is decoded meanwhile, up to the end of a packet; of what comes behind it the
//! device keeps what it can. That is enough for a peer with one packet under way; for more there are the halves of
//! [`frames`](crate::frames) over a buffer. What the port of its `Via` sends (late answers, streams) leaves without
//! this: a [`Direct`](crate::frames::Direct) over [`Bare`](crate::bytes::Bare) looks at nothing while it waits.
//!
//! One context: the loop looks at the device, and interrupts only end a sleep.

use core::task::Waker;

use sinew::frame::hdlc::{RPC_ADDRESS, put_frame};
use sinew::rpc::{Server, Service, Via};
use sinew::time::Instant;

use crate::bytes::Device;
use crate::frames::Arriving;
use crate::serving::{Links, answer};

/// A link over `D`, for packets of at most `N` bytes.
#[repr(C)] // the buffers last: what is used most is near the start, where Thumb reaches it in two bytes
pub struct Line<'v, D, const N: usize> {
    device: D,
    via: &'v Via,
    arriving: Arriving<N>,
    leaving: [u8; N],
}

impl<'v, D: Device, const N: usize> Line<'v, D, N> {
    /// A line at the start of the stream.
    pub const fn new(device: D, via: &'v Via) -> Self {
        Line {
            device,
            via,
            arriving: Arriving::new(),
            leaving: [0; N],
        }
    }

    /// One turn: gives the packet that has arrived, if any, and the place for an answer to `step`, and sends as
    /// much of that as `step` says. Whether there was anything to do.
    pub fn turn(&mut self, step: impl FnOnce(Option<&[u8]>, &mut [u8]) -> usize) -> bool {
        while collect(&self.device, &mut self.arriving) {}
        let packet = self.arriving.packet();
        let received = packet.is_some();
        let len = step(packet, &mut self.leaving);
        self.arriving.release();
        if let Some(packet @ [_, ..]) = self.leaving.get(..len) {
            put_frame(RPC_ADDRESS, packet, &mut |byte| {
                put(&self.device, &mut self.arriving, byte)
            });
        }
        received || len > 0
    }
}

/// Takes a byte out of the device; `false` where it has none, or a packet waits.
#[inline(never)] // one copy for both directions
fn collect<const N: usize>(device: &impl Device, arriving: &mut Arriving<N>) -> bool {
    arriving.take(|| device.receive())
}

#[inline(never)] // one copy: a closure behind `dyn` has two
fn put<const N: usize>(device: &impl Device, arriving: &mut Arriving<N>, byte: u8) {
    while !device.has_room() {
        collect(device, arriving);
    }
    device.send(byte);
}

impl<D: Device, const N: usize> Links for Line<'_, D, N> {
    fn turn<S: Service, const CALLS: usize>(
        &mut self,
        server: &mut Server<CALLS>,
        services: &mut S,
        now: Instant,
    ) -> bool {
        let via = self.via;
        Line::turn(self, |packet, place| {
            answer(server, packet, via, place, services, now)
        })
    }

    fn arm(&mut self, waker: &Waker) {
        waker.wake_by_ref();
    }
}
