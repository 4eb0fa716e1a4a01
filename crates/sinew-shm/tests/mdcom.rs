//! MDCOM's calls, one test each: what a program gets here for each of them. The page "MDCOM's 16
//! calls" of the book names these tests and shows lines of them.
#![cfg(not(loom))]

#[path = "support/raw.rs"]
mod raw;
mod support;

use std::cell::Cell;
use std::rc::Rc;
use std::task::Waker;

use raw::{BLOCK, Pair, SEQUENCE};
use sinew_shm::Unshared;
use sinew_shm::domain::observe::State as SideState;
use sinew_shm::domain::{
    AccessError, Area, Block, Channel, Config, Doorbell, End, Field, LockError, Lost, Options,
    Parts, Platform, Pool, Predicate, Receiver, Refused, Role, Sender, Slot, State, Status,
};
use support::{Flag, Solo, memory, parts};

const FIFO: u16 = 1;
const BLOCKS: u16 = 4;
const SIZE: u32 = 64;
const LINK: Config = Config::new(&[Channel::new(FIFO, "fifo", Pool::new(BLOCKS, SIZE))]);
const SMEM: u16 = 2;
const SHARED: Config = Config::new(&[Channel::of::<u64>(SMEM, "smem")]);

const LOCKED: Config = Config::new(&[Channel::lock(SMEM, "smem", SIZE)]);

type Side = Rc<End<Solo>>;

fn area(end: &Side) -> Area<Side> {
    Area::new(end, SMEM).unwrap()
}

fn open(pair: &Pair, config: Config<'static>, role: Role) -> Side {
    let options = Options {
        faults: false,
        ..Options::default()
    };
    // SAFETY: the tests drop or forget one end of a role before they open the next.
    let memory = unsafe { pair.memory(role) };
    let parts = parts(Solo, &config);
    Rc::new(End::open(memory, config, role, parts, options).unwrap())
}

/// Both sides, of which neither trusts the other, up.
fn up() -> (Pair, Side, Side) {
    up_with(LINK)
}

fn up_with(config: Config<'static>) -> (Pair, Side, Side) {
    let pair = Pair::new(&[config]);
    let (first, second) = (
        open(&pair, config, Role::First),
        open(&pair, config, Role::Second),
    );
    come_up(&first, &second);
    (pair, first, second)
}

fn come_up(first: &Side, second: &Side) {
    for end in [first, second, first] {
        end.look(0);
    }
    assert_eq!((first.status(), second.status()), (Status::Up, Status::Up));
}

fn queue(from: &Side, to: &Side) -> (Sender<Side>, Receiver<Side>) {
    (
        Sender::new(from, FIFO).unwrap(),
        Receiver::new(to, FIFO).unwrap(),
    )
}

#[test]
fn init_comes_up_in_either_order_and_names_what_differs() {
    for order in [[Role::First, Role::Second], [Role::Second, Role::First]] {
        let pair = Pair::new(&[LINK]);
        let [early, late] = order;
        let end = open(&pair, LINK, early);
        for now in 0..1000 {
            assert_eq!(
                end.look(now),
                Status::Waiting,
                "alone, for as long as it takes"
            );
        }
        let peer = open(&pair, LINK, late);
        // Up only after both have acknowledged.
        assert_eq!(peer.look(0), Status::Waiting);
        assert_eq!(end.look(0), Status::Up);
        assert_eq!(peer.look(0), Status::Up);
    }
    const OTHER: Config =
        Config::new(&[Channel::new(FIFO, "fifo", Pool::new(BLOCKS, SIZE)).priority(7)]);
    let pair = Pair::new(&[LINK, OTHER]);
    let end = open(&pair, LINK, Role::First);
    let _peer = open(&pair, OTHER, Role::Second);
    let Status::Refused(difference) = end.look(0) else {
        panic!("{:?}", end.status());
    };
    assert_eq!(
        (difference.field, difference.channel),
        (Field::Priority, Some(FIFO))
    );
    assert_eq!((difference.ours, difference.theirs), (128, 7));
}

