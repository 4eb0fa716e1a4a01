//! Four remotes, of which one at a time is killed, stopped or ended while all are busy.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sinew_shm::StdLock;
use sinew_shm::domain::{Lost, Role};
use sinew_shm::linux::link::Link;
use sinew_shm::linux::slots::{Slots, SlotsError};

use super::child::Child;
use super::master::{Event, Master, beat};
use super::random::Random;
use super::traffic::{HANGS, LINK, SILENCE, options};

const SLOTS: u32 = 4;
/// Signs of life of the waiting side between the death of its peer and the end of its wait: the look
/// that finds it, and those that were due at that moment.
const BOUND: u32 = 3;
/// Answers that each link must give before, between and after.
const BUSY: u64 = 20;

pub fn run(rounds: u64, random: &mut Random) {
    let name = format!("sinew-slots-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let _ = std::fs::remove_file(&path);
    let slots = Slots::create(&path, 0, LINK, SLOTS).unwrap();
    let master = |slot| slots.master(slot, options(SILENCE)).unwrap();
    let links: Vec<Link> = (0..SLOTS).map(master).collect();
    let answers = [const { AtomicU64::new(0) }; SLOTS as usize];
    let is_over = AtomicBool::new(false);
    let (sender, events) = channel();
    let tell = |event| {
        let _ = sender.send(event);
    };
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        std::process::exit(1);
    }));
    thread::scope(|scope| {
        for (slot, link) in links.iter().enumerate() {
            let master = Master {
                slot: slot as u32,
                link: link.clone(),
                answers: &answers[slot],
                is_over: &is_over,
                tell: &tell,
            };
            scope.spawn(move || master.run());
        }
        let mut control = Control {
            path,
            slots: &slots,
            links: &links,
            answers: &answers,
            events,
            random,
            remotes: Vec::new(),
            moving: [0; SLOTS as usize],
            lost: Default::default(),
            drained: 0,
            counts: Counts::default(),
        };
        control.run(rounds);
        is_over.store(true, Ordering::Relaxed);
        control.end();
    });
}

#[derive(Default)]
struct Counts {
    killed: u64,
    early: u64,
    stopped: u64,
    ended: u64,
    /// The longest time from a death until the wait had ended, and the most signs of life.
    longest: Duration,
    beats: u32,
}

struct Control<'a> {
    path: PathBuf,
    slots: &'a Slots,
    links: &'a [Link],
    answers: &'a [AtomicU64],
    events: Receiver<Event>,
    random: &'a mut Random,
    /// By slot.
    remotes: Vec<Child>,
    /// The last pairing of each slot in which packets went.
    moving: [u64; SLOTS as usize],
    /// How often each link was lost, and how the last time.
    lost: [(u64, Option<(Lost, u32)>); SLOTS as usize],
    drained: u32,
    counts: Counts,
}

