#[allow(dead_code)]
#[path = "../../crates/sinew/tests/pubsub_codec/any.rs"]
mod any;
#[path = "../../tests/zenoh/tests/codec/theirs.rs"]
mod theirs;

use any::{Datagram, Message};
use sinew::pubsub::codec::{CodecError, Declaration, Declare, Reader};
use theirs::{Theirs, as_theirs, read_datagram, write_datagram};

/// A batch, and a datagram of scouting. Zenoh's own codec reads them too.
///
/// What ours accepts, written again, is the same to ours, and theirs accepts it and writes the same
/// bytes; so the other way round. About the input itself they differ where it is so intended:
///
/// * Theirs cuts a number that is above its field; ours refuses the message.
/// * Ours ends an extension where its length says. Theirs reads the fields it knows and goes on
///   behind them, whatever the length says.
/// * The end of an entity may say that its key has a suffix, and have none; theirs refuses it.
/// * Locators are any text to ours; to theirs they have a protocol and an address.
pub fn zenoh(data: &[u8]) {
    let mut rest = data;
    while let Some(len) = message(rest) {
        rest = &rest[len..];
    }
    datagram(data);
}

/// The message in front; how many bytes it has, if both accept it.
fn message(bytes: &[u8]) -> Option<usize> {
    let mut r = Reader::new(bytes);
    let ours = Message::decode(&mut r);
    let len = bytes.len() - r.len();
    let theirs = Theirs::read(bytes);
    if let Ok(ours) = ours {
        let again = ours.bytes();
        assert_eq!(Message::batch(&again), Ok(vec![ours]));
        let ours = as_theirs(ours).bytes();
        let (theirs, len) = Theirs::read(&ours).expect("ours is refused");
        assert_eq!(len, ours.len());
        assert_eq!(theirs.write(), ours);
    }
    if let Some((theirs, _)) = theirs.clone() {
        let theirs = theirs.known().write();
        let mut r = Reader::new(&theirs);
        let ours = Message::decode(&mut r).expect("theirs is refused");
        assert!(r.is_empty());
        assert_eq!(as_theirs(ours).bytes(), theirs);
    }
    // Where they disagree, something is not as who accepts it would write it.
    match (ours, theirs) {
        (Ok(_), Some((_, theirs))) if theirs == len => return Some(len),
        (Ok(ours), Some(_)) => assert_ne!(ours.bytes().len(), len),
        (Ok(ours), None) => assert!(ours.bytes().len() != len || may_lack_a_suffix(&ours)),
        (Err(CodecError::OutOfRange), _) | (Err(_), None) => {}
        (Err(_), Some((theirs, len))) => assert_ne!(theirs.write(), bytes[..len]),
    }
    None
}

fn may_lack_a_suffix(message: &Message<'_>) -> bool {
    matches!(
        message,
        Message::Declare(Declare {
            declaration: Declaration::NoEntity { .. },
            ..
        })
    )
}

fn datagram(bytes: &[u8]) {
    if let Ok(ours) = Datagram::decode(&mut Reader::new(bytes)) {
        let again = ours.bytes();
        let mut r = Reader::new(&again);
        assert_eq!(Datagram::decode(&mut r), Ok(ours));
        assert!(r.is_empty());
    }
    if let Some((theirs, _)) = read_datagram(bytes) {
        let theirs = write_datagram(&theirs);
        let ours = Datagram::decode(&mut Reader::new(&theirs)).expect("theirs is refused");
        assert_eq!(ours.bytes(), theirs);
    }
}
