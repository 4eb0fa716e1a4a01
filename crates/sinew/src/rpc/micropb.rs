//! What generated code builds on, so that a message is written and read in the same way everywhere.
//!
//! `sinew-gen` makes the types and their codec with micropb, and implements
//! [`Encode`](super::Encode) and [`Decode`](super::Decode) for each through these functions.

use ::micropb::{MessageDecode, MessageEncode, PbEncoder, PbWrite};

/// [`Encode::MAX_LEN`](super::Encode::MAX_LEN) of a generated message.
pub const fn max_len<T: MessageEncode>() -> usize {
    match T::MAX_SIZE {
        Ok(size) => size,
        Err(_) => usize::MAX,
    }
}

/// [`Encode::encode`](super::Encode::encode) of a generated message.
pub fn encode<T: MessageEncode>(message: &T, out: &mut [u8]) -> Option<usize> {
    let mut place = Place { out, len: 0 };
    message.encode(&mut PbEncoder::new(&mut place)).ok()?;
    Some(place.len)
}

/// [`Decode::decode`](super::Decode::decode) of a generated message.
pub fn decode<T: MessageDecode + Default>(bytes: &[u8]) -> Option<T> {
    let mut message = T::default();
    message.decode_from_bytes(bytes).ok()?;
    Some(message)
}

/// The bytes of a place, written from the front.
struct Place<'p> {
    out: &'p mut [u8],
    len: usize,
}

impl PbWrite for Place<'_> {
    type Error = ();

    #[inline]
    fn pb_write(&mut self, data: &[u8]) -> Result<(), ()> {
        let end = self.len.checked_add(data.len()).ok_or(())?;
        // Most writes are a varint of one byte; a slice copy would call memcpy for it.
        if let ([byte], Some(slot)) = (data, self.out.get_mut(self.len)) {
            *slot = *byte;
        } else {
            self.out
                .get_mut(self.len..end)
                .ok_or(())?
                .copy_from_slice(data);
        }
        self.len = end;
        Ok(())
    }
}
