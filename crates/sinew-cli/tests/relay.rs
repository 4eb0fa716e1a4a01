//! `sinew relay`: packets between any two links.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use sinew::frame::Framing;
use sinew::link::{RecvError, SendError};
use sinew_io::apart::{self, Apart, Listener};
use sinew_io::bytes::ByteLink;
use sinew_io::endpoint::{Endpoint, Use};
use support::{Serve, answer, call, interrupt, pty, sinew, socket};

/// Longer than anything takes that comes about at all.
const SOON: Duration = Duration::from_secs(60);

/// A running `sinew relay`.
struct Relay {
    child: Child,
    /// What is served, with its port.
    served: String,
}

impl Relay {
    fn start(served: &str, far: &str) -> Relay {
        let mut command = sinew(&["relay", served, far, "--verbose"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let ready = line.trim().strip_prefix("relaying ").and_then(|line| {
            let (served, to) = line.split_once(" to ")?;
            (to == far).then(|| served.to_string())
        });
        let Some(served) = ready else {
            let mut why = String::new();
            child.stderr.unwrap().read_to_string(&mut why).unwrap();
            panic!("no relay: {line}{why}");
        };
        Relay { child, served }
    }

    /// Ctrl-C: all that it wrote to standard error.
    fn stop(mut self) -> String {
        interrupt(&self.child);
        self.report()
    }

    /// All that it wrote, once it has ended.
    fn report(&mut self) -> String {
        let mut report = String::new();
        let stderr = self.child.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut report).unwrap();
        assert!(self.child.wait().unwrap().success(), "{report}");
        report
    }

    /// Kilobytes of memory that it has.
    fn memory(&self) -> usize {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS"));
        let number = line.unwrap().split_whitespace().nth(1).unwrap();
        number.parse().unwrap()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn endpoint(text: &str) -> Endpoint {
    Endpoint::parse(text, Use::Any).unwrap()
}

fn open(text: &str) -> Apart {
    apart::open(&endpoint(text)).unwrap()
}

fn send(link: &mut Apart, packet: &[u8]) {
    let waker = link.rx.waker();
    loop {
        match link.tx.place(packet.len()) {
            Ok(place) => place[..packet.len()].copy_from_slice(packet),
            Err(SendError::Full) => {
                link.tx.arm(&waker);
                link.rx.wait(Some(Duration::from_millis(100)));
                continue;
            }
            Err(error) => panic!("{error:?}"),
        }
        link.tx.commit(packet.len()).unwrap();
        return link.tx.flush();
    }
}

fn receive(link: &mut Apart) -> Result<Vec<u8>, RecvError> {
    let patience = Instant::now() + SOON;
    loop {
        if let Some(packet) = link.rx.peek()? {
            let packet = packet.to_vec();
            link.rx.release();
            return Ok(packet);
        }
        assert!(Instant::now() < patience, "nothing comes");
        link.rx.wait(Some(Duration::from_secs(1)));
    }
}

/// Sends back what it gets, on each link, in a thread.
fn echo(mut listener: Listener) {
    thread::spawn(move || {
        while let Some(mut link) = listener.accept_within(None) {
            thread::spawn(move || {
                while let Ok(Some(_)) | Ok(None) = link.rx.peek() {
                    match link.rx.peek().map(|packet| packet.map(<[u8]>::to_vec)) {
                        Ok(Some(packet)) => {
                            link.rx.release();
                            send(&mut link, &packet);
                        }
                        _ => link.rx.wait(None),
                    }
                }
            });
        }
    });
}

fn pattern(seq: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (seq.wrapping_mul(37) ^ at.wrapping_mul(11) ^ (at >> 8)) as u8)
        .collect()
}

/// Packets of all sizes come back byte for byte, one by one and several at a time.
fn all_come_back(near: &mut Apart, max: usize) {
    let mut sizes = vec![1, 2, 3, 63, 255, 256, 1000, max - 1, max];
    sizes.extend((1..100).map(|seq| 1 + seq * 7919 % max));
    for (seq, &len) in sizes.iter().enumerate() {
        let packet = pattern(seq, len);
        send(near, &packet);
        assert!(receive(near).unwrap() == packet, "packet {seq} of {len}");
    }
    for round in sizes.chunks(4) {
        for (seq, &len) in round.iter().enumerate() {
            send(near, &pattern(seq, len));
        }
        for (seq, &len) in round.iter().enumerate() {
            assert!(receive(near).unwrap() == pattern(seq, len));
        }
    }
}

#[test]
fn pigweed_call_over_tcp_reaches_a_service_in_shared_memory() {
    let path = socket("relay-service");
    let serve = Serve::start(&format!("shm:{path}"));
    let relay = Relay::start("tcp:127.0.0.1:0", &serve.endpoint);
    for _ in 0..2 {
        let output = call(&relay.served, &["demo.Kinds/Double", r#"{"n": 21}"#], "");
        assert_eq!(answer(&output).trim(), r#"{"n":42}"#);
        let output = call(&relay.served, &["demo.Kinds/Count", r#"{"n": 300}"#], "");
        assert_eq!(answer(&output).lines().count(), 300);
    }
    let report = relay.stop();
    assert!(report.contains("link 4 is gone: forth "), "{report}");
    assert!(!report.contains("dropped"), "{report}");
}

#[test]
fn every_packet_passes_between_unlike_carriers() {
    let path = socket("relay-pairs");
    for (served, far, max) in [
        (
            "tcp:127.0.0.1:0?frame=zenoh",
            "udp:127.0.0.1:0?mtu=9000",
            9000,
        ),
        (
            "udp:127.0.0.1:0?mtu=1450",
            "tcp:127.0.0.1:0?frame=zenoh",
            1450,
        ),
        (&format!("unix:{path}"), "tcp:127.0.0.1:0", 1024),
        (
            "tcp:127.0.0.1:0?frame=zenoh",
            &format!("unix:{path}-2?frame=len&mtu=65535"),
            65_535,
        ),
        (
            &format!("shm:{path}-3?mtu=8192"),
            "tcp:127.0.0.1:0?frame=cobs&mtu=8192",
            8192,
        ),
        (
            "tcp:127.0.0.1:0?frame=zenoh",
            &format!("shm:{path}-4?mtu=65535"),
            65_535,
        ),
    ] {
        let listener = apart::listen(&endpoint(far)).unwrap();
        let far = listener.endpoint().to_string();
        echo(listener);
        let relay = Relay::start(served, &far);
        for _ in 0..2 {
            all_come_back(&mut open(&relay.served), max);
        }
        let report = relay.stop();
        assert!(!report.contains("dropped"), "{served} to {far}: {report}");
    }
}

#[test]
fn serial_line_with_hdlc_reaches_a_stream_with_zenohs_framing() {
    let listener = apart::listen(&endpoint("tcp:127.0.0.1:0?frame=zenoh")).unwrap();
    let far = listener.endpoint().to_string();
    echo(listener);
    let (master, path) = pty();
    let relay = Relay::start(&format!("serial:{path}"), &far);
    let line = ByteLink::duplex(master, Framing::HDLC, 1024).unwrap();
    let mut near = line.apart();
    all_come_back(&mut near, 1024);
    relay.stop();
}

#[test]
fn child_process_is_the_far_side_of_each_link() {
    let relay = Relay::start("tcp:127.0.0.1:0?frame=zenoh", "exec:cat");
    let mut links = [(); 2].map(|()| open(&relay.served));
    for near in &mut links {
        all_come_back(near, 1024);
    }
    drop(links);
    relay.stop();
}

#[test]
fn command_that_ends_ends_its_relay() {
    let listener = apart::listen(&endpoint("tcp:127.0.0.1:0")).unwrap();
    let far = listener.endpoint().to_string();
    echo(listener);
    let mut relay = Relay::start("exec:true", &far);
    assert!(relay.report().contains("forth 0 packets, 0 bytes"));
}

#[test]
fn closing_of_a_side_closes_the_other_and_either_may_come_back() {
    let path = socket("relay-restart");
    let far = format!("unix:{path}");
    let relay = Relay::start("tcp:127.0.0.1:0", &far);
    // There is no far side yet: who connects sees it at once.
    assert_eq!(receive(&mut open(&relay.served)), Err(RecvError::Closed));
    for round in 0..2u8 {
        let mut listener = apart::listen(&endpoint(&far)).unwrap();
        let mut both = || (open(&relay.served), listener.accept_within(None).unwrap());
        let ((mut near, mut far), (mut other, mut far_other)) = (both(), both());
        send(&mut near, &[round]);
        send(&mut other, &[round]);
        assert_eq!(receive(&mut far), Ok(vec![round]));
        assert_eq!(receive(&mut far_other), Ok(vec![round]));
        // Its last packet comes before its end.
        send(&mut near, b"last");
        drop(near);
        assert_eq!(receive(&mut far), Ok(b"last".to_vec()));
        assert_eq!(receive(&mut far), Err(RecvError::Closed));
        send(&mut far_other, b"last");
        drop(far_other);
        assert_eq!(receive(&mut other), Ok(b"last".to_vec()));
        assert_eq!(receive(&mut other), Err(RecvError::Closed));
    }
    let report = relay.stop();
    assert!(report.contains("cannot reach unix:"), "{report}");
    assert!(
        report.contains("start it, or check the address"),
        "{report}"
    );
    assert!(report.contains("links refused: 1"), "{report}");
}

#[test]
fn line_without_connections_reaches_the_far_side_again_with_its_next_packet() {
    let path = socket("relay-line");
    let far = format!("unix:{path}");
    let (master, line) = pty();
    let mut relay = Relay::start(&format!("serial:{line}"), &far);
    let notes = lines(&mut relay);
    let until = |start: &str| {
        let next = || notes.recv_timeout(SOON).unwrap();
        while !next().starts_with(start) {}
    };
    let near = ByteLink::duplex(master, Framing::HDLC, 1024).unwrap();
    let mut near = near.apart();
    // Kept until there is a far side.
    send(&mut near, &[0]);
    until("cannot reach unix:");
    for round in 0..3u8 {
        let mut listener = apart::listen(&endpoint(&far)).unwrap();
        if round > 0 {
            send(&mut near, &[round]);
        }
        let mut far = listener.accept_within(None).unwrap();
        assert_eq!(receive(&mut far), Ok(vec![round]));
        send(&mut far, &[round]);
        assert_eq!(receive(&mut near), Ok(vec![round]));
        drop((far, listener));
        // What is sent before the relay knows goes with the link.
        until("link 1 is gone: ");
    }
}

/// Sends numbered packets until the link takes none for a while, and says how many.
fn flood(near: &mut Apart, len: usize) -> usize {
    let mut count = 0usize;
    let mut since = Instant::now();
    while since.elapsed() < Duration::from_millis(500) {
        let Ok(place) = near.tx.place(len) else {
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        place[..8].copy_from_slice(&count.to_le_bytes());
        near.tx.commit(len).unwrap();
        near.tx.flush();
        count += 1;
        since = Instant::now();
    }
    count
}

#[test]
fn side_that_stops_reading_holds_the_other_back() {
    let mut listener = apart::listen(&endpoint("tcp:127.0.0.1:0?frame=zenoh")).unwrap();
    let relay = Relay::start(
        "tcp:127.0.0.1:0?frame=zenoh",
        &listener.endpoint().to_string(),
    );
    let mut near = open(&relay.served);
    let mut far = listener.accept_within(None).unwrap();
    let count = flood(&mut near, 60_000);
    let held = count * 60_000;
    assert!(held < 64 << 20, "{held} bytes are held somewhere");
    let memory = relay.memory();
    assert!(memory < 32 << 10, "the relay has {memory} kB");
    // The other direction goes on meanwhile.
    send(&mut far, b"still here");
    assert_eq!(receive(&mut near), Ok(b"still here".to_vec()));
    for number in 0..count {
        assert_eq!(receive(&mut far).unwrap()[..8], number.to_le_bytes());
    }
    drop((near, far));
    let report = relay.stop();
    assert!(!report.contains("dropped"), "{report}");
}

/// The lines of standard error, as they come.
fn lines(relay: &mut Relay) -> Receiver<String> {
    let (tx, rx) = channel();
    let stderr = BufReader::new(relay.child.stderr.take().unwrap());
    thread::spawn(move || {
        for line in stderr.lines().map_while(Result::ok) {
            let _ = tx.send(line);
        }
    });
    rx
}

#[test]
fn packet_larger_than_the_other_side_takes_is_counted_and_named() {
    let path = socket("relay-large");
    let far = format!("unix:{path}?mtu=512");
    let mut listener = apart::listen(&endpoint(&far)).unwrap();
    let mut relay = Relay::start("tcp:127.0.0.1:0?frame=zenoh", &far);
    let notes = lines(&mut relay);
    let mut near = open(&relay.served);
    for packet in [&[1; 512][..], &[2; 513], &[3; 2000], &[4; 1]] {
        send(&mut near, packet);
    }
    let mut far = listener.accept_within(None).unwrap();
    assert_eq!(receive(&mut far), Ok(vec![1; 512]));
    assert_eq!(receive(&mut far), Ok(vec![4]));
    drop(near);
    assert_eq!(receive(&mut far), Err(RecvError::Closed));
    let next = || notes.recv_timeout(SOON).unwrap();
    assert_eq!(next(), "link 1 is there");
    assert_eq!(
        next(),
        format!(
            "dropped a packet of 513 bytes: unix:{path} takes up to 512; raise mtu= there, or send less"
        )
    );
    let totals = "forth 2 packets, 513 bytes; back 0 packets, 0 bytes; dropped: 2 too large";
    assert_eq!(next(), format!("link 1 is gone: {totals}"));
    interrupt(&relay.child);
    assert_eq!(next(), totals);
}

#[test]
fn datagram_larger_than_its_own_side_takes_is_counted_and_named() {
    let far = format!("unix:{}?mtu=1450", socket("relay-datagram"));
    let mut listener = apart::listen(&endpoint(&far)).unwrap();
    let mut relay = Relay::start("udp:127.0.0.1:0?mtu=1024", &far);
    let notes = lines(&mut relay);
    let at = relay.served.split('?').next().unwrap_or_default();
    let mut near = open(&format!("{at}?mtu=1450"));
    for packet in [&[1; 1024][..], &[2; 1025], &[3; 1]] {
        send(&mut near, packet);
    }
    let mut far = listener.accept_within(None).unwrap();
    assert_eq!(receive(&mut far), Ok(vec![1; 1024]));
    assert_eq!(receive(&mut far), Ok(vec![3]));
    let next = || notes.recv_timeout(SOON).unwrap();
    assert_eq!(next(), "link 1 is there");
    let note = next();
    assert!(
        note.starts_with("dropped a packet of udp:127.0.0.1:"),
        "{note}"
    );
    assert!(note.contains("larger than its 1,024 bytes here"), "{note}");
    interrupt(&relay.child);
    let end = loop {
        let note = next();
        if note.starts_with("forth") {
            break note;
        }
    };
    assert!(end.ends_with("dropped: 1 too large"), "{end}");
}

#[test]
fn bytes_without_a_frame_are_told_with_the_framing_that_was_expected() {
    let (master, line) = pty();
    let far = format!("unix:{}?frame=zenoh", socket("relay-noise"));
    let mut listener = apart::listen(&endpoint(&far)).unwrap();
    // What a node of Zenoh says first.
    let init = b"\x05\x00\x01\x09\x02\x00\x01";
    let told = |notes: &Receiver<String>, from: &str| {
        let next = || notes.recv_timeout(SOON).ok();
        let mut all = std::iter::from_fn(next);
        let note = all.find(|note| note.contains("no frame")).unwrap();
        let from = format!("7 bytes came from {from}, and no frame of hdlc in them: give frame=");
        assert!(note.starts_with(&from), "{note}");
        note
    };
    // One that hangs up, and one that waits.
    for hangs_up in [true, false] {
        let mut relay = Relay::start("tcp:127.0.0.1:0", &far);
        let notes = lines(&mut relay);
        let at = relay.served.strip_prefix("tcp:").unwrap();
        let mut socket = TcpStream::connect(at).unwrap();
        socket.write_all(init).unwrap();
        if hangs_up {
            drop(socket);
            told(&notes, &relay.served);
        } else {
            told(&notes, &relay.served);
            drop(socket);
        }
        drop(listener.accept_within(None));
    }
    // A line has no far side yet.
    let mut relay = Relay::start(&format!("serial:{line}"), &far);
    let notes = lines(&mut relay);
    rustix::io::write(&master, init).unwrap();
    let note = told(&notes, &format!("serial:{line}"));
    assert!(note.ends_with(", or its baud="), "{note}");
    // The far side.
    let hdlc = socket("relay-hdlc");
    let silent = UnixListener::bind(&hdlc).unwrap();
    let mut relay = Relay::start("tcp:127.0.0.1:0?frame=zenoh", &format!("unix:{hdlc}"));
    let notes = lines(&mut relay);
    let _near = open(&relay.served);
    let (mut socket, _) = silent.accept().unwrap();
    socket.write_all(init).unwrap();
    told(&notes, &format!("unix:{hdlc}"));
}
