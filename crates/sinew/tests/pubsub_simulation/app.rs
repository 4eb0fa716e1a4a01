//! What the two applications do, and what they must see of each other.

use std::collections::HashMap;

use sinew::pubsub::codec::{Body, Encoding, Kind, Qos};
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::{
    Ask, AskError, Ended, PublisherId, PublisherOptions, Put, PutError, QueryId, QueryableId,
    RequestId, Session, SubscriberId,
};

use crate::line::Sender;
use crate::node::{All, Told};
use crate::prng::Prng;

/// What one side has published and asked, by what the other can check. It survives restarts.
#[derive(Default)]
pub struct Ledger {
    /// Of each publisher: its key, and what became of each of its samples.
    pub samples: Vec<(String, Vec<Fate>)>,
    /// How many queries were asked, by how they ended.
    pub asked: u64,
    pub complete: u64,
    pub timed_out: u64,
    pub lost: u64,
    pub heard: u64,
    pub unheard: u64,
    pub dropped: u64,
    pub given_up: u64,
    pub full: u64,
    pub cut: u64,
}

/// What became of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It left, when so many sessions had ended.
    Gone(u64),
    /// It did not leave, or not whole.
    Kept,
}

/// A sample that is to be put again.
#[derive(Clone, Debug)]
struct Pending {
    publisher: usize,
    sample: u32,
    payload: Vec<u8>,
    /// A part of it has left.
    cut: bool,
}

#[derive(Debug)]
struct Publishing {
    id: PublisherId,
    uid: usize,
}

#[derive(Debug)]
pub struct App {
    /// 0 or 1.
    side: usize,
    prng: Prng,
    publishers: Vec<Publishing>,
    subscribers: HashMap<SubscriberId, String>,
    queryables: HashMap<QueryableId, String>,
    /// The subscriber that is always there.
    pub always: Option<SubscriberId>,
    queries: HashMap<QueryId, u64>,
    /// Questions to answer, and whether they have been.
    requests: Vec<(RequestId, String, bool)>,
    pending: Option<Pending>,
    /// At each subscriber, the last sample of each publisher of the other side.
    seen: HashMap<(SubscriberId, usize), u32>,
    /// What arrived at the subscriber that is always there.
    pub arrived: Vec<Vec<u32>>,
    /// Answers to the question by which both know that all works again.
    pub answered: u64,
    /// The other side's question can be answered now, not later or never.
    pub prompt: bool,
}

/// Keys that publishers have, and what subscribers and queryables have.
const KEYS: [&str; 6] = [
    "k/0",
    "k/1",
    "k/0/deep",
    "other",
    "a/rather/long/key/for/small/links",
    "x",
];
const WANTED: [&str; 6] = ["k/*", "**", "other", "k/0", "a/rather/**", "k/$*1"];
/// What is always there on either side.
const ALWAYS: [&str; 2] = ["k/0", "**"];

type Node = Session<All>;

impl App {
    pub fn new(side: usize, seed: u64) -> App {
        App {
            side,
            prng: Prng::new(seed),
            publishers: Vec::new(),
            subscribers: HashMap::new(),
            queryables: HashMap::new(),
            always: None,
            queries: HashMap::new(),
            requests: Vec::new(),
            pending: None,
            seen: HashMap::new(),
            arrived: Vec::new(),
            answered: 0,
            prompt: false,
        }
    }

    /// Whether samples of this key must arrive here.
    pub fn must_hear(side: usize, key: &str) -> bool {
        KeyExpr::new(ALWAYS[side])
            .unwrap()
            .intersects(KeyExpr::new(key).unwrap())
    }

    /// After a start: what is always there.
    pub fn start(&mut self, session: &mut Node, ledger: &mut Ledger) {
        ledger.lost += self.queries.len() as u64;
        self.publishers.clear();
        self.subscribers.clear();
        self.queryables.clear();
        self.queries.clear();
        self.requests.clear();
        self.pending = None;
        self.seen.clear();
        let always = session.subscriber(ALWAYS[self.side].to_owned()).unwrap();
        self.always = Some(always);
        self.subscribers.insert(always, ALWAYS[self.side].into());
        let queryable = session.queryable("k/**".to_owned(), true).unwrap();
        self.queryables.insert(queryable, "k/**".into());
        self.publish(session, ledger, "k/0");
    }

