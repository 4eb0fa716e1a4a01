//! What a side does about a peer that writes what it should not: it counts it, stops the link or not
//! as its options say, and has every block of its own afterwards.
#![cfg(not(loom))]

#[path = "support/raw.rs"]
mod raw;
mod support;

use std::rc::Rc;

use raw::{Pair, Raw};
use sinew_shm::domain::{
    Channel, Config, End, Lost, Options, Packet, Pool, Receiver, Refused, Role, Sender, State,
    Status, Violation,
};
use support::{Solo, parts};

/// This side sends 4 blocks of 100 bytes, the peer 3 of 48.
const ONE: Config = Config::new(&[
    Channel::new(5, "one", Pool::new(0, 0)).pools(Pool::new(4, 100), Pool::new(3, 48))
]);
const MUTUAL: Config =
    Config::new(&[Channel::new(5, "one", Pool::new(3, 64)).with_replies()]).mutual();

type Side = Rc<End<Solo>>;

/// The side under test, which is the first one, and the memory of an honest peer that was there
/// until just now.
struct Scene {
    pair: Pair,
    config: Config<'static>,
    side: Side,
}

fn open(pair: &Pair, role: Role, config: Config<'static>, faults: bool) -> Side {
    // SAFETY: one end of a role is gone before the next is opened.
    let memory = unsafe { pair.memory(role) };
    let parts = parts(Solo, &config);
    let options = Options {
        faults,
        ..Options::default()
    };
    Rc::new(End::open(memory, config, role, parts, options).unwrap())
}

/// Up after a few looks.
#[track_caller]
fn come_up(side: &Side, peer: &Side) {
    for _ in 0..3 {
        side.look(0);
        peer.look(0);
    }
    assert_eq!((side.status(), peer.status()), (Status::Up, Status::Up));
}

impl Scene {
    fn new(config: Config<'static>, faults: bool) -> Scene {
        let pair = Pair::new(&[config]);
        let side = open(&pair, Role::First, config, faults);
        let peer = open(&pair, Role::Second, config, true);
        come_up(&side, &peer);
        // It says nothing more; its memory is ours to write.
        std::mem::forget(peer);
        Scene { pair, config, side }
    }

    fn theirs(&self) -> Raw {
        self.pair.second
    }

    fn sender(&self) -> Sender<Side> {
        Sender::new(&self.side, 5).unwrap()
    }

    fn receiver(&self) -> Receiver<Side> {
        Receiver::new(&self.side, 5).unwrap()
    }

    /// A word of this side's own statistics.
    fn count(&self, word: usize) -> u32 {
        self.pair
            .first
            .get(self.pair.first.places(0).statistics + word)
    }

    /// The low half of a side's session, which its entries carry.
    fn tag(&self, role: Role) -> u32 {
        self.pair.of(role).get(raw::SESSION) & 0xFFFF
    }

    fn put(&self, at: usize, entry: [u32; 4]) {
        for (word, value) in entry.into_iter().enumerate().rev() {
            self.theirs().set(at + word, value);
        }
    }

    /// A packet of the peer's at this position.
    fn put_packet(&self, position: u32, sequence: u32, tag: u32, block: u32, len: u32) {
        let places = self.theirs().places(0);
        let at = places.ring + 4 * (position % places.capacity) as usize;
        self.put(at, [sequence, block | tag << 16, len, 0]);
    }

    /// A return of the peer's at this position.
    fn put_return(&self, position: u32, sequence: u32, word: u32, len: u32, flags: u32) {
        let places = self.theirs().places(0);
        let at = places.returns + 4 * (position % places.returns_capacity) as usize;
        self.put(at, [sequence, word, len, flags]);
    }

    /// With an honest peer, after the death of the one that was not, the link comes up, every own
    /// block can be taken, and packets go both ways.
    #[track_caller]
    fn assert_whole(&self) {
        assert!(self.side.check_books());
        self.side.peer_is_gone();
        self.side.recover();
        assert!(self.side.check_books());
        let peer = open(&self.pair, Role::Second, self.config, true);
        come_up(&self.side, &peer);
        let sender = self.sender();
        let blocks = self.config.channels[0].first.blocks;
        let taken: Vec<_> = (0..blocks).map(|_| sender.place(1).unwrap()).collect();
        assert!(matches!(sender.place(1), Err(Refused::Full)));
        drop(taken);
        let (back, home) = (Sender::new(&peer, 5).unwrap(), self.receiver());
        let here = Receiver::new(&peer, 5).unwrap();
        for _ in 0..10 {
            assert_eq!(sender.send(b"there"), Ok(true));
            assert_eq!(here.receive().unwrap().unwrap().len(), 5);
            assert_eq!(back.send(b"back"), Ok(true));
            assert_eq!(home.receive().unwrap().unwrap().len(), 4);
        }
        assert!(self.side.check_books() && peer.check_books());
    }
}

