//! What a state channel promises: the latest value, whole, and never a wait.
#![cfg(not(loom))]

mod support;

use sinew_shm::domain::{
    Channel, Config, ConfigError, End, Lost, OpenError, Options, Plain, Pool, Role, Sender, State,
    Value,
};
use support::{memory, open, parts, up};

sinew_shm::value! {
    /// Where the arm is.
    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Pose {
        at: [f32; 3],
        time: u64,
        flags: [u8; 3],
    }
}

const POSE: u16 = 3;
const LINK: Config = Config::new(&[
    Channel::new(1, "orders", Pool::new(2, 64)),
    Channel::of::<Pose>(POSE, "pose"),
    Channel::of::<u32>(4, "limit").only(Role::First).priority(0),
]);

fn pose(number: u32) -> Pose {
    Pose {
        at: [number as f32; 3],
        time: u64::from(number) << 32,
        flags: [number as u8; 3],
    }
}

#[test]
fn the_latest_value_of_each_side_is_seen_by_the_other() {
    let (first, second) = up(LINK);
    let (near, far) = (
        State::<_, Pose>::new(&first, POSE).unwrap(),
        State::<_, Pose>::new(&second, POSE).unwrap(),
    );
    assert_eq!((near.get(), far.get()), (Ok(None), Ok(None)));
    for number in 1..100 {
        assert_eq!(near.set(&pose(number)), Ok(true));
        if number % 3 == 0 {
            assert_eq!(far.set(&pose(1000 + number)), Ok(true));
            let expected = (pose(1000 + number), number / 3);
            assert_eq!(near.get_with_version(), Ok(Some(expected)));
        }
        if number % 2 == 0 {
            assert_eq!(far.get_with_version(), Ok(Some((pose(number), number))));
            assert_eq!(far.get(), Ok(Some(pose(number))));
        }
    }
}

#[test]
fn a_side_without_a_value_sets_none_and_the_other_sees_none() {
    let (first, second) = up(LINK);
    let (near, far) = (
        State::<_, u32>::new(&first, 4).unwrap(),
        State::<_, u32>::new(&second, 4).unwrap(),
    );
    assert_eq!(far.set(&7), Ok(false));
    assert_eq!(near.get(), Ok(None));
    assert_eq!(near.set(&7), Ok(true));
    assert_eq!(far.get(), Ok(Some(7)));
}

#[test]
fn a_value_of_another_type_is_not_found() {
    let (first, _second) = up(LINK);
    assert!(State::<_, u32>::new(&first, POSE).is_none());
    assert!(State::<_, i32>::new(&first, 4).is_none());
    assert!(State::<_, u32>::new(&first, 1).is_none());
    assert!(State::<_, u32>::new(&first, 5).is_none());
    assert!(Sender::new(&first, POSE).is_none());
}

#[test]
fn values_are_of_a_session() {
    let (first, second) = up(LINK);
    let near = State::<_, u32>::new(&first, 4).unwrap();
    let mut far = State::<_, u32>::new(&second, 4).unwrap();
    assert_eq!(near.set(&1), Ok(true));
    first.peer_is_gone();
    assert_eq!(near.set(&2), Err(Lost::Closed));
    for _ in 0..3 {
        first.look(0);
        second.look(0);
    }
    assert_eq!(far.get(), Err(Lost::Restarted));
    far.renew();
    assert_eq!(far.get(), Ok(None));
    let near = State::<_, u32>::new(&first, 4).unwrap();
    assert_eq!(near.set(&3), Ok(true));
    assert_eq!(far.get_with_version(), Ok(Some((3, 1))));
}

#[test]
fn nothing_is_set_before_the_link_is_up() {
    let (first, second) = open(LINK);
    let near = State::<_, u32>::new(&first, 4).unwrap();
    assert_eq!(near.set(&1), Err(Lost::Closed));
    second.look(0);
    first.look(0);
    second.look(0);
    assert_eq!(near.set(&1), Ok(true));
}

#[test]
fn values_have_the_same_bytes_everywhere() {
    let mut bytes = Pose::ZERO;
    pose(3).put(&mut bytes);
    assert_eq!(Pose::SIZE, 23);
    assert_eq!(
        bytes,
        [
            0, 0, 0x40, 0x40, 0, 0, 0x40, 0x40, 0, 0, 0x40, 0x40, 0, 0, 0, 0, 3, 0, 0, 0, 3, 3, 3
        ]
    );
    assert_eq!(Pose::take(&bytes), pose(3));
    // Whatever there is: never a panic.
    for len in 0..bytes.len() {
        let _ = Pose::take(&bytes[..len]);
        pose(9).put(&mut [0; 23][..len]);
    }
}

#[test]
fn types_differ_by_what_they_are_made_of() {
    sinew_shm::value! { struct Other { at: [f32; 3], time: u64, mode: [u8; 3] } }
    sinew_shm::value! { struct Longer { at: [f32; 4], time: u64, flags: [u8; 3] } }
    let _ = (
        Other {
            at: [0.0; 3],
            time: 0,
            mode: [0; 3],
        },
        Longer {
            at: [0.0; 4],
            time: 0,
            flags: [0; 3],
        },
    );
    let hashes = [
        Pose::HASH,
        Other::HASH,
        Longer::HASH,
        u32::HASH,
        i32::HASH,
        <[u8; 4]>::HASH,
    ];
    for (at, hash) in hashes.iter().enumerate() {
        assert_eq!(hashes.iter().position(|other| other == hash), Some(at));
    }
}

#[test]
fn a_state_channel_has_one_value_a_side() {
    let check = |channel: Channel| Config::new(&[channel]).mutual().check();
    let state = Channel::state(7, "state", 8);
    assert_eq!(check(state), Ok(()));
    let two = state.pools(Pool::new(2, 8), Pool::new(1, 8));
    assert_eq!(check(two), Err(ConfigError::State(7)));
    assert_eq!(check(state.with_replies()), Err(ConfigError::State(7)));
    let none = state.pools(Pool::new(0, 0), Pool::new(0, 0));
    assert_eq!(check(none), Err(ConfigError::Pool(7)));
    // One block of a queue takes less room than a value.
    const QUEUE: Config = Config::new(&[Channel::new(7, "state", Pool::new(1, 1 << 16))]);
    const VALUE: Config = Config::new(&[Channel::state(7, "state", 1 << 16)]);
    let (queue, value) = (QUEUE, VALUE);
    assert_ne!(queue.hash(), value.hash());
    assert_eq!((queue.blocks(), value.blocks()), (2, 0));
    let more = value.segment_len(Role::First) - queue.segment_len(Role::First);
    assert!(more >= (3 << 16) - 1024);
}

#[test]
fn an_end_without_state_channels_says_so() {
    let (first, _) = memory(&LINK);
    let opened = End::open(
        first,
        LINK,
        Role::First,
        parts(support::Lean, &LINK),
        Options::default(),
    );
    assert_eq!(opened.err(), Some(OpenError::States));
}
