//! The layout, byte for byte: the same on every machine and by every build. Dumps are in
//! `tests/golden`; after a change of the layout (which needs another version of it, see
//! `domain::MAJOR`) `UPDATE=1 cargo test -p sinew-shm --test golden` writes them anew.
//!
//! `make test-32bit` runs this on a 32-bit machine, `make test-miri` on one of the other byte order.
#![cfg(not(loom))]

mod support;

use std::rc::Rc;
use std::task::Waker;

use sinew_shm::Segment;
use sinew_shm::domain::{
    Area, CallError, Channel, Config, End, Memory, Messages, Options, Pool, Predicate, Receiver,
    Role, Sender, State,
};
use support::Solo;

const CALLS: Channel = Channel {
    uuid: 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff,
    type_hash: 0xcafe_f00d,
    ..Channel::new(0x0203, "calls", Pool::new(2, 40)).with_replies()
};

const LINK: Config = Config::new(&[
    Channel::new(0x0102, "control", Pool::new(3, 64)).priority(0),
    Channel::new(2, "camera, one way!", Pool::new(2, 300))
        .pools(Pool::new(2, 300), Pool::new(0, 0))
        .priority(200),
    CALLS,
])
.mutual();

#[test]
fn segments_are_what_they_always_were() {
    let segment = |len| Segment::from_lines(support::lines(len));
    let first = segment(LINK.segment_len(Role::First));
    let second = segment(LINK.segment_len(Role::Second));
    let exchange = segment(LINK.exchange_len());
    let open = |mine, peer, role| {
        // SAFETY: the memory is leaked, and each segment is the own one of one end.
        let memory = unsafe { Memory::new(mine, peer, Some(exchange)) };
        let parts = support::parts(Solo, &LINK);
        Rc::new(End::open(memory, LINK, role, parts, Options::default()).unwrap())
    };
    let ends = (
        open(first, second, Role::First),
        open(second, first, Role::Second),
    );
    script(&ends.0, &ends.1);
    check("first", first, include_str!("golden/first.txt"));
    check("second", second, include_str!("golden/second.txt"));
    check("exchange", exchange, include_str!("golden/exchange.txt"));
}

sinew_shm::value! {
    struct Pose {
        at: [f32; 3],
        time: u64,
        flags: [u8; 3],
    }
}

const VALUES: Config = Config::new(&[
    Channel::of::<Pose>(0x0405, "pose"),
    Channel::of::<u32>(6, "limit").only(Role::Second),
]);

/// Values of both sides, of which the first has set five and the second read two.
#[test]
fn values_lie_where_they_always_did() {
    let segment = |role| Segment::from_lines(support::lines(VALUES.segment_len(role)));
    let (first, second) = (segment(Role::First), segment(Role::Second));
    let open = |mine, peer, role| {
        // SAFETY: the memory is leaked, and each segment is the own one of one end.
        let memory = unsafe { Memory::new(mine, peer, None) };
        let parts = support::parts(Solo, &VALUES);
        Rc::new(End::open(memory, VALUES, role, parts, Options::default()).unwrap())
    };
    let ends = (
        open(first, second, Role::First),
        open(second, first, Role::Second),
    );
    ends.0.look(0);
    ends.1.look(0);
    ends.0.look(100);
    let near = State::<_, Pose>::new(&ends.0, 0x0405).unwrap();
    let far = State::<_, Pose>::new(&ends.1, 0x0405).unwrap();
    for number in 1..=5_u8 {
        let pose = Pose {
            at: [number.into(); 3],
            time: 0x0102_0304_0506_0708,
            flags: [number, 0xAA, 0xBB],
        };
        assert_eq!(near.set(&pose), Ok(true));
        if number < 3 {
            assert_eq!(far.get().unwrap().map(|pose| pose.flags[0]), Some(number));
        }
    }
    let limit = State::<_, u32>::new(&ends.1, 6).unwrap();
    assert_eq!(limit.set(&0x1122_3344), Ok(true));
    check("state_first", first, include_str!("golden/state_first.txt"));
    check(
        "state_second",
        second,
        include_str!("golden/state_second.txt"),
    );
}

const LOCKS: Config = Config::new(&[
    Channel::lock(0x0708, "account", 70),
    Channel::lock(9, "left behind", 4).priority(3),
]);

