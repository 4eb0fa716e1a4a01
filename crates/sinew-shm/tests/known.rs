//! An end of which the compiler knows everything, because its plan has one queue, does step by step what
//! any other does: the same answers, the same words in its memory, with an honest peer and with one that
//! writes anything.
#![cfg(not(loom))]

#[path = "support/random.rs"]
mod random;
#[path = "support/raw.rs"]
mod raw;

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::rc::Rc;

use random::Random;
use raw::{Pair, Raw};
use sinew_shm::Unshared;
use sinew_shm::domain::{
    Block, Cache, Channel, ChannelPlan, Config, End, Memory, Options, Parts, Plan, Platform, Pool,
    Receiver, Role, Sender, Silent, Slot, Uses,
};

/// The side under test, the second one, sends 3 blocks of 24 bytes and receives 2 of 40.
const LINK: Config = Config::new(&[
    Channel::new(7, "one", Pool::new(0, 0)).pools(Pool::new(2, 40), Pool::new(3, 24))
]);
const PLAN: [ChannelPlan; 1] = ChannelPlan::all(&LINK, Role::Second);

/// Caches that see each other, with and without a way to fetch early.
struct Seen<const FETCHES: bool>;

// SAFETY: it does nothing.
unsafe impl<const FETCHES: bool> Cache for Seen<FETCHES> {
    const PREFETCHES: bool = FETCHES;
    fn clean(&self, _: NonNull<u8>, _: usize) {}
    fn invalidate(&self, _: NonNull<u8>, _: usize) {}
}

trait Kind {
    const PLAN: Option<Plan<'static>>;
    const USES: Uses;
}

struct Known;
struct Unknown;
struct KnownFull;
struct UnknownFull;

impl Kind for Known {
    const PLAN: Option<Plan<'static>> = Some(Plan::new(LINK, Role::Second, &PLAN));
    const USES: Uses = Uses::PACKETS;
}
impl Kind for Unknown {
    const PLAN: Option<Plan<'static>> = None;
    const USES: Uses = Uses::PACKETS;
}
impl Kind for KnownFull {
    const PLAN: Option<Plan<'static>> = Some(Plan::new(LINK, Role::Second, &PLAN));
    const USES: Uses = Uses::ALL;
}
impl Kind for UnknownFull {
    const PLAN: Option<Plan<'static>> = None;
    const USES: Uses = Uses::ALL;
}

struct Side<K, const FETCHES: bool>(PhantomData<K>);

impl<K: Kind, const FETCHES: bool> Platform for Side<K, FETCHES> {
    type Lock = Unshared;
    type Doorbell = Silent;
    type Cache = Seen<FETCHES>;
    type Slots = [Slot; 1];
    type Blocks = [Block; LINK.blocks()];
    const PLAN: Option<Plan<'static>> = K::PLAN;
    const USES: Uses = K::USES;
}

type Ends<K, const FETCHES: bool> = Rc<End<Side<K, FETCHES>>>;

fn parts<K: Kind, const FETCHES: bool>() -> Parts<Side<K, FETCHES>> {
    Parts {
        doorbell: Silent,
        cache: Seen,
        platform: Side(PhantomData),
        slots: [Slot::EMPTY],
        blocks: [Block::NEW; LINK.blocks()],
    }
}

fn open<K: Kind, const FETCHES: bool>(pair: &Pair, role: Role, faults: bool) -> Ends<K, FETCHES> {
    // SAFETY: one end of a role is gone before the next is opened.
    let memory = unsafe { pair.memory(role) };
    let options = Options {
        faults,
        ..Options::default()
    };
    Rc::new(End::open(memory, LINK, role, parts(), options).unwrap())
}

fn open_planned<K: Kind, const FETCHES: bool>(memory: Memory, faults: bool) -> Ends<K, FETCHES> {
    let options = Options {
        faults,
        ..Options::default()
    };
    Rc::new(End::open_planned(memory, parts(), options).unwrap())
}

/// What one step came to: what it answered, and all words of both sides after it.
#[derive(PartialEq, Debug)]
struct Step {
    did: u8,
    said: String,
    words: [Vec<u32>; 2],
}

