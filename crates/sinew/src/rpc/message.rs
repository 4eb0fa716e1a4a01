//! What a message must be able to do, and what describes a method.
//!
//! `sinew-gen` implements these for the types it makes; [`Raw`] carries bytes as they are.

/// A message that can be written to the wire.
pub trait Encode {
    /// The most bytes that an encoded message of this type takes; `usize::MAX` where unbounded.
    const MAX_LEN: usize;

    /// The exact number of bytes that [`Encode::encode`] will write now.
    fn encoded_len(&self) -> usize;

    /// Writes the message to the front of `out` and returns its length; `None` where it does not
    /// fit.
    fn encode(&self, out: &mut [u8]) -> Option<usize>;
}

/// A message that can be read from the wire.
pub trait Decode: Sized {
    /// Reads a message that fills `bytes`; `None` where the bytes are no such message or exceed a
    /// capacity of the type.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

/// A message: [`Encode`] and [`Decode`].
pub trait Message: Encode + Decode {}
impl<T: Encode + Decode> Message for T {}

/// Bytes as they are: for raw methods and for tools that encode elsewhere.
impl Encode for [u8] {
    const MAX_LEN: usize = usize::MAX;

    fn encoded_len(&self) -> usize {
        self.len()
    }

    fn encode(&self, out: &mut [u8]) -> Option<usize> {
        out.get_mut(..self.len())?.copy_from_slice(self);
        Some(self.len())
    }
}

/// A message of up to `N` bytes that are carried as they are: the message type of raw methods.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raw<const N: usize> {
    len: usize,
    bytes: [u8; N],
}

impl<const N: usize> Raw<N> {
    /// A message of these bytes; `None` where there are more than `N`.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut raw = Raw {
            len: bytes.len(),
            bytes: [0; N],
        };
        raw.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(raw)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }
}

impl<const N: usize> Default for Raw<N> {
    fn default() -> Self {
        Raw {
            len: 0,
            bytes: [0; N],
        }
    }
}

impl<const N: usize> Encode for Raw<N> {
    const MAX_LEN: usize = N;

    fn encoded_len(&self) -> usize {
        self.len
    }

    fn encode(&self, out: &mut [u8]) -> Option<usize> {
        self.as_bytes().encode(out)
    }
}

impl<const N: usize> Decode for Raw<N> {
    fn decode(bytes: &[u8]) -> Option<Self> {
        Raw::new(bytes)
    }
}

/// The four kinds of methods.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum MethodKind {
    /// One request, one response.
    Unary,
    /// One request, a stream of responses.
    ServerStream,
    /// A stream of requests, one response.
    ClientStream,
    /// Streams in both directions.
    Bidi,
}

impl MethodKind {
    /// Whether the client sends a stream.
    pub const fn client_streams(self) -> bool {
        matches!(self, MethodKind::ClientStream | MethodKind::Bidi)
    }

    /// Whether the server sends a stream.
    pub const fn server_streams(self) -> bool {
        matches!(self, MethodKind::ServerStream | MethodKind::Bidi)
    }
}

/// What identifies a method on the wire, without its types.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct MethodId {
    /// Hash of `package.Service`, not 0.
    pub service: u32,
    /// Hash of the bare method name, not 0.
    pub method: u32,
    /// Its kind.
    pub kind: MethodKind,
}

/// A method with its types; the generator makes one marker type per method.
pub trait Method {
    /// The request message, or the item of the client's stream.
    type Request: Message;
    /// The response message, or the item of the server's stream.
    type Response: Message;
    /// Ids and kind.
    const ID: MethodId;
    /// `package.Service/Method`, for people.
    const NAME: &'static str;
}
