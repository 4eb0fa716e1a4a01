//! Halves of a link that live apart: each kind, with a thread that sleeps on its receiving half.

mod support;

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::task::{Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use sinew::frame::Framing;
use sinew::frame::length::Width;
use sinew::link::{RecvError, SendError, Tx};
use sinew_io::apart::{self, Apart, Listener};
use sinew_io::bytes::ByteLink;
use sinew_io::endpoint::{Endpoint, Use};
use sinew_io::open::serial;
use sinew_io::{stream, threads};

fn endpoint(text: &str) -> Endpoint {
    Endpoint::parse(text, Use::Batches).unwrap()
}

fn pair(at: &str) -> (Apart, Apart) {
    let mut listener = apart::listen(&endpoint(at)).unwrap();
    connected(&mut listener)
}

fn connected(listener: &mut Listener) -> (Apart, Apart) {
    let at = listener.endpoint().clone();
    let near = thread::spawn(move || apart::open(&at).unwrap());
    let far = listener.accept_within(None).unwrap();
    (near.join().unwrap(), far)
}

/// Waits for a packet by sleeping alone.
fn receive(link: &mut Apart) -> Result<Vec<u8>, RecvError> {
    loop {
        if let Some(packet) = link.rx.peek()? {
            let packet = packet.to_vec();
            link.rx.release();
            return Ok(packet);
        }
        link.rx.wait(None);
    }
}

/// Sends one packet; waits for a place on the receiving half, whose waker the sending one calls.
fn send(link: &mut Apart, packet: &[u8]) -> Result<(), SendError> {
    let waker = link.rx.waker();
    loop {
        match link.tx.place(packet.len()) {
            Ok(place) => place[..packet.len()].copy_from_slice(packet),
            Err(SendError::Full) => {
                link.tx.arm(&waker);
                link.rx.wait(Some(Duration::from_secs(1)));
                continue;
            }
            Err(error) => return Err(error),
        }
        link.tx.commit(packet.len())?;
        link.tx.flush();
        return Ok(());
    }
}

/// Sends everything back until the link closes.
fn echo(mut link: Apart) -> JoinHandle<usize> {
    thread::spawn(move || {
        let mut count = 0;
        while let Ok(packet) = receive(&mut link) {
            if send(&mut link, &packet).is_err() {
                break;
            }
            count += 1;
        }
        count
    })
}

fn pattern(seq: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (seq.wrapping_mul(37) ^ at.wrapping_mul(11) ^ (at >> 8)) as u8)
        .collect()
}

/// Packets of all sizes go there and come back.
fn sizes_come_back((mut near, far): (Apart, Apart)) {
    let echo = echo(far);
    let mtu = near.tx.mtu();
    let mut sizes = vec![1, 2, 3, 63, 64, 255, 256, 1000, mtu / 2, mtu - 1, mtu];
    sizes.extend((1..200).map(|seq| 1 + seq * 7919 % mtu));
    sizes.retain(|&len| len <= mtu);
    let count = sizes.len();
    for (seq, len) in sizes.into_iter().enumerate() {
        let packet = pattern(seq, len);
        send(&mut near, &packet).unwrap();
        assert!(receive(&mut near).unwrap() == packet, "packet {seq}");
    }
    assert_eq!(near.rx.traffic().frames.frames as usize, count);
    drop(near);
    drop(echo);
}

#[test]
fn threads_that_sleep_on_their_half_hear_of_each_packet() {
    let path = support::fresh_path("sock");
    let path = path.display();
    sizes_come_back(pair("tcp:127.0.0.1:0"));
    sizes_come_back(pair("tcp:127.0.0.1:0?frame=hdlc"));
    sizes_come_back(pair(&format!("unix:{path}")));
    sizes_come_back(pair(&format!("unix:{path}?frame=len&mtu=65535")));
    sizes_come_back(pair(&format!("shm:{path}")));
    sizes_come_back(pair(&format!("shm:{path}?mtu=65535&spin=0")));
    let (near, far) = threads::link();
    sizes_come_back((near.apart(), far.apart()));
    let (master, path) = support::pty();
    let slave = serial::open(&path, 115_200).unwrap();
    let [near, far] =
        [master, slave].map(|line| ByteLink::duplex(line, Framing::HDLC, 512).unwrap());
    sizes_come_back((near.apart(), far.apart()));
}

#[test]
fn datagrams_up_to_the_largest_come_back() {
    let mut listener = apart::listen(&endpoint("udp:127.0.0.1:0?mtu=65487")).unwrap();
    let mut near = apart::open(listener.endpoint()).unwrap();
    // The first datagram makes the link.
    send(&mut near, &[1]).unwrap();
    let mut far = listener.accept_within(None).unwrap();
    assert_eq!(receive(&mut far).unwrap(), [1]);
    sizes_come_back((near, far));
}

