//! What the rules are written with.

use std::format;
use std::string::String;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use std::vec::Vec;

use super::Harness;
use crate::link::{RecvError, Rx, SendError, Tx};

/// Ends a check where a condition does not hold.
macro_rules! ensure {
    ($condition:expr, $($detail:tt)+) => {
        if !$condition {
            return Err(std::format!($($detail)+));
        }
    };
}
pub(super) use ensure;

/// A waker that counts, and wakes the thread that made it.
pub(super) struct Alarm {
    count: AtomicUsize,
    thread: Thread,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, Ordering::Release);
        self.thread.unpark();
    }
}

impl Alarm {
    pub(super) fn new() -> (Arc<Self>, Waker) {
        let alarm = Arc::new(Alarm {
            count: AtomicUsize::new(0),
            thread: thread::current(),
        });
        (alarm.clone(), alarm.into())
    }

    /// Waits until it was woken. False where that never comes.
    pub(super) fn wait(&self, patience: Duration, mut settle: impl FnMut()) -> bool {
        let start = Instant::now();
        while self.count.load(Ordering::Acquire) == 0 {
            if start.elapsed() > patience {
                return false;
            }
            settle();
            if self.count.load(Ordering::Acquire) == 0 {
                thread::park_timeout(Duration::from_millis(1));
            }
        }
        true
    }
}

/// A packet whose every byte says where it belongs.
pub(super) fn pattern(seq: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (seq.wrapping_mul(37) ^ at.wrapping_mul(11) ^ (at >> 8)) as u8)
        .collect()
}

/// Writes and commits one packet.
pub(super) fn try_send(tx: &mut dyn Tx, packet: &[u8]) -> Result<(), SendError> {
    let place = tx.place(packet.len())?;
    place
        .get_mut(..packet.len())
        .ok_or(SendError::TooLarge)?
        .copy_from_slice(packet);
    tx.commit(packet.len())?;
    tx.flush();
    Ok(())
}

/// Sends one packet, and waits for a place where there is none.
pub(super) fn send(h: &mut dyn Harness, tx: &mut dyn Tx, packet: &[u8]) -> Result<(), String> {
    loop {
        match try_send(tx, packet) {
            Ok(()) => return Ok(()),
            Err(SendError::Full) => {
                let (alarm, waker) = Alarm::new();
                tx.arm(&waker);
                let patience = h.patience();
                ensure!(alarm.wait(patience, || h.settle()), "no place comes back");
            }
            Err(refused) => return Err(format!("sending {} bytes: {refused:?}", packet.len())),
        }
    }
}

/// Why `receive` ended without a packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Nothing {
    Closed,
    NeverCame,
    NotWoken,
}

/// Takes the next packet, and waits for it by `arm` alone.
pub(super) fn receive(h: &mut dyn Harness, rx: &mut dyn Rx) -> Result<Vec<u8>, Nothing> {
    loop {
        match take(rx) {
            Err(RecvError::Closed) => return Err(Nothing::Closed),
            Ok(Some(packet)) => return Ok(packet),
            Ok(None) => {}
        }
        let (alarm, waker) = Alarm::new();
        rx.arm(&waker);
        let patience = h.patience();
        if !alarm.wait(patience, || h.settle()) {
            let came = !matches!(rx.peek(), Ok(None));
            return Err(if came {
                Nothing::NotWoken
            } else {
                Nothing::NeverCame
            });
        }
    }
}

/// Takes the next packet if it is there.
pub(super) fn take(rx: &mut dyn Rx) -> Result<Option<Vec<u8>>, RecvError> {
    let packet = rx.peek()?.map(Vec::from);
    if packet.is_some() {
        rx.release();
    }
    Ok(packet)
}

/// Takes the next packet, which has to be this one.
pub(super) fn expect(h: &mut dyn Harness, rx: &mut dyn Rx, packet: &[u8]) -> Result<(), String> {
    let got = receive(h, rx).map_err(|nothing| format!("receiving: {nothing:?}"))?;
    same(&got, packet)
}

/// Sends one packet and receives it, again and again where the carrier may lose it.
pub(super) fn deliver(
    h: &mut dyn Harness,
    tx: &mut dyn Tx,
    rx: &mut dyn Rx,
    packet: &[u8],
) -> Result<(), String> {
    send(h, tx, packet)?;
    let mut got = receive(h, rx);
    for _ in 0..5 {
        if got != Err(Nothing::NeverCame) || !h.may_lose() {
            break;
        }
        send(h, tx, packet)?;
        got = receive(h, rx);
    }
    same(
        &got.map_err(|nothing| format!("receiving: {nothing:?}"))?,
        packet,
    )
}

pub(super) fn same(got: &[u8], packet: &[u8]) -> Result<(), String> {
    ensure!(
        got.len() == packet.len(),
        "{} bytes came, not {}",
        got.len(),
        packet.len()
    );
    ensure!(
        got == packet,
        "another packet of {} bytes came, or a damaged one",
        got.len()
    );
    Ok(())
}

/// Waits until a packet is there, and leaves it.
pub(super) fn await_packet(h: &mut dyn Harness, rx: &mut dyn Rx) -> Result<(), String> {
    let (alarm, waker) = Alarm::new();
    rx.arm(&waker);
    let patience = h.patience();
    ensure!(
        alarm.wait(patience, || h.settle()),
        "an armed receiver is not woken by a packet"
    );
    Ok(())
}

/// Sends with `send` until the link is full and stays so, and returns how many went.
pub(super) fn fill(
    h: &mut dyn Harness,
    mut send: impl FnMut(usize) -> Result<(), SendError>,
) -> Result<usize, String> {
    /// More than any carrier holds.
    const MANY: usize = 4_000_000;
    let mut sent = 0;
    let mut refused = 0;
    // A pump may make room once more after a refusal.
    while refused < 20 {
        match send(sent) {
            Ok(()) => {
                sent += 1;
                refused = 0;
            }
            Err(SendError::Full) => {
                refused += 1;
                h.settle();
                thread::yield_now();
            }
            Err(other) => return Err(format!("filling: {other:?}")),
        }
        ensure!(sent < MANY, "never Full");
    }
    Ok(sent)
}
