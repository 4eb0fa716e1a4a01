//! Lengths, ids and values that cannot be.

use sinew::pubsub::codec::CodecError::{NotUtf8, OutOfRange, Reserved, Truncated, Unknown};
use sinew::pubsub::codec::scouting::Locators;
use sinew::pubsub::codec::{
    Body, CodecError, Encoding, Interest, Priority, Push, Qos, Reader, WireExpr, Writer,
};

use crate::any::{Datagram, Message, written};
use crate::vectors::wire;

fn refused(rows: &[(&str, CodecError)]) {
    for (text, error) in rows {
        let bytes = wire(text);
        assert_eq!(
            Message::decode(&mut Reader::new(&bytes)),
            Err(*error),
            "{text}"
        );
    }
}

#[test]
fn a_length_beyond_the_packet_is_truncated() {
    refused(&[
        ("5d 01 01 ffffffff0f 00", Truncated),         // payload
        ("5d 01 01 ffffffffffffffffff 00", Truncated), // of 64 bits
        ("7d 00 ffff03 61", Truncated),                // key
        ("5d 01 41 09 ff01 61", Truncated),            // schema
        ("61 09 12 0102 0a 0008 ffffff7f", Truncated), // cookie
        ("42 0a 00 ff7f c0", Truncated),
        ("dd 01 4e ffffffff0f 01 00", Truncated), // extension
        ("5c 01 00 43 ff7f 61", Truncated),       // parameters
        ("5b 01 00 05 ffffffff0f", Truncated),    // error
        ("5d 01 21 05 7f 01", Truncated),         // node of a time
        ("5d 01 81 41 02 f0 01", Truncated),      // node of a source
        ("5c 01 00 83 43 00", Truncated),         // a body without an encoding
        ("df 01 4e 00 ff", Truncated),
        ("1e 87 03 5f 00", Truncated), // a key without flags
        ("87 09 11 0102 0a 00 00 51 03 010203", Truncated), // fewer numbers than priorities
    ]);
}

#[test]
fn a_number_above_its_field_is_out_of_range() {
    refused(&[
        ("5d 808004 01 00", OutOfRange), // the number of a key
        ("1e 00 808004 00", OutOfRange),
        ("1e 01 ffffffffffffffffff", OutOfRange),
        ("25 8080808010", OutOfRange), // a sequence number
        ("06 ffffffffffffffffff", OutOfRange),
        ("42 0a 8080808010 00", OutOfRange),
        ("5c 8080808010 00 03", OutOfRange), // the number of a request
        ("1a 8080808010", OutOfRange),
        ("19 8080808010", OutOfRange),
        ("3e 8080808010 1a", OutOfRange),
        ("1e 42 8080808010 00", OutOfRange),
        ("5d 01 41 808008 00", OutOfRange), // an encoding
        ("1f 808004", OutOfRange),
    ]);
    let schema = [&wire("5d 01 41 09 8002")[..], &[0; 300]].concat();
    assert_eq!(Message::decode(&mut Reader::new(&schema)), Err(OutOfRange));
}

#[test]
fn what_the_protocol_keeps_for_later_is_refused() {
    refused(&[
        ("41 09 13 0102 0a 0008", Reserved),       // a fourth role
        ("41 09 12 0000 0a 0008", Reserved),       // nobody's id
        ("5d 01 21 05 00 00", Reserved),           // an id of no bytes
        ("5d 01 21 05 11 zeros(17) 00", Reserved), // one of 17
        ("dc 01 00 34 03 03", Reserved),           // a fourth target
        ("60 01", Reserved),                       // a body of the fourth kind
        ("7f 01", Reserved),
    ]);
}

#[test]
fn an_id_of_nothing_is_unknown() {
    for id in 0x08..=0x18 {
        assert_eq!(
            Message::decode(&mut Reader::new(&[id, 0, 0, 0])),
            Err(Unknown),
            "{id:02x}"
        );
    }
    for body in (0..=0x1f).filter(|body| ![1, 2].contains(body)) {
        let push = [0x5d, 0x01, body, 0, 0, 0];
        assert_eq!(
            Message::decode(&mut Reader::new(&push)),
            Err(Unknown),
            "{body:02x}"
        );
    }
    for body in (0..=0x1f).filter(|body| *body != 3) {
        let request = [0x5c, 0x01, 0x01, body, 0, 0, 0];
        assert_eq!(
            Message::decode(&mut Reader::new(&request)),
            Err(Unknown),
            "{body:02x}"
        );
    }
    for body in (0..=0x1f).filter(|body| ![4, 5].contains(body)) {
        let response = [0x5b, 0x01, 0x01, body, 0, 0, 0];
        assert_eq!(
            Message::decode(&mut Reader::new(&response)),
            Err(Unknown),
            "{body:02x}"
        );
    }
    for declaration in (0x08..=0x1f).filter(|declaration| *declaration != 0x1a) {
        let declare = [0x1e, declaration, 0, 0];
        assert_eq!(
            Message::decode(&mut Reader::new(&declare)),
            Err(Unknown),
            "{declaration:02x}"
        );
    }
    for datagram in (0..=0x1f).filter(|id| ![1, 2].contains(id)) {
        let bytes = [datagram, 9, 0, 1];
        assert_eq!(
            Datagram::decode(&mut Reader::new(&bytes)),
            Err(Unknown),
            "{datagram:02x}"
        );
    }
}

