//! What an observer sees of a link, from its two segments alone.
#![cfg(not(loom))]

mod support;

use sinew_shm::domain::observe::{
    Channel as Seen, Flow, Link, LockInfo, NoSide, NoValue, Part, Side, Source, State, ValueInfo,
    sides,
};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use sinew_shm::domain::{
    self, Area, Channel, Config, End, Kind, Memory, Messages, Options, Pool, Predicate, Receiver,
    Role, Sender, Trust,
};
use support::{open, up};

const TWO: Config = Config::new(&[
    Channel::new(7, "control", Pool::new(4, 64)).priority(3),
    Channel::new(9, "camera", Pool::new(2, 300)).pools(Pool::new(2, 300), Pool::new(0, 0)),
]);

fn channel(link: &Link<impl Source>, id: u16) -> Seen {
    link.channels().find(|channel| channel.id() == id).unwrap()
}

fn flow(link: &Link<impl Source>, id: u16, from: Role) -> Flow {
    channel(link, id).flow(from).unwrap()
}

#[test]
fn sides_are_found_in_a_region_whose_configuration_nobody_knows() {
    let (first, second) = up(TWO);
    let link = first.observe();
    let parts = domain::Region::of(&TWO);
    let mut region = vec![0x55; parts.len as usize + 100];
    for role in [Role::First, Role::Second] {
        let part = parts.segment(role);
        let segment = &mut region[part.offset as usize..part.end() as usize];
        let source = link.source(role);
        source.copy(0, segment).unwrap();
    }
    let region = region.as_slice();
    let found: Vec<_> = sides(&region).collect();
    let at = parts.second.offset as u32;
    let expected = [Role::First, Role::Second].map(|role| link.side(role).unwrap());
    assert_eq!(found, [(0, expected[0]), (at, expected[1])]);
    // And what it says of its channels is read from there.
    let part = Part::new(region, at);
    let camera = found[1].1.channel(&part, 1).unwrap();
    assert_eq!((camera.id, camera.peer_pool), (9, Pool::new(2, 300)));
    assert_eq!(part.line(u32::MAX - 63), None);
    drop(second);
}

#[test]
fn both_sides_say_who_they_are() {
    let (first, second) = up(TWO);
    let link = first.observe();
    assert!(link.is_up());
    let [one, two] = [Role::First, Role::Second].map(|role| link.side(role).unwrap());
    assert_eq!(
        (one.role, two.role),
        (Some(Role::First), Some(Role::Second))
    );
    for side in [one, two] {
        assert_eq!(side.version, (1, 0));
        assert_eq!(side.hash, TWO.hash());
        assert_eq!(side.trust, Some(Trust::None));
        assert_eq!(side.channels, 2);
        assert_eq!(side.state, State::Ready);
        assert_eq!(side.heartbeat, 1);
    }
    assert_eq!(one.length as usize, TWO.segment_len(Role::First));
    assert_eq!(
        (one.session, two.session),
        (two.acknowledged, one.acknowledged)
    );
    second.look(1000);
    assert_eq!(link.side(Role::Second).unwrap().heartbeat, 2);
}

#[test]
fn channels_are_described_by_the_directory() {
    const TYPED: Channel = Channel {
        uuid: 0x0123_4567_89ab_cdef_0011_2233_4455_6677,
        type_hash: 0xfeed_f00d,
        ..Channel::new(700, "sixteen bytes ok", Pool::new(2, 64)).with_replies()
    };
    const LINK: Config = Config::new(&[TYPED, Channel::new(1, "b", Pool::new(1, 1))]).mutual();
    let (first, _second) = up(LINK);
    let link = first.observe();
    assert_eq!(link.channels().count(), 2);
    let channel = channel(&link, 700);
    for role in [Role::First, Role::Second] {
        let side = channel.side(role).unwrap();
        assert_eq!(side.name.as_str(), "sixteen bytes ok");
        assert_eq!(side.uuid, TYPED.uuid);
        assert_eq!(side.type_hash, TYPED.type_hash);
        assert_eq!(
            (side.kind, side.priority, side.replies),
            (Some(Kind::Queue), 128, true)
        );
        assert_eq!((side.pool, side.peer_pool), (TYPED.first, TYPED.second));
    }
}