impl Control<'_> {
    fn run(&mut self, rounds: u64) {
        let mut remotes: Vec<(u32, Child)> = (0..SLOTS)
            .map(|_| Child::start("remote", &self.path, SLOTS))
            .map(|remote| (remote.slot(), remote))
            .collect();
        remotes.sort_by_key(|(slot, _)| *slot);
        let numbers: Vec<u32> = remotes.iter().map(|(slot, _)| *slot).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        self.remotes = remotes.into_iter().map(|(_, remote)| remote).collect();
        self.until("every link moves", |it| {
            it.moving.iter().all(|&pairing| pairing > 0)
        });
        // Rare, as each takes as long as the silence.
        let stops = (rounds / 50).max(1);
        for round in 0..rounds {
            self.random.sleep(3000);
            self.are_busy(None);
            let victim = self.random.below(SLOTS.into()) as usize;
            let others = self.lost.map(|(times, _)| times);
            if round % (rounds / stops).max(1) == 0 {
                self.stop(victim);
            } else {
                match self.random.below(10) {
                    0 => self.finish(victim),
                    1..4 => self.kill_early(victim),
                    _ => self.kill(victim),
                }
            }
            for (slot, (times, lost)) in self.lost.iter().enumerate() {
                let is_other = slot != victim;
                assert!(
                    !is_other || *times == others[slot],
                    "slot {slot} lost its link ({lost:?}) with that of slot {victim}"
                );
            }
        }
        self.are_busy(None);
        let counts = &self.counts;
        println!(
            "{rounds} rounds on {SLOTS} slots: {} killed ({} as they came up), {} stopped, {} ended; \
             a wait ended {:.1} ms after the death at most, at sign of life {}",
            counts.killed,
            counts.early,
            counts.stopped,
            counts.ended,
            counts.longest.as_secs_f32() * 1000.0,
            counts.beats,
        );
    }

    fn end(&mut self) {
        self.until("all is drained", |it| it.drained == SLOTS);
        for remote in &mut self.remotes {
            remote.end();
        }
        assert_eq!(self.taken(), [false; SLOTS as usize]);
        let _ = std::fs::remove_file(&self.path);
    }

    fn taken(&self) -> Vec<bool> {
        let is_taken = |slot| self.slots.is_taken(slot, Role::Second).unwrap();
        (0..SLOTS).map(is_taken).collect()
    }

    /// That all slots are taken but this one.
    fn only_free(&self, free: Option<usize>) {
        for (slot, is_taken) in self.taken().into_iter().enumerate() {
            assert_eq!(is_taken, Some(slot) != free, "slot {slot}, free {free:?}");
        }
        if free.is_none() {
            let more = self.slots.claim::<StdLock>(options(Duration::ZERO));
            assert!(matches!(more, Err(SlotsError::AllTaken { slots: SLOTS })));
        }
    }

    /// Waits until every link but one has answered again.
    fn are_busy(&mut self, but: Option<usize>) {
        let count = |it: &Self| -> Vec<u64> {
            let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
            it.answers.iter().map(load).collect()
        };
        let before = count(self);
        self.until("the others go on", |it| {
            let mut pairs = before.iter().zip(count(it)).enumerate();
            pairs.all(|(slot, (before, now))| Some(slot) == but || now >= before + BUSY)
        });
    }

    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        loop {
            while let Ok(event) = self.events.try_recv() {
                match event {
                    Event::Moving { slot, pairing } => self.moving[slot as usize] = pairing,
                    Event::Lost { slot, lost, beat } => {
                        let (times, last) = &mut self.lost[slot as usize];
                        (*times, *last) = (*times + 1, Some((lost, beat)));
                    }
                    Event::Drained => self.drained += 1,
                }
            }
            if is_so(self) {
                return;
            }
            assert!(begin.elapsed() < HANGS, "never: {what}");
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// A new remote in the slot that is free, until packets go.
    fn start(&mut self, slot: usize) {
        let before = self.moving[slot];
        let remote = Child::start("remote", &self.path, SLOTS);
        assert_eq!(remote.slot() as usize, slot, "the one that is free");
        self.remotes[slot] = remote;
        self.until("the new one moves", |it| it.moving[slot] > before);
        self.only_free(None);
    }

    fn is_lost(&mut self, slot: usize, times: u64) -> (Lost, u32) {
        self.until("the wait ends", |it| it.lost[slot].0 == times);
        self.lost[slot].1.unwrap()
    }

    fn kill(&mut self, slot: usize) {
        self.counts.killed += 1;
        let times = self.lost[slot].0;
        self.remotes[slot].kill();
        let (begin, before) = (Instant::now(), beat(&self.links[slot]));
        self.only_free(Some(slot));
        let (lost, after) = self.is_lost(slot, times + 1);
        self.counts.longest = self.counts.longest.max(begin.elapsed());
        assert_eq!(lost, Lost::Closed);
        let beats = after.wrapping_sub(before);
        // It may have been before the count was read.
        if beats < u32::MAX / 2 {
            assert!(beats <= BOUND, "{beats} signs of life before it was seen");
            self.counts.beats = self.counts.beats.max(beats);
        }
        self.are_busy(Some(slot));
        self.start(slot);
    }

    /// The next one is killed somewhere between its start and the first packets, and comes before the
    /// master has seen that the last one went, or after.
    fn kill_early(&mut self, slot: usize) {
        self.counts.killed += 2;
        self.counts.early += 1;
        self.remotes[slot].kill();
        self.random.sleep(30_000);
        let mut early = Child::start("remote", &self.path, SLOTS);
        if self.random.one_in(2) {
            assert_eq!(early.slot() as usize, slot);
            self.random.sleep(2000);
        } else {
            self.random.sleep(8000);
        }
        early.kill();
        self.only_free(Some(slot));
        self.are_busy(Some(slot));
        self.start(slot);
    }

    /// Past the silence. It keeps its slot, and goes on in it.
    fn stop(&mut self, slot: usize) {
        self.counts.stopped += 1;
        let (times, before) = (self.lost[slot].0, self.moving[slot]);
        self.remotes[slot].signal(Signal::STOP);
        let (lost, _) = self.is_lost(slot, times + 1);
        assert_eq!(lost, Lost::Closed);
        self.only_free(None);
        self.are_busy(Some(slot));
        self.remotes[slot].signal(Signal::CONT);
        self.until("it goes on", |it| it.moving[slot] > before);
    }

    fn finish(&mut self, slot: usize) {
        self.counts.ended += 1;
        let times = self.lost[slot].0;
        self.remotes[slot].end();
        self.only_free(Some(slot));
        let (lost, _) = self.is_lost(slot, times + 1);
        assert_eq!(lost, Lost::Closed);
        self.are_busy(Some(slot));
        self.start(slot);
    }
}
