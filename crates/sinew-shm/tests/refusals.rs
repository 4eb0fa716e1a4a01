//! A peer that does not fit is refused by each side, with the name of what differs, and a fitting
//! one that comes after it is accepted.
#![cfg(not(loom))]

#[path = "support/raw.rs"]
mod raw;
mod support;

use std::rc::Rc;

use raw::Pair;
use sinew_shm::domain::{
    Channel, Config, Difference, End, Field, Lost, Name, Options, Pool, Receiver, Refused, Role,
    Sender, Status,
};
use support::{Solo, parts};

const fn one() -> Channel {
    Channel::new(7, "one", Pool::new(4, 100))
}

const fn two() -> Channel {
    Channel::new(9, "two", Pool::new(2, 64))
}

const BASE: Config = Config::new(&[one(), two()]);

type Side = Rc<End<Solo>>;

fn open(pair: &Pair, role: Role, config: Config<'static>) -> Side {
    // SAFETY: the tests drop one end of a role before they open the next.
    let memory = unsafe { pair.memory(role) };
    let parts = parts(Solo, &config);
    Rc::new(End::open(memory, config, role, parts, Options::default()).unwrap())
}

/// Packets go both ways on the first channel.
fn assert_works(first: &Side, second: &Side) {
    for (from, to) in [(first, second), (second, first)] {
        let (sender, receiver) = (Sender::new(from, 7).unwrap(), Receiver::new(to, 7).unwrap());
        assert_eq!(sender.send(b"hello"), Ok(true));
        assert_eq!(receiver.receive().unwrap().unwrap().len(), 5);
    }
}

fn difference(field: Field, channel: Option<u16>, ours: u32, theirs: u32) -> Status {
    Status::Refused(Difference {
        field,
        channel,
        ours,
        theirs,
    })
}

/// The first side has `BASE`, the second one something else: what each says, and that both come up
/// with a second side that has `BASE`.
#[track_caller]
fn assert_refused(other: Config<'static>, by_first: Status, by_second: Status) {
    let pair = Pair::new(&[BASE, other]);
    let first = open(&pair, Role::First, BASE);
    let misfit = open(&pair, Role::Second, other);
    for now in 0..3 {
        assert_eq!(first.look(now), by_first);
        assert_eq!(misfit.look(now), by_second);
    }
    let sender = Sender::new(&first, 7).unwrap();
    assert_eq!(sender.send(b"to whom?"), Err(Refused::Full));
    drop(misfit);
    let fitting = open(&pair, Role::Second, BASE);
    first.look(3);
    assert_eq!(fitting.look(3), Status::Up);
    assert_eq!(first.look(3), Status::Up);
    assert_works(&first, &fitting);
}

/// What differs in the same way for both sides, in the first channel.
#[track_caller]
fn assert_channel_refused(other: Config<'static>, field: Field, ours: u32, theirs: u32) {
    assert_refused(
        other,
        difference(field, Some(7), ours, theirs),
        difference(field, Some(7), theirs, ours),
    );
}

#[test]
fn another_line_is_refused() {
    let mut other = BASE;
    other.line_log2 = 7;
    assert_refused(
        other,
        difference(Field::Line, None, 6, 7),
        difference(Field::Line, None, 7, 6),
    );
}

#[test]
fn another_trust_is_refused() {
    assert_refused(
        BASE.mutual(),
        difference(Field::Trust, None, 0, 1),
        difference(Field::Trust, None, 1, 0),
    );
}

#[test]
fn another_number_of_channels_is_refused() {
    assert_refused(
        Config::new(const { &[one()] }),
        difference(Field::Channels, None, 2, 1),
        difference(Field::Channels, None, 1, 2),
    );
}

#[test]
fn two_first_sides_refuse_each_other() {
    let pair = Pair::new(&[BASE]);
    let first = open(&pair, Role::First, BASE);
    // The second side's memory, by a program that takes itself for the first side.
    let swapped = Pair {
        first: pair.second,
        second: pair.first,
        exchange: None,
    };
    let wrong = open(&swapped, Role::First, BASE);
    assert_eq!(first.look(0), difference(Field::Role, None, 1, 0));
    assert_eq!(wrong.look(0), difference(Field::Role, None, 1, 0));
    drop(wrong);
    let second = open(&pair, Role::Second, BASE);
    first.look(0);
    second.look(0);
    first.look(0);
    assert_works(&first, &second);
}

