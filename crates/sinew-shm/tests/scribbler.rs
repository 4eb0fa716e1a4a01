//! A side that works while another process rewrites the peer's memory without a pause: garbage,
//! entries that look right, sessions that come and go. What it may reach ends at pages that nobody
//! may touch, and nothing of it is ever written here.
//!
//! `make test-scribbler` runs it for longer, under the address sanitizer.
#![cfg(all(target_os = "linux", not(any(loom, miri))))]

#[path = "support/hands.rs"]
mod hands;
#[path = "support/random.rs"]
mod random;
#[path = "support/raw.rs"]
mod raw;
mod support;

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::process::{Child, Command, Stdio};
use std::ptr::{NonNull, null_mut};
use std::rc::Rc;
use std::task::Waker;

use hands::Hands;
use random::Random;
use raw::{Pair, Places, Raw};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};
use rustix::process::getppid;
use sinew_shm::domain::{
    Area, Channel, Config, End, LockError, Messages, Options, Pool, Predicate, Receiver, Refused,
    Role, Sender, State, Status,
};
use support::{Solo, parts};

const LINK: Config = Config::new(&[
    Channel::new(1, "small", Pool::new(4, 24)),
    Channel::new(2, "large", Pool::new(3, 2048)).priority(1),
    Channel::of::<Value>(3, "state"),
    Channel::messages(5, "messages", 4, 2).with_memory(Pool::new(3, 100)),
    // The last one: behind its area is no memory.
    Channel::lock(4, "area", 512),
]);
type Value = [u8; 200];

/// What the scribbler is told: its two descriptors and where it starts.
const ROLE: &str = "SINEW_SCRIBBLER";
/// Words of a message's line, and in it.
const LINE: usize = 16;
const TOKEN: usize = 3;
/// In the control line of a message channel.
const TAKEN: usize = 2;
/// Calls of the side, at least; `SINEW_CALLS` says another number.
const CALLS: u64 = 300_000;

fn pages(bytes: usize) -> usize {
    bytes.next_multiple_of(rustix::param::page_size())
}

/// Maps a segment so that it ends where a page ends that is followed by one that is not there.
fn map(fd: RawFd, len: usize, access: ProtFlags) -> Raw {
    let (page, whole) = (rustix::param::page_size(), pages(len));
    // SAFETY: a new place of its own, and the file over the middle of it; both stay for ever, and
    // the descriptor is open in this function.
    let base = unsafe {
        let fd = BorrowedFd::borrow_raw(fd);
        let around = whole + 2 * page;
        let place = mmap_anonymous(null_mut(), around, ProtFlags::empty(), MapFlags::PRIVATE);
        let middle = place.unwrap().cast::<u8>().add(page).cast::<c_void>();
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        let file = mmap(middle, whole, access, flags, fd, 0).unwrap();
        file.cast::<u8>().add(whole - len)
    };
    // SAFETY: the map stays for ever; it is only read here where it cannot be written.
    unsafe { Raw::from_raw(NonNull::new(base).unwrap(), len) }
}

fn memfd(len: usize) -> OwnedFd {
    let fd = memfd_create("scribbled", MemfdFlags::empty()).unwrap();
    ftruncate(&fd, pages(len) as u64).unwrap();
    fd
}

fn lens() -> [usize; 2] {
    [Role::First, Role::Second].map(|role| LINK.segment_len(role))
}

fn open(pair: &Pair, role: Role, faults: bool) -> Rc<End<Solo>> {
    // SAFETY: each process opens one end of a role at a time, and the scribbler opens none.
    let memory = unsafe { pair.memory(role) };
    let options = Options {
        faults,
        ..Options::default()
    };
    let end = End::open(memory, LINK, role, parts(Solo, &LINK), options);
    Rc::new(end.unwrap())
}

/// The other process, which ends with this one.
struct Scribbler(Child);

impl Scribbler {
    fn start(first: &OwnedFd, second: &OwnedFd, seed: u32) -> Scribbler {
        let told = format!("{} {} {seed}", first.as_raw_fd(), second.as_raw_fd());
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "scribbles", "--ignored", "--nocapture"])
            .env(ROLE, told)
            .stdout(Stdio::null())
            .spawn();
        Scribbler(child.unwrap())
    }
}

