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
use crate::wire::copy;
use crate::wire::crc32::Crc32;

/// The address of calls, `R`.
pub const RPC_ADDRESS: u64 = 0x52;

/// Begins and ends a frame. Between frames there may be any number of them.
pub const FLAG: u8 = 0x7e;
const ESCAPE: u8 = 0x7d;
const FLIP: u8 = 0x20;
/// Unnumbered information: the only control byte that is sent.
const CONTROL: u8 = 0x03;

#[inline]
const fn is_special(byte: u8) -> bool {
    byte == FLAG || byte == ESCAPE
}

/// Whether this target has vectors, and a CRC by large tables: several short passes are best there. Elsewhere it
/// is one pass, byte by byte.
const IS_WIDE: bool = cfg!(target_pointer_width = "64");

/// Bytes that are looked at together where that helps: a vector register on most targets.
const BLOCK: usize = 16;

#[inline]
fn has_special(block: &[u8; BLOCK]) -> bool {
    // Without an early exit this is a handful of vector instructions.
    block
        .iter()
        .fold(false, |found, &byte| found | is_special(byte))
}

/// Copies `from` to `to` up to the first byte that needs an escape, as far as both go, adds what it copied to the
/// CRC and returns how many bytes that was.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))] // one copy, which keeps all in registers
fn copy_plain(from: &[u8], to: &mut [u8], crc: &mut Crc32) -> usize {
    if IS_WIDE {
        let mut plain = 0;
        for block in from.as_chunks::<BLOCK>().0 {
            if has_special(block) {
                break;
            }
            plain += BLOCK;
        }
        let rest = from.get(plain..).unwrap_or_default();
        let rest = rest.iter().take_while(|&&byte| !is_special(byte));
        let plain = (plain + rest.count()).min(to.len());
        let from = from.get(..plain).unwrap_or_default();
        *crc = crc.update(from);
        copy(to, from);
        return plain;
    }
    let (mut register, mut len) = (*crc, 0);
    for (to, &byte) in to.iter_mut().zip(from) {
        if is_special(byte) {
            break;
        }
        register = register.byte(byte);
        *to = byte;
        len += 1;
    }
    *crc = register;
    len
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

    fn all(&self) -> &[u8] {
        self.bytes.get(..self.len()).unwrap_or_default()
    }

    fn len(&self) -> usize {
        usize::from(self.address_len) + 1
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
#[cfg_attr(not(target_pointer_width = "64"), inline(never))] // one copy where flash is short
pub fn put_frame(address: u64, packet: &[u8], put: &mut dyn FnMut(u8)) {
    let mut crc = Crc32::new();
    put(FLAG);
    for part in [Head::new(address).all(), packet] {
        for &byte in part {
            crc = put_escaped(byte, crc, put);
        }
    }
    for byte in crc.finish().to_le_bytes() {
        put_escaped(byte, crc, put);
    }
    put(FLAG);
}

/// Returns the CRC with this byte added.
#[inline(never)] // one copy for head, packet and CRC
fn put_escaped(byte: u8, crc: Crc32, put: &mut dyn FnMut(u8)) -> Crc32 {
    let mut sent = byte;
    if is_special(byte) {
        put(ESCAPE);
        sent ^= FLIP;
    }
    put(sent);
    crc.byte(byte)
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
    /// Over what has been written.
    crc: Crc32,
    /// Known once the packet has been written.
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
    /// The frame of this packet.
    pub fn new(address: u64, packet: &'a [u8]) -> Encoder<'a> {
        Encoder {
            head: Head::new(address),
            packet,
            crc: Crc32::new(),
            fcs: [0; FCS_LEN],
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
            let (used, len) = escape(left, free, &mut self.crc);
            written += len;
            if used < left.len() {
                self.at += used;
                break;
            }
            if next == Part::Fcs {
                self.fcs = self.crc.finish().to_le_bytes();
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

/// Writes `from` escaped to `to`, as much as fits; returns how many bytes were read and written. What was
/// read is added to the CRC.
fn escape(from: &[u8], to: &mut [u8], crc: &mut Crc32) -> (usize, usize) {
    let (mut read, mut written) = (0, 0);
    loop {
        let left = from.get(read..).unwrap_or_default();
        let free = to.get_mut(written..).unwrap_or_default();
        let plain = copy_plain(left, free, crc);
        read += plain;
        written += plain;
        let (Some(&byte), Some(pair)) = (
            left.get(plain),
            free.get_mut(plain..)
                .and_then(|free| free.first_chunk_mut()),
        ) else {
            break;
        };
        if !is_special(byte) {
            break; // `to` is full
        }
        *pair = [ESCAPE, byte ^ FLIP];
        *crc = crc.byte(byte);
        read += 1;
        written += 2;
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
    is_ours: bool,
    /// The frame from its head on.
    body: Body,
    stats: FrameStats,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
        loop {
            if self.state == State::Frame {
                self.run(place, input);
            }
            let (&byte, rest) = input.split_first()?;
            *input = rest;
            match (self.state, byte) {
                (State::Frame, FLAG) => {
                    if let Some(len) = self.end(place.len()) {
                        return place.get(..len);
                    }
                }
                (State::Frame, ESCAPE) => self.state = State::Escape,
                (State::Frame, _) => self.push(place, byte),
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
                    self.push(place, byte ^ FLIP);
                }
                (State::Hunt, FLAG) => self.begin(),
                (State::Hunt, _) => count(&mut self.stats.noise_bytes),
            }
        }
    }

    fn begin(&mut self) {
        self.state = State::Frame;
        self.is_ours = true;
        self.body = Body::new();
    }

    /// Takes the bytes behind the head in, up to one that is special: the short way for most. What it leaves,
    /// [`Decoder::push`] takes.
    #[inline]
    fn run(&mut self, place: &mut [u8], input: &mut &[u8]) {
        let Some(at) = self.body.len.checked_sub(self.head.len()) else {
            return;
        };
        let place = if self.is_ours { place } else { &mut [] };
        let place = place.get_mut(at..).unwrap_or_default();
        let len = copy_plain(input, place, &mut self.body.crc);
        self.body.len = self.body.len.saturating_add(len);
        *input = input.get(len..).unwrap_or_default();
    }

    /// Takes one unescaped byte of the frame in.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))] // one copy where flash is short
    fn push(&mut self, place: &mut [u8], byte: u8) {
        self.body.crc = self.body.crc.byte(byte);
        let at = self.body.len;
        self.body.len = at.saturating_add(1);
        match at.checked_sub(self.head.len()) {
            // The control byte may be any.
            None if at < usize::from(self.head.address_len) => {
                self.is_ours &= self.head.bytes.get(at) == Some(&byte);
            }
            None => {}
            Some(at) => {
                if self.is_ours
                    && let Some(place) = place.get_mut(at)
                {
                    *place = byte;
                }
            }
        }
    }

    /// The length of the packet that the flag completes, and the start of the next frame.
    fn end(&mut self, room: usize) -> Option<usize> {
        let len = match self.body.len {
            0 => None, // a repeated flag
            _ => self
                .body
                .end(room, self.head.len(), self.is_ours, &mut self.stats),
        };
        self.begin();
        len
    }
}