/// Plays a script, on fresh memory, against a side that `open` gives.
fn play<K: Kind, const FETCHES: bool>(
    pair: &Pair,
    seed: u64,
    open_side: impl Fn(&Pair, bool) -> Ends<K, FETCHES>,
) -> Vec<Step> {
    pair.clear();
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let faults = random.byte() & 1 == 0;
    let is_hostile = random.byte() & 1 == 0;
    let mut side = open_side(pair, faults);
    let mut peer: Ends<Unknown, false> = open(pair, Role::First, false);
    let (mut tx, mut rx) = (
        Sender::new(&side, 7).unwrap(),
        Receiver::new(&side, 7).unwrap(),
    );
    let mut theirs = (
        Sender::new(&peer, 7).unwrap(),
        Receiver::new(&peer, 7).unwrap(),
    );
    let places = pair.first.places(0);
    let mut bytes = [0; 48];
    (0..200)
        .map(|now| {
            let did = random.byte() % 24;
            let (some, other) = (random.byte(), random.byte());
            let len = usize::from(some % 50);
            let packet = [other; 50];
            let said = match did {
                0 | 1 => format!("{:?}", tx.send(&packet[..len])),
                2 => match (tx.place(len), tx.place(1)) {
                    (Ok(mut place), unused) => {
                        place[0] = other;
                        drop(unused);
                        format!("{:?}", place.send(len))
                    }
                    (Err(refused), unused) => format!("{refused:?} {:?}", unused.map(|_| ())),
                },
                3 => {
                    let published = tx.place(len).map(|place| place.publish(len));
                    if other & 1 == 0 {
                        tx.flush();
                    }
                    format!("{published:?}")
                }
                4 => format!("{:?}", tx.ring_at_return()),
                5..=7 => {
                    bytes = [0; 48];
                    let room = usize::from(other % 49);
                    format!("{:?} {bytes:?}", rx.receive_into(&mut bytes[..room]))
                }
                8 => {
                    // Two at a time, of which the second goes back first.
                    let (one, two) = (rx.receive(), rx.receive());
                    let copied = |packet: &Result<Option<sinew_shm::domain::Packet<_>>, _>| {
                        let packet = packet.as_ref().ok()?.as_ref()?;
                        let mut bytes = [0; 48];
                        Some((packet.copy_to(&mut bytes), bytes[0], packet.len()))
                    };
                    let said = format!("{:?} {:?}", copied(&one), copied(&two));
                    drop(two);
                    drop(one);
                    said
                }
                9 => format!("{:?}", rx.ring_at(u32::from(some % 4))),
                10 => format!("{:?} {:?}", rx.has(1), rx.has(2)),
                11 => {
                    tx.renew();
                    rx.renew();
                    String::new()
                }
                12 => {
                    side.recover();
                    format!("{:?} {}", side.next(), side.is_drained())
                }
                13 if some < 30 => {
                    drop((tx.clone(), rx.clone()));
                    side.close();
                    side = open_side(pair, faults);
                    (tx, rx) = (
                        Sender::new(&side, 7).unwrap(),
                        Receiver::new(&side, 7).unwrap(),
                    );
                    String::new()
                }
                14 if some < 30 => {
                    match other % 3 {
                        0 => side.drain(),
                        1 => side.peer_has_ended(),
                        _ => side.peer_is_gone(),
                    }
                    String::new()
                }
                15 | 16 => format!("{:?}", theirs.0.send(&packet[..len.min(40)]).is_ok()),
                17 | 18 => format!("{:?}", theirs.1.receive_into(&mut bytes).is_ok()),
                19 if some < 20 => {
                    match other & 1 {
                        0 => peer.close(),
                        // It goes without a word.
                        _ => std::mem::forget(peer.clone()),
                    }
                    peer = open(pair, Role::First, false);
                    theirs = (
                        Sender::new(&peer, 7).unwrap(),
                        Receiver::new(&peer, 7).unwrap(),
                    );
                    String::new()
                }
                20 if is_hostile => {
                    scribble(pair.first, &places, &mut random);
                    String::new()
                }
                _ => {
                    theirs.0.renew();
                    theirs.1.renew();
                    format!("{:?} {:?}", side.look(now), peer.look(now))
                }
            };
            assert!(side.check_books(), "seed {seed}, step {now}");
            let words = [pair.first, pair.second].map(|memory| {
                let mut words = Vec::new();
                memory.copy_into(&mut words);
                words
            });
            Step { did, said, words }
        })
        .collect()
}

/// A word of the peer's control line or rings, with what might stand there or with anything.
fn scribble(memory: Raw, places: &raw::Places, random: &mut Random) {
    let (at, value) = (random.byte(), u32::from(random.byte()));
    let word = match at % 4 {
        0 => places.control + usize::from(at >> 2 & 1),
        1 | 2 => places.ring + usize::from(at >> 2) % (4 * places.capacity as usize),
        _ => places.returns + usize::from(at >> 2) % (4 * places.returns_capacity as usize),
    };
    let value = match value & 3 {
        0 => value >> 2,
        1 => memory.get(word).wrapping_add(1),
        2 => memory.get(raw::SESSION) << 16 | value >> 2,
        _ => value.wrapping_mul(0x0101_0101),
    };
    memory.set(word, value);
}

/// How many scripts there are.
fn scripts() -> u64 {
    if cfg!(miri) { 2 } else { 300 }
}

fn is_alike<K: Kind, U: Kind, const FETCHES: bool>() {
    let (one, other) = (Pair::new(&[LINK]), Pair::new(&[LINK]));
    // What is to come up in some step of some script.
    let mut missing = vec![
        "Ok(true)",
        "Full",
        "TooLarge",
        "Ok(Some(",
        "Restarted",
        "Closed",
        "Fault",
    ];
    for seed in 0..scripts() {
        let known = play::<K, FETCHES>(&one, seed, |pair, faults| {
            // SAFETY: one end of a role is gone before the next is opened.
            open_planned(unsafe { pair.memory(Role::Second) }, faults)
        });
        let unknown = play::<U, FETCHES>(&other, seed, |pair, faults| {
            open(pair, Role::Second, faults)
        });
        missing.retain(|what| !known.iter().any(|step| step.said.contains(what)));
        for (at, (known, unknown)) in known.iter().zip(&unknown).enumerate() {
            assert_eq!(
                known.said, unknown.said,
                "seed {seed}, step {at}: {}",
                known.did
            );
            assert!(known == unknown, "seed {seed}, step {at}: {}", known.did);
        }
    }
    assert!(missing.is_empty() || cfg!(miri), "never said: {missing:?}");
}

#[test]
fn a_known_queue_of_packets_alone_is_like_any_other() {
    is_alike::<Known, Unknown, false>();
}

#[test]
fn a_known_queue_that_fetches_early_is_like_any_other() {
    is_alike::<Known, Unknown, true>();
}

#[test]
fn a_known_queue_with_everything_is_like_any_other() {
    is_alike::<KnownFull, UnknownFull, false>();
}
