//! Every carrier passes the suite of the seam.

mod support;

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::task::Waker;
use std::time::Duration;

use sinew::frame::Framing;
use sinew::frame::length::Width;
use sinew::link::conformance::{End, Harness, run};
use sinew::link::{RecvError, Rx, SendError, Tx};
use sinew_io::apart::{self, Receive};
use sinew_io::bytes::ByteLink;
use sinew_io::endpoint::{Endpoint, Use};
use sinew_io::open::serial;
use sinew_io::shm::process::ProcessLink;
use sinew_io::udp::UdpLink;
use sinew_io::{shm, stream, threads};
use sinew_shm::domain::Status;
use sinew_shm::linux::link::{Link, Options};

/// A carrier that gives a new pair of links whenever it is asked.
struct Carrier<F> {
    connect: F,
    may_lose: bool,
    sees_hang_up: bool,
}

impl<T: Tx + Send + 'static, R: Rx + Send + 'static, F: FnMut() -> [(T, R); 2]> Harness
    for Carrier<F>
{
    fn connect(&mut self) -> (End, End) {
        let [a, b] = (self.connect)();
        let end = |(tx, rx): (T, R)| End {
            tx: Box::new(tx),
            rx: Box::new(rx),
            ports: None,
        };
        (end(a), end(b))
    }

    fn may_lose(&self) -> bool {
        self.may_lose
    }

    fn fills(&self) -> bool {
        !self.may_lose
    }

    fn sees_hang_up(&self) -> bool {
        self.sees_hang_up
    }
}

fn passes<T: Tx + Send + 'static, R: Rx + Send + 'static>(connect: impl FnMut() -> [(T, R); 2]) {
    let report = run(&mut Carrier {
        connect,
        may_lose: false,
        sees_hang_up: true,
    });
    let ports_only = |(_, why): &&(&str, &str)| !why.contains("port");
    let missing: Vec<_> = report.not_offered.iter().filter(ports_only).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

type Halves = (sinew_io::bytes::ByteTx, sinew_io::bytes::ByteRx);

fn halves(link: std::io::Result<ByteLink>) -> Halves {
    let (tx, rx, _) = link.unwrap().split();
    (tx, rx)
}

#[test]
fn tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    passes(|| {
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        [near, far].map(|socket| {
            socket.set_nodelay(true).unwrap();
            halves(ByteLink::duplex(socket.into(), Framing::HDLC, 256))
        })
    });
}

