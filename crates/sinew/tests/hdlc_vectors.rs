//! The frames of the wire reference, section Worked frames, byte for byte, and each rule of
//! reception (section HDLC).

use sinew::frame::hdlc::{self, Decoder, Encoder, RPC_ADDRESS};
use sinew::rpc::packet::{self, OPEN_CALL_ID, Packet, PacketType, Route};
use sinew::rpc::{Raw, Status, id};

fn bytes(hex: &str) -> Vec<u8> {
    hex.split_whitespace()
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect()
}

fn encoded(address: u64, packet: &[u8]) -> Vec<u8> {
    let mut out = vec![0; hdlc::max_encoded_len(address, packet.len())];
    let len = hdlc::encode(address, packet, &mut out).unwrap();
    out.truncate(len);
    out
}

/// Every packet that comes out of `input`, in a place of `room` bytes.
fn received(decoder: &mut Decoder, room: usize, mut input: &[u8]) -> Vec<Vec<u8>> {
    let mut place = vec![0; room];
    let mut packets = Vec::new();
    while let Some(packet) = decoder.decode(&mut place, &mut input) {
        packets.push(packet.to_vec());
    }
    assert!(input.is_empty());
    packets
}

struct Frame {
    name: &'static str,
    packet_type: PacketType,
    method: (&'static str, &'static str),
    payload: &'static [u8],
    status: Status,
    call_id: u32,
    wire: &'static str,
}

const KINDS: &str = "demo.Kinds";

#[rustfmt::skip]
const FRAMES: [Frame; 10] = [
    Frame { name: "F1", packet_type: PacketType::REQUEST, method: (KINDS, "Double"), payload: &[0x08, 21], status: Status::OK, call_id: 1,
        wire: "7e a5 03 10 01 1d be 5f 6b 23 25 d7 ae af 54 2a 02 08 15 38 01 77 0a 94 89 7e" },
    Frame { name: "F2", packet_type: PacketType::RESPONSE, method: (KINDS, "Double"), payload: &[0x08, 42], status: Status::OK, call_id: 1,
        wire: "7e a5 03 08 01 10 01 1d be 5f 6b 23 25 d7 ae af 54 2a 02 08 2a 38 01 e3 34 52 45 7e" },
    Frame { name: "F3", packet_type: PacketType::REQUEST, method: (KINDS, "Sum"), payload: &[], status: Status::OK, call_id: 2,
        wire: "7e a5 03 10 01 1d be 5f 6b 23 25 b8 0b 57 09 38 02 b5 f6 b5 b5 7e" },
    Frame { name: "F4", packet_type: PacketType::CLIENT_STREAM, method: (KINDS, "Sum"), payload: &[0x08, 7], status: Status::OK, call_id: 2,
        wire: "7e a5 03 08 02 10 01 1d be 5f 6b 23 25 b8 0b 57 09 2a 02 08 07 38 02 95 29 cb af 7e" },
    Frame { name: "F5", packet_type: PacketType::CLIENT_REQUEST_COMPLETION, method: (KINDS, "Sum"), payload: &[], status: Status::OK, call_id: 2,
        wire: "7e a5 03 08 08 10 01 1d be 5f 6b 23 25 b8 0b 57 09 38 02 51 64 24 e6 7e" },
    Frame { name: "F6", packet_type: PacketType::CLIENT_ERROR, method: (KINDS, "EchoAll"), payload: &[], status: Status::CANCELLED, call_id: 300,
        wire: "7e a5 03 08 04 10 01 1d be 5f 6b 23 25 eb 5a 1f 52 30 01 38 ac 02 04 21 ab 94 7e" },
    Frame { name: "F7", packet_type: PacketType::SERVER_STREAM, method: (KINDS, "Count"), payload: &[0x08, 3], status: Status::OK, call_id: 5,
        wire: "7e a5 03 08 07 10 01 1d be 5f 6b 23 25 b6 13 36 b6 2a 02 08 03 38 05 e6 d6 81 cb 7e" },
    Frame { name: "F8", packet_type: PacketType::SERVER_ERROR, method: (KINDS, "\u{0}unknown"), payload: &[], status: Status::NOT_FOUND, call_id: 9,
        wire: "7e a5 03 08 05 10 01 1d be 5f 6b 23 25 78 56 34 12 30 05 38 09 8f b0 54 b5 7e" },
    Frame { name: "F9", packet_type: PacketType::RESPONSE, method: (KINDS, "Count"), payload: &[], status: Status::OK, call_id: OPEN_CALL_ID,
        wire: "7e a5 03 08 01 10 01 1d be 5f 6b 23 25 b6 13 36 b6 38 ff ff ff ff 0f b4 e6 e6 6b 7e" },
    Frame { name: "F10", packet_type: PacketType::REQUEST, method: ("pw.rpc.Benchmark", "UnaryEcho"), payload: b"\x0a\x03~}~", status: Status::OK, call_id: 1,
        wire: "7e a5 03 10 01 1d 1d 0c d7 d7 25 55 8b 4e 02 2a 05 0a 03 7d 5e 7d 5d 7d 5e 38 01 7c 3c 59 f9 7e" },
];

