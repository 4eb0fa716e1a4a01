//! Two sides, the lines between them, and the clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use sinew::pubsub::codec::{Reader, Zid};
use sinew::pubsub::session::{Closed, Config, Fixed, Session, State, Step};
use sinew::time::Instant;

use crate::app::{App, Fate, Ledger};
use crate::faults::Faults;
use crate::line::{DELAY, Sender, Way};
use crate::node::{All, Told};
use crate::prng::Prng;

/// How many things the applications do.
const ACTIONS: u32 = 250;
/// In so many microseconds after the last fault everything works again: what is longest is that one
/// side learns of the other's restart by its lease.
const RECOVERED: u64 = 5_000_000;
const LEASE: u32 = 1000;

struct Side {
    session: Session<All>,
    tx: Sender,
    rx: Way,
    app: App,
    ledger: Ledger,
    /// The packet in hand.
    packet: Option<Vec<u8>>,
    /// The session has something to send and cannot.
    full: bool,
    /// It waits for a place, which wakes it.
    waits: bool,
    reads_from: Instant,
    /// When it learns that its link is gone, or tries again.
    renews: Instant,
    /// Frames and fragments that the line lost, and that nothing behind them has shown yet: to this side.
    unshown: [Vec<u32>; 2],
    shown: [u64; 2],
    missed: u64,
}

#[derive(Default)]
pub struct Counts {
    pub packets: u64,
    pub lost: u64,
    pub opened: u64,
    pub ended: u64,
    pub missed: u64,
    pub old: u64,
    pub fragments_lost: u64,
    pub malformed: u64,
}

/// When it arrives, in which order, at whom.
type Flying = (Instant, u64, usize, Vec<u8>);

pub struct World {
    faults: Faults,
    prng: Prng,
    now: Instant,
    sides: [Side; 2],
    /// Datagrams on their way.
    flying: BinaryHeap<Reverse<Flying>>,
    order: u64,
    /// How many sessions have ended, on either side.
    era: u64,
    pub counts: Counts,
    mtu: usize,
}

fn after(at: Instant, micros: u64) -> Instant {
    at.after(Duration::from_micros(micros))
}

fn config(faults: &Faults, prng: &mut Prng, zid: Zid) -> Config {
    let mut config = match prng.chance(300) && faults.stream {
        true => Config::client(zid),
        false => Config::peer(zid),
    };
    config.lease_ms = LEASE;
    config.patience = 1_000_000;
    config.resend = if faults.stream { 0 } else { 20_000 };
    config.batching = Duration::from_micros(if prng.chance(500) { 1000 } else { 0 });
    config.seed = prng.next() as u32;
    config.batch_size = match prng.below(3) {
        0 => 64 + prng.below(200) as u16,
        1 => 64 + prng.below(2000) as u16,
        _ => u16::MAX,
    };
    config
}

fn random_zid(prng: &mut Prng) -> Zid {
    Zid::new(&(prng.next() | 1).to_le_bytes()).unwrap()
}

impl World {
    pub fn new(faults: Faults, seed: u64) -> World {
        let mut prng = Prng::new(seed);
        let mtu = match prng.below(3) {
            0 => 64 + prng.below(64) as usize,
            1 => 64 + prng.below(500) as usize,
            _ => 64 + prng.below(1937) as usize,
        };
        let sides = [0, 1].map(|side| {
            let zid = random_zid(&mut prng);
            let tx = Sender::new(mtu, 1 + prng.below(faults.places) as usize);
            Side {
                session: Session::new(config(&faults, &mut prng, zid), Fixed::new()),
                rx: Way::default(),
                tx,
                app: App::new(side, prng.next()),
                ledger: Ledger::default(),
                packet: None,
                full: false,
                waits: false,
                reads_from: Instant::START,
                renews: Instant::FAR,
                unshown: [Vec::new(), Vec::new()],
                shown: [0; 2],
                missed: 0,
            }
        });
        let mut world = World {
            faults,
            prng,
            now: Instant::START,
            sides,
            flying: BinaryHeap::new(),
            order: 0,
            era: 0,
            counts: Counts::default(),
            mtu,
        };
        for side in [1, 0] {
            let it = &mut world.sides[side];
            it.app.start(&mut it.session, &mut it.ledger);
        }
        world.connect(0);
        world.connect(1);
        if !faults.stream {
            // What a side sends is taken up by the line, and put down at the other.
            world.sides.iter_mut().for_each(|it| it.rx = Way::default());
        }
        world.begin(1);
        world.begin(0);
        world
    }

    /// Side `side` has a new line to the other.
    fn connect(&mut self, side: usize) {
        let way = Way::default();
        self.sides[side].tx.renew(way.clone());
        self.sides[1 - side].rx = way;
    }