    fn publish(&mut self, session: &mut Node, ledger: &mut Ledger, key: &str) {
        let options = PublisherOptions {
            qos: Qos::DEFAULT
                .with_blocking(self.prng.chance(500))
                .with_express(self.prng.chance(200)),
            reliable: self.prng.chance(600),
            filter: false,
        };
        if let Ok(id) = session.publisher(key.to_owned(), options) {
            let uid = ledger.samples.len();
            ledger.samples.push((key.into(), Vec::new()));
            self.publishers.push(Publishing { id, uid });
        }
    }

    /// One thing that an application may do.
    pub fn act(&mut self, session: &mut Node, tx: &mut Sender, ledger: &mut Ledger, era: u64) {
        let now = tx.now;
        match self.prng.below(100) {
            0..60 => {
                let which = self.prng.below(self.publishers.len() as u64) as usize;
                self.sample(session, tx, ledger, which, era);
            }
            60..64 => {
                let key = KEYS[self.prng.below(6) as usize];
                self.publish(session, ledger, key);
            }
            64..67 => {
                // The first one stays.
                if self.publishers.len() > 1 {
                    let which = self.prng.below(self.publishers.len() as u64 - 1) as usize + 1;
                    let gone = self.publishers.remove(which);
                    session.withdraw_publisher(gone.id);
                    match &mut self.pending {
                        Some(pending) if pending.publisher == gone.uid => {
                            session.abandon();
                            self.pending = None;
                        }
                        _ => {}
                    }
                }
            }
            67..72 => {
                let key = WANTED[self.prng.below(6) as usize];
                if let Ok(id) = session.subscriber(key.to_owned()) {
                    self.subscribers.insert(id, key.into());
                    self.seen.retain(|(of, _), _| *of != id);
                }
            }
            72..76 => {
                let mut ids: Vec<_> = self.subscribers.keys().copied().collect();
                ids.retain(|id| Some(*id) != self.always);
                ids.sort_by_key(|id| id.index());
                if let Some(&id) = ids.get(self.prng.below(4) as usize) {
                    session.withdraw_subscriber(id);
                    self.subscribers.remove(&id);
                }
            }
            76..79 => {
                let key = WANTED[self.prng.below(6) as usize];
                if let Ok(id) = session.queryable(key.to_owned(), false) {
                    self.queryables.insert(id, key.into());
                }
            }
            79..81 => {
                let mut ids: Vec<_> = self.queryables.keys().copied().collect();
                ids.sort_by_key(|id| id.index());
                if let Some(&id) = ids.get(1 + self.prng.below(3) as usize) {
                    session.withdraw_queryable(id);
                    self.queryables.remove(&id);
                }
            }
            81..90 => {
                let key = ["k/0", "k/*", "nobody/there", "other"][self.prng.below(4) as usize];
                let timeout = 20_000 + self.prng.below(200_000);
                self.ask(session, tx, ledger, key, timeout);
            }
            90..97 => self.answer(session, tx),
            97 => {
                session.flush(tx, now).ok();
            }
            _ => self.retry(session, tx, ledger, era),
        }
    }

    /// Publishes a sample, unless one waits.
    fn sample(
        &mut self,
        session: &mut Node,
        tx: &mut Sender,
        ledger: &mut Ledger,
        which: usize,
        era: u64,
    ) {
        if self.pending.is_some() {
            return self.retry(session, tx, ledger, era);
        }
        let Some(publisher) = self.publishers.get(which) else {
            return;
        };
        let uid = publisher.uid;
        let len = match self.prng.below(20) {
            0..12 => 8 + self.prng.below(30),
            12..17 => 8 + self.prng.below(100),
            17..19 => 8 + self.prng.below(1000),
            _ => 8 + self.prng.below(4000),
        };
        let fates = &mut ledger.samples[uid].1;
        let sample = fates.len() as u32;
        fates.push(Fate::Kept);
        let payload = payload(uid, sample, len as usize);
        self.pending = Some(Pending {
            publisher: uid,
            sample,
            payload,
            cut: false,
        });
        self.retry(session, tx, ledger, era);
    }