/// A bad packet: counted and reported, and with the other policy passed over.
#[track_caller]
fn assert_bad_packet(violation: Violation, sequence: u32, tag_step: u32, block: u32, len: u32) {
    for faults in [true, false] {
        let scene = Scene::new(ONE, faults);
        let tag = scene.tag(Role::Second);
        // Two good ones before it, of which one is held and one is released.
        scene.put_packet(0, 1, tag, 2, 48);
        scene.put_packet(1, 2, tag, 1, 7);
        let receiver = scene.receiver();
        let held = receiver.receive().unwrap().unwrap();
        drop(receiver.receive().unwrap().unwrap());
        scene.put_packet(2, sequence, (tag + tag_step) & 0xFFFF, block, len);
        let found = receiver.receive().map(|packet| packet.map(|_| ()));
        assert_eq!(scene.count(raw::VIOLATIONS), 1);
        if faults {
            assert_eq!(found, Err(Lost::Fault));
            assert_eq!(scene.side.status(), Status::Fault(violation));
            let code = scene.pair.first.get(raw::FAULT);
            assert_eq!(code, violation as u32 | 5 << 16);
        } else {
            assert_eq!(found, Ok(None));
            assert_eq!(scene.side.status(), Status::Up);
            // The next good one is found; a garbage number stays where it is until it is right.
            let next = if violation == Violation::Sequence {
                2
            } else {
                3
            };
            scene.put_packet(next, next + 1, tag, 0, 4);
            assert_eq!(
                receiver.receive().unwrap().map(|packet| packet.len()),
                Some(4)
            );
            assert_eq!(held.len(), 48);
        }
        drop(held);
        scene.assert_whole();
    }
}

#[test]
fn a_packet_that_is_ahead_of_its_number() {
    assert_bad_packet(Violation::Sequence, 4, 0, 0, 1);
}

#[test]
fn a_packet_with_a_number_of_long_ago() {
    assert_bad_packet(Violation::Sequence, 3u32.wrapping_sub(8), 0, 0, 1);
}

#[test]
fn a_packet_of_another_session() {
    assert_bad_packet(Violation::Session, 3, 1, 0, 1);
}

#[test]
fn a_packet_in_the_first_block_that_does_not_exist() {
    assert_bad_packet(Violation::Block, 3, 0, 3, 1);
}

#[test]
fn a_packet_in_a_block_with_the_largest_number() {
    assert_bad_packet(Violation::Block, 3, 0, 0xFFFF, 1);
}

#[test]
fn a_packet_in_a_block_that_is_held() {
    assert_bad_packet(Violation::Twice, 3, 0, 2, 1);
}

#[test]
fn a_packet_one_byte_longer_than_a_block() {
    assert_bad_packet(Violation::Length, 3, 0, 0, 49);
}

#[test]
fn a_packet_of_the_largest_length() {
    assert_bad_packet(Violation::Length, 3, 0, 0, u32::MAX);
}

/// A bad return, after one good one: counted and reported; the block that was not returned stays
/// lent until the pairing ends.
#[track_caller]
fn assert_bad_return(violation: Violation, sequence: u32, tag_step: u32, block: u32) {
    for faults in [true, false] {
        let scene = Scene::new(ONE, faults);
        let tag = scene.tag(Role::First);
        let sender = scene.sender();
        let held = sender.place(1).unwrap();
        for _ in 0..3 {
            sender.send(b"lent").unwrap();
        }
        let word = |position: u32| {
            scene
                .pair
                .first
                .get(scene.pair.first.places(0).ring + 4 * position as usize + raw::BLOCK)
        };
        scene.put_return(0, 1, word(0), 0, 0);
        // `u32::MAX` stands for the block that came back with the first.
        let block = if block == u32::MAX {
            word(0) & 0xFFFF
        } else {
            block
        };
        scene.put_return(1, sequence, block | ((tag + tag_step) & 0xFFFF) << 16, 0, 0);
        // The first return is taken up for this one, the bad one for the next.
        drop(held);
        let places = (sender.place(1).unwrap(), sender.place(1).unwrap());
        let full = sender.place(1).err();
        assert_eq!(scene.count(raw::VIOLATIONS), 1);
        if faults {
            assert_eq!(full, Some(Refused::Lost(Lost::Fault)));
            assert_eq!(scene.side.status(), Status::Fault(violation));
        } else {
            assert_eq!(full, Some(Refused::Full));
            assert_eq!(scene.side.status(), Status::Up);
            let next = if violation == Violation::Sequence {
                1
            } else {
                2
            };
            scene.put_return(next, next + 1, word(1), 0, 0);
            assert!(sender.place(1).is_ok());
        }
        drop(places);
        scene.assert_whole();
    }
}

