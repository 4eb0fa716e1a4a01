//! Packets of pw_rpc: any order in, field order out (wire reference, section Packet).

use proptest::collection::vec;
use proptest::prelude::*;
use sinew::rpc::packet::{self, HEADER_MAX, Packet, PacketError, PacketType, Route};
use sinew::rpc::{Raw, Status};
use sinew::wire::{Reader, varint};

/// F2 of the specification: what field order makes of it.
const F2: &[u8] =
    b"\x08\x01\x10\x01\x1d\xbe\x5f\x6b\x23\x25\xd7\xae\xaf\x54\x2a\x02\x08\x2a\x38\x01";

fn f2() -> Packet<'static> {
    Packet {
        packet_type: PacketType::RESPONSE,
        route: Route {
            channel: 1,
            service: 0x236b_5fbe,
            method: 0x54af_aed7,
            call_id: 1,
        },
        payload: &[0x08, 0x2a],
        status: Status::OK,
    }
}

fn with(extra: &[u8]) -> Vec<u8> {
    [F2, extra].concat()
}

#[test]
fn payload_first_as_the_cpp_encoder_writes_it_is_the_same_packet() {
    let cpp = b"\x2a\x02\x08\x2a\x08\x01\x10\x01\x1d\xbe\x5f\x6b\x23\x25\xd7\xae\xaf\x54\x38\x01";
    assert_eq!(Packet::decode(cpp), Ok(f2()));
    assert_eq!(Packet::decode(F2), Ok(f2()));
}

#[test]
fn type_zero_may_be_written_or_left_out() {
    let request = Packet {
        packet_type: PacketType::REQUEST,
        ..f2()
    };
    assert_eq!(Packet::decode(&with(b"\x08\0")), Ok(request));
    assert_eq!(Packet::decode(&F2[2..]), Ok(request));
}

#[test]
fn absent_fields_are_zero() {
    let packet = Packet::decode(&F2[2..14]).unwrap();
    let route = Route {
        call_id: 0,
        ..f2().route
    };
    let expected = Packet {
        packet_type: PacketType::REQUEST,
        route,
        payload: &[],
        status: Status::OK,
    };
    assert_eq!(packet, expected);
}

#[test]
fn the_last_duplicate_wins() {
    let bytes = with(b"\x08\x07\x10\x09\x2a\x01x\x30\x05\x38\xac\x02");
    let packet = Packet::decode(&bytes).unwrap();
    assert_eq!(packet.packet_type, PacketType::SERVER_STREAM);
    assert_eq!((packet.route.channel, packet.route.call_id), (9, 300));
    assert_eq!(
        (packet.payload, packet.status),
        (b"x".as_slice(), Status::NOT_FOUND)
    );
}

#[test]
fn unknown_fields_of_every_wire_type_are_skipped() {
    let unknown: [&[u8]; 5] = [
        b"\x40\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", // varint of ten bytes
        b"\x419876543\x32",                              // fixed64
        b"\x42\x05\x10\0\0\0\0",                         // bytes that look like a field
        b"\x454321",                                     // fixed32
        b"\x80\x01\x01",                                 // field 16
    ];
    for field in unknown {
        assert_eq!(
            Packet::decode(&with(field)),
            Ok(f2()),
            "{field:02x?} behind"
        );
        assert_eq!(
            Packet::decode(&[field, F2].concat()),
            Ok(f2()),
            "{field:02x?} before"
        );
    }
}

#[test]
fn a_known_field_of_the_wrong_wire_type_is_malformed() {
    for field in 1..=7u8 {
        for wire_type in 0..=7u8 {
            let expected = matches!((field, wire_type), (1 | 2 | 6 | 7, 0) | (3 | 4, 5) | (5, 2));
            let bytes = with(&[field << 3 | wire_type, 1, 0, 0, 0, 0x40, 0, 0x40, 0]);
            // Only a right wire type leaves a whole number of fields behind it.
            if !expected {
                assert_eq!(
                    Packet::decode(&bytes),
                    Err(PacketError::Malformed),
                    "field {field}, wire type {wire_type}"
                );
            }
        }
    }
}

#[test]
fn field_zero_groups_and_cut_off_fields_are_malformed() {
    let bad: [&[u8]; 9] = [
        b"\x00\x01",
        b"\x43",
        b"\x44",
        b"\x46\0",
        b"\x10",
        b"\x10\x80",
        b"\x1d\0\0\0",
        b"\x2a\x02x",
        b"\x40\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", // varint of eleven bytes
    ];
    for field in bad {
        assert_eq!(
            Packet::decode(&with(field)),
            Err(PacketError::Malformed),
            "{field:02x?}"
        );
    }
}

