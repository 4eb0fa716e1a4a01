//! What bad input, bad peers and bad moments get.

mod support;

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use sinew::frame::Framing;
use sinew::rpc::packet::{PacketType, Route, encode, encode_empty};
use sinew::rpc::{CallError, Method, Status};
use sinew_demo::{Num, cache, exercise, kinds};
use sinew_io::reconnect::{self, Backoff};
use sinew_io::serve::ListenError;
use sinew_io::{Address, Client, ConnectError, Endpoint, Server, connect, open};
use support::*;

/// Waits for something that another thread does; the test's runner limits how long.
fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn path_of(endpoint: &Endpoint) -> &std::path::Path {
    match &endpoint.address {
        Address::Unix(path) | Address::Shm(path) => path,
        other => panic!("{other}"),
    }
}

/// A REQUEST of Double as a frame.
fn double_frame(n: u32, call_id: u32) -> Vec<u8> {
    let mut packet = [0; 64];
    let route = Route::new(1, kinds::method::Double::ID, call_id);
    let len = encode(
        &mut packet,
        PacketType::REQUEST,
        &route,
        &Num { n },
        Status::OK,
    )
    .unwrap();
    framed(&packet[..len])
}

fn framed(packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; Framing::HDLC.max_encoded_len(packet.len())];
    let len = Framing::HDLC.encode(packet, &mut frame).unwrap();
    frame.truncate(len);
    frame
}

/// Reads until one good frame has come, and returns its packet.
fn next_packet(socket: &mut UnixStream) -> Vec<u8> {
    let mut decoder = Framing::HDLC.decoder();
    let mut place = [0; 256];
    loop {
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        if let Some(packet) = decoder.decode(&mut place, &mut &byte[..]).unwrap() {
            return packet.to_vec();
        }
    }
}

#[test]
fn good_frame_after_garbage_is_served() {
    let (server, listening) = listen("unix");
    let mut socket = UnixStream::connect(path_of(listening.endpoint())).unwrap();
    let good = double_frame(21, 7);
    let mut bad_crc = good.clone();
    bad_crc[5] ^= 1;
    for junk in [
        b"noise without a flag".to_vec(),
        vec![0xff; 100_000],             // longer than every buffer
        good[..good.len() / 2].to_vec(), // half a frame
        bad_crc,
        framed(&[0x55; 2000]), // larger than the mtu
        framed(b"no packet"),
        b"\x7d\x7d\x7e\x7d\x7e".to_vec(),
    ] {
        socket.write_all(&junk).unwrap();
        // A flag of its own, so that the junk cannot take the frame with it.
        socket.write_all(b"\x7e").unwrap();
        socket.write_all(&good).unwrap();
        let answer = next_packet(&mut socket);
        let packet = sinew::rpc::packet::Packet::decode(&answer).unwrap();
        assert_eq!((packet.payload, packet.route.call_id), (&[8, 42][..], 7));
    }
    assert_eq!(server.stats().malformed, 1);
}

#[test]
fn silence_after_half_a_frame_holds_nobody_up() {
    let (_server, listening) = listen("unix");
    let mut silent = UnixStream::connect(path_of(listening.endpoint())).unwrap();
    silent.write_all(&double_frame(1, 1)[..10]).unwrap();
    let client = connect(listening.endpoint()).unwrap();
    assert_eq!(exercise(&mut cache::Client(&client), 5), Ok(5));
}

