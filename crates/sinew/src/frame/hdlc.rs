//! Pigweed's HDLC (wire reference, section HDLC).
//!
//! ```text
//! 7E | address | 03 | packet | CRC-32, little-endian | 7E      7D -> 7D 5D, 7E -> 7D 5E
//! ```
//! The address is a varint with seven bits per byte in bits 7 to 1, least significant group first,
//! bit 0 set on the last byte only. The CRC is over address, control and packet before escaping.
//!
//! Received as Pigweed's C++ decoder does it: the control byte is not checked, any `7D xx` stands
//! for `xx ^ 20`, while `7D 7D` and `7D 7E` end the frame; flags may be shared and repeated.

use super::body::FCS_LEN;
use super::{Body, FrameStats, count};
use crate::wire::crc32::Crc32;

/// The address of calls, `R`.
pub const RPC_ADDRESS: u64 = 0x52;

const FLAG: u8 = 0x7e;
const ESCAPE: u8 = 0x7d;
const FLIP: u8 = 0x20;
/// Unnumbered information: the only control byte that is sent.
const CONTROL: u8 = 0x03;

#[inline]
const fn is_special(byte: u8) -> bool {
    byte == FLAG || byte == ESCAPE
}

/// Bytes that 64-bit targets look at together: a vector register on most.
const BLOCK: usize = 16;

#[inline]
fn has_special(block: &[u8; BLOCK]) -> bool {
    // Without an early exit this is a handful of vector instructions.
    block
        .iter()
        .fold(false, |found, &byte| found | is_special(byte))
}

/// How many bytes at the front need no escape.
#[inline]
fn plain_run(bytes: &[u8]) -> usize {
    let mut plain = 0;
    if cfg!(target_pointer_width = "64") {
        for block in bytes.as_chunks::<BLOCK>().0 {
            if has_special(block) {
                break;
            }
            plain += BLOCK;
        }
    }
    let rest = bytes.get(plain..).unwrap_or_default();
    plain
        + rest
            .iter()
            .position(|&byte| is_special(byte))
            .unwrap_or(rest.len())
}

/// What stands before the packet: address and control.
#[derive(Clone, Copy, Debug)]
struct Head {
    bytes: [u8; 11],
    address_len: u8,
}

impl Head {
    const fn new(mut address: u64) -> Head {
        let mut bytes = [CONTROL; 11];
        let mut at = 0;
        while address >= 0x80 {
            bytes[at] = (address as u8) << 1;
            address >>= 7;
            at += 1;
        }
        bytes[at] = (address as u8) << 1 | 1;
        Head {
            bytes,
            address_len: at as u8 + 1,
        }
    }

    fn address(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.address_len))
            .unwrap_or_default()
    }

    fn all(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.address_len) + 1)
            .unwrap_or_default()
    }
}

/// The most bytes that the frame of a packet of `packet_len` bytes takes: every byte but the flags
/// escaped.
pub const fn max_encoded_len(address: u64, packet_len: usize) -> usize {
    let head_len = Head::new(address).address_len as usize + 1;
    packet_len
        .saturating_add(head_len + FCS_LEN)
        .saturating_mul(2)
        .saturating_add(2)
}

/// Writes the frame of one packet to the front of `out` and returns its length; `None` where it
/// does not fit.
pub fn encode(address: u64, packet: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut encoder = Encoder::new(address, packet);
    let len = encoder.fill(out);
    encoder.is_done().then_some(len)
}

/// Gives the frame of one packet to `put`, byte by byte: for a UART that waits for each, with no
/// buffer at all.
///
/// ```
/// use sinew::frame::hdlc::{RPC_ADDRESS, put_frame};
///
/// let mut sent = Vec::new();
/// put_frame(RPC_ADDRESS, b"ping", &mut |byte| sent.push(byte));
/// assert_eq!(sent.len(), 12);
/// ```
pub fn put_frame(address: u64, packet: &[u8], put: &mut dyn FnMut(u8)) {
    let mut crc = Crc32::new();
    put(FLAG);
    for part in [Head::new(address).all(), packet] {
        for &byte in part {
            crc = crc.byte(byte);
            put_escaped(byte, put);
        }
    }
    for byte in crc.finish().to_le_bytes() {
        put_escaped(byte, put);
    }
    put(FLAG);
}