#[test]
fn a_length_beyond_the_packet_is_malformed_whatever_its_size() {
    for len in [
        b"\x2a\xff\xff\xff\xff\x0f".as_slice(),
        b"\x2a\x80\x01",
        b"\x42\xff\xff\xff\xff\x0f",
    ] {
        assert_eq!(
            Packet::decode(&with(len)),
            Err(PacketError::Malformed),
            "{len:02x?}"
        );
    }
}

#[test]
fn an_id_of_zero_is_refused() {
    for zero in [b"\x10\0".as_slice(), b"\x1d\0\0\0\0", b"\x25\0\0\0\0"] {
        assert_eq!(
            Packet::decode(&with(zero)),
            Err(PacketError::ZeroId),
            "{zero:02x?}"
        );
    }
    assert_eq!(Packet::decode(b""), Err(PacketError::ZeroId));
}

prop_compose! {
    fn routes()(
        channel in 1..=u32::MAX, service in 1..=u32::MAX, method in 1..=u32::MAX,
        call_id in prop_oneof![Just(0), 1..200u32, any::<u32>()],
    ) -> Route {
        Route { channel, service, method, call_id }
    }
}

fn statuses() -> impl Strategy<Value = Status> {
    prop_oneof![Just(0), 0..17u32, any::<u32>()].prop_map(Status::from_code)
}

/// One byte on the wire, as all that are ever written.
fn types() -> impl Strategy<Value = PacketType> {
    (0..128u32).prop_map(PacketType)
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        packet_type in types(), route in routes(), status in statuses(),
        payload in vec(any::<u8>(), 0..300),
    ) {
        let mut place = vec![0xee; HEADER_MAX + payload.len()];
        let len = packet::encode(&mut place, packet_type, &route, payload.as_slice(), status);
        let len = len.expect("HEADER_MAX is enough");
        let expected = Packet { packet_type, route, payload: &payload, status };
        prop_assert_eq!(Packet::decode(&place[..len]), Ok(expected));
    }

    #[test]
    fn every_way_to_write_needs_exactly_the_length(
        packet_type in types(), route in routes(), status in statuses(),
        payload in vec(any::<u8>(), 0..20),
    ) {
        let small = Raw::<20>::new(&payload).unwrap();
        let bytes = payload.as_slice();
        let mut place = [0; HEADER_MAX + 20];
        let len = packet::encode(&mut place, packet_type, &route, bytes, status).unwrap();
        for room in 0..=len {
            let expected = (room == len).then_some(len);
            let mut place = vec![0; room];
            prop_assert_eq!(
                packet::encode(&mut place, packet_type, &route, bytes, status), expected);
            prop_assert_eq!(
                packet::encode(&mut place, packet_type, &route, &small, status), expected);
            if payload.is_empty() {
                prop_assert_eq!(
                    packet::encode_empty(&mut place, packet_type, &route, status), expected);
            }
        }
    }

    #[test]
    fn fields_in_any_order_are_the_same_packet(order in Just([0usize, 1, 2, 3, 4, 5]).prop_shuffle()) {
        let fields = [&F2[..2], &F2[2..4], &F2[4..9], &F2[9..14], &F2[14..18], &F2[18..]];
        let bytes: Vec<u8> = order.iter().flat_map(|&i| fields[i].to_vec()).collect();
        prop_assert_eq!(Packet::decode(&bytes), Ok(f2()));
    }

    #[test]
    fn any_bytes_are_a_packet_with_ids_or_refused(bytes in vec(any::<u8>(), 0..80)) {
        if let Ok(packet) = Packet::decode(&bytes) {
            let Route { channel, service, method, .. } = packet.route;
            prop_assert!(channel != 0 && service != 0 && method != 0);
        }
    }

    #[test]
    fn a_packet_cut_off_or_changed_never_panics(
        at in 0..F2.len(), byte in any::<u8>(), keep in 0..=F2.len(),
    ) {
        let mut bytes = F2.to_vec();
        bytes[at] = byte;
        if let Ok(packet) = Packet::decode(&bytes[..keep]) {
            prop_assert!(packet.payload.len() <= keep);
        }
    }

    #[test]
    fn varints_come_back(value in prop_oneof![0..300u32, any::<u32>()]) {
        let mut place = [0; 5];
        let len = varint::write32(&mut place, 0, value).unwrap();
        let mut reader = Reader::new(&place[..len]);
        prop_assert_eq!(reader.varint32(), Some(value));
        prop_assert!(reader.is_empty());
        prop_assert_eq!(varint::write32(&mut place[..len - 1], 0, value), None);
        prop_assert_eq!(Reader::new(&place[..len - 1]).varint32(), None);
    }
}
