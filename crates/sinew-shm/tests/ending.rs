//! What a peer sent is received, whenever it then ends: also where it sends and closes in the midst of a
//! call of this side's.
#![cfg(not(loom))]

#[path = "support/raw.rs"]
mod raw;
mod support;

use std::cell::RefCell;
use std::ptr::NonNull;
use std::rc::Rc;

use raw::Pair;
use sinew_shm::Unshared;
use sinew_shm::domain::{
    Block, Cache, CallError, Channel, Config, End, Lost, Messages, Options, Parts, Platform, Pool,
    Receiver, Role, Sender, Silent, Slot, Status,
};
use support::{Solo, parts};

const CHANNELS: [Channel; 3] = [
    Channel::new(1, "one", Pool::new(2, 64)),
    Channel::messages(2, "two", 2, 2),
    Channel::new(3, "three", Pool::new(2, 64)),
];
const NONE: Config = Config::new(&CHANNELS);
const MUTUAL: Config = Config::new(&[CHANNELS[0].with_replies(), CHANNELS[1]]).mutual();

/// Looks of some calls.
const MOMENTS: u32 = 60;
/// Calls after which all is known.
const ENOUGH: u32 = 4;

type Deed = Box<dyn FnOnce()>;

thread_local! {
    /// What the peer does, and after how many looks of this side's.
    static DEED: RefCell<Option<(u32, Deed)>> = const { RefCell::new(None) };
}

/// A side that is told of each of its looks at the peer's memory: then it forgets what it had of it.
struct Watched;

struct Told;

// SAFETY: it does nothing to memory.
unsafe impl Cache for Told {
    fn clean(&self, _: NonNull<u8>, _: usize) {}

    fn invalidate(&self, _: NonNull<u8>, _: usize) {
        match DEED.take() {
            Some((0, deed)) => deed(),
            Some((looks, deed)) => DEED.set(Some((looks - 1, deed))),
            None => {}
        }
    }
}

impl Platform for Watched {
    type Lock = Unshared;
    type Doorbell = Silent;
    type Cache = Told;
    type Slots = Vec<Slot>;
    type Blocks = Vec<Block>;
}

struct Scene {
    near: Rc<End<Watched>>,
    far: Rc<End<Solo>>,
    pair: Pair,
}

impl Scene {
    /// The far side has found the link up; the near one not yet.
    fn new(config: Config<'static>) -> Scene {
        let pair = Pair::new(&[config]);
        // SAFETY: there is one end of each role.
        let (mine, theirs) = unsafe { (pair.memory(Role::First), pair.memory(Role::Second)) };
        let far = parts(Solo, &config);
        let near = Parts {
            doorbell: Silent,
            cache: Told,
            platform: Watched,
            slots: config.channels.iter().map(|_| Slot::EMPTY).collect(),
            blocks: far.blocks.clone(),
        };
        let near = End::open(mine, config, Role::First, near, Options::default()).unwrap();
        let far = End::open(theirs, config, Role::Second, far, Options::default()).unwrap();
        near.look(0);
        assert_eq!(far.look(0), Status::Up);
        Scene {
            near: Rc::new(near),
            far: Rc::new(far),
            pair,
        }
    }

    fn up(config: Config<'static>) -> Scene {
        let scene = Scene::new(config);
        assert_eq!(scene.near.look(0), Status::Up);
        scene
    }

    /// Has the far side do something, and then close, at the given look of the near side's from now on.
    fn ends_at(&self, moment: u32, deed: impl FnOnce(&Rc<End<Solo>>) + 'static) {
        let far = self.far.clone();
        DEED.set(Some((
            moment,
            Box::new(move || {
                deed(&far);
                far.close();
            }),
        )));
    }

    /// `look` finds what was sent, before it is told that the peer has ended.
    #[track_caller]
    fn assert_found<T, E: Copy + PartialEq + std::fmt::Debug>(
        self,
        mut look: impl FnMut() -> Result<Option<T>, E>,
        closed: E,
    ) {
        let (mut looks, mut was_found) = (0, false);
        while looks < ENOUGH {
            match look() {
                Ok(found) => was_found |= found.is_some(),
                Err(error) => assert_eq!((error, was_found), (closed, true)),
            }
            let is_done = DEED.with_borrow(Option::is_none);
            looks += u32::from(is_done);
        }
        assert!(was_found);
        assert!(self.near.check_books() && self.far.check_books());
    }
}