#[test]
fn term_lets_what_is_under_way_arrive_and_makes_handles_stale() {
    let (_, end, peer) = up();
    let (sender, receiver) = queue(&end, &peer);
    let [begun, kept] = [(); 2].map(|()| sender.place(1).unwrap());
    sender.send(b"last").unwrap();
    end.drain();
    assert_eq!(sender.send(b"more"), Err(Refused::Lost(Lost::Closed)));
    assert_eq!(begun.send(1), Ok(true));
    for len in [4, 1] {
        assert!(!end.is_drained());
        assert_eq!(receiver.receive().unwrap().unwrap().len(), len);
    }
    assert!(end.is_drained());
    end.close();
    assert_eq!(end.status(), Status::Closed);
    assert_eq!(kept.send(1), Err(Refused::Lost(Lost::Closed)));
    // On the other side what waits ends, and every block is back.
    peer.look(0);
    assert!(matches!(receiver.receive(), Err(Lost::Closed)));
    assert!(end.check_books() && peer.check_books());
}

#[test]
fn sense_process_shows_session_state_and_sign_of_life() {
    let (_, end, peer) = up();
    let seen = |role| end.observe().side(role);
    let side = end.observe().side(Role::Second).unwrap();
    assert_eq!(side.state, SideState::Ready);
    assert!(side.is_up_with(&seen(Role::First).unwrap()));
    assert_ne!(side.session, 0);
    for now in 1..=3 {
        peer.look(now * 1000);
        let later = seen(Role::Second).unwrap();
        assert_eq!(later.heartbeat.wrapping_sub(side.heartbeat), now);
    }
    peer.close();
    assert_eq!(seen(Role::Second).unwrap().state, SideState::Down);
    // Who was never there.
    let pair = Pair::new(&[LINK]);
    let alone = open(&pair, LINK, Role::First);
    assert!(alone.observe().side(Role::Second).is_err());
}

#[test]
fn sense_fifo_counts_queued_held_and_free_blocks() {
    let (pair, end, peer) = up();
    let (sender, receiver) = queue(&end, &peer);
    let flow = || {
        let channel = end.observe().channels().next().unwrap();
        assert_eq!(channel.id(), FIFO);
        channel.flow(Role::First).unwrap()
    };
    for _ in 0..3 {
        sender.send(b"item").unwrap();
    }
    let held = receiver.receive().unwrap().unwrap();
    let now = flow();
    assert_eq!((now.queued, now.held, now.free), (2, 1, 1));
    assert_eq!((now.sent, now.full, now.too_large), (3, 0, 0));
    assert!(sender.send(&[0; SIZE as usize + 1]).is_err());
    sender.send(b"item").unwrap();
    assert!(sender.send(b"item").is_err());
    let now = flow();
    assert_eq!((now.sent, now.full, now.too_large), (4, 1, 1));
    drop(held);
    // Violations too: the peer names a block that it does not have.
    let ring = pair.second.places(0).ring;
    let tag = pair.second.get(raw::SESSION) & 0xFFFF;
    pair.second.set(ring + BLOCK, 100 | tag << 16);
    pair.second.set(ring + SEQUENCE, 1);
    let (_, back) = queue(&peer, &end);
    assert!(back.receive().unwrap().is_none());
    let channel = end.observe().channels().next().unwrap();
    assert_eq!(channel.side(Role::First).unwrap().counts.violations, 1);
}

#[test]
fn fifo_alloc_gives_a_block_or_says_full_and_wakes_who_waits() {
    let (_, end, peer) = up();
    let (sender, receiver) = queue(&end, &peer);
    let places: Vec<_> = (0..BLOCKS).map(|_| sender.place(1).unwrap()).collect();
    assert!(matches!(sender.place(1), Err(Refused::Full)));
    assert!(matches!(
        sender.place(SIZE as usize + 1),
        Err(Refused::TooLarge)
    ));
    let woken = Flag::new();
    sender.arm(&woken.waker());
    for place in places {
        place.send(1).unwrap();
    }
    end.look(0);
    assert!(!woken.is_set());
    drop(receiver.receive().unwrap().unwrap());
    end.look(0);
    assert!(woken.is_set());
    assert!(sender.place(1).is_ok());
}