    fn begin(&mut self, side: usize) {
        let it = &mut self.sides[side];
        it.packet = None;
        it.full = false;
        it.waits = false;
        match side {
            0 => it.session.open(self.now),
            _ => it.session.accept(),
        }
    }

    /// What was counted in a session object that goes.
    fn sum(&mut self, side: usize) {
        let it = &mut self.sides[side];
        let stats = it.session.stats();
        let missed = stats.missed_reliable + stats.missed_best_effort + stats.left_out;
        it.missed = u64::from(missed);
        let counts = &mut self.counts;
        counts.opened += u64::from(stats.opened);
        counts.missed += u64::from(missed);
        counts.old += u64::from(stats.old);
        counts.fragments_lost += u64::from(stats.fragments_lost);
        counts.malformed += u64::from(stats.malformed);
        // The one thing that is counted and must never be, between two that keep the rules.
        assert_eq!(stats.malformed, 0);
        assert_eq!((stats.bad_key, stats.too_large), (0, 0));
    }

    /// A side loses all that it knew.
    fn restart(&mut self, side: usize) {
        self.sum(side);
        let zid = match self.prng.chance(500) {
            true => random_zid(&mut self.prng),
            false => self.sides[side].session.zid(),
        };
        let config = config(&self.faults, &mut self.prng, zid);
        let it = &mut self.sides[side];
        it.session = Session::new(config, Fixed::new());
        it.app.start(&mut it.session, &mut it.ledger);
        self.era += 1;
        match self.faults.stream {
            true => self.leave(side),
            false => self.begin(side),
        }
    }

    /// A side drops its stream and makes a new one; the other side will see.
    fn leave(&mut self, side: usize) {
        self.era += 1;
        for it in &mut self.sides {
            it.tx.way.borrow_mut().closed = true;
        }
        for it in &mut self.sides {
            let at = after(self.now, self.prng.below(50_000));
            it.renews = it.renews.min(at);
        }
        self.sides[side].renews = self.now;
    }

    /// A side sees that its link is gone, or tries again.
    fn renew(&mut self, side: usize) {
        self.sides[side].renews = Instant::FAR;
        if self.sides[side].session.link_lost().is_some() {
            self.era += 1;
        }
        if self.faults.stream {
            // Whoever comes first makes the lines.
            if self.sides[side].tx.way.borrow().closed {
                self.connect(side);
            }
            if self.sides[1 - side].tx.way.borrow().closed {
                let way = Way::default();
                self.sides[side].rx = way;
                // The other side takes it up when it comes.
            }
            let other = &self.sides[1 - side];
            if !other.tx.way.borrow().closed {
                self.sides[side].rx = other.tx.way.clone();
            }
        }
        self.begin(side);
    }

    pub fn run(&mut self) {
        let mut action = self.now;
        let mut actions = 0;
        let mut still = 0;
        while actions < ACTIONS {
            let next = self.next().min(action);
            still = if next > self.now { 0 } else { still + 1 };
            assert!(still < 5000, "time stands still");
            self.now = self.now.max(next);
            if action <= self.now {
                actions += 1;
                action = after(self.now, self.prng.below(4000));
                self.act();
            }
            self.step();
        }
        self.settle();
    }

    /// When something happens next.
    fn next(&mut self) -> Instant {
        let mut next = Instant::FAR;
        if let Some(Reverse((at, ..))) = self.flying.peek() {
            next = *at;
        }
        for it in &mut self.sides {
            next = next.min(it.renews);
            if it.waits && !it.tx.is_full() {
                return self.now;
            }
            if !it.full {
                next = next.min(it.session.deadline());
            }
            let arrived = it.rx.borrow().packets.front().map(|(at, _)| *at);
            if let Some(at) = arrived
                && it.packet.is_none()
            {
                next = next.min(at.max(it.reads_from));
            }
        }
        next
    }

    fn act(&mut self) {
        let side = self.prng.below(2) as usize;
        if self.prng.chance(self.faults.restart) {
            self.restart(side);
        }
        let it = &mut self.sides[side];
        if self.prng.chance(self.faults.stop) {
            it.reads_from = after(self.now, self.prng.below(self.faults.stopped));
        }
        it.tx.now = self.now;
        it.app
            .act(&mut it.session, &mut it.tx, &mut it.ledger, self.era);
    }

    fn step(&mut self) {
        for side in 0..2 {
            if self.sides[side].renews <= self.now {
                self.renew(side);
            }
        }
        while let Some(Reverse((at, ..))) = self.flying.peek()
            && *at <= self.now
        {
            let Some(Reverse((_, _, to, packet))) = self.flying.pop() else {
                break;
            };
            self.deliver(to, packet);
        }
        for side in 0..2 {
            self.turn(side);
            self.carry(side);
        }
    }

