//! Frames: packets on byte streams.
//!
//! | name | on the wire | lost or damaged bytes | for |
//! |---|---|---|---|
//! | [`hdlc`] | Pigweed's HDLC with CRC-32 | found, dropped, synchronises at the next flag | serial lines, and every Pigweed peer |
//! | [`cobs`] | zero-delimited, CRC-32 | found, dropped, synchronises at the next zero | serial lines, with at most 0.4 % of escapes |
//! | [`length`] | a length of 4 bytes, or of 2 as Zenoh has it, then the packet | not found | streams that lose nothing: TCP, unix sockets |
//!
//! [`Framing`] writes any of them and [`Decoder`] reads any of them. Firmware that needs one
//! calls its module, so that the others are not linked.
//!
//! A decoder has no buffer of its own: it writes the packet to the front of a *place* that the
//! caller gives, for example the next place of a queue. Whatever arrives, it holds a few words of
//! state, and one call does work in proportion to its input.

pub mod cobs;
pub mod hdlc;
pub mod length;

mod body;

use body::Body;
use core::fmt;
use length::Width;

/// How packets are framed on a byte stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// [`hdlc`]: frames to, and only from, this address.
    Hdlc {
        /// [`hdlc::RPC_ADDRESS`] for calls.
        address: u64,
    },
    /// [`length`], of 4 bytes.
    Length,
    /// [`length`], of 2 bytes, before packets of up to 65,535: Zenoh's batches on a stream.
    Zenoh,
    /// [`cobs`].
    Cobs,
}

impl Framing {
    /// HDLC for calls.
    pub const HDLC: Framing = Framing::Hdlc {
        address: hdlc::RPC_ADDRESS,
    };

    /// The framing of this name, as endpoints write it: `hdlc`, `len`, `cobs` or `zenoh`.
    pub fn from_name(name: &str) -> Option<Framing> {
        match name {
            "hdlc" => Some(Framing::HDLC),
            "len" => Some(Framing::Length),
            "zenoh" => Some(Framing::Zenoh),
            "cobs" => Some(Framing::Cobs),
            _ => None,
        }
    }

    /// The name, as endpoints write it.
    pub const fn name(self) -> &'static str {
        match self {
            Framing::Hdlc { .. } => "hdlc",
            Framing::Length => "len",
            Framing::Zenoh => "zenoh",
            Framing::Cobs => "cobs",
        }
    }

    /// The width of the length before each packet, where there is nothing else around it.
    pub const fn width(self) -> Option<Width> {
        match self {
            Framing::Length => Some(Width::Four),
            Framing::Zenoh => Some(Width::Two),
            Framing::Hdlc { .. } | Framing::Cobs => None,
        }
    }

    /// The most bytes that the frame of a packet of `packet_len` bytes takes.
    pub const fn max_encoded_len(self, packet_len: usize) -> usize {
        match self {
            Framing::Hdlc { address } => hdlc::max_encoded_len(address, packet_len),
            Framing::Length => length::encoded_len(Width::Four, packet_len),
            Framing::Zenoh => length::encoded_len(Width::Two, packet_len),
            Framing::Cobs => cobs::max_encoded_len(packet_len),
        }
    }

    /// Writes the frame of one packet to the front of `out` and returns its length; `None` where
    /// it does not fit.
    pub fn encode(self, packet: &[u8], out: &mut [u8]) -> Option<usize> {
        match self {
            Framing::Hdlc { address } => hdlc::encode(address, packet, out),
            Framing::Length => length::encode(Width::Four, packet, out),
            Framing::Zenoh => length::encode(Width::Two, packet, out),
            Framing::Cobs => cobs::encode(packet, out),
        }
    }

    /// A decoder for one stream.
    pub const fn decoder(self) -> Decoder {
        Decoder(match self {
            Framing::Hdlc { address } => Any::Hdlc(hdlc::Decoder::new(address)),
            Framing::Length => Any::Length(length::Decoder::new(Width::Four)),
            Framing::Zenoh => Any::Length(length::Decoder::new(Width::Two)),
            Framing::Cobs => Any::Cobs(cobs::Decoder::new()),
        })
    }
}

/// Takes the frames of one stream apart; made by [`Framing::decoder`].
///
/// ```
/// use sinew::frame::Framing;
///
/// let mut wire = [0; 64];
/// let len = Framing::HDLC.encode(b"ping", &mut wire).unwrap();
///
/// let mut decoder = Framing::HDLC.decoder();
/// let mut place = [0; 32];
/// let mut input = &wire[..len]; // what the stream gave: any part of a frame, or several
/// while let Some(packet) = decoder.decode(&mut place, &mut input)? {
///     assert_eq!(packet, b"ping");
/// }
/// assert_eq!(decoder.stats().frames, 1);
/// # Ok::<(), sinew::frame::FrameError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Decoder(Any);

#[derive(Clone, Debug)]
enum Any {
    Hdlc(hdlc::Decoder),
    Length(length::Decoder),
    Cobs(cobs::Decoder),
}

impl Decoder {
    /// Reads from the front of `input`, up to the end of the next good packet, and returns that
    /// packet; `None` after all of `input` is used.
    ///
    /// The packet stands at the front of `place`. Between two packets, `place` must be the same
    /// memory with the same content on every call, and be as large as the largest packet; a larger
    /// one is counted and dropped, or is an error where nothing better is possible.
    pub fn decode<'p>(
        &mut self,
        place: &'p mut [u8],
        input: &mut &[u8],
    ) -> Result<Option<&'p [u8]>, FrameError> {
        match &mut self.0 {
            Any::Hdlc(decoder) => Ok(decoder.decode(place, input)),
            Any::Length(decoder) => decoder.decode(place, input),
            Any::Cobs(decoder) => Ok(decoder.decode(place, input)),
        }
    }

    /// What has arrived so far.
    pub const fn stats(&self) -> &FrameStats {
        match &self.0 {
            Any::Hdlc(decoder) => decoder.stats(),
            Any::Length(decoder) => decoder.stats(),
            Any::Cobs(decoder) => decoder.stats(),
        }
    }
}

/// Why a stream cannot be read any further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameError {
    /// A length prefix is larger than the place. The peer sends packets that are too large for
    /// this side, or uses another framing. The next packet cannot be found: close the stream.
    TooLarge,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::TooLarge => f.write_str(
                "a length prefix exceeds the buffer: the peer uses another framing or larger packets",
            ),
        }
    }
}

impl core::error::Error for FrameError {}

/// What a decoder has seen. Every frame is counted once, in the first line that fits it, from
/// [`FrameStats::bad_escape`] down. The counters wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FrameStats {
    /// Good frames, given to the caller.
    pub frames: u32,
    /// Frames with an escape sequence that does not exist, or cut off within one.
    pub bad_escape: u32,
    /// Frames too short to be one.
    pub too_short: u32,
    /// Frames whose CRC does not match: damaged, cut off, or noise between two delimiters.
    pub bad_crc: u32,
    /// Good frames for another address.
    pub other_address: u32,
    /// Good frames larger than the place.
    pub too_large: u32,
    /// Bytes, not frames: dropped while looking for a delimiter, at the start of the stream or
    /// after a bad escape.
    pub noise_bytes: u32,
}

impl FrameStats {
    const ZERO: FrameStats = FrameStats {
        frames: 0,
        bad_escape: 0,
        too_short: 0,
        bad_crc: 0,
        other_address: 0,
        too_large: 0,
        noise_bytes: 0,
    };
}

/// Adds one to a counter that wraps.
fn count(counter: &mut u32) {
    *counter = counter.wrapping_add(1);
}