impl Frame {
    fn route(&self) -> Route {
        let (service, method) = self.method;
        // F8 names a method that does not exist, by its id.
        let method = if self.name == "F8" {
            0x1234_5678
        } else {
            id(method)
        };
        Route {
            channel: 1,
            service: id(service),
            method,
            call_id: self.call_id,
        }
    }
}

#[test]
fn packets_become_the_frames_of_the_specification() {
    for frame in &FRAMES {
        let mut place = [0; 64];
        let len = packet::encode(
            &mut place,
            frame.packet_type,
            &frame.route(),
            frame.payload,
            frame.status,
        );
        let packet = &place[..len.unwrap()];
        assert_eq!(
            encoded(RPC_ADDRESS, packet),
            bytes(frame.wire),
            "{}",
            frame.name
        );

        // A payload type with a small bound takes another way to the same bytes.
        let payload = Raw::<8>::new(frame.payload).unwrap();
        let mut again = [0; 64];
        let len = packet::encode(
            &mut again,
            frame.packet_type,
            &frame.route(),
            &payload,
            frame.status,
        );
        assert_eq!(&again[..len.unwrap()], packet, "{}", frame.name);
    }
}

#[test]
fn frames_of_the_specification_become_packets() {
    let mut decoder = Decoder::new(RPC_ADDRESS);
    for frame in &FRAMES {
        let packets = received(&mut decoder, 64, &bytes(frame.wire));
        let [packet] = packets.as_slice() else {
            panic!("{}: {packets:?}", frame.name)
        };
        let expected = Packet {
            packet_type: frame.packet_type,
            route: frame.route(),
            payload: frame.payload,
            status: frame.status,
        };
        assert_eq!(Packet::decode(packet), Ok(expected), "{}", frame.name);
    }
    assert_eq!(decoder.stats().frames, 10);
}

#[test]
fn addresses_have_the_bytes_of_the_specification() {
    let cases = [
        (RPC_ADDRESS, "", "7e a5 03 e9 0b a0 0b 7e"),
        (62, "", "7e 7d 5d 03 fe 44 41 42 7e"),
        (1000, "68 69", "7e d0 0f 03 68 69 18 1e b8 8c 7e"),
    ];
    for (address, packet, wire) in cases {
        assert_eq!(
            encoded(address, &bytes(packet)),
            bytes(wire),
            "address {address}"
        );
        let mut decoder = Decoder::new(address);
        assert_eq!(
            received(&mut decoder, 8, &bytes(wire)),
            [bytes(packet)],
            "address {address}"
        );
    }
    let heads = [
        (0, "7e 01 03"),
        (1, "7e 03 03"),
        (63, "7e 7f 03"),
        (127, "7e ff 03"),
        (128, "7e 00 03 03"),
        (u64::MAX, "7e fe fe fe fe fe fe fe fe fe 03 03"),
    ];
    for (address, head) in heads {
        let wire = encoded(address, b"x");
        assert!(
            wire.starts_with(&bytes(head)),
            "address {address}: {wire:02x?}"
        );
        assert_eq!(
            received(&mut Decoder::new(address), 1, &wire),
            [b"x"],
            "address {address}"
        );
    }
}

#[test]
fn a_frame_written_in_pieces_of_any_size_is_the_same() {
    let packet = b"~}plain~~ and a run that is longer than one vector register }";
    let whole = encoded(RPC_ADDRESS, packet);
    for size in 2..whole.len() + 2 {
        let mut encoder = Encoder::new(RPC_ADDRESS, packet);
        let mut pieces = Vec::new();
        while !encoder.is_done() {
            let mut piece = vec![0; size];
            let len = encoder.fill(&mut piece);
            assert!(len > 0);
            pieces.extend_from_slice(&piece[..len]);
        }
        assert_eq!(pieces, whole, "pieces of {size}");
    }
    let mut bytes = Vec::new();
    hdlc::put_frame(RPC_ADDRESS, packet, &mut |byte| bytes.push(byte));
    assert_eq!(bytes, whole, "byte by byte");
}