    /// A datagram arrives, into the queue of a socket.
    fn deliver(&mut self, to: usize, packet: Vec<u8>) {
        let it = &mut self.sides[to];
        it.rx.borrow_mut().packets.push_back((self.now, packet));
        self.turn(to);
        self.carry(to);
    }

    /// Takes the datagrams of a side onto their way.
    fn carry(&mut self, side: usize) {
        if self.faults.stream {
            return;
        }
        // The line of a side holds what it sends, and what the other side is to read.
        let sent: Vec<_> = self.sides[side]
            .tx
            .way
            .borrow_mut()
            .packets
            .drain(..)
            .collect();
        for (_, packet) in sent {
            self.counts.packets += 1;
            if self.prng.chance(self.faults.loss) {
                self.counts.lost += 1;
                if let Some((channel, sn)) = number(&packet) {
                    self.sides[1 - side].unshown[channel].push(sn);
                }
                continue;
            }
            let copies = 1 + u32::from(self.prng.chance(self.faults.duplication));
            for _ in 0..copies {
                let jitter = match self.faults.jitter {
                    0 => 0,
                    jitter => self.prng.below(jitter),
                };
                self.order += 1;
                let at = after(self.now, DELAY + jitter);
                self.flying
                    .push(Reverse((at, self.order, 1 - side, packet.clone())));
            }
        }
    }

    /// Lets a side do what there is to do.
    fn turn(&mut self, side: usize) {
        let now = self.now;
        self.sides[side].tx.now = now;
        let mut closed = None;
        let mut steps = 0;
        loop {
            let it = &mut self.sides[side];
            steps += 1;
            assert!(steps < 100_000, "endless");
            if it.packet.is_none() {
                let mut line = it.rx.borrow_mut();
                let ready = line.packets.front().is_some_and(|(at, _)| *at <= now);
                if ready && it.reads_from <= now && it.renews > now {
                    it.packet = line.packets.pop_front().map(|(_, packet)| packet);
                    drop(line);
                    it.took(self.mtu);
                }
            }
            let Some(packet) = &it.packet else { break };
            let told = match it.session.receive(packet, &mut it.tx, now) {
                Step::More => continue,
                Step::Done => {
                    it.packet = None;
                    continue;
                }
                Step::Full => {
                    break;
                }
                Step::Event(event) => Told::of(&event),
            };
            closed = self.told(side, told).or(closed);
        }
        loop {
            let it = &mut self.sides[side];
            it.full = false;
            steps += 1;
            assert!(steps < 200_000, "endless");
            let told = match it.session.poll(&mut it.tx, now) {
                Step::More => continue,
                Step::Done => break,
                Step::Full => {
                    it.full = true;
                    break;
                }
                Step::Event(event) => Told::of(&event),
            };
            closed = self.told(side, told).or(closed);
        }
        let it = &mut self.sides[side];
        it.waits = (it.full || it.packet.is_some()) && it.tx.is_full();
        if closed.is_some() && (self.faults.stream || side == 0) {
            match self.faults.stream {
                true => {
                    self.leave(side);
                    self.sides[side].renews = after(now, 10_000);
                }
                false => self.sides[side].renews = after(now, 10_000),
            }
        }
    }

    fn told(&mut self, side: usize, told: Told) -> Option<Closed> {
        let mut closed = None;
        match &told {
            Told::Closed(reason) => {
                self.counts.ended += 1;
                self.era += 1;
                closed = Some(*reason);
            }
            // Its numbers begin anew.
            Told::Opened => self.sides[1 - side].unshown = Default::default(),
            _ => {}
        }
        let [first, second] = &mut self.sides;
        let (it, other) = match side {
            0 => (first, second),
            _ => (second, first),
        };
        it.app.told(
            told,
            &mut it.session,
            &mut it.tx,
            &mut it.ledger,
            &other.ledger,
        );
        closed
    }