#[test]
fn fifo_free_is_dropping_and_frees_nothing_twice() {
    let (pair, end, _peer) = up();
    let (sender, _) = queue(&end, &end);
    for _ in 0..100 {
        let place = sender.place(1).unwrap();
        drop(place);
    }
    assert!(end.check_books());
    // What was sent is nobody's to free: the handle is gone, and a block of an older session that is
    // dropped now is not freed once more.
    let old = sender.place(1).unwrap();
    end.peer_is_gone();
    drop(old);
    assert!(end.check_books());
    // A return of what was not lent is refused, and counted.
    let peer = open(&pair, LINK, Role::Second);
    come_up(&end, &peer);
    let mut sender = sender.clone();
    sender.renew();
    let returns = pair.second.places(0).returns;
    let tag = pair.first.get(raw::SESSION) & 0xFFFF;
    pair.second.set(returns + BLOCK, 2 | tag << 16);
    pair.second.set(returns + SEQUENCE, 1);
    let places: Vec<_> = (0..=BLOCKS).map_while(|_| sender.place(1).ok()).collect();
    assert_eq!(places.len(), usize::from(BLOCKS));
    let violations = pair.first.places(0).statistics + raw::VIOLATIONS;
    assert_eq!(pair.first.get(violations), 1);
}

#[test]
fn fifo_get_is_the_whole_block_of_ones_own_and_a_copy_of_the_peers() {
    let (_, end, peer) = up();
    let (sender, receiver) = queue(&end, &peer);
    let mut place = sender.place(5).unwrap();
    assert_eq!(place.len(), SIZE as usize);
    assert!(
        place.as_ptr().addr().is_multiple_of(64),
        "from a line of its own"
    );
    place[..5].copy_from_slice(b"bytes");
    place.send(5).unwrap();
    let packet = receiver.receive().unwrap().unwrap();
    let mut bytes = [0; SIZE as usize];
    let len = packet.copy_to(&mut bytes).unwrap();
    assert_eq!(&bytes[..len], b"bytes");
    // What the peer may change meanwhile is not to be read where it lies.
    assert!(packet.trusted().is_none());
}

#[test]
fn fifo_enqueue_takes_the_handle_and_is_never_refused_for_room() {
    let (_, end, peer) = up();
    let (sender, receiver) = queue(&end, &peer);
    for round in 0..100u8 {
        let places: Vec<_> = (0..BLOCKS).map(|_| sender.place(1).unwrap()).collect();
        for (mut place, number) in places.into_iter().zip(0..) {
            place[..2].copy_from_slice(&[round, number]);
            let is_wanted = place.send(2).unwrap();
            assert!(is_wanted);
        }
        for number in 0..BLOCKS as u8 {
            let mut bytes = [0; 2];
            let packet = receiver.receive().unwrap().unwrap();
            packet.copy_to(&mut bytes).unwrap();
            assert_eq!(bytes, [round, number]);
        }
    }
}

#[test]
fn fifo_dequeue_passes_a_bad_entry_over_once_and_counts_it() {
    let (pair, end, peer) = up();
    // From here on the peer's memory is the test's.
    std::mem::forget(peer);
    let receiver = Receiver::new(&end, FIFO).unwrap();
    let ring = pair.second.places(0).ring;
    let tag = pair.second.get(raw::SESSION) & 0xFFFF;
    let put = |position: u32, block: u32, len: u32| {
        let at = ring + 4 * position as usize;
        pair.second.set(at + BLOCK, block | tag << 16);
        pair.second.set(at + raw::LEN, len);
        pair.second.set(at + SEQUENCE, position + 1);
    };
    for (position, block, len) in [(0, u32::from(BLOCKS), 1), (1, 0xFFFF, 1), (2, 0, SIZE + 1)] {
        put(position, block, len);
        assert!(receiver.receive().unwrap().is_none());
        let violations = pair.first.places(0).statistics + raw::VIOLATIONS;
        assert_eq!(pair.first.get(violations), position + 1);
    }
    put(3, 0, 1);
    let packet = receiver.receive().unwrap().unwrap();
    assert_eq!(packet.len(), 1);
}

/// Counts rings.
struct Counting(Rc<Cell<u32>>);

impl Doorbell for Counting {
    fn ring(&self) {
        self.0.set(self.0.get() + 1);
    }
}

struct Rung;