#[test]
fn another_id_is_refused() {
    const OTHER: Channel = {
        let mut channel = one();
        channel.id = 8;
        channel
    };
    // A channel is named by the id that it has here.
    assert_refused(
        Config::new(const { &[OTHER, two()] }),
        difference(Field::Id, Some(7), 7, 8),
        difference(Field::Id, Some(8), 8, 7),
    );
}

#[test]
fn another_priority_is_refused() {
    assert_channel_refused(
        Config::new(const { &[one().priority(3), two()] }),
        Field::Priority,
        128,
        3,
    );
}

#[test]
fn another_number_of_blocks_is_refused_by_whose_blocks_they_are() {
    const OTHER: Channel = one().pools(Pool::new(9, 100), Pool::new(4, 100));
    assert_refused(
        Config::new(const { &[OTHER, two()] }),
        difference(Field::PeerBlocks, Some(7), 4, 9),
        difference(Field::Blocks, Some(7), 9, 4),
    );
}

#[test]
fn another_size_of_blocks_is_refused_by_whose_blocks_they_are() {
    const OTHER: Channel = one().pools(Pool::new(4, 101), Pool::new(4, 100));
    assert_refused(
        Config::new(const { &[OTHER, two()] }),
        difference(Field::PeerSize, Some(7), 100, 101),
        difference(Field::Size, Some(7), 101, 100),
    );
}

#[test]
fn another_type_hash_is_refused() {
    const OTHER: Channel = {
        let mut channel = one();
        channel.type_hash = 0xDEAD_BEEF;
        channel
    };
    assert_channel_refused(
        Config::new(const { &[OTHER, two()] }),
        Field::Type,
        0,
        0xDEAD_BEEF,
    );
}

#[test]
fn another_name_is_refused() {
    const OTHER: Channel = {
        let mut channel = one();
        channel.name = Name::new("onf").unwrap();
        channel
    };
    let word = |text: [u8; 4]| u32::from_le_bytes(text);
    assert_channel_refused(
        Config::new(const { &[OTHER, two()] }),
        Field::Name,
        word(*b"one\0"),
        word(*b"onf\0"),
    );
}

#[test]
fn another_uuid_is_refused() {
    const OTHER: Channel = {
        let mut channel = one();
        channel.uuid = 5 << 96;
        channel
    };
    assert_channel_refused(Config::new(const { &[OTHER, two()] }), Field::Uuid, 0, 5);
}

#[test]
fn a_difference_in_the_second_channel_names_the_second_channel() {
    assert_refused(
        Config::new(const { &[one(), two().priority(0)] }),
        difference(Field::Priority, Some(9), 128, 0),
        difference(Field::Priority, Some(9), 0, 128),
    );
}

#[test]
fn replies_of_one_side_only_are_refused() {
    const PLAIN: Config = Config::new(&[one()]).mutual();
    const REPLIES: Config = Config::new(&[one().with_replies()]).mutual();
    let pair = Pair::new(&[PLAIN, REPLIES]);
    let plain = open(&pair, Role::First, PLAIN);
    let replies = open(&pair, Role::Second, REPLIES);
    assert_eq!(plain.look(0), difference(Field::Replies, Some(7), 0, 1));
    assert_eq!(replies.look(0), difference(Field::Replies, Some(7), 1, 0));
}

/// The words of a peer's segment are changed after it opened; each side in turn is the one to see.
#[track_caller]
fn assert_words_refused(field: Field, change: impl Fn(&raw::Raw) -> (u32, u32)) {
    for role in [Role::First, Role::Second] {
        let pair = Pair::new(&[BASE]);
        let side = open(&pair, role, BASE);
        let misfit = open(&pair, role.peer(), BASE);
        let (ours, theirs) = change(&pair.of(role.peer()));
        assert_eq!(side.look(0), difference(field, None, ours, theirs));
        // It says so for as long as the peer is there, and never acknowledges it.
        assert_eq!(side.look(1), difference(field, None, ours, theirs));
        assert_eq!(pair.of(role).get(raw::ACKNOWLEDGED), 0);
        assert_ne!(misfit.look(0), Status::Up);
        drop(misfit);
        let fitting = open(&pair, role.peer(), BASE);
        side.look(2);
        assert_eq!(fitting.look(2), Status::Up);
        assert_eq!(side.look(2), Status::Up);
        assert_works(&side, &fitting);
    }
}

/// Changes one word, and says what it was and is.
fn change(raw: &raw::Raw, word: usize, theirs: u32) -> (u32, u32) {
    let ours = raw.get(word);
    raw.set(word, theirs);
    (ours, theirs)
}