#[test]
fn a_return_that_is_ahead_of_its_number() {
    assert_bad_return(Violation::Sequence, 3, 0, 0);
}

#[test]
fn a_return_of_another_session() {
    assert_bad_return(Violation::Session, 2, 1, 1);
}

#[test]
fn a_return_of_a_block_that_does_not_exist() {
    assert_bad_return(Violation::NotLent, 2, 0, 4);
}

#[test]
fn a_return_of_a_block_that_the_user_holds() {
    // The place that was taken first: block 0.
    let scene = Scene::new(ONE, false);
    let sender = scene.sender();
    let mut held = sender.place(1).unwrap();
    sender.send(b"lent").unwrap();
    let sent = scene.pair.first.places(0).ring + raw::BLOCK;
    let own = scene.pair.first.get(sent);
    let taken: Vec<_> = (0..2).map(|_| sender.place(1).unwrap()).collect();
    for (position, block) in (0..4).filter(|block| *block != own & 0xFFFF).enumerate() {
        let position = position as u32;
        let word = own & 0xFFFF_0000 | block;
        scene.put_return(position, position + 1, word, 0, 0);
        assert!(matches!(sender.place(1), Err(Refused::Full)));
        assert_eq!(scene.count(raw::VIOLATIONS), position + 1);
        held[0] = 7;
    }
    drop((held, taken));
    scene.assert_whole();
}

#[test]
fn a_return_that_comes_twice() {
    assert_bad_return(Violation::NotLent, 2, 0, u32::MAX);
}

#[test]
fn an_answer_on_a_channel_without_answers_is_a_plain_return() {
    let scene = Scene::new(ONE, true);
    let sender = scene.sender();
    for round in 0..12 {
        sender.send(b"lent").unwrap();
        let places = scene.pair.first.places(0);
        let at = places.ring + 4 * (round % places.capacity) as usize;
        let block = scene.pair.first.get(at + raw::BLOCK);
        scene.put_return(round, round + 1, block, 50, 1);
    }
    assert!(sender.reply().unwrap().is_none());
    assert_eq!(scene.side.status(), Status::Up);
    scene.assert_whole();
}

#[test]
fn an_answer_longer_than_its_block_is_counted_and_the_block_is_back() {
    for faults in [true, false] {
        let scene = Scene::new(MUTUAL, faults);
        let sender = scene.sender();
        sender.send(b"lent").unwrap();
        let block = scene
            .pair
            .first
            .get(scene.pair.first.places(0).ring + raw::BLOCK);
        scene.put_return(0, 1, block, 65, 1);
        let reply = sender.reply().map(|reply| reply.is_some());
        assert_eq!(scene.count(raw::VIOLATIONS), 1);
        if faults {
            assert_eq!(reply, Err(Lost::Fault));
        } else {
            assert_eq!(reply, Ok(false));
            let all: Vec<_> = (0..3).map(|_| sender.place(64).unwrap()).collect();
            assert_eq!(all.len(), 3);
        }
        scene.assert_whole();
    }
}

#[test]
fn answers_that_nobody_reads_come_back_with_the_next_session() {
    let scene = Scene::new(MUTUAL, true);
    let sender = scene.sender();
    for round in 0..3 {
        sender.send(b"lent").unwrap();
        let at = scene.pair.first.places(0).ring + 4 * round as usize;
        let block = scene.pair.first.get(at + raw::BLOCK);
        scene.put_return(round, round + 1, block, 64, 1);
    }
    assert!(matches!(sender.place(1), Err(Refused::Full)));
    let first = sender.reply().unwrap().unwrap();
    assert_eq!(first.len(), 64);
    drop(first);
    scene.assert_whole();
}