impl Platform for Rung {
    type Lock = Unshared;
    type Doorbell = Counting;
    type Cache = support::Fetching;
    type Slots = Vec<Slot>;
    type Blocks = Vec<Block>;
}

#[test]
fn fifo_notify_rings_who_waits_once_for_a_batch() {
    let rings = Rc::new(Cell::new(0));
    let (near, far) = memory(&LINK);
    let open = |memory, role, rings: &Rc<Cell<u32>>| {
        let parts = Parts {
            doorbell: Counting(rings.clone()),
            cache: support::Fetching,
            platform: Rung,
            slots: vec![Slot::EMPTY],
            blocks: vec![Block::NEW; LINK.blocks()],
        };
        Rc::new(End::open(memory, LINK, role, parts, Options::default()).unwrap())
    };
    let end = open(near, Role::First, &rings);
    let peer = open(far, Role::Second, &Rc::default());
    for end in [&end, &peer, &end] {
        end.look(0);
    }
    let sender = Sender::new(&end, FIFO).unwrap();
    let receiver = Receiver::new(&peer, FIFO).unwrap();
    let before = rings.get();
    sender.send(b"nobody waits").unwrap();
    assert_eq!(rings.get(), before);
    drop(receiver.receive().unwrap().unwrap());
    receiver.arm(Waker::noop());
    for _ in 0..3 {
        sender.place(1).unwrap().publish(1).unwrap();
    }
    assert_eq!(rings.get(), before, "the batch is not shown yet");
    sender.flush();
    assert_eq!(rings.get(), before + 1);
    assert_eq!(
        std::iter::from_fn(|| receiver.receive().unwrap().map(drop)).count(),
        3
    );
}

#[test]
#[cfg(all(feature = "linux", target_os = "linux", not(miri)))]
fn fifo_wait_polls_or_waits_for_a_time_or_for_ever() {
    use sinew_shm::linux::link::{Link, Options, WaitError};
    use std::time::{Duration, Instant};

    let (near, far): (Link, Link) = Link::pair(LINK, Options::default()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| far.up_within(None).unwrap());
        near.up_within(None).unwrap();
    });
    let (sender, receiver) = (near.sender(FIFO).unwrap(), far.receiver(FIFO).unwrap());
    let limit = Duration::from_millis(20);
    for limit in [Duration::ZERO, limit] {
        let start = Instant::now();
        let waited = receiver
            .receive_within(Some(limit))
            .map(|packet| packet.len());
        assert!(matches!(waited, Err(WaitError::TimedOut)), "{waited:?}");
        assert!(start.elapsed() >= limit);
    }
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| receiver.receive_within(None).unwrap().len());
        sender.send(b"now").unwrap();
        assert_eq!(waiting.join().unwrap(), 3);
        let waiting = scope.spawn(|| receiver.receive_within(None).map(|packet| packet.len()));
        near.end().close();
        let ended = waiting.join().unwrap();
        assert!(
            matches!(ended, Err(WaitError::Lost(Lost::Closed))),
            "{ended:?}"
        );
    });
}

#[test]
fn filter_set_keeps_back_at_the_sender_what_is_not_wanted() {
    let (_, end, peer) = up();
    let (sender, receiver) = queue(&end, &peer);
    let (offset, mask) = (0, 0xFF);
    receiver.set_filter(Predicate::Matches {
        offset,
        mask,
        value: 7,
    });
    let send = |first: u8| sender.send(&[first, 0, 0, 0]).unwrap();
    // The sender hears of it at its next flush.
    send(7);
    let numbers = |number: &u8| send(*number);
    assert_eq!((0..10).filter(numbers).collect::<Vec<_>>(), [7]);
    let received = std::iter::from_fn(|| receiver.receive().unwrap().map(drop)).count();
    assert_eq!(received, 2);
    receiver.set_filter(Predicate::Every(3));
    sender.flush();
    assert_eq!((1..=9).filter(numbers).collect::<Vec<_>>(), [3, 6, 9]);
}