#[test]
fn another_major_version_is_refused() {
    assert_words_refused(Field::Version, |raw| {
        change(raw, raw::VERSION, 2 << 16);
        (1, 2)
    });
}

#[test]
fn another_minor_version_is_accepted() {
    for version in [1 << 16, 1 << 16 | 1, 1 << 16 | 0xFFFF] {
        let pair = Pair::new(&[BASE]);
        let first = open(&pair, Role::First, BASE);
        let second = open(&pair, Role::Second, BASE);
        pair.second.set(raw::VERSION, version);
        first.look(0);
        assert_eq!(second.look(0), Status::Up);
        assert_eq!(first.look(0), Status::Up);
        assert_works(&first, &second);
    }
}

#[test]
fn a_garbage_magic_is_refused() {
    assert_words_refused(Field::Magic, |raw| change(raw, raw::MAGIC, 0x1234_5678));
}

#[test]
fn the_other_byte_order_is_refused() {
    const PROBE: u32 = 0x0102_0304;
    assert_words_refused(Field::ByteOrder, |raw| {
        for word in 0..raw.len() {
            raw.set(word, raw.get(word).swap_bytes());
        }
        // What such a peer says of its state is read in our order.
        raw.set(raw::STATE, raw::READY);
        (PROBE, PROBE.swap_bytes())
    });
}

#[test]
fn a_mixed_byte_order_is_refused() {
    assert_words_refused(Field::ByteOrder, |raw| change(raw, raw::PROBE, 0x0201_0403));
}

#[test]
fn another_length_of_the_segment_is_refused() {
    assert_words_refused(Field::Length, |raw| {
        change(raw, raw::LENGTH, raw.get(raw::LENGTH) - 64)
    });
}

#[test]
fn another_place_of_the_directory_is_refused() {
    assert_words_refused(Field::Directory, |raw| change(raw, raw::DIRECTORY, 0x140));
}

#[test]
fn another_hash_with_the_same_directory_is_refused() {
    assert_words_refused(Field::Hash, |raw| {
        change(raw, raw::HASH, !raw.get(raw::HASH))
    });
}

#[test]
fn every_changed_word_of_the_directory_is_named_where_the_hash_differs() {
    let pair = Pair::new(&[BASE]);
    let first = open(&pair, Role::First, BASE);
    let second = open(&pair, Role::Second, BASE);
    pair.second.set(raw::HASH, 0);
    let mut named = 0;
    for channel in 0..2 {
        for word in 0..32 {
            let at = pair.second.directory(channel, word);
            let value = pair.second.get(at);
            pair.second.set(at, value ^ 1);
            let Status::Refused(found) = first.look(0) else {
                panic!("word {word} of channel {channel} is accepted");
            };
            if found.field != Field::Hash {
                assert_eq!(found.channel, Some(BASE.channels[channel].id));
                assert_eq!(found.ours ^ found.theirs, 1);
                named += 1;
            }
            pair.second.set(at, value);
        }
    }
    // Of 32 words, 21 say something: 2 of the id and the kind, name and so on.
    assert_eq!(named, 2 * 21);
    drop(second);
}

#[test]
fn a_misfit_after_a_fitting_peer_is_refused_and_ends_the_pairing() {
    const OTHER: Config = Config::new(&[one().priority(0), two()]);
    let pair = Pair::new(&[BASE, OTHER]);
    let first = open(&pair, Role::First, BASE);
    let second = open(&pair, Role::Second, BASE);
    first.look(0);
    second.look(0);
    first.look(0);
    let mut sender = Sender::new(&first, 7).unwrap();
    for _ in 0..4 {
        sender.send(b"lent").unwrap();
    }
    std::mem::forget(second);
    let misfit = open(&pair, Role::Second, OTHER);
    assert_eq!(first.look(1), difference(Field::Priority, Some(7), 128, 0));
    assert_eq!(sender.send(b"late"), Err(Refused::Lost(Lost::Closed)));
    drop(misfit);
    let second = open(&pair, Role::Second, BASE);
    first.look(2);
    second.look(2);
    first.look(2);
    sender.renew();
    for _ in 0..4 {
        sender.send(b"back").unwrap();
    }
    assert!(first.check_books());
}

#[test]
fn the_text_of_a_refusal_names_the_channel_the_thing_and_both_values() {
    let difference = Difference {
        field: Field::Size,
        channel: Some(7),
        ours: 100,
        theirs: 101,
    };
    let text = difference.to_string();
    for part in [
        "channel 7",
        "size of the peer's blocks",
        "100",
        "101",
        "both sides",
    ] {
        assert!(text.contains(part), "{text}");
    }
}