#[test]
fn each_address_has_a_link_of_its_own_with_its_first_packets() {
    let mut listener = apart::listen(&endpoint("udp:127.0.0.1:0")).unwrap();
    let near: Vec<Apart> = (0..8)
        .map(|id| {
            let mut near = apart::open(listener.endpoint()).unwrap();
            send(&mut near, &[id, 0]).unwrap();
            send(&mut near, &[id, 1]).unwrap();
            near
        })
        .collect();
    let mut far: Vec<Apart> = near
        .iter()
        .map(|_| listener.accept_within(None).unwrap())
        .collect();
    // What else has come is handed to its link when the listener looks.
    assert!(listener.accept_within(Some(Duration::ZERO)).is_none());
    for far in &mut far {
        let first = receive(far).unwrap();
        let id = first[0];
        assert_eq!(first, [id, 0]);
        assert_eq!(receive(far).unwrap(), [id, 1]);
        send(far, &[id, 2]).unwrap();
    }
    for (id, mut near) in near.into_iter().enumerate() {
        assert_eq!(receive(&mut near).unwrap(), [id as u8, 2]);
        // From now on the kernel finds the link.
        send(&mut near, &[id as u8, 3]).unwrap();
    }
    for far in &mut far {
        assert_eq!(receive(far).unwrap()[1], 3);
    }
    assert_eq!(listener.refused(), 0);
}

#[test]
fn port_with_links_is_not_free_for_another_program() {
    let mut listener = apart::listen(&endpoint("udp:127.0.0.1:0")).unwrap();
    let mut near = apart::open(listener.endpoint()).unwrap();
    send(&mut near, &[1]).unwrap();
    let _far = listener.accept_within(None).unwrap();
    let again = apart::listen(listener.endpoint());
    let text = again.err().unwrap().to_string();
    assert!(text.contains("already in use"), "{text}");
    // Not even with what lets several share it.
    use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};
    let other = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
    sockopt::set_socket_reuseaddr(&other, true).unwrap();
    let socket: std::net::SocketAddr = listener.endpoint().to_string()[4..].parse().unwrap();
    assert!(bind(&other, &socket).is_err());
    drop(UdpSocket::from(other));
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Fills the link; when it is full the other side reads, and the armed waker is called although nobody
/// sleeps on this side's receiving half.
fn room_wakes((mut near, mut far): (Apart, Apart)) {
    let len = near.tx.mtu().min(8192);
    let waker: Waker = Arc::new(Unpark(thread::current())).into();
    let total = 4000;
    let (full, is_full) = channel();
    let reader = thread::spawn(move || {
        is_full.recv().unwrap();
        for seq in 0..total {
            assert_eq!(receive(&mut far).unwrap()[0], seq as u8);
        }
        far
    });
    for seq in 0..total {
        while let Err(error) = near.tx.place(len).map(|place| place[0] = seq as u8) {
            assert_eq!(error, SendError::Full);
            let _ = full.send(());
            near.tx.arm(&waker);
            thread::park();
        }
        near.tx.commit(len).unwrap();
        near.tx.flush();
    }
    // Where the link was never full, it has not begun.
    drop(full);
    reader.join().unwrap();
}

#[test]
fn room_wakes_a_sender_whose_receiving_half_is_asleep_or_busy() {
    let path = support::fresh_path("sock");
    let path = path.display();
    room_wakes(pair("tcp:127.0.0.1:0"));
    room_wakes(pair(&format!("unix:{path}")));
    room_wakes(pair(&format!("unix:{path}?frame=hdlc")));
    room_wakes(pair(&format!("shm:{path}")));
    let (near, far) = threads::link();
    room_wakes((near.apart(), far.apart()));
}

#[test]
fn waker_ends_a_sleep_once() {
    let path = support::fresh_path("sock");
    let path = path.display();
    for (mut near, _far) in [pair("tcp:127.0.0.1:0"), pair(&format!("shm:{path}")), {
        let (near, far) = threads::link();
        (near.apart(), far.apart())
    }] {
        let waker = near.rx.waker();
        waker.wake_by_ref();
        near.rx.wait(None);
        let later = thread::spawn(move || {
            thread::sleep(Duration::from_millis(10));
            waker.wake();
        });
        near.rx.wait(None);
        later.join().unwrap();
    }
}