/// Plays a scene of each moment: more than one call looks at the peer's memory, so the later ones are of
/// later calls.
fn at_each_moment(scene: impl Fn(u32)) {
    (0..MOMENTS).for_each(scene);
}

/// With and without trust, where this side has found the link up, and where it has not.
fn scenes() -> impl Iterator<Item = fn() -> Scene> {
    let all: [fn() -> Scene; 4] = [
        || Scene::new(NONE),
        || Scene::new(MUTUAL),
        || Scene::up(NONE),
        || Scene::up(MUTUAL),
    ];
    all.into_iter()
}

fn send(far: &Rc<End<Solo>>) {
    assert_eq!(Sender::new(far, 1).unwrap().send(b"last"), Ok(true));
}

#[test]
fn a_packet_that_is_received() {
    for scene in scenes() {
        at_each_moment(|moment| {
            let scene = scene();
            let here = Receiver::new(&scene.near, 1).unwrap();
            scene.ends_at(moment, send);
            let look = || Ok(here.receive()?.map(|packet| packet.len()));
            scene.assert_found(look, Lost::Closed)
        });
    }
}

#[test]
fn a_packet_that_is_copied_out_by_a_side_that_asks_to_be_rung() {
    for scene in scenes() {
        at_each_moment(|moment| {
            let scene = scene();
            let here = Receiver::new(&scene.near, 1).unwrap();
            scene.ends_at(moment, send);
            let look = || match here.receive_into(&mut [0; 64])? {
                Some(len) => Ok(Some(len)),
                None => here.ring_at(1).map(|_| None),
            };
            scene.assert_found(look, Lost::Closed)
        });
    }
}

#[test]
fn an_answer_to_a_packet() {
    at_each_moment(|moment| {
        let scene = Scene::up(MUTUAL);
        let there = Sender::new(&scene.near, 1).unwrap();
        assert_eq!(there.send(b"ask"), Ok(true));
        scene.ends_at(moment, |far| {
            let here = Receiver::new(far, 1).unwrap();
            assert!(here.receive().unwrap().unwrap().reply(0));
        });
        let look = || Ok(there.reply()?.map(drop));
        scene.assert_found(look, Lost::Closed)
    });
}

#[test]
fn a_message() {
    for scene in scenes() {
        at_each_moment(|moment| {
            let scene = scene();
            let here = Messages::new(&scene.near, 2).unwrap();
            scene.ends_at(moment, |far| {
                let there = Messages::new(far, 2).unwrap();
                assert_eq!(there.send(1, [2; 5]), Ok(()));
            });
            scene.assert_found(|| here.receive().map(|found| found.map(drop)), Lost::Closed)
        });
    }
}

#[test]
fn an_answer_to_a_message() {
    for config in [NONE, MUTUAL] {
        at_each_moment(|moment| {
            let scene = Scene::up(config);
            let there = Messages::new(&scene.near, 2).unwrap();
            let mut call = there.call(1, [2; 5]).unwrap();
            scene.ends_at(moment, |far| {
                let here = Messages::new(far, 2).unwrap();
                here.receive().unwrap().unwrap().answer([3]);
            });
            scene.assert_found(|| call.poll(), CallError::Lost(Lost::Closed))
        });
    }
}

#[test]
fn who_receives_in_vain_from_a_peer_that_has_ended_is_told_so_whatever_state_it_shows() {
    let scene = Scene::up(NONE);
    assert_eq!(Sender::new(&scene.far, 3).unwrap().send(b"x"), Ok(true));
    scene.near.peer_has_ended();
    let here = Receiver::new(&scene.near, 1).unwrap();
    for state in raw::DOWN..=raw::FAULTY {
        scene.pair.second.set(raw::STATE, state);
        assert_eq!(here.receive().err(), Some(Lost::Closed), "{state}");
    }
}