#[test]
fn a_direction_without_blocks_has_no_flow() {
    let (first, _second) = up(TWO);
    let camera = channel(&first.observe(), 9);
    assert!(camera.flow(Role::First).is_some());
    assert!(camera.flow(Role::Second).is_none());
}

#[test]
fn every_block_is_seen_where_it_is() {
    let (first, second) = up(TWO);
    let link = second.observe();
    let (there, here) = (
        Sender::new(&first, 7).unwrap(),
        Receiver::new(&second, 7).unwrap(),
    );
    let at = |flow: Flow| (flow.free, flow.lent, flow.queued, flow.held, flow.returned);
    assert_eq!(at(flow(&link, 7, Role::First)), (4, 0, 0, 0, 0));
    let place = there.place(1).unwrap();
    assert_eq!(at(flow(&link, 7, Role::First)), (4, 0, 0, 0, 0));
    drop(place);
    for _ in 0..3 {
        there.send(b"x").unwrap();
    }
    assert_eq!(at(flow(&link, 7, Role::First)), (1, 3, 3, 0, 0));
    let one = here.receive().unwrap().unwrap();
    let two = here.receive().unwrap().unwrap();
    assert_eq!(at(flow(&link, 7, Role::First)), (1, 3, 1, 2, 0));
    drop(one);
    assert_eq!(at(flow(&link, 7, Role::First)), (2, 3, 1, 1, 1));
    drop(two);
    there.send(b"x").unwrap();
    assert!(there.send(b"x").is_ok(), "takes both returns up");
    let now = flow(&link, 7, Role::First);
    assert!(now.is_consistent);
    assert_eq!((now.sent, now.lent, now.queued), (5, 3, 3));
    assert_eq!(at(flow(&link, 7, Role::Second)), (4, 0, 0, 0, 0));
}

#[test]
fn what_was_refused_is_counted() {
    let (first, second) = up(TWO);
    let link = first.observe();
    let there = Sender::new(&second, 7).unwrap();
    for _ in 0..4 {
        there.send(b"x").unwrap();
    }
    for _ in 0..3 {
        assert!(there.send(b"x").is_err());
    }
    assert!(there.send(&[0; 65]).is_err());
    let now = flow(&link, 7, Role::Second);
    assert_eq!((now.full, now.too_large, now.sent), (3, 1, 4));
    let side = *channel(&link, 7).side(Role::Second).unwrap();
    // Nobody waits, so nobody was rung.
    assert_eq!((side.counts.rung, side.counts.suppressed()), (0, 4));
    assert_eq!(side.counts.violations, 0);
    assert_eq!(second.counts(7), Some(side.counts));
    assert_eq!(second.counts(8), None);
}

#[test]
fn rings_are_counted_and_begin_anew_with_the_session() {
    let (first, second) = up(TWO);
    let link = first.observe();
    let (there, here) = (
        Sender::new(&first, 7).unwrap(),
        Receiver::new(&second, 7).unwrap(),
    );
    here.arm(std::task::Waker::noop());
    there.send(b"rings").unwrap();
    there.send(b"the peer is awake").unwrap();
    let counts = || channel(&link, 7).side(Role::First).unwrap().counts;
    assert_eq!((counts().rung, counts().suppressed()), (1, 1));
    first.peer_is_gone();
    assert_eq!((counts().rung, counts().suppressed()), (0, 0));
}

