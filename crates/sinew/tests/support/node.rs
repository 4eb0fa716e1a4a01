//! Two sessions joined by links in memory, driven in virtual time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;

use sinew::link::{SendError, Tx};
use sinew::pubsub::codec::{Kind, Zid};
use sinew::pubsub::session::{
    Closed, Config, Ended, Event, Fixed, QueryId, QueryableId, RequestId, Session, State, Step,
    SubscriberId, Tables,
};
use sinew::time::Instant;

/// One direction of a link: a queue of packets.
#[derive(Debug, Default)]
pub struct Way {
    pub packets: VecDeque<Vec<u8>>,
    pub closed: bool,
}

/// The sending half.
pub struct Out {
    pub way: Rc<RefCell<Way>>,
    pub room: usize,
    place: Vec<u8>,
}

impl Out {
    pub fn new(mtu: usize, room: usize) -> Out {
        Out {
            way: Rc::default(),
            room,
            place: vec![0xaa; mtu],
        }
    }
}

impl Tx for Out {
    fn mtu(&self) -> usize {
        self.place.len()
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        if min > self.place.len() {
            return Err(SendError::TooLarge);
        }
        let way = self.way.borrow();
        if way.closed {
            return Err(SendError::Closed);
        }
        if way.packets.len() >= self.room {
            return Err(SendError::Full);
        }
        Ok(&mut self.place)
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        let packet = self.place.get(..len).ok_or(SendError::TooLarge)?;
        if len > 0 {
            self.way.borrow_mut().packets.push_back(packet.to_vec());
        }
        Ok(())
    }

    fn flush(&mut self) {}

    fn arm(&mut self, waker: &Waker) {
        waker.wake_by_ref();
    }
}

/// An event that borrows from nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    Opened,
    Closed(Closed),
    Sample(SubscriberId, String, Kind, Vec<u8>),
    Query(QueryableId, RequestId, String, String),
    Reply(QueryId, String, Vec<u8>),
    Failed(QueryId, Vec<u8>),
    Ended(QueryId, Ended),
    Heard,
}

impl Told {
    pub fn of(event: &Event<'_>) -> Told {
        use sinew::pubsub::codec::Reply;
        match event {
            Event::Opened => Told::Opened,
            Event::Closed(reason) => Told::Closed(*reason),
            Event::Sample { subscriber, sample } => Told::Sample(
                *subscriber,
                sample.key.to_owned(),
                sample.body.kind,
                sample.body.payload.to_vec(),
            ),
            Event::Query {
                queryable,
                request,
                question,
            } => Told::Query(
                *queryable,
                *request,
                question.key.to_owned(),
                question.query.parameters.to_owned(),
            ),
            Event::Reply { query, reply } => match &reply.answer {
                Reply::Sample { body, .. } => {
                    Told::Reply(*query, reply.key.to_owned(), body.payload.to_vec())
                }
                Reply::Error { payload, .. } => Told::Failed(*query, payload.to_vec()),
            },
            Event::Ended { query, how } => Told::Ended(*query, *how),
            Event::Heard => Told::Heard,
        }
    }
}

/// Tables with some of everything.
pub type All = Fixed<4, 4, 4, 4, 18, 8192, String>;

/// A session and its half of the link.
pub struct Node<T: Tables = All> {
    pub session: Session<T>,
    pub tx: Out,
    pub rx: Rc<RefCell<Way>>,
    pub told: Vec<Told>,
    /// Samples are taken in by runs, where they can.
    pub runs: bool,
    /// The packet in hand.
    packet: Option<Vec<u8>>,
}

impl<T: Tables> Node<T> {
    pub fn new(config: Config, tables: T, tx: Out) -> Self {
        Node {
            session: Session::new(config, tables),
            tx,
            rx: Rc::default(),
            told: Vec::new(),
            runs: false,
            packet: None,
        }
    }

    /// Does all there is to do at `now`.
    pub fn turn(&mut self, now: Instant) {
        let mut steps = 0;
        loop {
            if self.packet.is_none() {
                self.packet = self.rx.borrow_mut().packets.pop_front();
                steps = 0;
            }
            let Some(packet) = &self.packet else { break };
            // A message has a byte at least, and is told to each entity and passed.
            steps += 1;
            assert!(steps <= 6 * packet.len() + 6, "endless: {packet:02x?}");
            if self.runs
                && let Some(run) = self.session.run(packet)
            {
                assert!(run.payloads.count() > 0);
                let told = |payload: &[u8]| {
                    let key = run.key.to_owned();
                    Told::Sample(run.subscriber, key, Kind::Put, payload.to_vec())
                };
                let before = self.told.len();
                self.told.extend(run.payloads.of(packet).map(told));
                assert_eq!(self.told.len() - before, run.payloads.count() as usize);
                continue;
            }
            match self.session.receive(packet, &mut self.tx, now) {
                Step::More => {}
                Step::Done => self.packet = None,
                Step::Full => break,
                Step::Event(event) => self.told.push(Told::of(&event)),
            }
        }
        for steps in 0.. {
            assert!(steps < 1000, "endless");
            match self.session.poll(&mut self.tx, now) {
                Step::More => {}
                Step::Done | Step::Full => break,
                Step::Event(event) => self.told.push(Told::of(&event)),
            }
        }
    }

    pub fn drop_packet(&mut self) {
        self.packet = None;
    }

    pub fn take(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.told)
    }
}

pub fn zid(name: &str) -> Zid {
    Zid::new(name.as_bytes()).unwrap()
}

/// A node with some of everything, on a link of this mtu with room for so many packets.
pub fn node(config: Config, mtu: usize, room: usize) -> Node {
    Node::new(config, Fixed::new(), Out::new(mtu, room))
}

/// Joins two nodes, the first of which opens.
pub fn join<A: Tables, B: Tables>(one: &mut Node<A>, other: &mut Node<B>, now: Instant) {
    one.tx.way = Rc::default();
    other.tx.way = Rc::default();
    one.rx = other.tx.way.clone();
    other.rx = one.tx.way.clone();
    one.drop_packet();
    other.drop_packet();
    other.session.accept();
    one.session.open(now);
}

/// Lets both do what there is to do, until nothing is on the way.
pub fn settle<A: Tables, B: Tables>(one: &mut Node<A>, other: &mut Node<B>, now: Instant) {
    for _ in 0..10_000 {
        one.turn(now);
        other.turn(now);
        if one.rx.borrow().packets.is_empty() && other.rx.borrow().packets.is_empty() {
            return;
        }
    }
    panic!("they never come to rest");
}

/// Two peers with an open session.
pub fn peers(mtu: usize, room: usize) -> (Node, Node) {
    let now = Instant::START;
    let mut one = node(Config::peer(zid("one")), mtu, room);
    let mut other = node(Config::peer(zid("other")), mtu, room);
    join(&mut one, &mut other, now);
    settle(&mut one, &mut other, now);
    assert_eq!(one.session.state(), State::Open);
    assert_eq!(other.session.state(), State::Open);
    one.take();
    other.take();
    (one, other)
}