#[test]
fn flood_of_a_client_that_does_not_read_is_stopped_by_the_link() {
    let (_server, listening) = listen("unix");
    let mut flood = UnixStream::connect(path_of(listening.endpoint())).unwrap();
    flood.set_nonblocking(true).unwrap();
    let frame = double_frame(3, 3);
    let mut written = 0;
    let mut refused = 0;
    // The link takes no more, for many looks: nothing grows behind it.
    while refused < 50 {
        match flood.write(&frame) {
            Ok(count) => (written, refused) = (written + count, 0),
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
                refused += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        assert!(written < 4 << 20, "{written} bytes were taken");
    }
    // Others are served meanwhile, and the flood's answers are all there once it reads.
    let client = connect(listening.endpoint()).unwrap();
    assert_eq!(exercise(&mut cache::Client(&client), 5), Ok(5));
    flood.set_nonblocking(false).unwrap();
    for _ in 0..written / frame.len() {
        assert!(!next_packet(&mut flood).is_empty());
    }
}

#[test]
fn calls_of_a_client_that_vanishes_are_ended() {
    for kind in ["tcp", "shm"] {
        calls_of_clients_that_vanish_are_ended(kind);
    }
}

fn calls_of_clients_that_vanish_are_ended(kind: &str) {
    let (server, listening) = listen(kind);
    for _ in 0..5 {
        let client = connect(listening.endpoint()).unwrap();
        let mut kinds = kinds::Client(&client);
        let mut count = kinds.count(&Num { n: u32::MAX }).unwrap();
        let mut sum = kinds.sum().unwrap();
        sum.send(&Num { n: 1 }).unwrap();
        assert_eq!(count.next(), Ok(Some(Num { n: 0 })));
        std::mem::forget((count, sum));
        drop(client.into_link());
    }
    until(|| server.links() == 0);
    // The places of the calls are free again.
    let client = connect(listening.endpoint()).unwrap();
    let mut kinds = kinds::Client(&client);
    let mut count = kinds.count(&Num { n: 2 }).unwrap();
    assert_eq!(count.next(), Ok(Some(Num { n: 0 })));
}

#[test]
fn cancelled_stream_ends_at_the_server() {
    for kind in ["tcp", "unix", "udp", "shm"] {
        let (server, listening) = listen(kind);
        let client = connect(listening.endpoint()).unwrap();
        let count = kinds::Client(&client).count(&Num { n: u32::MAX }).unwrap();
        count.cancel();
        until(|| server.stats().cancelled == 1);
        assert_eq!(exercise(&mut cache::Client(&client), 5), Ok(5), "{kind}");
    }
}

#[test]
fn call_that_the_server_ends_is_ended_at_the_client() {
    for kind in ["unix", "shm"] {
        let (server, listening) = listen(kind);
        server.set_lifetime(Duration::from_millis(20));
        let client = connect(listening.endpoint()).unwrap();
        let mut sum = kinds::Client(&client).sum().unwrap();
        sum.send(&Num { n: 1 }).unwrap();
        until(|| server.stats().expired == 1);
        let gone = Err(CallError::Status(Status::DEADLINE_EXCEEDED));
        assert_eq!(sum.finish_and_wait(), gone);
    }
}

#[test]
fn every_call_has_a_deadline() {
    let path = fresh_path("sock");
    let _mute = UnixListener::bind(&path).unwrap();
    let client = connect(&Endpoint::from(Address::Unix(path))).unwrap();
    let caller = client.with_timeout(Duration::from_millis(20));
    let mut kinds = kinds::Client(caller);
    let late = CallError::DeadlineExceeded;
    assert_eq!(kinds.double(&Num { n: 1 }), Err(late));
    assert_eq!(kinds.count(&Num { n: 1 }).unwrap().next(), Err(late));
    assert_eq!(kinds.sum().unwrap().finish_and_wait(), Err(late));
    assert_eq!(kinds.echo_all().unwrap().next(), Err(late));
    assert_eq!(client.stats().expired, 4);
}

#[test]
fn stream_that_is_not_read_is_ended_with_overrun() {
    for kind in ["unix", "shm"] {
        unread_stream_ends(kind);
    }
}

fn unread_stream_ends(kind: &str) {
    let (server, listening) = listen(kind);
    let link = open(listening.endpoint()).unwrap();
    let client: Client<_, 4, 64> = Client::with_capacities(link, 1);
    let mut kinds = kinds::Client(&client);
    let mut count = kinds.count(&Num { n: u32::MAX }).unwrap();
    while client.overruns() == 0 {
        assert_eq!(kinds.double(&Num { n: 4 }), Ok(Num { n: 8 }));
    }
    // What fitted is still there, then the reason.
    let mut last = Ok(None);
    for n in 0.. {
        last = count.next();
        if last.is_err() {
            break;
        }
        assert_eq!(last, Ok(Some(Num { n })));
    }
    assert_eq!(last, Err(CallError::Overrun));
    // The server takes up that it was cancelled where it has a place for an answer, and the link may be
    // full: of one who does not read at all it would not hear.
    while server.stats().cancelled == 0 {
        assert_eq!(kinds.double(&Num { n: 4 }), Ok(Num { n: 8 }));
    }
    assert_eq!(server.stats().cancelled, 1);
}

#[test]
fn bulk_stream_does_not_hold_up_a_unary_call() {
    for kind in ["tcp", "unix", "shm"] {
        let (_server, listening) = listen(kind);
        let link = open(listening.endpoint()).unwrap();
        let client: Client<_, 4, { 1 << 16 }> = Client::with_capacities(link, 1);
        let mut kinds = kinds::Client(&client);
        let mut count = kinds.count(&Num { n: u32::MAX }).unwrap();
        for n in 0..1000 {
            assert_eq!(count.next(), Ok(Some(Num { n })));
        }
        let before = client.traffic().bytes_in;
        assert_eq!(kinds.double(&Num { n: 4 }), Ok(Num { n: 8 }));
        let overtaken = client.traffic().bytes_in - before;
        assert!(
            overtaken < 256 * 1024,
            "{kind}: the answer came behind {overtaken} bytes"
        );
    }
}

#[test]
fn one_client_too_many_is_refused_and_counted() {
    let server = Server::<_, 8>::with_capacities(services(), 1);
    let listening = server.listen(&fresh_endpoint("tcp")).unwrap();
    let first = connect(listening.endpoint()).unwrap();
    assert_eq!(exercise(&mut cache::Client(&first), 1), Ok(1));
    let second = connect(listening.endpoint()).unwrap();
    assert_eq!(
        exercise(&mut cache::Client(&second), 2),
        Err(CallError::Closed)
    );
    assert_eq!(server.refused(), 1);
    drop(first);
    until(|| server.links() == 0);
    let third = connect(listening.endpoint()).unwrap();
    assert_eq!(exercise(&mut cache::Client(&third), 3), Ok(3));
}

#[test]
fn calls_in_flight_end_when_the_server_stops_and_new_ones_reach_the_next_server() {
    for kind in ["unix", "shm"] {
        next_server_is_reached(kind);
    }
}

fn next_server_is_reached(kind: &str) {
    let endpoint = fresh_endpoint(kind);
    let backoff = Backoff {
        min: Duration::from_millis(1),
        max: Duration::from_millis(10),
    };
    let client = reconnect::connect(&endpoint, backoff);
    let state = client.with_link(|link| link.state());
    for round in 1..=3 {
        assert!(!state.is_connected());
        let server = server();
        // Started late: the first call waits for it.
        let starter = std::thread::spawn({
            let (server, endpoint) = (server.clone(), endpoint.clone());
            let state = state.clone();
            move || {
                until(|| state.failures() > 1);
                server.listen(&endpoint).unwrap()
            }
        });
        assert_eq!(exercise(&mut cache::Client(&client), 7), Ok(7));
        let listening = starter.join().unwrap();
        assert_eq!(state.connections(), round);
        let mut sum = kinds::Client(&client).sum().unwrap();
        sum.send(&Num { n: 1 }).unwrap();
        listening.stop();
        assert_eq!(sum.finish_and_wait(), Err(CallError::Closed));
    }
    let caller = client.with_timeout(Duration::from_millis(20));
    assert_eq!(
        exercise(&mut cache::Client(caller), 7),
        Err(CallError::Closed)
    );
}

#[test]
fn reconnecting_client_without_calls_in_flight_loses_none() {
    for kind in ["unix", "shm"] {
        no_call_is_lost(kind);
    }
}

fn no_call_is_lost(kind: &str) {
    let endpoint = fresh_endpoint(kind);
    let backoff = Backoff {
        min: Duration::from_millis(1),
        max: Duration::from_millis(10),
    };
    let client = reconnect::connect(&endpoint, backoff);
    for _ in 0..3 {
        let listening = server().listen(&endpoint).unwrap();
        assert_eq!(exercise(&mut cache::Client(&client), 7), Ok(7));
        listening.stop();
    }
}

#[test]
fn socket_left_behind_is_replaced_and_one_in_use_is_not() {
    for kind in ["unix", "shm"] {
        only_what_is_left_behind_is_replaced(kind);
    }
}

fn only_what_is_left_behind_is_replaced(kind: &str) {
    let endpoint = fresh_endpoint(kind);
    drop(UnixListener::bind(path_of(&endpoint)).unwrap());
    let first = server().listen(&endpoint).unwrap();
    assert!(matches!(
        server().listen(&endpoint),
        Err(ListenError::InUse(_))
    ));
    first.stop();
    assert!(!path_of(&endpoint).exists());
    std::fs::write(path_of(&endpoint), "a file").unwrap();
    assert!(matches!(
        server().listen(&endpoint),
        Err(ListenError::InUse(_))
    ));
    std::fs::remove_file(path_of(&endpoint)).unwrap();
}

#[test]
fn errors_of_connecting_name_their_cause() {
    let error = |text: &str| open(&text.parse().unwrap()).err().unwrap();
    assert!(matches!(
        error("unix:/nowhere/at/all"),
        ConnectError::NoServer(_)
    ));
    assert!(matches!(
        error("serial:/dev/nowhere"),
        ConnectError::NoServer(_)
    ));
    assert!(matches!(
        error("serial:/dev/null"),
        ConnectError::WrongKind(_)
    ));
    assert!(matches!(
        error("shm:/nowhere/at/all"),
        ConnectError::NoServer(_)
    ));
    // A server of the other kind of socket.
    for (served, called) in [("unix", "shm"), ("shm", "unix")] {
        let (_server, listening) = listen(served);
        let at = listening.endpoint().to_string().replace(served, called);
        assert!(matches!(error(&at), ConnectError::WrongKind(_)), "{at}");
    }
    assert!(matches!(
        error(&format!("tcp:{}:7447", fresh_host())),
        ConnectError::NoServer(_)
    ));
    let path = fresh_path("file");
    std::fs::write(&path, "").unwrap();
    let error = error(&format!("unix:{}", path.display()));
    assert!(
        matches!(
            error,
            ConnectError::NoServer(_) | ConnectError::WrongKind(_)
        ),
        "{error}"
    );
    std::fs::remove_file(path).unwrap();
}

#[test]
fn server_over_udp_that_is_not_there_is_reported() {
    let client = connect(&"udp:127.0.0.1:9".parse().unwrap()).unwrap();
    assert_eq!(
        exercise(&mut cache::Client(&client), 1),
        Err(CallError::Closed)
    );
}

#[test]
fn unknown_packets_to_a_client_are_counted_and_answered_once() {
    let path = fresh_path("sock");
    let listener = UnixListener::bind(&path).unwrap();
    let client = connect(&Endpoint::from(Address::Unix(path))).unwrap();
    let mut peer = listener.accept().unwrap().0;
    let stray = Route::new(1, kinds::method::Count::ID, 99);
    let mut packet = [0; 64];
    let len = encode_empty(&mut packet, PacketType::SERVER_STREAM, &stray, Status::OK).unwrap();
    peer.write_all(&framed(&packet[..len])).unwrap();
    let caller = client.with_timeout(Duration::from_millis(20));
    let late = Err(CallError::DeadlineExceeded);
    assert_eq!(kinds::Client(caller).double(&Num { n: 1 }), late);
    assert_eq!(client.stats().no_such_call, 1);
    let packets: Vec<_> = (0..3).map(|_| next_packet(&mut peer)).collect();
    let types: Vec<_> = packets
        .iter()
        .map(|packet| {
            let packet = sinew::rpc::packet::Packet::decode(packet).unwrap();
            (packet.packet_type, packet.status)
        })
        .collect();
    assert_eq!(
        types,
        [
            (PacketType::REQUEST, Status::OK),
            (PacketType::CLIENT_ERROR, Status::FAILED_PRECONDITION),
            (PacketType::CLIENT_ERROR, Status::DEADLINE_EXCEEDED),
        ]
    );
}
