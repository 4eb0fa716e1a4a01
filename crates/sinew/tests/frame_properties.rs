//! What must hold for any packet and any bytes, in every framing.

use proptest::collection::vec;
use proptest::prelude::*;
use sinew::frame::length::{self, Width};
use sinew::frame::{Decoder, FrameError, FrameStats, Framing, cobs, hdlc};
use sinew::wire::crc32::Crc32;

const ROOM: usize = 600;

/// Bytes in which delimiters and escapes are frequent.
fn wire_bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        4 => any::<u8>(),
        1 => prop::sample::select(vec![0x7e, 0x7d, 0x5e, 0x5d, 0xa5, 0x03, 0x00, 0x01, 0xff]),
    ];
    vec(byte, 0..max)
}

fn framing() -> impl Strategy<Value = Framing> {
    prop_oneof![
        Just(Framing::HDLC),
        any::<u64>().prop_map(|address| Framing::Hdlc { address }),
        Just(Framing::Length),
        Just(Framing::Zenoh),
        Just(Framing::Cobs),
    ]
}

fn encoded(framing: Framing, packet: &[u8]) -> Vec<u8> {
    let mut out = vec![0xee; framing.max_encoded_len(packet.len())];
    let len = framing
        .encode(packet, &mut out)
        .expect("max_encoded_len is enough");
    out.truncate(len);
    out
}

#[derive(Debug, PartialEq)]
struct Received {
    packets: Vec<Vec<u8>>,
    error: Option<FrameError>,
    stats: FrameStats,
}

/// Feeds the chunks one after the other.
fn receive<'a>(framing: Framing, chunks: impl IntoIterator<Item = &'a [u8]>) -> Received {
    let mut decoder: Decoder = framing.decoder();
    let mut place = [0; ROOM];
    let (mut packets, mut error) = (Vec::new(), None);
    for mut input in chunks {
        loop {
            match decoder.decode(&mut place, &mut input) {
                Ok(Some(packet)) => packets.push(packet.to_vec()),
                Ok(None) => {
                    assert!(input.is_empty(), "None means that all input is used");
                    break;
                }
                Err(failure) => {
                    error = Some(failure);
                    break;
                }
            }
        }
    }
    Received {
        packets,
        error,
        stats: *decoder.stats(),
    }
}

/// HDLC reception, written as plainly as possible, over a stream that begins with a flag.
fn hdlc_model(stream: &[u8]) -> (Vec<Vec<u8>>, FrameStats) {
    let (mut packets, mut stats) = (Vec::new(), FrameStats::default());
    let mut parts: Vec<&[u8]> = stream.split(|&byte| byte == 0x7e).collect();
    parts.pop(); // not complete
    for part in parts {
        let (mut content, mut escaped, mut bad_at) = (Vec::new(), false, None);
        for (i, &byte) in part.iter().enumerate() {
            match (escaped, byte) {
                (true, 0x7d) => {
                    bad_at = Some(i + 1);
                    break;
                }
                (false, 0x7d) => escaped = true,
                (true, _) => {
                    content.push(byte ^ 0x20);
                    escaped = false;
                }
                (false, _) => content.push(byte),
            }
        }
        if let Some(bad_at) = bad_at {
            stats.bad_escape += 1;
            stats.noise_bytes += (part.len() - bad_at) as u32;
        } else if escaped {
            stats.bad_escape += 1;
        } else if part.is_empty() {
        } else if content.len() < 6 {
            stats.too_short += 1;
        } else {
            let (body, fcs) = content.split_at(content.len() - 4);
            if Crc32::new().update(body).finish().to_le_bytes() != fcs {
                stats.bad_crc += 1;
            } else if body[0] != 0xa5 {
                stats.other_address += 1;
            } else if body.len() - 2 > ROOM {
                stats.too_large += 1;
            } else {
                stats.frames += 1;
                packets.push(body[2..].to_vec());
            }
        }
    }
    (packets, stats)
}