    /// Puts the sample that waits, or gives it up.
    pub fn retry(&mut self, session: &mut Node, tx: &mut Sender, ledger: &mut Ledger, era: u64) {
        let Some(mut pending) = self.pending.take() else {
            return;
        };
        let is = |publisher: &&Publishing| publisher.uid == pending.publisher;
        let Some(id) = self
            .publishers
            .iter()
            .find(is)
            .map(|publisher| publisher.id)
        else {
            return;
        };
        let (payload, now) = (&pending.payload[..], tx.now);
        let became = match self.prng.chance(200) && !pending.cut {
            true => session.put_with(tx, id, payload.len(), now, |room| {
                room.copy_from_slice(payload)
            }),
            false => session.put(tx, id, payload, now),
        };
        match became {
            Ok(Put::Heard | Put::Sent) => {
                ledger.heard += 1;
                let (_, fates) = &mut ledger.samples[pending.publisher];
                fates[pending.sample as usize] = Fate::Gone(era);
            }
            Ok(Put::Unheard) => ledger.unheard += 1,
            Ok(Put::Dropped) => ledger.dropped += 1,
            Err(PutError::Full | PutError::Cut) if self.prng.chance(30) => {
                ledger.given_up += 1;
                if pending.cut || became == Err(PutError::Cut) {
                    session.abandon();
                }
            }
            Err(PutError::Full) => {
                ledger.full += 1;
                self.pending = Some(pending);
            }
            Err(PutError::Cut) => {
                ledger.cut += 1;
                pending.cut = true;
                self.pending = Some(pending);
            }
            // In place, it must fit a batch.
            Err(PutError::TooLarge | PutError::NotOpen) => {}
            Err(error) => panic!("{error:?}"),
        }
    }