#[test]
fn end_of_the_peer_wakes_and_what_it_sent_comes_first() {
    let path = support::fresh_path("sock");
    let path = path.display();
    for at in [
        "tcp:127.0.0.1:0".into(),
        format!("unix:{path}"),
        format!("shm:{path}"),
    ] {
        let (mut near, mut far) = pair(&at);
        let reader = thread::spawn(move || {
            let first = receive(&mut near);
            (first, receive(&mut near))
        });
        send(&mut far, b"last").unwrap();
        drop(far);
        let seen = reader.join().unwrap();
        assert_eq!(seen, (Ok(b"last".to_vec()), Err(RecvError::Closed)), "{at}");
    }
}

#[test]
fn child_process_lives_as_long_as_one_of_its_halves() {
    let mut link = apart::open(&endpoint("exec:cat")).unwrap();
    send(&mut link, b"there and back").unwrap();
    assert_eq!(receive(&mut link).unwrap(), b"there and back");
    let Apart { tx, mut rx } = link;
    drop(tx);
    // Its input has ended, so it does.
    while rx.peek() == Ok(None) {
        rx.wait(None);
    }
    assert_eq!(rx.peek(), Err(RecvError::Closed));
}

#[test]
fn listener_is_called_away_and_gives_the_one_line_once() {
    let mut listener = apart::listen(&endpoint("tcp:127.0.0.1:0")).unwrap();
    let waker = listener.waker();
    let later = thread::spawn(move || waker.wake());
    assert!(listener.accept_within(None).is_none());
    later.join().unwrap();
    assert!(
        listener
            .accept_within(Some(Duration::from_millis(1)))
            .is_none()
    );
    let mut listener = apart::listen(&endpoint("exec:cat")).unwrap();
    assert!(listener.accept_within(None).is_some());
    assert!(listener.accept_within(Some(Duration::ZERO)).is_none());
}

#[test]
fn length_above_the_mtu_ends_the_link_and_is_counted() {
    let (mut near, mut far) = {
        let mut listener = apart::listen(&endpoint("tcp:127.0.0.1:0?mtu=64")).unwrap();
        let at = format!("{}?mtu=65", listener.endpoint().address);
        let near = apart::open(&endpoint(&at)).unwrap();
        (near, listener.accept_within(None).unwrap())
    };
    send(&mut near, &[1; 64]).unwrap();
    send(&mut near, &[2; 65]).unwrap();
    assert_eq!(receive(&mut far).unwrap(), [1; 64]);
    assert_eq!(receive(&mut far), Err(RecvError::Closed));
    assert_eq!(far.rx.traffic().frames.too_large, 1);
}

#[test]
fn what_is_committed_leaves_although_a_place_is_in_hand() {
    let (mut near, mut far) = pair("tcp:127.0.0.1:0");
    near.tx.place(4).unwrap()[..4].copy_from_slice(b"one!");
    near.tx.commit(4).unwrap();
    assert_eq!(far.rx.peek(), Ok(None), "nothing leaves before the flush");
    near.tx.place(4).unwrap()[..4].copy_from_slice(b"two!");
    near.tx.flush();
    assert_eq!(receive(&mut far).unwrap(), b"one!");
    assert_eq!(near.tx.place(4).unwrap()[..4], *b"two!");
    near.tx.commit(4).unwrap();
    near.tx.flush();
    assert_eq!(receive(&mut far).unwrap(), b"two!");
    let counted = Arc::new(Count::default());
    near.tx.arm(&counted.clone().into());
    assert_eq!(counted.0.load(Ordering::SeqCst), 1, "there is room");
}

#[test]
fn each_flush_is_one_system_call_however_many_packets_it_sends() {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    // Here one write is one message.
    let kind = SocketType::SEQPACKET;
    let (near, far) = socketpair(AddressFamily::UNIX, kind, SocketFlags::empty(), None).unwrap();
    let (mut tx, _rx) = stream::link(near, Width::Two, 65_535).unwrap();
    for (packet, flush) in [
        (&b"0123456789"[..], true),
        (b"a", false),
        (b"bc", false),
        (b"def", true),
        // The buffer is full: this does not wait for the flush.
        (&[7; 65_535], false),
    ] {
        tx.place(packet.len()).unwrap()[..packet.len()].copy_from_slice(packet);
        tx.commit(packet.len()).unwrap();
        if flush {
            tx.flush();
        }
    }
    let mut message = vec![0; 1 << 17];
    let mut next = || {
        let len = rustix::io::read(&far, &mut message).unwrap();
        message[..len].to_vec()
    };
    assert_eq!(next(), b"\x0a\x000123456789");
    assert_eq!(next(), b"\x01\0a\x02\0bc\x03\0def");
    assert_eq!(next().len(), 65_537);
}
