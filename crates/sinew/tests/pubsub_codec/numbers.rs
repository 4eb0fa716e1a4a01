//! Numbers, bytes and strings: what every message is made of.

use proptest::collection::vec;
use proptest::prelude::*;
use sinew::pubsub::codec::{CodecError, Reader, Writer, Zid};

use crate::any::written;
use crate::vectors::wire;

/// What a reader of these bytes reads, and how many it leaves.
fn read<'p, T>(
    bytes: &'p [u8],
    read: impl Fn(&mut Reader<'p>) -> T,
) -> (Result<T, CodecError>, usize) {
    let mut r = Reader::new(bytes);
    let value = read(&mut r);
    (r.end(value), r.len())
}

/// The specification's, and the edges of each length.
fn vectors() -> Vec<(u64, Vec<u8>)> {
    let mut vectors = vec![
        (0, wire("00")),
        (127, wire("7f")),
        (128, wire("8001")),
        (300, wire("ac02")),
        ((1 << 28) - 1, wire("ffffff7f")),
        (u64::MAX, wire("ffffffffffffffffff")),
    ];
    for len in 1..9u32 {
        let [full, more] = [vec![0xff; len as usize - 1], vec![0x80; len as usize]];
        vectors.push(((1 << (7 * len)) - 1, [&full[..], &[0x7f]].concat()));
        vectors.push((1 << (7 * len), [&more[..], &[0x01]].concat()));
    }
    // The ninth byte has eight bits of the number.
    vectors.push((1 << 63, wire("808080808080808080")));
    vectors.push((0xff << 56, wire("8080808080808080ff")));
    vectors
}

#[test]
fn numbers_are_written_as_the_vectors_and_read_back() {
    for (value, bytes) in vectors() {
        assert_eq!(written(|w| w.vle(value)), bytes, "{value}");
        assert_eq!(read(&bytes, Reader::vle), (Ok(value), 0), "{bytes:02x?}");
    }
}

#[test]
fn numbers_above_their_field_are_out_of_range() {
    for (value, bytes) in vectors() {
        let narrow = u32::try_from(value).map_err(|_| CodecError::OutOfRange);
        let capped = narrow.unwrap_or(u32::MAX);
        assert_eq!(read(&bytes, Reader::vle32), (narrow, 0), "{value}");
        assert_eq!(read(&bytes, Reader::vle_capped), (Ok(capped), 0), "{value}");
        let short = u16::try_from(value).map_err(|_| CodecError::OutOfRange);
        assert_eq!(read(&bytes, Reader::vle16), (short, 0), "{value}");
        if let Ok(narrow) = narrow {
            assert_eq!(written(|w| w.vle32(narrow)), bytes, "{value}");
        }
    }
}

#[test]
fn numbers_may_be_longer_than_they_need() {
    for text in ["8500", "858000", "85808080808000", "858080808080808000"] {
        let bytes = wire(text);
        assert_eq!(read(&bytes, Reader::vle32), (Ok(5), 0), "{text}");
        assert_eq!(read(&bytes, Reader::vle_capped), (Ok(5), 0), "{text}");
        assert_eq!(read(&bytes, Reader::vle), (Ok(5), 0), "{text}");
    }
}

#[test]
fn a_number_ends_with_its_ninth_byte() {
    let bytes = wire("858080808080808080 77");
    assert_eq!(read(&bytes, Reader::vle), (Ok(5 | 0x80 << 56), 1));
    assert_eq!(read(&bytes, Reader::vle_capped), (Ok(u32::MAX), 1));
}

#[test]
fn bytes_and_strings_have_their_length_before_them() {
    let long = [b'x'; 300];
    assert_eq!(written(|w| w.zbytes(&long))[..2], [0xac, 0x02]);
    let bytes = written(|w| {
        w.zbytes(&long);
        w.zbytes("é".as_bytes());
        w.two(0x1234);
    });
    let mut r = Reader::new(&bytes);
    assert_eq!((r.zbytes(), r.zstr()), (&long[..], "é"));
    assert_eq!(r.peek(), Some(0x34));
    assert_eq!(r.two(), 0x1234);
    assert_eq!((r.peek(), r.rest(), r.end(())), (None, &[][..], Ok(())));
}

#[test]
fn a_reader_remembers_the_first_thing_that_was_wrong() {
    let bytes = [1, 0xff, 5, 5];
    let mut r = Reader::new(&bytes);
    assert_eq!(r.zstr(), "");
    assert_eq!((r.len(), r.one(), r.vle()), (0, 0, 0));
    assert_eq!(r.end(()), Err(CodecError::NotUtf8));
    assert_eq!(r.byte(), Err(CodecError::NotUtf8));
    let bytes = [2, b'x'];
    let mut r = Reader::new(&bytes);
    assert_eq!(r.zstr(), "");
    assert_eq!(r.end(()), Err(CodecError::Truncated));
}

#[test]
fn a_writer_remembers_what_did_not_fit() {
    let mut place = [0; 4];
    let mut w = Writer::new(&mut place);
    w.bytes(&[1, 2, 3]);
    assert!(w.room(2).is_none());
    w.byte(4); // would have fitted
    assert_eq!(w.finish(), None);
    assert_eq!(place, [1, 2, 3, 0]);
    let mut w = Writer::new(&mut place);
    w.room(2).unwrap().copy_from_slice(&[7, 8]);
    w.byte(9);
    w.bytes(&[]);
    assert_eq!(w.finish(), Some(3));
    assert_eq!(place, [7, 8, 9, 0]);
}

#[test]
fn an_id_has_1_to_16_bytes_without_zeros_at_its_end() {
    assert_eq!(Zid::new(&[]), None);
    assert_eq!(Zid::new(&[0; 16]), None);
    assert_eq!(Zid::new(&[1; 17]), None);
    assert_eq!(Zid::new(&[0, 1, 0, 0]).unwrap().as_bytes(), [0, 1]);
    assert_eq!(Zid::new(&[1; 16]).unwrap().as_bytes(), [1; 16]);
    assert_eq!(Zid::new(&[0x0a, 0x0b]).unwrap().to_string(), "b0a");
}

proptest! {
    #[test]
    fn any_bytes_are_the_same_number_to_every_reader(bytes in vec(any::<u8>(), 0..12)) {
        let (wide, left) = read(&bytes, Reader::vle);
        let capped = wide.map(|wide| u32::try_from(wide).unwrap_or(u32::MAX));
        prop_assert_eq!(read(&bytes, Reader::vle_capped), (capped, left));
        let narrow = wide.and_then(|wide| u32::try_from(wide).map_err(|_| CodecError::OutOfRange));
        prop_assert_eq!(read(&bytes, Reader::vle32).0, narrow);
    }

    #[test]
    fn a_number_is_written_as_short_as_can_be(value in any::<u64>(), shift in 0..64u32) {
        let value = value >> shift;
        let bits = 64 - value.leading_zeros();
        prop_assert_eq!(written(|w| w.vle(value)).len() as u32, bits.div_ceil(7).clamp(1, 9));
    }
}