/// An area that the first side changed, the second read, changed and has now; and one whose owner was
/// taken for dead, and for which somebody waits.
#[test]
fn areas_lie_where_they_always_did() {
    let segment = |role| Segment::from_lines(support::lines(LOCKS.segment_len(role)));
    let (first, second) = (segment(Role::First), segment(Role::Second));
    let open = |mine, peer, role| {
        // SAFETY: the memory is leaked, and each segment is the own one of one end.
        let memory = unsafe { Memory::new(mine, peer, None) };
        let parts = support::parts(Solo, &LOCKS);
        Rc::new(End::open(memory, LOCKS, role, parts, Options::default()).unwrap())
    };
    let ends = (
        open(first, second, Role::First),
        open(second, first, Role::Second),
    );
    let settle = || {
        for _ in 0..3 {
            ends.0.look(0);
            ends.1.look(0);
        }
    };
    settle();
    let area = |end, id| Area::new(end, id).unwrap();
    std::mem::forget(area(&ends.0, 9).try_lock().unwrap());
    ends.0.peer_is_gone();
    settle();
    let (near, far) = (area(&ends.0, 0x0708), area(&ends.1, 0x0708));
    near.try_lock().unwrap().write(1, &[0x11; 9]).unwrap();
    let mut guard = far.try_lock().unwrap();
    guard.write(66, &[0x22; 4]).unwrap();
    guard.unlock().unwrap();
    let guard = far.try_lock().unwrap();
    near.arm(Waker::noop());
    check("lock_first", first, include_str!("golden/lock_first.txt"));
    check(
        "lock_second",
        second,
        include_str!("golden/lock_second.txt"),
    );
    drop(guard);
}

const MESSAGES: Config = Config::new(&[
    Channel::messages(0x0607, "files", 3, 2)
        .with_uuid(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff)
        .pools(Pool::new(2, 40), Pool::new(1, 70)),
    Channel::messages(8, "edits", 2, 0)
        .with_memory(Pool::new(1, 30))
        .with_replies(),
    Channel::messages(9, "words", 1, 1),
])
.mutual();

/// Messages and answers of each kind, some of them under way at the end.
#[test]
fn messages_lie_where_they_always_did() {
    let segment = |len| Segment::from_lines(support::lines(len));
    let first = segment(MESSAGES.segment_len(Role::First));
    let second = segment(MESSAGES.segment_len(Role::Second));
    let exchange = segment(MESSAGES.exchange_len());
    let open = |mine, peer, role| {
        // SAFETY: the memory is leaked, and each segment is the own one of one end.
        let memory = unsafe { Memory::new(mine, peer, Some(exchange)) };
        let parts = support::parts(Solo, &MESSAGES);
        Rc::new(End::open(memory, MESSAGES, role, parts, Options::default()).unwrap())
    };
    let ends = (
        open(first, second, Role::First),
        open(second, first, Role::Second),
    );
    message_script(&ends.0, &ends.1);
    check(
        "messages_first",
        first,
        include_str!("golden/messages_first.txt"),
    );
    check(
        "messages_second",
        second,
        include_str!("golden/messages_second.txt"),
    );
    check(
        "messages_exchange",
        exchange,
        include_str!("golden/messages_exchange.txt"),
    );
}

fn message_script(first: &Rc<End<Solo>>, second: &Rc<End<Solo>>) {
    first.look(0);
    second.look(0);
    first.look(100);
    let messages = |end, channel| Messages::new(end, channel).unwrap();
    let filled = |from: &Messages<_>, bytes: &[u8]| {
        let mut buffer = from.memory(bytes.len()).unwrap();
        buffer[..bytes.len()].copy_from_slice(bytes);
        buffer
    };
    let memory = |to: &Messages<_>| to.receive().unwrap().unwrap().memory.unwrap();

    // Files: one message of each kind, some answered; a lap of four and more.
    let (near, far) = (messages(first, 0x0607), messages(second, 0x0607));
    near.send(0x11, [1, 2, 3, 4, 5]).unwrap();
    assert!(far.receive().unwrap().is_some());
    let call = near.call(0x12, [6, 7, 8, 9, 10]).unwrap();
    far.receive().unwrap().unwrap().answer([0xA1, 0xA2]);
    drop(call);
    filled(&near, b"moved")
        .give(0x13, 0..5, [0xB1, 0xB2, 0xB3])
        .unwrap();
    drop(memory(&far));
    let loan = filled(&near, b"..lent").lend(0x14, 2..6, [0; 3]).unwrap();
    assert!(memory(&far).answer([0xC1, 0xC2, 0xC3, 0xC4, 0xC5]));
    drop(loan);
    let loan = filled(&near, b"changed")
        .lend_mut(0x15, 0..7, [1; 3])
        .unwrap();
    let mut given = memory(&far);
    given.in_place().unwrap()[..7].make_ascii_uppercase();
    assert!(given.answer_with(1..7));
    drop(loan);
    // Of the other side one is under way, and one was dropped.
    let mut loan = filled(&far, &[0xEE; 70])
        .lend_mut(0x16, 3..70, [2; 3])
        .unwrap();
    drop(memory(&near));
    assert_eq!(loan.poll().err(), Some(CallError::Dropped));
    let loan = filled(&far, &[0xDD; 3]).lend(0x17, 0..3, [3; 3]).unwrap();
    loan.arm(Waker::noop());
    std::mem::forget(loan);
    // Nobody takes these up: the first side waits for room.
    for _ in 0..3 {
        near.send(0x18, [0; 5]).unwrap();
    }
    near.arm_room(Waker::noop());

    // Edits: answered in the block that was lent, which lies between the sides.
    let (near, far) = (messages(first, 8), messages(second, 8));
    let loan = filled(&near, b"edit").lend_mut(0x21, 0..4, [4; 3]).unwrap();
    let mut given = memory(&far);
    given.blank(7).unwrap()[4..7].copy_from_slice(b"ed!");
    assert!(given.answer_with(0..7));
    drop(loan);
    filled(&far, b"gone").give(0x22, 0..4, [5; 3]).unwrap();

    // Words: an opcode that nobody knows.
    let (near, far) = (messages(first, 9), messages(second, 9));
    let call = far.call(0x31, [6; 5]).unwrap();
    near.receive().unwrap().unwrap().unknown();
    drop(call);
    near.arm(Waker::noop());
}