#[inline(never)] // one copy for head, packet and CRC
fn put_escaped(mut byte: u8, put: &mut dyn FnMut(u8)) {
    if is_special(byte) {
        put(ESCAPE);
        byte ^= FLIP;
    }
    put(byte);
}

/// One frame, written in pieces: for a UART without a buffer for a whole frame.
///
/// ```
/// use sinew::frame::hdlc::{Encoder, RPC_ADDRESS};
///
/// let mut sent = Vec::new();
/// let mut encoder = Encoder::new(RPC_ADDRESS, b"ping");
/// let mut piece = [0; 4];
/// while !encoder.is_done() {
///     let len = encoder.fill(&mut piece);
///     sent.extend_from_slice(&piece[..len]);
/// }
/// assert_eq!(sent.len(), 12);
/// ```
#[derive(Clone, Debug)]
pub struct Encoder<'a> {
    head: Head,
    packet: &'a [u8],
    fcs: [u8; FCS_LEN],
    part: Part,
    /// How much of the part has been written.
    at: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Open,
    Head,
    Packet,
    Fcs,
    Close,
    Done,
}

impl<'a> Encoder<'a> {
    /// The frame of this packet; the CRC is computed here.
    pub fn new(address: u64, packet: &'a [u8]) -> Encoder<'a> {
        let head = Head::new(address);
        let mut crc = Crc32::new();
        for &byte in head.all() {
            crc = crc.byte(byte);
        }
        let fcs = crc.update(packet).finish().to_le_bytes();
        Encoder {
            head,
            packet,
            fcs,
            part: Part::Open,
            at: 0,
        }
    }

    /// Writes the next bytes of the frame to `out` and returns how many.
    ///
    /// An escaped pair is never split, so the last byte of `out` can stay free, and with at least
    /// 2 bytes there is always progress until the frame is done.
    pub fn fill(&mut self, out: &mut [u8]) -> usize {
        let mut written = 0;
        loop {
            let free = out.get_mut(written..).unwrap_or_default();
            let (part, next): (&[u8], Part) = match self.part {
                Part::Open | Part::Close => {
                    let Some(first) = free.first_mut() else { break };
                    *first = FLAG;
                    written += 1;
                    self.part = if self.part == Part::Open {
                        Part::Head
                    } else {
                        Part::Done
                    };
                    continue;
                }
                Part::Head => (self.head.all(), Part::Packet),
                Part::Packet => (self.packet, Part::Fcs),
                Part::Fcs => (&self.fcs, Part::Close),
                Part::Done => break,
            };
            let left = part.get(self.at..).unwrap_or_default();
            let (used, len) = escape(left, free);
            written += len;
            if used < left.len() {
                self.at += used;
                break;
            }
            self.at = 0;
            self.part = next;
        }
        written
    }

    /// Whether the whole frame has been written.
    pub fn is_done(&self) -> bool {
        self.part == Part::Done
    }
}

/// Writes `from` escaped to `to`, as much as fits; returns how many bytes were read and written.
fn escape(from: &[u8], to: &mut [u8]) -> (usize, usize) {
    let (mut read, mut written) = (0, 0);
    for chunk in from.chunks(BLOCK) {
        if cfg!(target_pointer_width = "64")
            && let Some(block) = chunk.first_chunk::<BLOCK>()
            && let Some(free) = to
                .get_mut(written..)
                .and_then(|to| to.first_chunk_mut::<BLOCK>())
            && !has_special(block)
        {
            *free = *block;
            read += BLOCK;
            written += BLOCK;
            continue;
        }
        for &byte in chunk {
            if !is_special(byte) {
                let Some(first) = to.get_mut(written) else {
                    return (read, written);
                };
                *first = byte;
                written += 1;
            } else {
                let pair = to.get_mut(written..).and_then(|to| to.first_chunk_mut());
                let Some(pair) = pair else {
                    return (read, written);
                };
                *pair = [ESCAPE, byte ^ FLIP];
                written += 2;
            }
            read += 1;
        }
    }
    (read, written)
}

/// Takes the frames of one stream apart.
///
/// Several protocols on one stream (calls and log text) have an address and a decoder each, fed
/// with the same bytes.
#[derive(Clone, Debug)]
pub struct Decoder {
    head: Head,
    state: State,
    /// How many bytes of the head have arrived, the control byte included.
    head_len: u8,
    is_ours: bool,
    body: Body,
    stats: FrameStats,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Outside of a frame: everything up to the next flag is dropped.
    Hunt,
    /// Behind a flag.
    Frame,
    /// In a frame, behind the first byte of an escaped pair.
    Escape,
}

impl Decoder {
    /// A decoder for frames to this address; those to others are counted and dropped.
    pub const fn new(address: u64) -> Decoder {
        Decoder {
            head: Head::new(address),
            state: State::Hunt,
            head_len: 0,
            is_ours: true,
            body: Body::new(),
            stats: FrameStats::ZERO,
        }
    }