#[test]
fn no_wake_word_does_harm() {
    let scene = Scene::new(ONE, true);
    let sender = scene.sender();
    let control = scene.theirs().places(0).control;
    let tag = scene.tag(Role::Second);
    for round in 0..24 {
        for (word, value) in [
            (raw::WAKE_PACKETS, round ^ 1),
            (raw::WAKE_RETURNS, u32::MAX - round),
        ] {
            scene
                .theirs()
                .set(control + word, value.wrapping_mul(0x1000_0001));
        }
        if sender.send(b"x") == Err(Refused::Full) {
            break;
        }
        scene.put_packet(round, round + 1, tag, round % 3, 4);
        drop(scene.receiver().receive().unwrap().unwrap());
    }
    assert_eq!(scene.side.status(), Status::Up);
    assert_eq!(scene.count(raw::VIOLATIONS), 0);
    scene.assert_whole();
}

#[test]
fn a_filter_of_the_peer_s_is_only_ever_a_wish_about_what_it_gets() {
    let values = [
        0,
        1,
        2,
        3,
        47,
        96,
        97,
        100,
        0x7FFF_FFFF,
        u32::MAX - 3,
        u32::MAX,
    ];
    let scene = Scene::new(ONE, true);
    let control = scene.theirs().places(0).control;
    let sender = scene.sender();
    let mut version = 0;
    let mut returned = 0;
    for kind in values {
        for offset in values {
            version += 1;
            let words = [version, kind, offset, offset.rotate_left(7), kind ^ 5];
            for (word, value) in words.into_iter().enumerate() {
                scene.theirs().set(control + raw::FILTER + word, value);
            }
            for _ in 0..3 {
                let sent = sender.send(&[1; 100]).unwrap();
                if sent {
                    let places = scene.pair.first.places(0);
                    let at = places.ring + 4 * (returned % places.capacity) as usize;
                    let block = scene.pair.first.get(at + raw::BLOCK);
                    scene.put_return(returned, returned + 1, block, 0, 0);
                    returned += 1;
                }
            }
        }
    }
    // Some kinds are none, and let all pass.
    assert!(returned > 0);
    assert_eq!(scene.side.status(), Status::Up);
    scene.assert_whole();
}

#[test]
fn every_word_of_identity_and_session_may_become_anything_while_the_link_is_up() {
    let values = [
        0,
        1,
        2,
        3,
        4,
        5,
        0x7FFF_FFFF,
        0x8000_0000,
        0xFFFF_0000,
        u32::MAX,
    ];
    for faults in [true, false] {
        for word in (0..9).chain(16..20).chain(32..33) {
            for value in values {
                let scene = Scene::new(ONE, faults);
                let sender = scene.sender();
                for _ in 0..3 {
                    sender.send(b"lent").unwrap();
                }
                scene.theirs().set(word, value);
                for now in 0..4 {
                    scene.side.look(now * 1000);
                    let _ = scene.receiver().receive().map(|packet| packet.is_some());
                    let _ = scene.sender().send(b"more");
                    assert!(scene.side.check_books());
                }
                scene.assert_whole();
            }
        }
    }
}

#[test]
fn a_peer_that_changes_its_session_at_each_look_stops_nothing() {
    let scene = Scene::new(ONE, true);
    for session in 1..2000 {
        scene.theirs().set(raw::SESSION, session);
        // As if it had acknowledged at once.
        let mine = scene.pair.first.get(raw::SESSION);
        scene.theirs().set(raw::ACKNOWLEDGED, mine);
        scene.side.look(session);
        assert_eq!(scene.side.status(), Status::Up);
        let sender = scene.sender();
        for _ in 0..4 {
            assert_eq!(sender.send(b"lent"), Ok(true));
        }
        assert_eq!(sender.send(b"full"), Err(Refused::Full));
    }
    scene.assert_whole();
}

