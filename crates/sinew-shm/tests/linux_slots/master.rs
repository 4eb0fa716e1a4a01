//! The master's side of one slot: keeps the link busy, and checks every answer.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use sinew_shm::domain::{Lost, Refused, Role, Status};
use sinew_shm::linux::link::{Link, Receiver, Sender, WaitError};
use sinew_shm::linux::slots::Slots;

use super::child::{begin, ends, say};
use super::random::Random;
use super::traffic::{CHANNELS, HANGS, LINK, Label, SILENCE, options, packet};

/// How often the wish to end is looked at while nobody is there.
const SLICE: Option<Duration> = Some(Duration::from_millis(20));
/// Answers by which a link is known to work.
pub const MOVING: u64 = 40;

/// What the master tells of a slot.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// Packets go both ways in the pairing of this number, which grows.
    Moving { slot: u32, pairing: u64 },
    /// A wait without a limit has ended, at this sign of life of the master's own.
    Lost { slot: u32, lost: Lost, beat: u32 },
    /// The last pairing of a slot was drained, and every block is back.
    Drained,
}

/// The signs of life that this side has given so far.
pub fn beat(link: &Link) -> u32 {
    let side = link.end().observe().side(Role::First);
    side.expect("it is open").heartbeat
}

/// One slot.
pub struct Master<'a> {
    pub slot: u32,
    pub link: Link,
    /// Counts all answers.
    pub answers: &'a AtomicU64,
    /// When it is true, the master sends no more and drains.
    pub is_over: &'a AtomicBool,
    pub tell: &'a (dyn Fn(Event) + Sync),
}

/// `PATH SLOTS`. Says what happens. Ends when its standard input does.
pub fn run(arguments: &[String]) {
    begin();
    let [path, count] = arguments else {
        panic!("{arguments:?}");
    };
    let count: u32 = count.parse().unwrap();
    let slots = Slots::create(Path::new(path), 0, LINK, count).unwrap();
    let (answers, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let tell = |event| match event {
        Event::Moving { slot, pairing } => say(&format!("moving {slot} {pairing}")),
        Event::Lost { slot, .. } => say(&format!("lost {slot}")),
        Event::Drained => {}
    };
    thread::scope(|scope| {
        for slot in 0..count {
            let master = Master {
                slot,
                link: slots.master(slot, options(SILENCE)).unwrap(),
                answers: &answers,
                is_over: &is_over,
                tell: &tell,
            };
            scope.spawn(move || master.run());
        }
        while !ends() {
            thread::sleep(Duration::from_millis(1));
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

impl Master<'_> {
    /// Through any number of pairings, until all is over.
    pub fn run(self) {
        let mut pairing = 0;
        while !self.is_over() {
            match self.link.up_within(SLICE) {
                Ok(()) => {}
                Err(WaitError::TimedOut) => continue,
                Err(error) => panic!("slot {}: {error}", self.slot),
            }
            pairing += 1;
            let handles = Handles::new(&self.link);
            if !self.is_whole(&handles) {
                continue;
            }
            match self.exchange(&handles, pairing) {
                Ok(()) => {
                    let drained = self.link.drain_within(Some(HANGS));
                    assert_eq!(drained, Ok(()), "slot {}", self.slot);
                    assert!(self.link.end().check_books());
                    (self.tell)(Event::Drained);
                    return;
                }
                Err(lost) => {
                    let (slot, beat) = (self.slot, beat(&self.link));
                    assert!(self.link.end().check_books(), "the books, after");
                    (self.tell)(Event::Lost { slot, lost, beat });
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Whether every own block can be taken in a new pairing; false where it ended already.
    fn is_whole(&self, handles: &Handles) -> bool {
        assert!(self.link.end().check_books(), "the books, before");
        for (channel, sender) in CHANNELS.iter().zip(&handles.senders) {
            let mut places = Vec::new();
            for taken in 0..channel.first.blocks {
                match sender.place(1) {
                    Ok(place) => places.push(place),
                    Err(Refused::Lost(_)) => return false,
                    Err(_) if self.link.end().status() != Status::Up => return false,
                    Err(refused) => panic!("{refused:?}: {taken} blocks on {channel:?}"),
                }
            }
            assert!(sender.place(1).is_err(), "more blocks than there are");
        }
        true
    }

    /// Until the pairing is lost, or all is over and every answer is there.
    fn exchange(&self, handles: &Handles, pairing: u64) -> Result<(), Lost> {
        let mut random = Random((u64::from(self.slot) << 32 | pairing) << 1 | 1);
        let mut sent = [0u64; CHANNELS.len()];
        let mut back = [0u64; CHANNELS.len()];
        let label = |at: usize, sequence| Label {
            slot: self.slot,
            pairing,
            channel: CHANNELS[at].id,
            sequence,
        };
        loop {
            let at = random.below(CHANNELS.len() as u64) as usize;
            let (sender, pool) = (&handles.senders[at], CHANNELS[at].first);
            let under_way = sent[at] - back[at];
            if !self.is_over() && under_way < u64::from(pool.blocks) && !random.one_in(4) {
                let bytes = packet(label(at, sent[at]), pool.size as usize);
                match sender.send_within(&bytes, None) {
                    Ok(is_wanted) => assert!(is_wanted),
                    Err(WaitError::Lost(lost)) => return Err(lost),
                    Err(error) => panic!("{error}"),
                }
                sent[at] += 1;
                continue;
            }
            if under_way == 0 {
                match self.is_over() && sent == back {
                    true => return Ok(()),
                    false => continue,
                }
            }
            // Without a limit: whatever happens to the peer must end it.
            let answer = match handles.receivers[at].receive_within(None) {
                Ok(answer) => answer,
                Err(WaitError::Lost(lost)) => return Err(lost),
                Err(error) => panic!("{error}"),
            };
            let expected = packet(label(at, back[at]), pool.size as usize);
            let mut bytes = vec![0; answer.len()];
            answer.copy_to(&mut bytes)?;
            drop(answer);
            assert!(
                bytes == expected,
                "slot {}, channel {at}: answer {} is another one, {} bytes",
                self.slot,
                back[at],
                bytes.len()
            );
            back[at] += 1;
            self.answers.fetch_add(1, Ordering::Relaxed);
            if random.one_in(32) {
                // So that some of the time is left to those who start, stop and die.
                random.sleep(1000);
            }
            let all: u64 = back.iter().sum();
            if all == MOVING {
                let slot = self.slot;
                (self.tell)(Event::Moving { slot, pairing });
            }
            if all.is_multiple_of(32) {
                // The look of who never sleeps.
                self.link.on_ready();
            }
        }
    }
}

/// Handles of one pairing.
struct Handles {
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
}

impl Handles {
    fn new(link: &Link) -> Handles {
        let ids = || CHANNELS.iter().map(|channel| channel.id);
        Handles {
            senders: ids().map(|id| link.sender(id).unwrap()).collect(),
            receivers: ids().map(|id| link.receiver(id).unwrap()).collect(),
        }
    }
}