    /// What has arrived so far.
    pub const fn stats(&self) -> &FrameStats {
        &self.stats
    }

    /// As [`super::Decoder::decode`]; a frame larger than `place` is counted and dropped.
    pub fn decode<'p>(&mut self, place: &'p mut [u8], input: &mut &[u8]) -> Option<&'p [u8]> {
        while let Some((&first, rest)) = input.split_first() {
            let flipped = [first ^ FLIP];
            let mut run: &[u8] = &[];
            let mut rest = rest;
            match (self.state, first) {
                (State::Frame, FLAG) => {
                    *input = rest;
                    if let Some(len) = self.end(place.len()) {
                        return place.get(..len);
                    }
                }
                (State::Frame, ESCAPE) => self.state = State::Escape,
                (State::Frame, _) => {
                    (run, rest) = input.split_at_checked(plain_run(input)).unwrap_or_default();
                }
                (State::Escape, FLAG) => {
                    count(&mut self.stats.bad_escape);
                    self.begin();
                }
                (State::Escape, ESCAPE) => {
                    count(&mut self.stats.bad_escape);
                    self.state = State::Hunt;
                }
                (State::Escape, _) => {
                    self.state = State::Frame;
                    run = &flipped;
                }
                (State::Hunt, FLAG) => self.begin(),
                (State::Hunt, _) => count(&mut self.stats.noise_bytes),
            }
            *input = rest;
            self.push(place, run);
        }
        None
    }

    fn begin(&mut self) {
        self.state = State::Frame;
        self.head_len = 0;
        self.is_ours = true;
        self.body = Body::new();
    }

    /// Takes unescaped bytes of the frame in.
    #[inline]
    fn push(&mut self, place: &mut [u8], mut bytes: &[u8]) {
        self.body.crc = self.body.crc.update(bytes);
        while self.is_ours && self.head_len <= self.head.address_len {
            let Some((&byte, rest)) = bytes.split_first() else {
                return;
            };
            bytes = rest;
            let own = self.head.address().get(usize::from(self.head_len));
            self.is_ours = own.is_none_or(|&own| own == byte);
            self.head_len += 1;
        }
        self.body
            .store(if self.is_ours { place } else { &mut [] }, bytes);
    }

    /// The length of the packet that the flag completes, and the start of the next frame.
    fn end(&mut self, room: usize) -> Option<usize> {
        let len = if self.head_len == 0 {
            None // a repeated flag
        } else if self.body.len.saturating_add(usize::from(self.head_len)) < 2 + FCS_LEN {
            count(&mut self.stats.too_short);
            None
        } else {
            self.body.end(room, self.is_ours, &mut self.stats)
        };
        self.begin();
        len
    }
}