impl Drop for Scribbler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "the other process"]
fn scribbles() {
    let Ok(told) = std::env::var(ROLE) else {
        return;
    };
    let numbers: Vec<_> = told.split(' ').map(|text| text.parse().unwrap()).collect();
    let [first, second, seed] = numbers[..] else {
        panic!("{told}");
    };
    let [of_first, of_second] = lens();
    let victim = map(first, of_first, ProtFlags::READ);
    let mine = map(second, of_second, ProtFlags::READ | ProtFlags::WRITE);
    let mut honest = Vec::new();
    mine.copy_into(&mut honest);
    honest[raw::STATE] = raw::READY;
    let places = [0, 1, 2, 3, 4].map(|index| mine.places(index));
    let theirs = [0, 1, 2, 3].map(|index| victim.places(index));
    let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ seed as u64);
    let parent = getppid();
    while getppid() == parent {
        for _ in 0..1000 {
            let index = (random.word() % 2) as usize;
            // It writes far more often than the other process looks.
            match random.word() % 100_000 {
                0..100 => mine.set(
                    (random.word() % (mine.len() as u32)) as usize,
                    random.word(),
                ),
                100..110 => {
                    let session = honest[raw::SESSION].wrapping_add(random.word() % 3);
                    honest[raw::SESSION] = session;
                }
                110..120 => mine.set(raw::STATE, random.word() % 6),
                120..1000 => {
                    let control = places[(random.word() % 5) as usize].control;
                    let word = control + (random.word() % 9) as usize;
                    mine.set(word, random.word() >> (random.word() % 32));
                }
                // It does not want the lock, and has a next version, now and then.
                5000..5500 => {
                    mine.set(places[4].control, 0);
                    (5..8).for_each(|word| mine.set(places[4].control + word, 0));
                    mine.set(places[4].control + 4, random.word() >> 8);
                }
                // An honest peer's words, in a session that has acknowledged the other one.
                1000..5000 => {
                    honest[raw::ACKNOWLEDGED] = victim.get(raw::SESSION);
                    for word in (0..32).filter(|&word| mine.get(word) != honest[word]) {
                        mine.set(word, honest[word]);
                    }
                }
                kind if kind % 3 == 0 => {
                    let sessions = (mine.get(raw::SESSION), &mut random);
                    forge_message(&victim, &mine, (&theirs[3], &places[3]), sessions);
                }
                kind => {
                    let is_return = kind % 2 == 0;
                    let (ring, capacity, count, tag) = match is_return {
                        true => (
                            places[index].returns,
                            places[index].returns_capacity,
                            raw::RECLAIMED,
                            victim.get(raw::SESSION),
                        ),
                        false => (
                            places[index].ring,
                            places[index].capacity,
                            raw::RECEIVED,
                            mine.get(raw::SESSION),
                        ),
                    };
                    let next = victim.get(theirs[index].statistics + count);
                    let at = ring + 4 * (next % capacity) as usize;
                    // Mostly right; else any block, length, number or flags.
                    let odd = random.word() % 5000;
                    let block = random.word() % (if odd == 0 { 0x10000 } else { 4 });
                    let len = if odd == 1 {
                        random.word()
                    } else {
                        random.word() % 25
                    };
                    let sequence = if odd == 2 {
                        random.word()
                    } else {
                        next.wrapping_add(1)
                    };
                    mine.set(at + raw::BLOCK, block | tag << 16);
                    mine.set(at + raw::LEN, len);
                    mine.set(at + raw::FLAGS, random.word() % 2);
                    mine.set(at + raw::SEQUENCE, sequence);
                }
            }
        }
    }
}