proptest! {
    #[test]
    fn packets_come_back_whole_and_in_order(
        framing in framing(),
        packets in vec(wire_bytes(ROOM), 0..6),
    ) {
        let stream: Vec<u8> = packets.iter().flat_map(|p| encoded(framing, p)).collect();
        let received = receive(framing, [stream.as_slice()]);
        prop_assert_eq!(&received.packets, &packets);
        let expected = FrameStats { frames: packets.len() as u32, ..FrameStats::default() };
        prop_assert_eq!(received.stats, expected);
    }

    #[test]
    fn a_frame_fits_its_bound_and_never_less_than_its_length(
        framing in framing(),
        packet in wire_bytes(300),
    ) {
        let len = encoded(framing, &packet).len();
        prop_assert_eq!(framing.encode(&packet, &mut vec![0; len]), Some(len));
        prop_assert_eq!(framing.encode(&packet, &mut vec![0; len - 1]), None);
    }

    #[test]
    fn any_bytes_in_any_chunks_give_the_same(
        framing in framing(),
        parts in vec(prop_oneof![wire_bytes(80), wire_bytes(80).prop_map(|p| encoded(Framing::HDLC, &p)),
            wire_bytes(80).prop_map(|p| encoded(Framing::Cobs, &p)),
            wire_bytes(80).prop_map(|p| encoded(Framing::Length, &p)),
            wire_bytes(80).prop_map(|p| encoded(Framing::Zenoh, &p))], 0..6),
        size in 1usize..40,
    ) {
        let stream = parts.concat();
        let whole = receive(framing, [stream.as_slice()]);
        prop_assert_eq!(whole, receive(framing, stream.chunks(size)));
    }

    #[test]
    fn frames_are_split_in_place_as_the_decoder_reads_them(
        width in prop_oneof![Just(Width::Two), Just(Width::Four)],
        parts in vec(prop_oneof![wire_bytes(20),
            wire_bytes(80).prop_map(|p| encoded(Framing::Zenoh, &p)),
            wire_bytes(80).prop_map(|p| encoded(Framing::Length, &p))], 0..6),
    ) {
        let framing = if width == Width::Two { Framing::Zenoh } else { Framing::Length };
        let stream = parts.concat();
        let mut rest = stream.as_slice();
        let mut packets = Vec::new();
        let error = loop {
            match length::split(width, rest, ROOM) {
                Ok(Some(packet)) => {
                    packets.push(packet.to_vec());
                    rest = &rest[length::encoded_len(width, packet.len())..];
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        let received = receive(framing, [stream.as_slice()]);
        prop_assert_eq!((packets, error), (received.packets, received.error));
    }

    #[test]
    fn hdlc_receives_and_counts_as_the_model_does(
        parts in vec(prop_oneof![
            wire_bytes(40),
            wire_bytes(40).prop_map(|p| encoded(Framing::HDLC, &p)),
            wire_bytes(40).prop_map(|p| encoded(Framing::Hdlc { address: 1 }, &p)),
            Just(encoded(Framing::HDLC, &[0x55; ROOM + 1])),
        ], 0..8),
    ) {
        let mut stream = vec![0x7e];
        stream.extend(parts.concat());
        stream.push(0x7e);
        let received = receive(Framing::HDLC, [stream.as_slice()]);
        let (packets, stats) = hdlc_model(&stream);
        prop_assert_eq!(received.packets, packets);
        prop_assert_eq!(received.stats, stats);
    }

    #[test]
    fn after_any_garbage_a_good_frame_is_received(
        framing in prop_oneof![Just(Framing::HDLC), Just(Framing::Cobs)],
        garbage in wire_bytes(200),
        packet in wire_bytes(100),
    ) {
        let mut stream = garbage;
        stream.extend(encoded(framing, &packet));
        let received = receive(framing, [stream.as_slice()]);
        prop_assert_eq!(received.packets.last(), Some(&packet));
    }

    #[test]
    fn one_wrong_bit_never_gives_a_wrong_packet(
        framing in prop_oneof![Just(Framing::HDLC), Just(Framing::Cobs)],
        packet in wire_bytes(60),
        at in any::<prop::sample::Index>(),
        bit in 0..8u32,
    ) {
        let mut stream = encoded(framing, &packet);
        let at = at.index(stream.len());
        stream[at] ^= 1 << bit;
        for received in receive(framing, [stream.as_slice()]).packets {
            prop_assert_eq!(&received, &packet);
        }
    }

    #[test]
    fn hdlc_in_pieces_is_the_frame(packet in wire_bytes(200), sizes in vec(2usize..20, 1..5)) {
        let mut encoder = hdlc::Encoder::new(hdlc::RPC_ADDRESS, &packet);
        let mut pieces = Vec::new();
        for size in sizes.iter().cycle() {
            let mut piece = vec![0; *size];
            let len = encoder.fill(&mut piece);
            pieces.extend_from_slice(&piece[..len]);
            if encoder.is_done() {
                break;
            }
        }
        prop_assert_eq!(pieces, encoded(Framing::HDLC, &packet));
    }

    #[test]
    fn crc_of_pieces_is_the_crc_of_the_whole(bytes in wire_bytes(100), size in 1usize..20) {
        let pieces = bytes.chunks(size).fold(Crc32::new(), Crc32::update);
        prop_assert_eq!(pieces, Crc32::new().update(&bytes));
        prop_assert_eq!(bytes.iter().fold(Crc32::new(), |crc, &byte| crc.byte(byte)), pieces);
    }
}

#[test]
fn names_are_those_of_endpoints() {
    for name in ["hdlc", "len", "cobs", "zenoh"] {
        assert_eq!(Framing::from_name(name).map(Framing::name), Some(name));
    }
    assert_eq!(Framing::from_name("HDLC"), None);
}

#[test]
fn length_prefixed_packets_have_a_little_endian_length() {
    assert_eq!(encoded(Framing::Length, b"abc"), b"\x03\0\0\0abc");
    assert_eq!(encoded(Framing::Length, b""), b"\0\0\0\0");
    assert_eq!(encoded(Framing::Zenoh, b"abc"), b"\x03\0abc");
    assert_eq!(encoded(Framing::Zenoh, b""), b"\0\0");
}

#[test]
fn packet_beyond_the_width_of_its_length_is_refused() {
    let mut out = vec![0; 0x10_010];
    let longest = vec![1; Width::Two.max_packet()];
    let len = Framing::Zenoh.encode(&longest, &mut out);
    assert_eq!(len, Some(0x10_001));
    assert_eq!(out[..3], [0xff, 0xff, 1]);
    assert_eq!(Framing::Zenoh.encode(&[1; 0x10_000], &mut out), None);
    assert!(Framing::Length.encode(&[1; 0x10_000], &mut out).is_some());
}

#[test]
fn a_length_above_the_place_ends_the_stream_for_good() {
    let mut stream = (ROOM as u32 + 1).to_le_bytes().to_vec();
    stream.extend(encoded(Framing::Length, b"lost"));
    let received = receive(Framing::Length, [stream.as_slice(), b"\x01\0\0\0x"]);
    assert_eq!(received.packets, Vec::<Vec<u8>>::new());
    assert_eq!(received.error, Some(FrameError::TooLarge));
    assert_eq!(
        received.stats,
        FrameStats {
            too_large: 1,
            ..FrameStats::default()
        }
    );
}

#[test]
fn cobs_blocks_are_at_most_254_bytes() {
    // The published examples of COBS, with the CRC behind them.
    let wire = encoded(Framing::Cobs, &[0x11, 0, 0, 0]);
    assert_eq!(wire[..5], [0, 2, 0x11, 1, 1]);
    let wire = encoded(Framing::Cobs, &[1; 300]);
    assert_eq!(wire[..2], [0, 0xff]);
    assert_eq!(wire[256], 1 + 46 + 4);
    assert_eq!(wire.len(), cobs::max_encoded_len(300));
}

#[test]
fn a_cobs_block_cut_off_is_a_bad_escape() {
    let received = receive(Framing::Cobs, [[0, 9, 1, 2, 0].as_slice()]);
    assert_eq!(
        received.stats,
        FrameStats {
            bad_escape: 1,
            ..FrameStats::default()
        }
    );
}
