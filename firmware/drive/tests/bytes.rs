//! Bytes, frames and a line over a device that this test plays.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use sinew::frame::hdlc::{Decoder, RPC_ADDRESS, put_frame};
use sinew::link::{Rx, Tx};
use sinew::rpc::{Channels, Via};
use sinew_drive::Line;
use sinew_drive::bytes::{Bytes, Device, Interrupted, Polled};
use sinew_drive::frames::{Receiver, Sender};
use sinew_shm::StdLock;

/// What arrives, what was sent, and how often the next byte finds no room yet.
#[derive(Default)]
struct Wires {
    arriving: VecDeque<u8>,
    sent: Vec<u8>,
    busy: usize,
}

#[derive(Clone, Default)]
struct Uart(Arc<Mutex<Wires>>);

impl Uart {
    fn wires(&self) -> std::sync::MutexGuard<'_, Wires> {
        self.0.lock().unwrap()
    }

    fn arrives(&self, packet: &[u8]) {
        put_frame(RPC_ADDRESS, packet, &mut |byte| {
            self.wires().arriving.push_back(byte)
        });
    }
}

impl Device for Uart {
    fn receive(&self) -> Option<u8> {
        self.wires().arriving.pop_front()
    }

    fn has_room(&self) -> bool {
        let mut wires = self.wires();
        wires.busy = wires.busy.saturating_sub(1);
        wires.busy == 0
    }

    fn send(&self, byte: u8) {
        let mut wires = self.wires();
        wires.sent.push(byte);
        wires.busy = 4; // and a byte arrives each time that it is looked at
    }
}

struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn what_arrives_while_the_loop_sends_is_kept() {
    let uart = Uart::default();
    let line: &'static Polled<Uart, 64> = Box::leak(Box::new(Polled::new(uart.clone())));
    uart.arrives(b"arrives meanwhile");
    let mut tx = Sender::<_, 64>::new(line);
    tx.place(4).unwrap()[..4].copy_from_slice(b"sent");
    tx.commit(4).unwrap();
    assert!(
        uart.wires().arriving.is_empty(),
        "taken out of the device while it sent"
    );
    let mut rx = Receiver::<_, 64>::new(line);
    assert_eq!(rx.peek(), Ok(Some(&b"arrives meanwhile"[..])));
    assert_eq!(
        rx.peek(),
        Ok(Some(&b"arrives meanwhile"[..])),
        "until it is released"
    );
    rx.release();
    assert_eq!(rx.peek(), Ok(None));
}

#[test]
fn handler_wakes_who_waits_for_bytes_and_nobody_twice() {
    let uart = Uart::default();
    let line: &'static Interrupted<Uart, StdLock, 64> =
        Box::leak(Box::new(Interrupted::new(uart.clone())));
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let waker = Waker::from(woken.clone());
    let mut rx = Receiver::<_, 64>::new(line);
    assert_eq!(rx.peek(), Ok(None));
    rx.arm(&waker);
    assert_eq!(woken.0.load(Ordering::Relaxed), 0);
    uart.arrives(b"one");
    line.arrived();
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    assert_eq!(rx.peek(), Ok(Some(&b"one"[..])));
    rx.release();
    assert_eq!(rx.peek(), Ok(None));
    rx.arm(&waker);
    assert_eq!(
        woken.0.load(Ordering::Relaxed),
        1,
        "nothing has come since it looked"
    );
    uart.arrives(b"two");
    line.arrived();
    assert_eq!(woken.0.load(Ordering::Relaxed), 2);
    rx.arm(&waker);
    assert_eq!(
        woken.0.load(Ordering::Relaxed),
        3,
        "at once: it has not looked yet"
    );
}

#[test]
fn bytes_without_room_are_lost_counted_and_cost_their_frame_alone() {
    let uart = Uart::default();
    let line: &'static Interrupted<Uart, StdLock, 16> =
        Box::leak(Box::new(Interrupted::new(uart.clone())));
    uart.arrives(&[0x55; 40]);
    while !uart.wires().arriving.is_empty() {
        line.arrived();
    }
    assert_eq!(line.lost(), 48 - 16);
    let mut rx = Receiver::<_, 64>::new(line);
    assert_eq!(rx.peek(), Ok(None));
    uart.arrives(b"next");
    line.arrived();
    assert_eq!(rx.peek(), Ok(Some(&b"next"[..])));
    assert_eq!((&line).receive(), None);
}

static VIA: Via = Via {
    link: 0,
    channels: Channels::Any,
    port: None,
    bulk: None,
};

/// Says what has arrived, as it is.
fn echo(packet: Option<&[u8]>, place: &mut [u8]) -> usize {
    let packet = packet.unwrap_or_default();
    place[..packet.len()].copy_from_slice(packet);
    packet.len()
}

#[test]
fn line_decodes_what_arrives_while_it_sends_and_leaves_the_packet_behind_it_in_the_device() {
    let uart = Uart::default();
    let mut line = Line::<_, 64>::new(uart.clone(), &VIA);
    uart.arrives(b"first");
    let first = uart.wires().arriving.len();
    uart.arrives(b"second");
    uart.arrives(b"third");
    let arriving = uart.wires().arriving.len();
    assert!(line.turn(|packet, place| {
        assert_eq!(packet, Some(&b"first"[..]));
        assert_eq!(uart.wires().arriving.len(), arriving - first);
        place[..16].fill(b'.');
        16
    }));
    assert_eq!(
        uart.wires().arriving.len(),
        b"third".len() + 8,
        "second is decoded, and third waits for it"
    );
    assert!(line.turn(echo));
    assert!(line.turn(echo));
    assert!(!line.turn(echo), "nothing more");

    let sent = uart.wires().sent.clone();
    let mut frames = &sent[..];
    let (mut decoder, mut place) = (Decoder::new(RPC_ADDRESS), [0; 64]);
    for packet in [&b"................"[..], b"second", b"third"] {
        assert_eq!(decoder.decode(&mut place, &mut frames), Some(packet));
    }
}
