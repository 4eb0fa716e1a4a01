//! A driver whose peer takes nothing sleeps: it is not woken by what it cannot move.

mod support;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use sinew::frame::Framing;
use sinew::link::{RecvError, Rx, SendError, Tx};
use sinew::rpc::packet::{PacketType, Route, encode};
use sinew::rpc::{Method, MethodId, ServerStats, Status};
use sinew_demo::{Num, kinds};
use sinew_io::bytes::ByteLink;
use sinew_io::{Link, Server, Want, threads};
use support::*;

/// A carrier that takes a few packets, then none, and brings a request for an endless stream.
struct Stuck {
    tx: Full,
    rx: Requests,
    rung: Arc<Rung>,
    waits: usize,
}

struct Full {
    room: usize,
    place: [u8; 256],
}

struct Requests {
    packet: Vec<u8>,
    left: usize,
    closed: bool,
}

#[derive(Default)]
struct Rung(AtomicBool);

impl Wake for Rung {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Tx for Full {
    fn mtu(&self) -> usize {
        self.place.len()
    }
    fn place(&mut self, _min: usize) -> Result<&mut [u8], SendError> {
        match self.room {
            0 => Err(SendError::Full),
            _ => Ok(&mut self.place),
        }
    }
    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        self.room -= usize::from(len > 0);
        Ok(())
    }
    fn flush(&mut self) {}
    fn arm(&mut self, _waker: &Waker) {}
}

impl Rx for Requests {
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError> {
        match self.left {
            _ if self.closed => Err(RecvError::Closed),
            0 => Ok(None),
            _ => Ok(Some(&self.packet)),
        }
    }
    fn release(&mut self) {
        self.left -= 1;
    }
    fn arm(&mut self, _waker: &Waker) {}
}

impl Link for Stuck {
    type Tx = Full;
    type Rx = Requests;
    fn halves(&mut self) -> (&mut Full, &mut Requests) {
        (&mut self.tx, &mut self.rx)
    }
    fn wait(&mut self, want: Want, _timeout: Option<Duration>) {
        assert_eq!(want, Want::Place);
        let rung = self.rung.0.swap(false, Ordering::SeqCst);
        self.waits += 1;
        // The first time, a packet may have come into a lane meanwhile.
        assert!(!rung || self.waits == 1, "woken by what cannot leave");
        self.rx.closed = self.waits == 4;
    }
    fn waker(&mut self) -> Waker {
        self.rung.clone().into()
    }
}

impl Stuck {
    fn asking_for_a_stream() -> Stuck {
        let packet = endless_count();
        Stuck {
            tx: Full {
                room: 3,
                place: [0; 256],
            },
            rx: Requests {
                packet,
                left: 1,
                closed: false,
            },
            rung: Arc::default(),
            waits: 0,
        }
    }
}

/// A REQUEST for a stream that does not end.
fn endless_count() -> Vec<u8> {
    request(kinds::method::Count::ID, u32::MAX)
}

fn request(method: MethodId, n: u32) -> Vec<u8> {
    let mut packet = vec![0; 64];
    let route = Route::new(1, method, 5);
    let request = Num { n };
    let len = encode(
        &mut packet,
        PacketType::REQUEST,
        &route,
        &request,
        Status::OK,
    )
    .unwrap();
    packet.truncate(len);
    packet
}

#[test]
fn stream_that_waits_for_the_carrier_does_not_wake_its_driver() {
    let mut link = Stuck::asking_for_a_stream();
    assert!(server().serve(&mut link, 1));
    assert_eq!(link.waits, 4);
}

#[test]
fn packet_in_hand_does_not_wake_a_driver_that_waits_for_a_place() {
    let (near, far) = UnixStream::pair().unwrap();
    let mut link = ByteLink::duplex(OwnedFd::from(near), Framing::HDLC, 1024).unwrap();
    let mut frame = [0; 64];
    let len = Framing::HDLC.encode(b"request", &mut frame).unwrap();
    // More than one read takes, so that the descriptor stays readable.
    std::io::Write::write_all(&mut &far, &frame[..len].repeat(1000)).unwrap();
    let (tx, rx) = link.halves();
    assert_eq!(rx.peek().unwrap(), Some(&b"request"[..]));
    while let Ok(place) = tx.place(1024) {
        place.fill(0x55);
        tx.commit(1024).unwrap();
        tx.flush();
    }
    let reader = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        std::io::copy(&mut &far, &mut std::io::sink())
    });
    link.wait(Want::Place, None);
    assert!(link.halves().0.place(1024).is_ok());
    drop(link);
    // The link has closed with unread packets, which some systems report as an error.
    let _ = reader.join().unwrap();
}