    pub fn ask(
        &mut self,
        session: &mut Node,
        tx: &mut Sender,
        ledger: &mut Ledger,
        key: &str,
        timeout: u64,
    ) {
        let number = ledger.asked;
        let parameters = format!("{number}");
        let mut ask = Ask::new(KeyExpr::new(key).unwrap());
        ask.timeout = core::time::Duration::from_micros(timeout);
        ask.query.parameters = &parameters;
        match session.ask(tx, &ask, tx.now) {
            Ok(query) => {
                ledger.asked += 1;
                let before = self.queries.insert(query, number);
                assert!(before.is_none(), "the id of a query in flight");
            }
            Err(AskError::TooMany | AskError::Put(PutError::Full | PutError::NotOpen)) => {}
            Err(AskError::Put(PutError::Cut)) => session.abandon(),
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Answers the oldest of the questions that wait, with some replies, or finishes it.
    pub fn answer(&mut self, session: &mut Node, tx: &mut Sender) {
        let now = tx.now;
        let Some((request, parameters, _)) = self.requests.first().cloned() else {
            return;
        };
        let key = KeyExpr::new("k/0").unwrap();
        let end = match self.prng.below(4) {
            0 => session.reply(
                tx,
                request,
                Some(key),
                &Body::put(parameters.as_bytes()),
                now,
            ),
            1 => session.reply_error(tx, request, Encoding::default(), parameters.as_bytes(), now),
            _ => session.finish(tx, request, now).map(|()| {
                self.requests.remove(0);
            }),
        };
        match end {
            Ok(()) | Err(PutError::Full) => {}
            Err(PutError::Cut) => session.abandon(),
            // It ended by time, with its session, or with its queryable.
            Err(PutError::NoSuch | PutError::NotOpen) => {
                session.finish(tx, request, now).ok();
                self.requests.retain(|(open, ..)| *open != request);
            }
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Something that the session has told.
    pub fn told(
        &mut self,
        told: Told,
        session: &mut Node,
        tx: &mut Sender,
        mine: &mut Ledger,
        other: &Ledger,
    ) {
        match told {
            Told::Sample(id, key, kind, payload) => {
                let wanted = self
                    .subscribers
                    .get(&id)
                    .expect("a subscriber that there is");
                assert_eq!(kind, Kind::Put);
                self.check(id, &wanted.clone(), &key, &payload, other);
            }
            Told::Query(id, request, key, parameters) => {
                let own = self.queryables.get(&id).expect("a queryable that there is");
                let own = KeyExpr::new(own).unwrap();
                assert!(own.intersects(KeyExpr::new(&key).unwrap()));
                let at_once = !self.prompt && self.prng.chance(300);
                if at_once && session.finish(tx, request, tx.now).is_ok() {
                    return;
                }
                // One in ten is never answered.
                if self.prompt || self.prng.chance(900) {
                    self.requests.push((request, parameters, false));
                }
            }
            Told::Reply(query, _, payload) | Told::Failed(query, payload) => {
                let number = self.queries.get(&query).expect("a query that is open");
                assert_eq!(payload, number.to_string().as_bytes(), "another query's");
                self.answered += u64::from(self.prompt);
            }
            Told::Ended(query, how) => {
                self.queries.remove(&query).expect("each query ends once");
                match how {
                    Ended::Complete => mine.complete += 1,
                    Ended::TimedOut => mine.timed_out += 1,
                    Ended::Lost => mine.lost += 1,
                }
            }
            Told::Opened | Told::Closed(_) | Told::Heard => {}
        }
    }

    fn check(&mut self, id: SubscriberId, wanted: &str, key: &str, bytes: &[u8], other: &Ledger) {
        let (uid, sample) = read(bytes);
        let (of, fates) = &other.samples[uid];
        assert_eq!(key, of);
        let wanted = KeyExpr::new(wanted).unwrap();
        assert!(wanted.intersects(KeyExpr::new(key).unwrap()));
        assert_eq!(bytes, payload(uid, sample, bytes.len()));
        let fate = fates[sample as usize];
        assert!(
            matches!(fate, Fate::Gone(_)),
            "what was not sent has arrived"
        );
        if let Some(before) = self.seen.insert((id, uid), sample) {
            assert!(before < sample, "in order, and once");
        }
        if Some(id) == self.always {
            self.arrived.resize(other.samples.len(), Vec::new());
            let arrived = &mut self.arrived[uid];
            assert!(
                arrived.last().is_none_or(|last| *last < sample),
                "once over all restarts"
            );
            arrived.push(sample);
        }
    }

    pub fn is_idle(&self) -> bool {
        self.queries.is_empty() && self.pending.is_none()
    }

    /// Does what shows that all works again.
    pub fn mark(&mut self, session: &mut Node, tx: &mut Sender, ledger: &mut Ledger, era: u64) {
        self.finish(session, tx);
        self.retry(session, tx, ledger, era);
        if self.queries.is_empty() {
            self.ask(session, tx, ledger, "k/0", 5_000_000);
        } else if self.prng.chance(300) {
            self.sample(session, tx, ledger, 0, era);
        }
    }

    /// Answers all that was asked.
    pub fn finish(&mut self, session: &mut Node, tx: &mut Sender) {
        while let Some((request, parameters, replied)) = self.requests.first_mut() {
            let key = KeyExpr::new("k/0").unwrap();
            let body = Body::put(parameters.as_bytes());
            if !*replied {
                match session.reply(tx, *request, Some(key), &body, tx.now) {
                    Err(PutError::Full) => return,
                    Err(PutError::Cut) => return session.abandon(),
                    _ => *replied = true,
                }
            }
            match session.finish(tx, *request, tx.now) {
                Err(PutError::Full) => return,
                _ => self.requests.remove(0),
            };
        }
    }
}

/// A sample's bytes tell whose it is.
fn payload(uid: usize, sample: u32, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len)
        .map(|at| (uid * 31 + sample as usize * 7 + at) as u8)
        .collect();
    bytes[..4].copy_from_slice(&(uid as u32).to_le_bytes());
    bytes[4..8].copy_from_slice(&sample.to_le_bytes());
    bytes
}

fn read(bytes: &[u8]) -> (usize, u32) {
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(0) as usize, number(4))
}