#[test]
fn filtered_packets_are_counted_by_direction() {
    let (first, second) = up(TWO);
    let link = first.observe();
    let ends = [(&first, &second), (&second, &first)];
    let [(one, other), (back, home)] = ends.map(|(from, to)| {
        let receiver = Receiver::new(to, 7).unwrap();
        receiver.set_filter(Predicate::Matches {
            offset: 0,
            mask: 0xFF,
            value: 7,
        });
        (Sender::new(from, 7).unwrap(), receiver)
    });
    // The wish is seen with the first flush: one crosses, and goes back unread.
    for _ in 0..6 {
        one.send(&[0; 4]).unwrap();
        assert!(other.receive().unwrap().is_none());
    }
    for _ in 0..3 {
        back.send(&[0; 4]).unwrap();
        assert!(home.receive().unwrap().is_none());
    }
    assert_eq!(flow(&link, 7, Role::First).filtered, 6);
    assert_eq!(flow(&link, 7, Role::Second).filtered, 3);
    let sides = [Role::First, Role::Second].map(|role| *channel(&link, 7).side(role).unwrap());
    assert_eq!(sides.map(|side| side.counts.unwanted), [1, 1]);
    assert_eq!(sides.map(|side| side.counts.filtered), [5, 2]);
}

#[test]
#[cfg_attr(miri, ignore = "long")]
fn a_running_link_never_contradicts_itself() {
    let (first, second) = support::memory(&TWO);
    let open = |memory, role| {
        let parts = support::parts(support::Threads, &TWO);
        Arc::new(End::open(memory, TWO, role, parts, Options::default()).unwrap())
    };
    let (first, second) = (open(first, Role::First), open(second, Role::Second));
    for end in [&first, &second, &first] {
        end.look(0);
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for (end, peer) in [(&first, &second), (&second, &first)] {
            let (sender, receiver) = (
                Sender::new(end, 7).unwrap(),
                Receiver::new(peer, 7).unwrap(),
            );
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = sender.send(b"x");
                    thread::yield_now();
                }
            });
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    drop(receiver.receive().unwrap());
                    thread::yield_now();
                }
            });
        }
        let link = first.observe();
        let mut looks = 0;
        // Until both ways were seen to move, and a good while longer.
        let has_moved = |from| flow(&link, 7, from).sent > 1_000;
        while looks < 3_000 || !has_moved(Role::First) || !has_moved(Role::Second) {
            looks += 1;
            for from in [Role::First, Role::Second] {
                let flow = flow(&link, 7, from);
                if !flow.is_consistent {
                    is_over.store(true, Ordering::Relaxed);
                    panic!("{flow:?}");
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_side_that_opens_begins_to_count_anew() {
    let segments = [Role::First, Role::Second].map(|role| {
        let lines = support::lines(TWO.segment_len(role));
        sinew_shm::Segment::from_lines(lines)
    });
    let open = |mine: usize, role| {
        // SAFETY: both segments are leaked, and only one end at a time has each as its own.
        let memory = unsafe { Memory::new(segments[mine], segments[1 - mine], None) };
        let parts = support::parts(support::Solo, &TWO);
        Rc::new(End::open(memory, TWO, role, parts, Options::default()).unwrap())
    };
    let (first, second) = (open(0, Role::First), open(1, Role::Second));
    for end in [&first, &second, &first] {
        end.look(0);
    }
    let there = Sender::new(&first, 7).unwrap();
    assert!(there.send(&[0; 65]).is_err());
    there.send(b"x").unwrap();
    let link = second.observe();
    let counts = |link: &Link<_>| channel(link, 7).side(Role::First).unwrap().counts;
    assert_eq!((counts(&link).too_large, counts(&link).sent), (1, 1));
    drop((there, first));
    let _first = open(0, Role::First);
    assert_eq!((counts(&link).too_large, counts(&link).sent), (0, 0));
}

#[test]
fn a_side_that_is_not_there_is_told_from_one_that_has_closed() {
    let (first, second) = open(TWO);
    drop(second);
    let link = first.observe();
    assert_eq!(link.side(Role::First).unwrap().state, State::Ready);
    assert_eq!(link.side(Role::Second).unwrap().state, State::Down);
    assert!(!link.is_up());
    let empty = Link::new([0u8; 256].as_slice(), [0u8; 10].as_slice());
    assert_eq!(empty.side(Role::First), Err(NoSide::Absent));
    assert_eq!(empty.side(Role::Second), Err(NoSide::Short));
    assert_eq!(empty.channels().count(), 0);
}

#[test]
fn the_channels_of_a_side_without_a_peer_are_shown() {
    let (first, _) = open(TWO);
    let alone = copy(&first.observe(), Role::First);
    let link = Link::new(alone.as_slice(), &[][..]);
    assert_eq!(link.channels().count(), 2);
    let control = channel(&link, 7);
    assert!(control.side(Role::Second).is_none());
    assert_eq!(control.flow(Role::First).unwrap().free, 4);
    assert!(control.flow(Role::Second).is_none());
}

#[test]
fn sides_of_different_links_are_shown_for_themselves() {
    const OTHER: Config = Config::new(&[Channel::new(8, "other", Pool::new(1, 9))]);
    let (first, _a) = open(TWO);
    let (_b, second) = open(OTHER);
    let (first, second) = (
        copy(&first.observe(), Role::First),
        copy(&second.observe(), Role::Second),
    );
    let link = Link::new(first.as_slice(), second.as_slice());
    assert!(!link.is_up());
    let ids: Vec<u16> = link.channels().map(|channel| channel.id()).collect();
    assert_eq!(ids, [7, 8, 9]);
}

#[test]
fn another_byte_order_and_another_version_are_told() {
    let (first, _second) = up(TWO);
    let good = copy(&first.observe(), Role::First);
    let with = |at: usize, bytes: [u8; 4]| {
        let mut changed = good.clone();
        changed[at..at + 4].copy_from_slice(&bytes);
        Side::read(changed.as_slice())
    };
    assert!(Side::read(good.as_slice()).is_ok());
    assert_eq!(with(0, *b"wniS"), Err(NoSide::ByteOrder));
    assert_eq!(with(8, [1, 2, 3, 4]), Err(NoSide::ByteOrder));
    assert_eq!(with(4, [0, 0, 9, 0]), Err(NoSide::Version(9)));
    assert_eq!(
        with(0, *b"\x7fELF"),
        Err(NoSide::Magic(u32::from_le_bytes(*b"\x7fELF")))
    );
}

#[test]
fn a_directory_that_points_outside_yields_nothing() {
    let (first, _second) = up(TWO);
    let good = copy(&first.observe(), Role::First);
    let channels = |at: usize, word: u32| {
        let mut changed = good.clone();
        changed[at..at + 4].copy_from_slice(&word.to_le_bytes());
        Link::new(changed.as_slice(), &[][..]).channels().count()
    };
    assert_eq!(channels(0x14, 0x100), 2);
    // The directory's offset, then the offset of the first channel's statistics.
    for wrong in [1, 0x101, 0xFFFF_FFC0, good.len() as u32] {
        assert_eq!(channels(0x14, wrong), 0);
        assert_eq!(channels(0x114, wrong), 1);
    }
}

#[test]
fn counts_that_no_honest_side_has_are_bounded_and_marked() {
    let (first, _second) = up(TWO);
    let mut segments = [Role::First, Role::Second].map(|role| copy(&first.observe(), role));
    let statistics = u32::from_le_bytes(segments[0][0x114..0x118].try_into().unwrap()) as usize;
    segments[0][statistics..statistics + 20].fill(0x7F);
    segments[0][statistics + 4] = 0;
    let link = Link::new(segments[0].as_slice(), segments[1].as_slice());
    let sent = flow(&link, 7, Role::First);
    assert!(!sent.is_consistent);
    assert_eq!((sent.free, sent.lent, sent.queued, sent.held), (0, 4, 4, 0));
}

/// The bytes of a side's segment, line by line.
fn copy(link: &Link<impl Source>, role: Role) -> Vec<u8> {
    let lines = (0..).map_while(|line| link.source(role).line(64 * line));
    lines.flatten().flat_map(u32::to_le_bytes).collect()
}

const VALUES: Config = Config::new(&[
    Channel::new(1, "orders", Pool::new(2, 64)),
    Channel::of::<[u8; 100]>(2, "near").only(Role::First),
    Channel::of::<u64>(3, "both"),
]);

#[test]
fn values_are_read_of_either_side_and_of_a_dump() {
    let (first, second) = up(VALUES);
    let link = first.observe();
    let both = |end| domain::State::<_, u64>::new(end, 3).unwrap();
    assert_eq!(link.state::<u64>(Role::First, 3), Err(NoValue::Unset));
    for number in 1..=5 {
        assert_eq!(both(&first).set(&(100 + number)), Ok(true));
        assert_eq!(
            link.state::<u64>(Role::First, 3),
            Ok((100 + number, number as u32))
        );
        if number == 2 {
            assert_eq!(both(&second).set(&7), Ok(true));
            assert_eq!(both(&second).get(), Ok(Some(102)));
        }
    }
    let near = domain::State::<_, [u8; 100]>::new(&first, 2).unwrap();
    assert_eq!(near.set(&[9; 100]), Ok(true));
    let info = |role, id| channel(&link, id).value(role);
    let value = |size, version| Some(ValueInfo { size, version });
    assert_eq!(info(Role::First, 3), value(8, Some(5)));
    assert_eq!(info(Role::Second, 3), value(8, Some(1)));
    assert_eq!(info(Role::First, 2), value(100, Some(1)));
    assert_eq!((info(Role::Second, 2), info(Role::First, 1)), (None, None));
    assert!(channel(&link, 3).flow(Role::First).is_none());
    let dump = |role| {
        let source = link.source(role);
        let line = |at| source.line(at).into_iter().flatten();
        let lines = (0..VALUES.segment_len(role) as u32 / 64).flat_map(|at| line(64 * at));
        lines.flat_map(u32::to_le_bytes).collect::<Vec<_>>()
    };
    let (one, two) = (dump(Role::First), dump(Role::Second));
    let dump = Link::new(&one[..], &two[..]);
    assert_eq!(dump.state::<u64>(Role::First, 3), Ok((105, 5)));
    assert_eq!(dump.state::<u64>(Role::Second, 3), Ok((7, 1)));
    assert_eq!(dump.state::<[u8; 100]>(Role::First, 2), Ok(([9; 100], 1)));
}

#[test]
fn what_is_no_value_says_why() {
    let (first, _second) = up(VALUES);
    let link = first.observe();
    assert_eq!(link.state::<u64>(Role::First, 1), Err(NoValue::Absent));
    assert_eq!(link.state::<u64>(Role::First, 9), Err(NoValue::Absent));
    let absent = link.state::<[u8; 100]>(Role::Second, 2);
    assert_eq!(absent, Err(NoValue::Absent));
    assert!(matches!(
        link.state::<i64>(Role::First, 3),
        Err(NoValue::Type(_))
    ));
    assert_eq!(
        link.value(Role::First, 2, &mut [0; 99]),
        Err(NoValue::Size(100))
    );
}

/// A side that sets a value between any two looks at its memory.
struct Restless<S, F> {
    memory: S,
    set: F,
    looks: Cell<u32>,
}

impl<S: Source, F: Fn()> Source for Restless<S, F> {
    fn line(&self, offset: u32) -> Option<[u32; 16]> {
        self.looks.set(self.looks.get() + 1);
        (self.set)();
        self.memory.line(offset)
    }
}

#[test]
fn a_value_that_never_rests_is_busy_after_a_bounded_number_of_looks() {
    let (first, second) = up(VALUES);
    let link = first.observe();
    let near = domain::State::<_, [u8; 100]>::new(&first, 2).unwrap();
    assert_eq!(near.set(&[0; 100]), Ok(true));
    let restless = |memory| Restless {
        memory,
        set: || assert_eq!(near.set(&[1; 100]), Ok(true)),
        looks: Cell::new(0),
    };
    let moving = Link::new(
        restless(link.source(Role::First)),
        restless(link.source(Role::Second)),
    );
    let seen = moving.state::<[u8; 100]>(Role::First, 2);
    assert_eq!(seen, Err(NoValue::Busy));
    assert!(moving.source(Role::First).looks.get() < 64);
    // One that goes to the copy of the other pair does not disturb who reads.
    let far = domain::State::<_, [u8; 100]>::new(&second, 2).unwrap();
    assert_eq!(far.get(), Ok(Some([1; 100])));
    assert!(link.state::<[u8; 100]>(Role::First, 2).is_ok());
}

#[test]
fn a_lock_is_seen_with_its_owner_its_version_and_whether_it_is_poisoned() {
    const LOCKS: Config = Config::new(&[
        Channel::lock(3, "area", 40),
        Channel::new(4, "queue", Pool::new(1, 8)),
    ]);
    let (first, second) = up(LOCKS);
    let link = second.observe();
    let lock = || channel(&link, 3).lock().unwrap();
    let free = LockInfo {
        size: 40,
        owner: None,
        wanted: [false; 2],
        versions: [Some(0); 2],
        is_poisoned: false,
    };
    assert_eq!(lock(), free);
    assert!(channel(&link, 3).flow(Role::First).is_none());
    assert!(channel(&link, 4).lock().is_none());
    let area = Area::new(&first, 3).unwrap();
    let mut guard = area.try_lock().unwrap();
    guard.write(0, b"x").unwrap();
    let held = LockInfo {
        owner: Some(Role::First),
        wanted: [true, false],
        ..free
    };
    assert_eq!(lock(), held);
    // From a dump as well.
    let (one, two) = (copy(&link, Role::First), copy(&link, Role::Second));
    let dump = Link::new(&one[..], &two[..]);
    assert_eq!(channel(&dump, 3).lock(), Some(held));
    guard.unlock().unwrap();
    assert_eq!(lock().versions, [Some(1), Some(0)]);
    let _held = area.try_lock().unwrap();
    first.peer_is_gone();
    for _ in 0..3 {
        first.look(0);
        second.look(0);
    }
    let poisoned = LockInfo {
        versions: [Some(1), Some(0)],
        is_poisoned: true,
        ..free
    };
    assert_eq!(lock(), poisoned);
}

const TALK: Config = Config::new(&[
    Channel::new(1, "queue", Pool::new(2, 64)),
    Channel::messages(2, "talk", 3, 4).pools(Pool::new(5, 600), Pool::new(0, 0)),
]);

#[test]
fn message_channels_show_what_may_be_under_way_and_what_waits() {
    let (first, second) = up(TALK);
    let link = first.observe();
    let talk = |from| channel(&link, 2).messages(from).unwrap();
    let at = |from| {
        (
            talk(from).waiting,
            talk(from).sent,
            talk(from).is_consistent,
        )
    };
    let [near, far] = [&first, &second].map(|end| Messages::new(end, 2).unwrap());
    for number in 1..=3 {
        near.send(1, [0; 5]).unwrap();
        assert_eq!(at(Role::First), (number, number.into(), true));
    }
    assert_eq!(at(Role::Second), (0, 0, true));
    assert!(far.receive().unwrap().is_some());
    assert_eq!(at(Role::First), (2, 3, true));
    let shown = talk(Role::First);
    assert_eq!((shown.requests, shown.calls), (3, 4));
    assert_eq!(shown.memory, Pool::new(5, 600));
    assert_eq!(talk(Role::Second).memory.blocks, 0);
    assert!(channel(&link, 2).flow(Role::First).is_none());
    assert!(channel(&link, 1).messages(Role::First).is_none());
    // What waits is known only of two sides in one session.
    second.close();
    assert_eq!(at(Role::First), (0, 3, true));
}