#[test]
fn a_packet_in_hand_ends_with_its_pairing() {
    let scene = Scene::new(ONE, true);
    scene.put_packet(0, 1, scene.tag(Role::Second), 0, 48);
    let receiver = scene.receiver();
    let packet = receiver.receive().unwrap().unwrap();
    let session = scene.theirs().get(raw::SESSION);
    let mut copy = [0; 48];
    let copied = |packet: &Packet<'_, Side>, copy: &mut [u8]| packet.copy_to(copy);
    assert_eq!(copied(&packet, &mut copy), Ok(48));
    // Even before anybody looked at the peer.
    scene.theirs().set(raw::SESSION, session + 1);
    assert_eq!(copied(&packet, &mut copy), Err(Lost::Restarted));
    scene.side.look(0);
    assert_eq!(copied(&packet, &mut copy), Err(Lost::Restarted));
    assert_eq!(packet.words().count(), 48 / size_of::<usize>());
    drop(packet);
    scene.assert_whole();
}

#[test]
fn a_fault_is_told_to_the_peer_and_recover_begins_again() {
    let pair = Pair::new(&[ONE]);
    let side = open(&pair, Role::First, ONE, true);
    let peer = open(&pair, Role::Second, ONE, true);
    come_up(&side, &peer);
    let (sender, receiver) = (
        Sender::new(&peer, 5).unwrap(),
        Receiver::new(&side, 5).unwrap(),
    );
    sender.send(b"x").unwrap();
    let places = pair.second.places(0);
    pair.second.set(places.ring + raw::LEN, 1000);
    assert_eq!(receiver.receive().map(|_| ()), Err(Lost::Fault));
    peer.look(0);
    assert_eq!(sender.send(b"x"), Err(Refused::Lost(Lost::Fault)));
    // Until the side that found it begins again, nobody comes up.
    for now in 0..5 {
        side.look(now);
        peer.look(now);
    }
    assert_eq!(side.status(), Status::Fault(Violation::Length));
    assert_eq!(peer.status(), Status::Waiting);
    side.recover();
    come_up(&side, &peer);
}

#[test]
fn a_segment_of_one_value_or_of_garbage_is_no_peer() {
    let pair = Pair::new(&[ONE]);
    let mut random = 0x9E37_79B9u32;
    for kind in 0..200 {
        pair.clear();
        let side = open(&pair, Role::First, ONE, true);
        pair.second.fill(|| match kind {
            0 => u32::MAX,
            1 => 0x0101_0101,
            2 => 0,
            _ => {
                random ^= random << 13;
                random ^= random >> 17;
                random ^= random << 5;
                random
            }
        });
        for now in 0..3 {
            let status = side.look(now);
            assert_ne!(status, Status::Up);
            assert_eq!(matches!(status, Status::Refused(_)), kind != 2);
        }
        assert_eq!(
            Sender::new(&side, 5).unwrap().send(b"x"),
            Err(Refused::Full)
        );
        assert!(
            Receiver::new(&side, 5)
                .unwrap()
                .receive()
                .unwrap()
                .is_none()
        );
        let peer = open(&pair, Role::Second, ONE, true);
        come_up(&side, &peer);
    }
}

/// Whatever the peer's control line says, a value is read from one of its four copies, and set.
#[test]
fn words_of_a_state_channel_reach_no_further_than_its_copies() {
    const VALUES: Config = Config::new(&[
        Channel::of::<[u8; 64]>(5, "values"),
        Channel::new(6, "other", Pool::new(1, 64)),
    ]);
    let scene = Scene::new(VALUES, true);
    let state = State::<_, [u8; 64]>::new(&scene.side, 5).unwrap();
    let theirs = scene.theirs().places(0);
    for copy in 0..4 {
        for word in 0..16 {
            // The copies are behind the statistics.
            let at = theirs.statistics + 16 + copy * 16 + word;
            scene.theirs().set(at, (copy as u32 + 1) * 0x0101_0101);
        }
    }
    const NASTY: [u32; 8] = [0, 1, 2, 3, 4, 7, u32::MAX, 1 << 31];
    for latest in NASTY {
        for reading in NASTY {
            for pair in NASTY {
                for (word, value) in [(0, latest), (1, reading), (4, pair), (5, pair)] {
                    scene.theirs().set(theirs.control + word, value);
                }
                let copy = (pair & 3) as u8 + 1;
                let expected = (pair & 4 != 0).then_some(([copy; 64], pair >> 3));
                assert_eq!(state.get_with_version(), Ok(expected));
                assert_eq!(state.set(&[7; 64]), Ok(true));
            }
        }
    }
    assert_eq!(scene.side.status(), Status::Up);
}