#[test]
fn unix_sockets_with_every_framing() {
    let path = support::fresh_path("sock");
    let listener = UnixListener::bind(&path).unwrap();
    for framing in [Framing::HDLC, Framing::Length, Framing::Cobs] {
        passes(|| {
            let near = UnixStream::connect(&path).unwrap();
            let far = listener.accept().unwrap().0;
            [near, far].map(|socket| halves(ByteLink::duplex(socket.into(), framing, 256)))
        });
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn streams_without_a_copy() {
    let path = support::fresh_path("sock");
    let listener = UnixListener::bind(&path).unwrap();
    for (width, mtu) in [
        (Width::Two, 256),
        (Width::Two, 65_535),
        (Width::Four, 70_000),
    ] {
        passes(|| {
            let near = UnixStream::connect(&path).unwrap();
            let far = listener.accept().unwrap().0;
            [near, far].map(|socket| stream::link(socket.into(), width, mtu).unwrap())
        });
    }
    std::fs::remove_file(&path).unwrap();
}

/// Opens and accepts one link after the other, and takes it apart. `arm` works on its own there;
/// `threads_that_sleep_on_their_half` in tests/apart.rs is about the sleeping.
fn apart(at: &str, usage: Use) -> impl FnMut() -> [Pair; 2] + use<> {
    let at = Endpoint::parse(at, usage).unwrap();
    let mut listener = apart::listen(&at).unwrap();
    move || {
        let at = listener.endpoint().clone();
        let near = std::thread::spawn(move || apart::open(&at).unwrap());
        let far = listener.accept_within(None).unwrap();
        [near.join().unwrap(), far].map(|apart| (Boxed(apart.tx), Boxed(apart.rx)))
    }
}

type Pair = (Boxed<dyn Tx + Send>, Boxed<dyn Receive + Send>);

/// A half that is given on as it is.
struct Boxed<T: ?Sized>(Box<T>);

impl Tx for Boxed<dyn Tx + Send> {
    fn mtu(&self) -> usize {
        self.0.mtu()
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        self.0.place(min)
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        self.0.commit(len)
    }

    fn flush(&mut self) {
        self.0.flush();
    }

    fn arm(&mut self, waker: &Waker) {
        self.0.arm(waker);
    }
}

impl Rx for Boxed<dyn Receive + Send> {
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError> {
        self.0.peek()
    }

    fn release(&mut self) {
        self.0.release();
    }

    fn arm(&mut self, waker: &Waker) {
        self.0.arm(waker);
    }
}

#[test]
fn halves_apart_over_sockets() {
    let path = support::fresh_path("sock");
    // Not over TCP: there the kernel takes megabytes of tiny packets before the link is full.
    passes(apart(&format!("unix:{}", path.display()), Use::Batches));
    passes(apart(
        &format!("unix:{}?frame=len", path.display()),
        Use::Batches,
    ));
}

#[test]
fn pipes() {
    passes(|| {
        let (there, back) = (rustix::pipe::pipe().unwrap(), rustix::pipe::pipe().unwrap());
        [
            halves(ByteLink::pipes(back.0, there.1, Framing::HDLC, 256)),
            halves(ByteLink::pipes(there.0, back.1, Framing::HDLC, 256)),
        ]
    });
}

fn terminal() -> [Halves; 2] {
    let (master, path) = support::pty();
    let slave = serial::open(&path, 115_200).unwrap();
    [master, slave].map(|line| halves(ByteLink::duplex(line, Framing::HDLC, 256)))
}

#[test]
fn pseudo_terminal() {
    // The system discards what has not been read when the controlling side of a terminal closes.
    // A real line does not show that the peer is gone at all.
    let report = run(&mut Carrier {
        connect: terminal,
        may_lose: false,
        sees_hang_up: false,
    });
    assert!(
        report.checked.contains(&"threads_lose_no_wake_up"),
        "{report:?}"
    );
}

#[test]
fn terminal_whose_other_side_closes_is_closed() {
    for side in 0..2 {
        let mut ends = terminal().map(Some);
        ends[1 - side] = None;
        let (_tx, rx) = ends[side].as_mut().unwrap();
        while rx.peek() == Ok(None) {
            std::thread::yield_now();
        }
        assert!(rx.peek().is_err());
    }
}

#[test]
fn queues_between_threads() {
    passes(|| {
        let (near, far) = threads::link();
        [near.split(), far.split()]
    });
}

#[test]
fn shared_memory_between_threads() {
    passes(|| {
        let (near, far) = shm::threads::link().unwrap();
        [near.split(), far.split()]
    });
}

#[test]
fn shared_memory_between_processes() {
    // The link is the same where both processes are this one.
    passes(|| {
        let config = shm::config::calls(256);
        let (near, far) = Link::pair(config, Options::default()).unwrap();
        // It is up when each side has seen the other.
        let looks = [&near, &far, &near].map(Link::on_ready);
        assert_eq!(looks[1..], [Status::Up; 2]);
        [near, far].map(|link| {
            let link = ProcessLink::new(link, shm::config::CHANNEL, Duration::ZERO);
            link.unwrap().split().unwrap()
        })
    });
}

#[test]
fn udp() {
    let report = run(&mut Carrier {
        connect: || {
            let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
            near.connect(far.local_addr().unwrap()).unwrap();
            far.connect(near.local_addr().unwrap()).unwrap();
            [near, far].map(|socket| UdpLink::new(socket, 256).unwrap().split())
        },
        may_lose: true,
        sees_hang_up: false,
    });
    assert!(report.checked.len() >= 8, "{report:?}");
}