/// A message or an answer, mostly right.
fn forge_message(
    victim: &Raw,
    mine: &Raw,
    (own, theirs): (&Places, &Places),
    (session, random): (u32, &mut Random),
) {
    let odd = random.word() % 2000;
    let any = random.word();
    let count = |word| victim.get(own.statistics + word);
    let (line, first, words) = if any & 1 == 0 {
        let next = count(raw::RECEIVED);
        let kind = 1 + random.word() % 5;
        let place = match kind {
            2 => 3 + random.word() % 2,
            _ => random.word() % 3,
        };
        let token = (1 + random.word() % 7) << 16 | place;
        let memory = [random.word() % 50, random.word() % 51];
        let line = theirs.ring + LINE * (next % theirs.capacity) as usize;
        let words = [kind | session << 16, 7, token, memory[0], memory[1]];
        (line, next.wrapping_add(1), words)
    } else {
        // All are taken up, and one of the last is answered.
        mine.set(theirs.control + TAKEN, count(raw::SENT));
        let position = count(raw::SENT).wrapping_sub(1 + random.word() % 4);
        let at = own.ring + LINE * (position % own.capacity) as usize;
        let token = victim.get(at + TOKEN);
        let line = theirs.returns + LINE * (token % theirs.returns_capacity) as usize;
        let said = (random.word() % 3) | (session << 16);
        let words = [said, random.word() % 50, random.word() % 51, 1, 2];
        (line, token, words)
    };
    for (at, word) in words.into_iter().enumerate() {
        let is_odd = odd == at as u32;
        mine.set(line + 1 + at, if is_odd { any } else { word });
    }
    mine.set(line, if odd == 9 { any } else { first });
}

/// What happened.
#[derive(Default, Debug)]
struct Seen {
    calls: u64,
    ups: u64,
    sent: u64,
    received: u64,
    set: u64,
    values: u64,
    locked: u64,
    messages: u64,
    answers: u64,
    faults: u64,
    violations: u64,
}

/// The side works, in lives of some thousand calls each.
fn work(pair: &Pair, faults: bool, random: &mut Random, seen: &mut Seen) {
    let end = open(pair, Role::First, faults);
    let mut copy = [0; 2048];
    for _ in 0..80 {
        let senders = [1, 2].map(|id| Sender::new(&end, id).unwrap());
        let receivers = [1, 2].map(|id| Receiver::new(&end, id).unwrap());
        let state = State::<_, Value>::new(&end, 3).unwrap();
        let area = Area::new(&end, 4).unwrap();
        let messages = Messages::new(&end, 5).unwrap();
        let mut hands = Hands::default();
        let (mut places, mut packets) = (Vec::new(), Vec::new());
        if end.status() == Status::Up {
            seen.ups += 1;
        }
        for call in 0..60 {
            let index = (random.word() % 2) as usize;
            let (sender, receiver) = (&senders[index], &receivers[index]);
            match random.word() % 24 {
                16.. => hands.act(random, &messages),
                0 | 1 => drop(end.look(call)),
                2..5 => seen.sent += u64::from(sender.send(&copy[..9]) == Ok(true)),
                5 => places.extend(sender.place(20)),
                6 => drop(places.pop().map(|place| place.publish(20))),
                7 => drop(places.pop()),
                8..12 => {
                    if let Ok(Some(packet)) = receiver.receive() {
                        assert!(packet.len() <= receiver.size());
                        let _ = packet.copy_to(&mut copy);
                        seen.received += 1;
                        packets.push(packet);
                    }
                }
                12 | 13 => drop(packets.pop().map(|packet| packet.words().max())),
                14 => {
                    let _ = end.next();
                    sender.arm(Waker::noop());
                    receiver.arm(Waker::noop());
                }
                _ => match random.word() % 20 {
                    0 => end.peer_is_gone(),
                    1 => end.peer_has_ended(),
                    2 => drop(end.is_drained()),
                    3 => receiver.set_filter(Predicate::All),
                    4..8 => seen.set += u64::from(state.set(&[9; 200]) == Ok(true)),
                    8..12 => seen.values += u64::from(state.get().is_ok_and(|it| it.is_some())),
                    12..16 => seen.locked += u64::from(lock(&area, &mut copy)),
                    _ => sender.flush(),
                },
            }
            if let Status::Fault(_) = end.status() {
                seen.faults += 1;
                end.recover();
            }
            seen.calls += 1;
        }
        seen.messages += hands.taken;
        seen.answers += hands.answered;
        drop((places, packets, hands));
        assert!(end.check_books());
        end.look(0);
    }
    for index in [0, 1, 3] {
        let counts = pair.first.places(index).statistics;
        seen.violations += u64::from(pair.first.get(counts + raw::VIOLATIONS));
    }
}