#[test]
fn text_is_utf8() {
    refused(&[
        ("7d 00 01 ff 01 00", NotUtf8),
        ("5c 01 00 43 01 ff", NotUtf8),
        ("1e 83 01 5f 03 01 00 ff", NotUtf8),
    ]);
    let hello = wire("22 09 11 0102 01 01 ff");
    assert_eq!(Datagram::decode(&mut Reader::new(&hello)), Err(NotUtf8));
}

#[test]
fn a_made_up_count_of_locators_ends_with_the_packet() {
    let hello = wire("22 09 11 0102 ffffffff0f 00 00 00");
    assert_eq!(Datagram::decode(&mut Reader::new(&hello)), Err(Truncated));
}

#[test]
fn locators_come_back_one_by_one() {
    let list = ["tcp/192.0.2.1:7447", "", "udp/[::1]:7447"];
    let mut place = [0; 64];
    let locators = Locators::new(&list, &mut place).unwrap();
    assert_eq!(locators.collect::<Vec<_>>(), list);
    assert_eq!(Locators::new(&list, &mut [0; 8]), None);
    assert_eq!(Locators::new(&[&"x".repeat(256)], &mut [0; 512]), None);
}

#[test]
fn what_has_no_form_on_the_wire_is_not_written() {
    let mut place = vec![0; 70_000];
    let schema = [0; 256];
    let long = "x".repeat(65_536);
    let put = |body, suffix| Push {
        body,
        ..Push::put(WireExpr::text(suffix), b"")
    };
    for push in [
        put(
            Body {
                encoding: Encoding {
                    id: 1,
                    schema: &schema,
                },
                ..Body::put(b"")
            },
            "a",
        ),
        put(Body::put(b""), &long),
    ] {
        let mut w = Writer::new(&mut place);
        push.encode(&mut w);
        assert_eq!(w.finish(), None);
    }
    let mut w = Writer::new(&mut place);
    put(
        Body {
            encoding: Encoding {
                id: 1,
                schema: &schema[1..],
            },
            ..Body::put(b"")
        },
        &long[1..],
    )
    .encode(&mut w);
    assert!(w.finish().is_some());
}

#[test]
fn a_lease_of_ages_counts_as_the_longest() {
    for text in ["62 ffffffff7f 00", "22 ffffffffffffffffff 00"] {
        let bytes = wire(text);
        match Message::decode(&mut Reader::new(&bytes)) {
            Ok(Message::Open(open)) => assert_eq!(open.lease_ms, u32::MAX),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_sample_on_a_declared_key_has_four_bytes_before_its_payload() {
    let push = Push::put(WireExpr::declared(127, true), &[0x55; 8]);
    assert_eq!(
        written(|w| push.encode(w)),
        wire("5d 7f 01 08 5555555555555555")
    );
}

#[test]
fn quality_of_service_is_bits() {
    let qos = Qos::DEFAULT;
    assert_eq!((qos.priority(), qos.is_blocking()), (Priority::Data, false));
    assert_eq!((qos.is_express(), qos.is_block_first()), (false, false));
    assert_eq!(
        Qos::DECLARATION,
        Qos(0).with_priority(Priority::Control).with_blocking(true)
    );
    assert_eq!(Qos::REQUEST, qos.with_blocking(true));
    let all = qos
        .with_express(true)
        .with_block_first(true)
        .with_priority(Priority::Background);
    assert_eq!(all, Qos(0x37));
    assert!(all.is_express() && all.is_block_first());
    assert_eq!(all.with_express(false).with_block_first(false), Qos(0x07));
}

#[test]
fn encodings_have_names() {
    assert_eq!(Encoding::NAMES.len(), 53);
    for (id, name) in (0..).zip(Encoding::NAMES) {
        assert_eq!(Encoding::parse(name), Encoding { id, schema: &[] });
        assert_eq!(Encoding { id, schema: &[] }.to_string(), *name);
    }
    let utf8 = Encoding::TEXT_PLAIN.with_schema(b"utf8");
    assert_eq!(Encoding::parse("text/plain;utf8"), utf8);
    assert_eq!(utf8.to_string(), "text/plain;utf8");
    assert_eq!(
        Encoding::parse("mine"),
        Encoding {
            id: 0,
            schema: b"mine"
        }
    );
    assert_eq!(
        Encoding {
            id: 500,
            schema: &[0xff]
        }
        .to_string(),
        "unknown(500);(not UTF-8)"
    );
    assert_eq!(
        Encoding {
            id: 500,
            schema: &[]
        }
        .name(),
        None
    );
}

#[test]
fn an_interest_without_a_time_says_only_its_number() {
    let interest = Interest {
        id: 7,
        options: 0x0f,
        ..Interest::default()
    };
    assert_eq!(written(|w| interest.encode(w)), wire("19 07"));
}