#[test]
fn packet_in_hand_does_not_wake_a_thread_that_waits_for_a_place() {
    let (mut near, mut far) = threads::link();
    far.halves().0.place(7).unwrap().fill(1);
    far.halves().0.commit(7).unwrap();
    let (tx, rx) = near.halves();
    assert_eq!(rx.peek().unwrap(), Some(&[1; 7][..]));
    while tx.place(1).is_ok() {
        tx.commit(1).unwrap();
    }
    // What is left of earlier wakes: one at most.
    near.wait(Want::Place, Some(Duration::ZERO));
    let reader = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        assert!(far.halves().1.peek().unwrap().is_some());
        far.halves().1.release();
        far
    });
    near.wait(Want::Place, None);
    assert!(near.halves().0.place(1).is_ok());
    reader.join().unwrap();
}

#[test]
fn stream_to_a_peer_that_closed_its_reading_side_ends_the_link() {
    let (requests, read) = UnixStream::pair().unwrap();
    let mut frame = [0; 128];
    let len = Framing::HDLC.encode(&endless_count(), &mut frame).unwrap();
    std::io::Write::write_all(&mut &requests, &frame[..len]).unwrap();
    let (answers, write) = UnixStream::pair().unwrap();
    drop(answers);
    let mut link = ByteLink::pipes(read.into(), write.into(), Framing::HDLC, 1024).unwrap();
    // Would not return: requests can still come.
    assert!(server().serve(&mut link, 1));
}

#[test]
fn peer_that_takes_nothing_for_too_long_is_given_up() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let link = ByteLink::duplex(near.into(), Framing::HDLC, 1024).unwrap();
    let mut link = link.with_patience(Duration::from_millis(20));
    let mut frame = [0; 128];
    let len = Framing::HDLC.encode(&endless_count(), &mut frame).unwrap();
    std::io::Write::write_all(&mut far, &frame[..len]).unwrap();
    // Would not return: the peer is there, and silent.
    assert!(server().serve(&mut link, 1));
}

#[test]
fn last_bytes_of_too_many_dropped_links_are_let_go() {
    let mut peers = Vec::new();
    for _ in 0..=64 {
        let (near, far) = UnixStream::pair().unwrap();
        let mut link = ByteLink::duplex(near.into(), Framing::HDLC, 1024).unwrap();
        let tx = link.halves().0;
        while let Ok(place) = tx.place(1024) {
            place.fill(0x55);
            tx.commit(1024).unwrap();
            tx.flush();
        }
        peers.push(far);
    }
    let taken = |mut peer: UnixStream| std::io::copy(&mut peer, &mut std::io::sink()).unwrap();
    let newest = peers.pop().map(taken).unwrap();
    let oldest = taken(peers.swap_remove(0));
    assert!(oldest < newest, "{oldest} of {newest}");
}

#[test]
fn requests_of_a_peer_that_closed_its_reading_side_are_not_counted_as_oversize() {
    let (mut requests, read) = UnixStream::pair().unwrap();
    let mut frame = [0; 128];
    let packet = request(kinds::method::Double::ID, 21);
    let len = Framing::HDLC.encode(&packet, &mut frame).unwrap();
    std::io::Write::write_all(&mut requests, &frame[..len].repeat(100)).unwrap();
    drop(requests);
    let (answers, write) = UnixStream::pair().unwrap();
    drop(answers);
    let mut link = ByteLink::pipes(read.into(), write.into(), Framing::HDLC, 1024).unwrap();
    let server = server();
    assert!(server.serve(&mut link, 1));
    assert_eq!(link.traffic().frames.frames, 100, "all of them are read");
    assert_eq!(server.stats(), ServerStats::default());
}

#[test]
fn stream_of_the_last_link_is_let_go_with_it() {
    let server = Server::<_, 64>::with_capacities(services(), 1);
    for _ in 0..3 {
        let mut link = Stuck::asking_for_a_stream();
        assert!(server.serve(&mut link, 1), "the seat is still taken");
    }
}