    /// No more faults: all works again, and what had to arrive has.
    fn settle(&mut self) {
        let strict = Faults {
            restart: 0,
            stop: 0,
            ..self.faults
        };
        self.faults = Faults {
            loss: 0,
            duplication: 0,
            jitter: 0,
            ..strict
        };
        let end = after(self.now, RECOVERED);
        for it in &mut self.sides {
            it.app.prompt = true;
            it.reads_from = it.reads_from.min(after(self.now, 10_000));
        }
        let mut action = self.now;
        loop {
            let next = self.next().min(action);
            self.now = self.now.max(next);
            if action <= self.now {
                action = after(self.now, 5000);
                let all = |it: &Side| it.app.answered > 0;
                if self.sides.iter().all(all) && self.now > after(end, 0) {
                    break;
                }
                assert!(
                    self.now < after(end, 1_000_000),
                    "never recovers: {:?}",
                    self.sides.each_ref().map(Side::show),
                );
                for it in &mut self.sides {
                    it.tx.now = self.now;
                    it.app
                        .mark(&mut it.session, &mut it.tx, &mut it.ledger, self.era);
                }
            }
            self.step();
        }
        // What waits goes, and is taken.
        for it in &mut self.sides {
            it.tx.now = self.now;
            for _ in 0..3 {
                it.session.flush(&mut it.tx, self.now).ok();
            }
        }
        let quiet = after(self.now, 200_000);
        let latest = after(self.now, 6_000_000);
        let idle = |side: &Side| side.app.is_idle();
        while self.now < quiet || self.now < latest && !self.sides.iter().all(idle) {
            self.now = self.now.max(self.next().min(after(self.now, 1000)));
            for it in &mut self.sides {
                it.tx.now = self.now;
                let (session, tx, ledger) = (&mut it.session, &mut it.tx, &mut it.ledger);
                it.app.retry(session, tx, ledger, self.era);
                it.app.finish(session, tx);
            }
            self.step();
        }
        self.check();
    }

    fn check(&mut self) {
        for side in 0..2 {
            self.sum(side);
            let it = &self.sides[side];
            let other = &self.sides[1 - side];
            assert_eq!(it.session.state(), State::Open);
            assert!(
                it.app.is_idle(),
                "every query has ended, and no sample waits"
            );
            let ledger = &it.ledger;
            let ended = ledger.complete + ledger.timed_out + ledger.lost;
            assert_eq!(ledger.asked, ended, "every query ends once");
            if self.faults.stream {
                for (uid, (key, fates)) in ledger.samples.iter().enumerate() {
                    if !App::must_hear(1 - side, key) {
                        continue;
                    }
                    let none = Vec::new();
                    let arrived = other.app.arrived.get(uid).unwrap_or(&none);
                    for (sample, fate) in fates.iter().enumerate() {
                        let arrived = arrived.binary_search(&(sample as u32)).is_ok();
                        if *fate == Fate::Gone(self.era) {
                            assert!(arrived, "sample {sample} of {key} is lost");
                        }
                    }
                }
                if self.era == 0 {
                    let stats = it.session.stats();
                    assert_eq!((stats.gaps, stats.old), (0, 0));
                }
            }
        }
    }

    /// For the mix that only loses: what was missed is what the line lost.
    pub fn losses(&self) -> Vec<(u64, u64)> {
        let sides = self.sides.iter();
        sides.map(|it| (it.missed, it.shown.iter().sum())).collect()
    }

    /// Samples at the subscribers that are always there.
    pub fn arrived(&self) -> u64 {
        let all = self.sides.iter().flat_map(|it| &it.app.arrived);
        all.map(|samples| samples.len() as u64).sum()
    }

    pub fn ledgers(&self) -> [&Ledger; 2] {
        self.sides.each_ref().map(|it| &it.ledger)
    }
}

impl Side {
    /// A packet is in hand: what of its channel was lost before shows, where it is looked at.
    fn took(&mut self, mtu: usize) {
        let Some(packet) = &self.packet else { return };
        assert!(packet.len() <= mtu);
        let Some((channel, sn)) = number(packet) else {
            return;
        };
        let unshown = &mut self.unshown[channel];
        match self.session.state() {
            State::Open => {
                let before = unshown.len();
                unshown.retain(|lost| sn.wrapping_sub(*lost) & 0xfff_ffff >= 1 << 27);
                self.shown[channel] += (before - unshown.len()) as u64;
            }
            // It has overtaken the end of the handshake.
            _ => unshown.push(sn),
        }
    }

    fn show(&self) -> String {
        let all = format!("{:?}", self.session);
        let (_, out) = all.split_once("out:").expect("its name");
        let hand = self.packet.as_ref();
        format!(
            "{out} {} packets, in hand {hand:02x?}, full {}, answered {}, {:?}",
            self.tx.way.borrow().packets.len(),
            self.full,
            self.app.answered,
            self.app,
        )
    }
}

/// Of a frame or fragment: 1 for the reliable channel, and its number.
fn number(packet: &[u8]) -> Option<(usize, u32)> {
    let (&header, rest) = packet.split_first()?;
    let sn = Reader::new(rest).vle32();
    matches!(header & 0x1f, 5 | 6).then_some((usize::from(header >> 5 & 1), sn))
}