/// A bit of everything, and things under way at the end.
fn script(first: &Rc<End<Solo>>, second: &Rc<End<Solo>>) {
    first.look(0);
    second.look(0);
    first.look(100);
    let sender = |end, channel| Sender::new(end, channel).unwrap();
    let receiver = |end, channel| Receiver::new(end, channel).unwrap();
    let receive = |receiver: &Receiver<_>| drop(receiver.receive().unwrap().unwrap());

    // Control: a lap and a half; one packet waits, one is refused, the first side waits for a
    // place and for packets, and the second has a wish.
    let (control, commands) = (sender(first, 0x0102), receiver(second, 0x0102));
    for round in 1..=6 {
        control.send(&[0x11, 0x22, round]).unwrap();
        receive(&commands);
    }
    commands.set_filter(Predicate::Matches {
        offset: 4,
        mask: 0xFF,
        value: 0x33,
    });
    // The wish is heard with the next flush.
    assert_eq!(control.send(b"waits"), Ok(true));
    assert_eq!(control.send(b"not wanted"), Ok(false));
    assert_eq!(control.send(&[0x33; 8]), Ok(true));
    control.send(&[0; 65]).unwrap_err();
    // Nobody can have three, so the wake word stays.
    control.clone().with_reserve(3).arm(Waker::noop());
    receiver(first, 0x0102).arm(Waker::noop());
    sender(second, 0x0102).send(b"rings").unwrap();

    // Camera: full.
    let camera = sender(first, 2);
    camera.send(&[0xEE; 30]).unwrap();
    camera.send(&[0xDD; 10]).unwrap();
    camera.send(&[0xCC; 10]).unwrap_err();

    // Calls: one answered, one under way; and one the other way.
    let (calls, requests) = (sender(first, 0x0203), receiver(second, 0x0203));
    calls.send(b"request 1").unwrap();
    calls.send(b"request 2").unwrap();
    let mut packet = requests.receive().unwrap().unwrap();
    packet.place().unwrap()[..8].copy_from_slice(b"answer 1");
    assert!(packet.reply(8));
    sender(second, 0x0203).send(b"call back").unwrap();
}

/// The lines of 16 bytes that are not all zero, each behind its offset, and how long all is.
fn dump(segment: Segment) -> String {
    // SAFETY: the memory is leaked, and nobody else uses it now.
    let bytes = unsafe { std::slice::from_raw_parts(segment.base().as_ptr(), segment.len()) };
    let mut text = String::new();
    for (at, line) in bytes.chunks(16).enumerate() {
        if line.iter().any(|&byte| byte != 0) {
            let words = line.chunks(4).map(|word| {
                let bytes = word.iter().map(|byte| format!("{byte:02x}"));
                bytes.collect::<String>()
            });
            let words = words.collect::<Vec<_>>().join(" ");
            text += &format!("{:04x}: {words}\n", 16 * at);
        }
    }
    text + &format!("{:04x}\n", bytes.len())
}

fn check(name: &str, segment: Segment, expected: &str) {
    let found = dump(segment);
    if std::env::var_os("UPDATE").is_some() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
        std::fs::write(format!("{folder}/{name}.txt"), found).unwrap();
        return;
    }
    let differs = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
    assert!(
        found == expected,
        "{name}: (found, expected) {differs:?}; all that was found:\n{found}"
    );
}

#[test]
fn hashes_and_lengths_are_what_they_always_were() {
    const ONE: Config = Config::new(&[Channel::new(1, "one", Pool::new(4, 100))]);
    const WIDE: Config = Config {
        line_log2: 8,
        ..LINK
    };
    const LARGE: Config = Config::new(&[
        Channel::new(u16::MAX, "", Pool::new(1 << 15, 1)),
        Channel::new(0, "large", Pool::new(1, 1 << 28)).priority(255),
    ]);
    let facts = |config: &Config| {
        config.check().unwrap();
        (
            config.hash(),
            config.segment_len(Role::First),
            config.segment_len(Role::Second),
            config.exchange_len(),
        )
    };
    assert_eq!(facts(&ONE), (0xb1e1e9c8, 1152, 1152, 0));
    assert_eq!(facts(&LINK), (0x90a0e3f9, 2240, 1600, 256));
    assert_eq!(facts(&WIDE), (0x713986a1, 5632, 4608, 1024));
    assert_eq!(facts(&LARGE), (0xe4b06ccf, 271582080, 271582080, 0));
}
