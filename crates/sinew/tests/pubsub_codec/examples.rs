//! The worked examples, in both directions, whole and cut.

use sinew::pubsub::codec::{CodecError, Reader};

use crate::any::{Datagram, Message, written};
use crate::vectors::{Vector, examples, scouting, session, wire};

fn all() -> Vec<Vector> {
    session().into_iter().chain(examples()).collect()
}

#[test]
fn every_example_reads_as_what_it_says() {
    for Vector {
        name,
        bytes,
        messages,
        ..
    } in all()
    {
        assert_eq!(Message::batch(&bytes).as_ref(), Ok(&messages), "{name}");
    }
    for (name, bytes, datagram) in scouting() {
        let mut r = Reader::new(&bytes);
        assert_eq!(Datagram::decode(&mut r), Ok(datagram), "{name}");
        assert!(r.is_empty(), "{name}");
    }
}

#[test]
fn what_an_example_says_is_written_as_its_bytes() {
    for Vector {
        name,
        bytes,
        messages,
        read_only,
    } in all()
    {
        let ours = written(|w| messages.iter().for_each(|message| message.encode(w)));
        assert_eq!(
            ours == bytes,
            !read_only,
            "{name}: {ours:02x?} and {bytes:02x?}"
        );
    }
    for (name, bytes, datagram) in scouting() {
        assert_eq!(datagram.bytes(), bytes, "{name}");
    }
}

#[test]
fn all_thirty_three_examples_are_here() {
    let names: Vec<_> = examples().iter().map(|vector| vector.name).collect();
    let scouting: Vec<_> = scouting().iter().map(|(name, ..)| *name).collect();
    for row in 1..=33 {
        let start = format!("{row} ");
        assert!(
            names
                .iter()
                .chain(&scouting)
                .any(|name| name.starts_with(&start)),
            "row {row}"
        );
    }
}

/// The least that a fragment has is its number; any bytes behind that are its piece.
fn is_whole(prefix: &[u8]) -> bool {
    matches!(
        Message::decode(&mut Reader::new(prefix)),
        Ok(Message::Fragment(_))
    )
}

#[test]
fn every_prefix_of_every_message_is_truncated() {
    for Vector { name, messages, .. } in all() {
        for message in messages {
            let bytes = message.bytes();
            // A long piece of a message is cut where its header is, and no further.
            for len in 0..bytes.len().min(200) {
                let prefix = &bytes[..len];
                let read = Message::decode(&mut Reader::new(prefix));
                if !(matches!(message, Message::Fragment(_)) && is_whole(prefix)) {
                    assert_eq!(read, Err(CodecError::Truncated), "{name}: {prefix:02x?}");
                }
            }
        }
    }
    for (name, bytes, _) in scouting() {
        for len in 0..bytes.len() {
            let read = Datagram::decode(&mut Reader::new(&bytes[..len]));
            assert_eq!(read, Err(CodecError::Truncated), "{name}: {len}");
        }
    }
}

#[test]
fn any_byte_of_an_example_may_be_any_other() {
    for Vector { bytes, .. } in all() {
        for at in 0..bytes.len().min(120) {
            for value in 0..=255 {
                let mut bytes = bytes[..bytes.len().min(120)].to_vec();
                bytes[at] = value;
                // What is then a message is written and read again the same.
                for message in Message::batch(&bytes).unwrap_or_default() {
                    assert_eq!(Message::batch(&message.bytes()), Ok(vec![message]));
                }
            }
        }
    }
}

#[test]
fn the_examples_of_the_wire_reference_are_read_and_written_the_same() {
    let page = include_str!("../../../../docs/src/zenoh-wire.md");
    let (_, block) = page.split_once("```zenoh\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    assert!(block.lines().count() > 20);
    for line in block.lines() {
        let (bytes, _) = line.split_once('|').expect(line);
        let bytes = wire(bytes);
        let messages = Message::batch(&bytes).expect(line);
        let ours = written(|w| messages.iter().for_each(|message| message.encode(w)));
        assert_eq!(ours, bytes, "{line}");
    }
}
