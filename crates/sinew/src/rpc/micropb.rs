//! What generated code builds on, so that a message is written and read in the same way everywhere.
//!
//! `sinew-gen` makes the types and their codec with micropb, and implements
//! [`Encode`](super::Encode) and [`Decode`](super::Decode) for each through these functions.

use ::micropb::{DecodeError, MessageDecode, MessageEncode, PbDecoder, PbEncoder, PbRead, PbWrite};

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
// One copy for messages that are alike, where flash is short.
#[cfg_attr(target_pointer_width = "32", inline(never))]
pub fn decode<T: MessageDecode + Default>(bytes: &[u8]) -> Option<T> {
    let mut message = T::default();
    message.decode_from_bytes(bytes).ok()?;
    Some(message)
}

/// Reads one entry of a map: a part that is absent has its default, unlike in micropb.
///
/// Each part comes with the wire type that it must have. Always `Ok(Some(..))` or an error, for the
/// sake of the code around it.
pub fn map_entry<K: Default, V: Default, R: PbRead>(
    decoder: &mut PbDecoder<R>,
    (key_type, key): (
        u8,
        impl Fn(&mut K, &mut PbDecoder<R>) -> Result<(), DecodeError<R::Error>>,
    ),
    (value_type, value): (
        u8,
        impl Fn(&mut V, &mut PbDecoder<R>) -> Result<(), DecodeError<R::Error>>,
    ),
) -> Result<Option<(K, V)>, DecodeError<R::Error>> {
    let mut entry = (K::default(), V::default());
    let len = decoder.decode_varint32()? as usize;
    let start = decoder.bytes_read();
    while decoder.bytes_read().saturating_sub(start) < len {
        let tag = decoder.decode_tag()?;
        let expected = match tag.field_num() {
            0 => return Err(DecodeError::ZeroField),
            1 => key_type,
            2 => value_type,
            _ => tag.wire_type(),
        };
        if tag.wire_type() != expected {
            return Err(DecodeError::WrongWireType);
        }
        match tag.field_num() {
            1 => key(&mut entry.0, decoder)?,
            2 => value(&mut entry.1, decoder)?,
            _ => decoder.skip_wire_value(tag.wire_type())?,
        }
    }
    if decoder.bytes_read().saturating_sub(start) != len {
        return Err(DecodeError::WrongLen);
    }
    Ok(Some(entry))
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
