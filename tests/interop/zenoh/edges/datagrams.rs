//! Handshakes over UDP.

use super::*;

/// A socket of datagrams to a router: what is sent, and the one answer to it, if there is any.
struct Datagrams(std::net::UdpSocket);

impl Datagrams {
    fn new(at: &At) -> Self {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(&at.address).expect("an address");
        Self(socket)
    }

    fn ask(&self, message: &[u8]) -> Option<Vec<u8>> {
        self.ask_within(message, SOON)
    }

    /// Sends what nobody answers.
    fn say(&self, message: &[u8]) -> &'static str {
        kind(&self.ask_within(message, Duration::from_millis(300)))
    }

    fn ask_within(&self, message: &[u8], patience: Duration) -> Option<Vec<u8>> {
        self.0.set_read_timeout(Some(patience)).expect("a socket");
        self.0.send(message).expect("a socket");
        let mut bytes = [0; 2048];
        let len = self.0.recv(&mut bytes).ok()?;
        bytes.get(..len).map(<[u8]>::to_vec)
    }

    fn init(&self, zid: u8) -> Option<Vec<u8>> {
        self.ask(&Self::init_of(zid))
    }

    fn init_of(zid: u8) -> [u8; 8] {
        [0x41, 9, 0x12, 0x57, zid, 0x0a, 0, 8]
    }

    /// OPEN for the answer to an INIT: its cookie is behind header, version, zid and sizes.
    fn open(init: &[u8]) -> Vec<u8> {
        let zid = usize::from(init.get(2).expect("INIT") >> 4) + 1;
        let cookie = init.get(3 + zid + 3..).expect("a cookie");
        joined(&[&[0x02, 0x90, 0x4e, 0x00], cookie])
    }

    fn opened(at: &At, zid: u8) -> Self {
        let socket = Self::new(at);
        let init = socket.init(zid).expect("INIT");
        assert_eq!(kind(&socket.ask(&Self::open(&init))), "OPEN");
        socket
    }

    fn probe(&self, sn: u8) -> &'static str {
        kind(&self.ask(&[0x25, sn, 0x7c, 1, 0, 5, b'p', b'r', b'o', b'b', b'e', 3]))
    }
}

fn kind(answer: &Option<Vec<u8>>) -> &'static str {
    match answer.as_deref() {
        None => "silence",
        Some([0x21 | 0x61 | 0xa1 | 0xe1, ..]) => "INIT",
        Some([0x22 | 0x62 | 0xa2 | 0xe2, ..]) => "OPEN",
        Some([0x03, 2]) => "CLOSE 2",
        Some([0x25, ..]) => "frame",
        Some(_) => "something else",
    }
}

/// What may be lost on the way is sent again; this is what that meets.
#[test]
fn what_a_router_does_with_repeated_handshakes_over_udp() {
    let _turn = crate::alone();
    let router = Peer::router(&At::any(Kind::Udp, "".as_ref())).expect("a router");
    let at = &router.at()[0];

    // INIT again before OPEN ends the handshake; the same socket can begin anew then.
    let socket = Datagrams::new(at);
    let first = socket.init(1);
    assert_eq!(kind(&first), "INIT");
    assert_eq!(kind(&socket.init(1)), "CLOSE 2");
    let open = Datagrams::open(&first.expect("INIT"));
    assert_eq!(kind(&socket.ask(&open)), "CLOSE 2");
    let third = socket.init(1);
    assert_eq!(kind(&third), "INIT");
    let open = Datagrams::open(&third.expect("INIT"));
    assert_eq!(kind(&socket.ask(&open)), "OPEN");

    // OPEN again is not answered, and the session lives.
    assert_eq!(socket.say(&open), "silence");
    assert_eq!(socket.probe(0), "frame");

    // Nor is INIT, also of another zid: who restarts with the same port waits for the lease to end,
    // or sends CLOSE first.
    assert_eq!(socket.say(&Datagrams::init_of(1)), "silence");
    assert_eq!(socket.say(&Datagrams::init_of(2)), "silence");
    assert_eq!(socket.say(&[0x23, 0]), "silence");
    assert_eq!(kind(&socket.init(1)), "INIT");

    // What belongs to no session is answered with CLOSE.
    assert_eq!(Datagrams::new(at).probe(0), "CLOSE 2");

    // Nonsense ends a session without a word; the next datagram meets no session.
    let socket = Datagrams::opened(at, 3);
    assert_eq!(socket.probe(0), "frame");
    assert_eq!(socket.say(&[0x0f]), "silence");
    assert_eq!(socket.probe(1), "CLOSE 2");
}