#[test]
fn fifo_init_is_a_new_session_in_which_nothing_old_counts() {
    let (pair, end, peer) = up();
    let (sender, receiver) = queue(&end, &peer);
    let mut receiver = receiver;
    sender.send(b"old, held").unwrap();
    sender.send(b"old, queued").unwrap();
    let held = receiver.receive().unwrap().unwrap();
    let woken = Flag::new();
    peer.look(0);
    // The side begins anew, in the middle of everything.
    let place = sender.place(1).unwrap();
    std::mem::forget(place);
    drop(sender);
    drop(end);
    let end = open(&pair, LINK, Role::First);
    let waiting = Sender::new(&peer, FIFO).unwrap().with_reserve(BLOCKS);
    waiting.arm(&woken.waker());
    come_up(&end, &peer);
    assert!(woken.is_set(), "who waits hears of it");
    assert_eq!(held.copy_to(&mut [0; 16]), Err(Lost::Restarted));
    drop(held);
    assert!(matches!(receiver.receive(), Err(Lost::Restarted)));
    receiver.renew();
    assert!(
        receiver.receive().unwrap().is_none(),
        "the old entry is gone"
    );
    let sender = Sender::new(&end, FIFO).unwrap();
    for _ in 0..BLOCKS {
        sender.send(b"new").unwrap();
    }
    assert_eq!(receiver.receive().unwrap().unwrap().len(), 3);
    assert!(end.check_books() && peer.check_books());
}

#[test]
fn smemch_get_of_a_state_is_the_latest_whole_value_without_a_lock() {
    let (_, end, peer) = up_with(SHARED);
    let state = |end: &Side| State::<Side, u64>::new(end, SMEM).unwrap();
    let (ours, theirs) = (state(&end), state(&peer));
    assert_eq!(theirs.get(), Ok(None), "nothing was set yet");
    for value in 1..=100 {
        assert_eq!(ours.set(&value), Ok(true));
        if value % 7 == 0 {
            assert_eq!(theirs.get(), Ok(Some(value)));
        }
    }
    // Each side has its own: neither waits for the other.
    theirs.set(&7).unwrap();
    assert_eq!((ours.get(), theirs.get()), (Ok(Some(7)), Ok(Some(100))));
    // Of another type there is none.
    assert!(State::<Side, u32>::new(&end, SMEM).is_none());
}

#[test]
fn smemch_get_of_an_area_is_copied_in_and_out_and_never_beyond_it() {
    let (_, end, peer) = up_with(LOCKED);
    let (ours, theirs) = (area(&end), area(&peer));
    let mut guard = ours.try_lock().unwrap();
    guard.write(SIZE as usize - 4, b"last").unwrap();
    let beyond = guard.write(SIZE as usize - 3, b"last");
    assert_eq!(beyond, Err(AccessError::Outside));
    drop(guard);
    let guard = theirs.try_lock().unwrap();
    assert_eq!(guard.get(SIZE as usize - 4), Ok(*b"last"));
}

#[test]
fn smemch_trylock_gives_a_guard_or_says_busy_and_wakes_who_waits() {
    let (_, end, peer) = up_with(LOCKED);
    let (ours, theirs) = (area(&end), area(&peer));
    let guard = ours.try_lock().unwrap();
    assert!(matches!(theirs.try_lock(), Err(LockError::Busy)));
    let flag = Flag::new();
    theirs.arm(&flag.waker());
    assert!(!flag.is_set());
    drop(guard);
    peer.look(0);
    assert!(flag.is_set() && theirs.try_lock().is_ok());
}

#[test]
fn smemch_unlock_is_the_owners_alone_and_a_dead_owner_is_told_of() {
    let (pair, end, peer) = up_with(LOCKED);
    let (ours, theirs) = (area(&end), area(&peer));
    let guard = ours.try_lock().unwrap();
    // Unlocking takes the guard, which the other side does not have.
    guard.unlock().unwrap();
    std::mem::forget(theirs.try_lock().unwrap());
    // Killed as the owner.
    std::mem::forget((theirs, peer));
    let peer = open(&pair, LOCKED, Role::Second);
    for end in [&end, &peer, &end, &peer] {
        end.look(0);
    }
    let theirs = area(&peer);
    match theirs.try_lock() {
        Err(LockError::Poisoned(poisoned)) => poisoned.accept().unlock().unwrap(),
        other => panic!("{other:?}"),
    }
    assert!(area(&end).try_lock().is_ok());
}
