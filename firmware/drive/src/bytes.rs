//! Bytes on a UART, with a buffer for what arrives while nobody reads.
//!
//! Who fills the buffer decides which of two a board takes: [`Polled`], where interrupts only end a sleep, or
//! [`Interrupted`], where the receive interrupt has a handler. The first needs no vector table, and loses
//! what comes faster than the loop turns while it does something else than sending; the second loses only
//! what the buffer cannot hold. A byte that is lost spoils its frame, which the frame's CRC tells.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU8, AtomicUsize, compiler_fence};
use core::task::Waker;

use sinew_shm::{Bell, Lock};

/// The registers of a UART, or whatever takes and gives bytes one by one.
pub trait Device {
    /// The byte that has arrived, if any.
    fn receive(&self) -> Option<u8>;
    /// Whether a byte can be given to it now.
    fn has_room(&self) -> bool;
    /// Gives it a byte to send, where it has room.
    fn send(&self, byte: u8);
}

/// Bytes both ways, as [`frames`](crate::frames) want them.
pub trait Bytes: Copy {
    /// The next byte that has arrived, if any.
    fn receive(&self) -> Option<u8>;
    /// Sends a byte, as soon as there is room for it.
    fn send(&self, byte: u8);
    /// Wakes `waker` once when a byte arrives or [`Bytes::ring`] is called, at once where that has happened since
    /// the last [`Bytes::receive`], and where nothing would tell.
    fn arm(&self, waker: &Waker);
    /// Wakes who reads: there is something to do for it.
    fn ring(&self);
}

/// Bytes that wait to be read: one context puts, one takes, and one may interrupt the other on the same core.
struct Arrived<const SIZE: usize> {
    bytes: [AtomicU8; SIZE],
    /// Free-running counts.
    put: AtomicUsize,
    taken: AtomicUsize,
}

impl<const SIZE: usize> Arrived<SIZE> {
    const fn new() -> Self {
        const { assert!(SIZE.is_power_of_two(), "so that counts may wrap") };
        Arrived {
            bytes: [const { AtomicU8::new(0) }; SIZE],
            put: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
        }
    }

    /// Puts the byte that `receive` gives, if any; `false` where there is no room, and nothing was received.
    #[inline]
    fn put(&self, receive: impl FnOnce() -> Option<u8>) -> bool {
        let put = self.put.load(Relaxed);
        if put.wrapping_sub(self.taken.load(Relaxed)) >= SIZE {
            return false;
        }
        if let (Some(place), Some(byte)) = (self.bytes.get(put % SIZE), receive()) {
            place.store(byte, Relaxed);
            // The reader is on this core: what it must see is the order of the program.
            compiler_fence(Release);
            self.put.store(put.wrapping_add(1), Relaxed);
        }
        true
    }

    fn take(&self) -> Option<u8> {
        let taken = self.taken.load(Relaxed);
        if taken == self.put.load(Relaxed) {
            return None;
        }
        compiler_fence(Acquire);
        let byte = self.bytes.get(taken % SIZE)?.load(Relaxed);
        compiler_fence(Release);
        self.taken.store(taken.wrapping_add(1), Relaxed);
        Some(byte)
    }
}

/// A device as it is: what arrives while nobody reads stays in the device, as far as it keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Bare<D>(pub D);

impl<D: Device + Copy> Bytes for Bare<D> {
    fn receive(&self) -> Option<u8> {
        self.0.receive()
    }

    fn send(&self, byte: u8) {
        while !self.0.has_room() {}
        self.0.send(byte);
    }

    fn arm(&self, waker: &Waker) {
        waker.wake_by_ref();
    }

    /// The loop looks at every turn.
    fn ring(&self) {}
}

/// A device that is looked at by the loop, also while the loop sends. `SIZE` is a power of two.
///
/// One context: no interrupt handler uses it.
pub struct Polled<D, const SIZE: usize> {
    device: D,
    arrived: Arrived<SIZE>,
}

impl<D: Device, const SIZE: usize> Polled<D, SIZE> {
    /// Nothing has arrived yet.
    pub const fn new(device: D) -> Self {
        Polled {
            device,
            arrived: Arrived::new(),
        }
    }

    /// Where there is no room, the byte stays in the device, and the next one may overrun it.
    #[inline(never)] // one copy for both directions
    fn collect(&self) {
        self.arrived.put(|| self.device.receive());
    }
}

impl<D: Device, const SIZE: usize> Bytes for &Polled<D, SIZE> {
    fn receive(&self) -> Option<u8> {
        self.collect();
        self.arrived.take()
    }

    fn send(&self, byte: u8) {
        while !self.device.has_room() {
            self.collect();
        }
        self.device.send(byte);
    }

    fn arm(&self, waker: &Waker) {
        waker.wake_by_ref();
    }

    /// The loop looks at every turn.
    fn ring(&self) {}
}

/// A device whose receive interrupt has a handler, which calls [`Interrupted::arrived`]. `SIZE` is a power of two.
pub struct Interrupted<D, L, const SIZE: usize> {
    device: D,
    arrived: Arrived<SIZE>,
    bell: Bell<L>,
    lost: AtomicUsize,
}

impl<D: Device, L: Lock, const SIZE: usize> Interrupted<D, L, SIZE> {
    /// Nothing has arrived yet. `L` keeps the handler out for the few instructions in which a waker is stored.
    pub const fn new(device: D) -> Self {
        Interrupted {
            device,
            arrived: Arrived::new(),
            bell: Bell::new(),
            lost: AtomicUsize::new(0),
        }
    }

    /// Takes what the device has received: to be called in its interrupt handler, and nowhere else, after the
    /// interrupt was taken back. At most `SIZE` bytes; what is left interrupts again.
    pub fn arrived(&self) {
        for _ in 0..SIZE {
            let Some(byte) = self.device.receive() else {
                break;
            };
            if !self.arrived.put(|| Some(byte)) {
                let lost = self.lost.load(Relaxed);
                self.lost.store(lost.wrapping_add(1), Relaxed);
            }
        }
        self.bell.ring();
    }

    /// Whether a byte has arrived, or somebody has rung, since the last look: asked with interrupts masked, before
    /// a core sleeps.
    pub fn take_ring(&self) -> bool {
        self.bell.take()
    }

    /// Bytes that found no room, and are lost. Wraps.
    pub fn lost(&self) -> usize {
        self.lost.load(Relaxed)
    }
}

impl<D: Device, L: Lock, const SIZE: usize> Bytes for &Interrupted<D, L, SIZE> {
    fn receive(&self) -> Option<u8> {
        self.bell.take(); // before the look: what comes later rings again
        self.arrived.take()
    }

    /// Waits with interrupts on, so that what arrives meanwhile is kept.
    fn send(&self, byte: u8) {
        while !self.device.has_room() {}
        self.device.send(byte);
    }

    fn arm(&self, waker: &Waker) {
        self.bell.arm(waker);
    }

    fn ring(&self) {
        self.bell.ring();
    }
}