/// Takes the lock, if it can be had, and uses all of the area.
fn lock(area: &Area<Rc<End<Solo>>>, copy: &mut [u8]) -> bool {
    area.arm(Waker::noop());
    let mut guard = match area.try_lock() {
        Ok(guard) => guard,
        Err(LockError::Poisoned(poisoned)) => poisoned.accept(),
        Err(LockError::Busy | LockError::Lost(_)) => return false,
    };
    let whole = &mut copy[..512];
    guard.read(0, whole) == Ok(()) && guard.write(0, whole) == Ok(())
}

#[test]
fn a_side_survives_a_process_that_rewrites_the_peer_s_memory() {
    let calls = std::env::var("SINEW_CALLS").map_or(CALLS, |text| text.parse().unwrap());
    let [of_first, of_second] = lens();
    let (first, second) = (memfd(of_first), memfd(of_second));
    let write = ProtFlags::READ | ProtFlags::WRITE;
    let mine = map(first.as_raw_fd(), of_first, write);
    let whole = Pair {
        first: mine,
        second: map(second.as_raw_fd(), of_second, write),
        exchange: None,
    };
    // As a side has it: a write into the peer's memory would end this program.
    let pair = Pair {
        second: map(second.as_raw_fd(), of_second, ProtFlags::READ),
        ..whole
    };
    // Both directories, and an honest peer's words to begin with.
    drop(open(&whole, Role::First, true));
    std::mem::forget(open(&whole, Role::Second, true));
    let mut scribbler = Scribbler::start(&first, &second, 77);
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let mut seen = Seen::default();
    let is_enough = |seen: &Seen| {
        let least = seen.ups.min(seen.sent).min(seen.received);
        let least = least.min(seen.set).min(seen.values).min(seen.locked);
        let least = least.min(seen.messages).min(seen.answers);
        seen.calls >= calls && least.min(seen.faults).min(seen.violations) >= 100
    };
    let mut life = 0;
    while !is_enough(&seen) {
        assert!(seen.calls < 100 * calls, "{seen:?}");
        assert_eq!(scribbler.0.try_wait().unwrap(), None, "the scribbler runs");
        life += 1;
        work(&pair, life % 2 == 0, &mut random, &mut seen);
    }
    drop(scribbler);
    println!("{seen:?}");

    // With an honest peer, everything is there.
    let (side, peer) = (
        open(&pair, Role::First, true),
        open(&whole, Role::Second, true),
    );
    for _ in 0..3 {
        side.look(0);
        peer.look(0);
    }
    assert_eq!((side.status(), peer.status()), (Status::Up, Status::Up));
    for (id, blocks) in [(1, 4), (2, 3)] {
        let sender = Sender::new(&side, id).unwrap();
        let taken: Vec<_> = (0..blocks).map(|_| sender.place(1).unwrap()).collect();
        assert!(matches!(sender.place(1), Err(Refused::Full)));
        drop(taken);
        assert_eq!(sender.send(b"there"), Ok(true));
        let receiver = Receiver::new(&peer, id).unwrap();
        assert_eq!(receiver.receive().unwrap().unwrap().len(), 5);
    }
    let (near, far) = (
        Messages::new(&side, 5).unwrap(),
        Messages::new(&peer, 5).unwrap(),
    );
    let mut calls: Vec<_> = (0..2).map(|_| near.call(1, [0; 5]).unwrap()).collect();
    assert!(matches!(near.call(1, [0; 5]), Err(Refused::Full)));
    while let Some(message) = far.receive().unwrap() {
        message.answer([1]);
    }
    assert!(calls.iter_mut().all(|call| call.poll().unwrap().is_some()));
    let all: Vec<_> = (0..3).map(|_| near.memory(100).unwrap()).collect();
    assert!(matches!(near.memory(100), Err(Refused::Full)));
    for buffer in all {
        let mut loan = buffer.lend_mut(1, 0..9, [0; 3]).unwrap();
        let given = far.receive().unwrap().unwrap().memory.unwrap();
        assert!(given.answer_with(0..100));
        let returned = loan.poll().unwrap().unwrap();
        assert_eq!(returned.copy_to(&mut [0; 101]), Ok(100));
    }
    assert!(side.check_books());
}
