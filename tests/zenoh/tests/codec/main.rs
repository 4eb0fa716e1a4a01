//! Our codec against Zenoh's own: what one writes, the other reads, and writes the same.

#[path = "../../../../crates/sinew/tests/pubsub_codec/any.rs"]
#[allow(dead_code)]
mod any;
#[path = "../../../../crates/sinew/tests/pubsub_codec/made.rs"]
mod made;
mod theirs;
#[path = "../../../../crates/sinew/tests/pubsub_codec/vectors.rs"]
#[allow(dead_code)]
mod vectors;

use any::{Datagram, Message};
use made::{datagram, message};
use proptest::prelude::*;
use sinew::pubsub::codec::Reader;
use theirs::{Theirs, as_theirs, read_datagram, write_datagram};
use zenoh_protocol::network::{self, NetworkMessage};
use zenoh_protocol::scouting::ScoutingMessage;
use zenoh_protocol::transport::frame::FrameHeader;
use zenoh_protocol::transport::{self, TransportMessage};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn theirs_reads_what_ours_writes_and_writes_the_same(message in message()) {
        let message = as_theirs(message);
        let bytes = message.bytes();
        let (theirs, len) = Theirs::read(&bytes).expect("refused");
        prop_assert_eq!(len, bytes.len());
        prop_assert_eq!(theirs.write(), bytes, "{:?}", theirs);
    }

    #[test]
    fn theirs_reads_the_datagrams_that_ours_writes(datagram in datagram()) {
        let bytes = datagram.bytes();
        let (theirs, len) = read_datagram(&bytes).expect("refused");
        prop_assert_eq!(len, bytes.len());
        prop_assert_eq!(write_datagram(&theirs), bytes, "{:?}", theirs);
    }
}

/// Ours reads what theirs writes, and writes all that it keeps as theirs does.
fn check(theirs: Theirs) {
    let bytes = theirs.write();
    let mut r = Reader::new(&bytes);
    let ours = Message::decode(&mut r).unwrap_or_else(|e| panic!("{e}: {bytes:02x?}: {theirs:?}"));
    assert!(r.is_empty(), "{theirs:?}");
    let known = theirs.known();
    assert_eq!(ours.bytes(), known.write(), "{ours:?}: {known:?}");
}

const ROUNDS: usize = 4000;

#[test]
fn ours_reads_what_their_transport_writes() {
    for _ in 0..ROUNDS {
        let message = TransportMessage::rand();
        if let transport::TransportBody::Frame(_) = message.body {
            check(Theirs::Frame(FrameHeader::rand()));
            continue;
        }
        check(Theirs::Transport(message));
    }
}

#[test]
fn ours_reads_what_their_network_writes() {
    for _ in 0..ROUNDS {
        check(Theirs::Network(NetworkMessage::rand()));
        check(Theirs::Network(
            network::NetworkBody::Interest(network::Interest::rand()).into(),
        ));
    }
}

#[test]
fn ours_reads_their_datagrams() {
    for _ in 0..ROUNDS {
        let theirs = ScoutingMessage::rand();
        let bytes = write_datagram(&theirs);
        let mut r = Reader::new(&bytes);
        let ours = Datagram::decode(&mut r).expect("refused");
        assert!(r.is_empty());
        assert_eq!(ours.bytes(), bytes, "{ours:?}: {theirs:?}");
    }
}

/// They are captured from theirs, but it does not hurt to ask.
#[test]
fn theirs_reads_the_examples() {
    for vector in vectors::examples().iter().chain(&vectors::session()) {
        let mut rest = &vector.bytes[..];
        for message in &vector.messages {
            let (theirs, len) = Theirs::read(rest).expect(vector.name);
            assert_eq!(theirs.known().write(), message.bytes(), "{}", vector.name);
            rest = &rest[len..];
        }
        assert!(rest.is_empty(), "{}", vector.name);
    }
}
