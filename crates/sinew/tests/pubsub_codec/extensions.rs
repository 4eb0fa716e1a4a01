//! Extensions that are not known: skipped if optional, refused if mandatory, in every message.

use sinew::pubsub::codec::{CodecError, Reader};

use crate::any::{Datagram, Message};
use crate::vectors::wire;

/// Every header that can have extensions: the bytes before them with the header marked by `!`, and
/// those behind.
const MESSAGES: &[(&str, &str, &str)] = &[
    ("INIT", "!41 09 12 0102 0a 0008", ""),
    ("INIT, the answer", "!61 09 12 0102 0a 0008 02 c0c1", ""),
    ("OPEN", "!42 0a 00 01 c0", ""),
    ("OPEN, the answer", "!62 0a 00", ""),
    ("CLOSE", "!03 01", ""),
    ("KEEP_ALIVE", "!04", ""),
    ("FRAME", "!25 07", ""),
    ("FRAGMENT", "!66 07", "aabb"),
    ("JOIN", "!67 09 11 0102 0a 0008 0a 00 00", ""),
    ("OAM of the transport", "!40 05", "02 aabb"),
    ("OAM of the network", "!5f 05", "02 aabb"),
    ("PUSH", "!5d 01", "01 01 58"),
    ("PUT", "5d 01 !01", "01 58"),
    (
        "PUT, with time and encoding",
        "5d 01 !61 05 01 01 08",
        "01 58",
    ),
    ("DEL", "5d 01 !02", ""),
    ("REQUEST", "!5c 01 01", "03"),
    ("QUERY", "5c 01 01 !63 01 01 61", ""),
    ("RESPONSE", "!5b 01 01", "04 01 00"),
    ("REPLY", "5b 01 01 !24 01", "01 00"),
    ("ERR", "5b 01 01 !45 08", "00"),
    ("RESPONSE_FINAL", "!1a 01", ""),
    ("INTEREST", "!79 01 52 01", ""),
    ("INTEREST, its end", "!19 01", ""),
    ("DECLARE", "!3e 01", "1a"),
    ("D_KEYEXPR", "1e !20 01 00 01 61", ""),
    ("U_KEYEXPR", "1e !01 01", ""),
    ("D_SUBSCRIBER", "1e !42 01 01", ""),
    ("U_SUBSCRIBER", "1e !03 01", ""),
    ("D_QUERYABLE", "1e !44 01 01", ""),
    ("U_QUERYABLE", "1e !05 01", ""),
    ("D_TOKEN", "1e !46 01 01", ""),
    ("U_TOKEN", "1e !07 01", ""),
    ("D_FINAL", "1e !1a", ""),
];

/// The same for scouting.
const DATAGRAMS: &[(&str, &str, &str)] = &[
    ("SCOUT", "!01 09 1b 0102", ""),
    ("HELLO", "!22 09 11 0102 01 01 61", ""),
];

/// The message with these extensions; with none, if the text is empty.
fn with(row: &(&str, &str, &str), exts: &str) -> Vec<u8> {
    let (start, header) = row.1.split_once('!').unwrap();
    let mut bytes = wire(start);
    let at = bytes.len();
    bytes.extend(wire(header));
    if !exts.is_empty() {
        bytes[at] |= 0x80;
    }
    bytes.extend(wire(exts));
    bytes.extend(wire(row.2));
    bytes
}

/// None has the id e: without a value, a number of the most bytes, bytes, and several.
const OPTIONAL: &[&str] = &[
    "0e",
    "2e 05",
    "2e ffffffffffffffffff",
    "4e 00",
    "4e 03 aabbcc",
    "8e ae 05 ce 01 aa 4e 00",
];
const MANDATORY: &[&str] = &["1e", "3e 05", "5e 01 aa", "8e 1e", "de 00 0e"];

fn check<T: PartialEq + core::fmt::Debug>(
    rows: &[(&str, &str, &str)],
    read: impl Fn(&[u8]) -> Result<T, CodecError>,
) {
    for row in rows {
        let plain = read(&with(row, ""));
        assert!(plain.is_ok(), "{}: {plain:?}", row.0);
        for exts in OPTIONAL {
            assert_eq!(read(&with(row, exts)), plain, "{} {exts}", row.0);
        }
        for exts in MANDATORY {
            assert_eq!(
                read(&with(row, exts)),
                Err(CodecError::Mandatory),
                "{} {exts}",
                row.0
            );
        }
        assert_eq!(
            read(&with(row, "6e")),
            Err(CodecError::Reserved),
            "{}",
            row.0
        );
        assert_eq!(
            read(&with(row, "4e ffffffff0f")),
            Err(CodecError::Truncated),
            "{}",
            row.0
        );
    }
}

#[test]
fn an_unknown_extension_is_skipped_or_refused_in_every_message() {
    // What was read must not depend on what it borrows from.
    check(MESSAGES, |bytes| {
        Message::batch(bytes)
            .map(|messages| messages.iter().map(Message::bytes).collect::<Vec<_>>())
    });
}

#[test]
fn an_unknown_extension_is_skipped_or_refused_in_every_datagram() {
    check(DATAGRAMS, |bytes| {
        let mut r = Reader::new(bytes);
        let datagram = Datagram::decode(&mut r)?;
        assert!(r.is_empty());
        Ok(datagram.bytes())
    });
}

#[test]
fn a_known_id_of_another_kind_is_another_extension() {
    for (name, bytes) in [
        ("quality of service as bytes", "dd 01 41 01 08 01 00"),
        ("a source as a number", "5d 01 81 21 05 00"),
        ("a patch without a value", "c1 09 12 0102 0a 0008 07"),
        ("the first fragment's mark with a value", "a6 07 22 01"),
    ] {
        let bytes = wire(bytes);
        let read = Message::decode(&mut Reader::new(&bytes)).expect(name);
        assert!(read.bytes().len() < bytes.len(), "{name}: {read:?}");
    }
}

#[test]
fn a_tree_of_routers_is_known_and_nothing_to_us() {
    for bytes in [
        "dd 01 33 02 01 00",
        "9c 01 00 33 02 03",
        "9e 33 02 1a",
        "99 01 33 02",
    ] {
        let bytes = wire(bytes);
        assert!(
            Message::decode(&mut Reader::new(&bytes)).is_ok(),
            "{bytes:02x?}"
        );
    }
}