#[test]
fn a_frame_that_does_not_fit_is_refused() {
    let whole = encoded(RPC_ADDRESS, b"~~");
    for room in 0..whole.len() {
        assert_eq!(
            hdlc::encode(RPC_ADDRESS, b"~~", &mut vec![0; room]),
            None,
            "room {room}"
        );
    }
    assert_eq!(
        hdlc::encode(RPC_ADDRESS, b"~~", &mut vec![0; whole.len()]),
        Some(whole.len())
    );
}

#[test]
fn flags_may_be_shared_and_repeated() {
    let frame = encoded(RPC_ADDRESS, b"a");
    let mut stream = vec![0x7e; 3];
    stream.extend_from_slice(&frame);
    stream.extend_from_slice(&frame[1..]);
    let mut decoder = Decoder::new(RPC_ADDRESS);
    assert_eq!(received(&mut decoder, 8, &stream), [b"a", b"a"]);
    let stats = *decoder.stats();
    assert_eq!(
        (stats.frames, stats.too_short, stats.noise_bytes),
        (2, 0, 0)
    );
}

#[test]
fn any_control_byte_and_any_escaped_byte_is_accepted() {
    // Control 00 instead of 03, and `p` as 7D 50.
    let crc = sinew::wire::crc32::Crc32::new()
        .update(b"\xa5\0p")
        .finish()
        .to_le_bytes();
    let mut stream = b"\x7e\xa5\0\x7d\x50".to_vec();
    stream.extend_from_slice(&crc);
    stream.push(0x7e);
    assert_eq!(received(&mut Decoder::new(RPC_ADDRESS), 8, &stream), [b"p"]);
}

/// What is wrong with a stream, what is counted, and that the next frame is received.
#[test]
fn bad_input_is_counted_and_the_next_frame_received() {
    let good = encoded(RPC_ADDRESS, b"good");
    let text = "noise, bytes, bad_escape, too_short, bad_crc, other_address, too_large";
    let cases: [(&str, Vec<u8>, [u32; 6]); 9] = [
        (
            "noise before the first flag",
            b"boot ok\n".to_vec(),
            [8, 0, 0, 0, 0, 0],
        ),
        (
            "7D 7D",
            b"\x7e\xa5\x03ab\x7d\x7dcd".to_vec(),
            [2, 1, 0, 0, 0, 0],
        ),
        (
            "7D 7E",
            b"\x7e\xa5\x03abcdef\x7d".to_vec(),
            [0, 1, 0, 0, 0, 0],
        ),
        (
            "noise between flags",
            b"\x7ehello world\n".to_vec(),
            [0, 0, 0, 1, 0, 0],
        ),
        (
            "cut off",
            good[..good.len() - 1].split_last().unwrap().1.to_vec(),
            [0, 0, 0, 1, 0, 0],
        ),
        (
            "five bytes",
            b"\x7e\xa5\x03abc".to_vec(),
            [0, 0, 1, 0, 0, 0],
        ),
        (
            "another address",
            encoded(1, b"a longer log line"),
            [0, 0, 0, 0, 1, 0],
        ),
        (
            "an address that never ends",
            encoded(RPC_ADDRESS, b"x")[..1]
                .iter()
                .copied()
                .chain([0; 40])
                .collect(),
            [0, 0, 0, 1, 0, 0],
        ),
        (
            "too large",
            encoded(RPC_ADDRESS, &[7; 2000]),
            [0, 0, 0, 0, 0, 1],
        ),
    ];
    for (name, bad, expected) in cases {
        let mut stream = bad;
        stream.extend_from_slice(&good);
        let mut decoder = Decoder::new(RPC_ADDRESS);
        assert_eq!(received(&mut decoder, 4, &stream), [b"good"], "{name}");
        let s = *decoder.stats();
        assert_eq!(
            [
                s.noise_bytes,
                s.bad_escape,
                s.too_short,
                s.bad_crc,
                s.other_address,
                s.too_large
            ],
            expected,
            "{name}: {text}"
        );
    }
}

#[test]
fn a_place_as_large_as_the_packet_is_enough() {
    let wire = encoded(RPC_ADDRESS, b"exact");
    assert_eq!(
        received(&mut Decoder::new(RPC_ADDRESS), 5, &wire),
        [b"exact"]
    );
    let mut decoder = Decoder::new(RPC_ADDRESS);
    assert!(received(&mut decoder, 4, &wire).is_empty());
    assert_eq!(decoder.stats().too_large, 1);
}

#[test]
fn a_damaged_large_frame_is_a_bad_crc() {
    let mut wire = encoded(RPC_ADDRESS, &[7; 200]);
    wire[100] ^= 1;
    let mut decoder = Decoder::new(RPC_ADDRESS);
    assert!(received(&mut decoder, 8, &wire).is_empty());
    assert_eq!((decoder.stats().bad_crc, decoder.stats().too_large), (1, 0));
}
