//! Calls, streams and logs on one link with raw messages and state: who waits for whom, counted in
//! entries, in a simulation without a clock.
//!
//! Each side is one loop that serves the most urgent channel with something in it (`End::next`), in two
//! steps: it takes an entry in hand, and is done with it. Anything may arrive in between.
#![cfg(feature = "shm")]

#[path = "simulation/prng.rs"]
mod prng;
mod support;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use sinew::link::domain::DomainPort;
use sinew::link::{Port, SendError};
use sinew::rpc::packet::Packet;
use sinew::rpc::{
    AnswerError, Call, Channels, Client, ClientCall, Cx, Decode, Input, MethodKind, Received,
    Responder, Server, Service, Status, Stop, Via, Writer,
};
use sinew::time::Instant;
use sinew_shm::domain::{
    self, Channel, Config, Incoming, Messages, Options, Outgoing, Pool, Receiver, Refused, Sender,
    State,
};
use sinew_shm::local::{self, LocalEnd};
use sinew_shm::{Bell, StdLock};

use prng::Prng;
use support::client::{SERVER_STREAM, UNARY};
use support::kinds::{COUNT, DOUBLE, SERVICE};
use support::slots;
use support::wire::Num;

/// The bound: how many entries of less urgent channels a side may be done with between the arrival of
/// an urgent entry and its being served. It is the one that the side has in hand.
const IN_HAND: u32 = 1;

const LOG: u16 = 1;
const CALLS: u16 = 2;
const SPEED: u16 = 3;
const MOTOR: u16 = 4;
/// The channels with entries, the most urgent first. `LINK` has them the other way round, so that it is
/// not the place in the configuration that counts.
const URGENCY: [u16; 3] = [MOTOR, CALLS, LOG];

const LOGS: u16 = 16;
const LINE: usize = 48;
const PLACES: u16 = 8;
const SIZE: u32 = 64;
const REQUESTS: u16 = 4;
const ANSWERS: u16 = 3;
const LINK: Config = Config::new(&[
    Channel::new(LOG, "log", Pool::new(LOGS, LINE as u32)).priority(200),
    Channel::of::<u64>(SPEED, "speed"),
    Channel::new(CALLS, "calls", Pool::new(PLACES, SIZE)).priority(64),
    Channel::messages(MOTOR, "motor", REQUESTS, ANSWERS).priority(0),
]);

/// Calls of one side that are open, at most.
const OPEN: usize = 4;
/// Places that requests leave to answers, and that streams leave to both.
const URGENT: u16 = 1;
const BULK: u16 = 3;
/// Items of a stream.
const ITEMS: u32 = 12;
/// Nothing ends by its deadline.
const NEVER: Duration = Duration::from_secs(3600);

/// The service: `Double`, and `Count`, which sends `number << 8 | n`.
#[derive(Default)]
struct Counting(Vec<(Writer<Num>, u32, u32)>);

impl Service for Counting {
    fn kind(&self, service: u32, method: u32) -> Option<MethodKind> {
        match (service, method) {
            (SERVICE, DOUBLE) => Some(MethodKind::Unary),
            (SERVICE, COUNT) => Some(MethodKind::ServerStream),
            _ => None,
        }
    }

    fn handle(&mut self, call: &mut Call<'_>, input: Input<'_>) -> bool {
        match call.method() {
            DOUBLE => call.unary(input, |q: &Num, _: Cx<'_, Responder<Num>>| {
                Ok::<_, Stop>(Num(2 * q.0))
            }),
            _ => call.server_stream(input, |q: &Num, cx: Cx<'_, Writer<Num>>| {
                let (writer, later) = cx.defer()?;
                self.0.push((writer, q.0, 0));
                Err(later)
            }),
        }
    }
}

/// What a side has in hand.
enum Hand {
    Nothing,
    Message(domain::Message<LocalEnd>),
    /// A packet of a call, and a place for its answer.
    Packet,
    Line,
}

/// A call that was made: its number, whether it is a stream, and how many items came.
struct Asked {
    call: ClientCall,
    number: u32,
    streams: bool,
    items: u32,
}

struct Side {
    end: LocalEnd,
    hand: Hand,
    tx: Outgoing<LocalEnd>,
    rx: Incoming<LocalEnd, Vec<u8>>,
    port: &'static DomainPort<LocalEnd, Arc<Bell<StdLock>>>,
    via: Via,
    server: Server<OPEN>,
    client: Client<OPEN>,
    service: Counting,
    asked: Vec<Asked>,
    numbers: u32,
    motor: Messages<LocalEnd>,
    /// Messages that wait for their answer.
    waiting: Vec<(domain::Call<LocalEnd>, u32)>,
    log: Sender<LocalEnd>,
    lines: Incoming<LocalEnd, Vec<u8>>,
    speed: State<LocalEnd, u64>,
}

/// What went one way, of each channel in `URGENCY`.
#[derive(Default)]
struct Way {
    sent: [u32; 3],
    served: [u32; 3],
    /// For each entry on its way, of how many less urgent ones the receiver was done when it came.
    arrived: [VecDeque<u32>; 3],
    less_urgent: [u32; 3],
    /// The most that any entry let pass.
    passed: [u32; 3],
    speed: Option<u64>,
    answered: u32,
}

impl Way {
    fn send(&mut self, urgency: usize) {
        self.sent[urgency] += 1;
        self.arrived[urgency].push_back(self.less_urgent[urgency]);
    }

    fn serve(&mut self, urgency: usize) {
        self.served[urgency] += 1;
        let then = self.arrived[urgency].pop_front().expect("it was sent");
        let passed = self.less_urgent[urgency] - then;
        self.passed[urgency] = self.passed[urgency].max(passed);
        for more_urgent in &mut self.less_urgent[..urgency] {
            *more_urgent += 1;
        }
    }

    /// Entries that nobody is done with.
    fn under_way(&self, urgency: usize) -> u32 {
        self.sent[urgency] - self.served[urgency]
    }
}

impl Side {
    fn new(end: LocalEnd) -> Side {
        let bell = Arc::new(Bell::<StdLock>::new());
        let sender = Sender::new(&end, CALLS).unwrap();
        let port = |reserve| -> &'static DomainPort<_, _> {
            Box::leak(Box::new(DomainPort::new(&sender, reserve, bell.clone())))
        };
        let (urgent, bulk) = (port(URGENT), port(BULK));
        let mut server = Server::new(slots());
        server.set_lifetime(NEVER);
        let buffer = vec![0; SIZE as usize];
        Side {
            hand: Hand::Nothing,
            tx: Outgoing::new(sender.clone()),
            rx: Incoming::new(Receiver::new(&end, CALLS).unwrap(), buffer).unwrap(),
            port: urgent,
            via: Via {
                link: 0,
                channels: Channels::Only(1),
                port: Some(urgent),
                bulk: Some(bulk),
            },
            server,
            client: Client::new(1, 0),
            service: Counting::default(),
            asked: Vec::new(),
            numbers: 0,
            motor: Messages::new(&end, MOTOR).unwrap(),
            waiting: Vec::new(),
            log: Sender::new(&end, LOG).unwrap(),
            lines: Incoming::new(Receiver::new(&end, LOG).unwrap(), vec![0; LINE]).unwrap(),
            speed: State::new(&end, SPEED).unwrap(),
            end,
        }
    }

    /// Sends lines until there is no place for one.
    fn fill_log(&mut self, out: &mut Way) {
        loop {
            let mut line = [0; LINE];
            line[..4].copy_from_slice(&out.sent[2].to_le_bytes());
            match self.log.send(&line) {
                Ok(is_wanted) => assert!(is_wanted),
                Err(refused) => return assert_eq!(refused, Refused::Full),
            }
            out.send(2);
        }
    }

    /// Sends a message, or calls by one. It is refused where its own channel is full, and never else.
    fn message(&mut self, is_call: bool, out: &mut Way) {
        let number = out.sent[0];
        let words = [number, 1, 2, 3, !number];
        let sent = match is_call {
            true => self.motor.call(7, words).map(|call| {
                self.waiting.push((call, number));
            }),
            false => self.motor.send(7, words),
        };
        let is_full = out.under_way(0) >= u32::from(REQUESTS)
            || is_call && self.waiting.len() >= usize::from(ANSWERS);
        match sent {
            Ok(()) => out.send(0),
            Err(refused) => assert!(refused == Refused::Full && is_full, "{refused:?}"),
        }
    }

    /// Opens a call, if there is one left. It is refused where the places of calls are in use, and
    /// never else.
    fn ask(&mut self, streams: bool, now: Instant, out: &mut Way) {
        let method = if streams { SERVER_STREAM } else { UNARY };
        let Ok(call) = self.client.open(method, NEVER, now) else {
            return assert_eq!(self.asked.len(), OPEN);
        };
        let number = self.numbers;
        let port: &dyn Port = self.port;
        let sent = port.send_with(SIZE as usize, |place| {
            (call.request(place, &Num(number)).expect("it fits"), ())
        });
        match sent {
            Ok(()) => {
                out.send(1);
                self.numbers += 1;
                self.asked.push(Asked {
                    call,
                    number,
                    streams,
                    items: 0,
                });
            }
            Err(error) => {
                assert_eq!(error, SendError::Full);
                assert!(self.places(out) + u32::from(URGENT) >= u32::from(PLACES));
                self.client.abandon(&call, &mut []);
            }
        }
    }

    /// Places of calls that are in use.
    fn places(&self, out: &Way) -> u32 {
        out.under_way(1) + u32::from(matches!(self.hand, Hand::Packet))
    }

    /// Sends the next item of each stream, which is refused as above.
    fn stream(&mut self, out: &mut Way) {
        for (mut writer, number, n) in std::mem::take(&mut self.service.0) {
            let sent = match n {
                0..ITEMS => writer.send(&Num(number << 8 | n)),
                _ => writer.finish(Status::OK),
            };
            match sent {
                Ok(()) => {
                    out.send(1);
                    if n < ITEMS {
                        self.service.0.push((writer, number, n + 1));
                    }
                }
                Err(error) => {
                    assert_eq!(error, AnswerError::Full);
                    assert!(self.places(out) + u32::from(BULK) >= u32::from(PLACES));
                    self.service.0.push((writer, number, n));
                }
            }
        }
    }

    /// Takes up what answers there are; each comes once.
    fn answers(&mut self, out: &mut Way) {
        self.waiting.retain_mut(|(call, number)| {
            let Some(words) = call.poll().unwrap() else {
                return true;
            };
            assert_eq!(words, [*number, 9, 0, 0, 0]);
            out.answered += 1;
            false
        });
    }

    /// One step of the loop: whether there was something to do.
    fn step(&mut self, next: Next, now: Instant, (out, into): (&mut Way, &mut Way)) -> bool {
        match std::mem::replace(&mut self.hand, Hand::Nothing) {
            Hand::Nothing => return self.take(next),
            Hand::Message(message) => {
                let number = into.served[0];
                assert_eq!(message.words, [number, 1, 2, 3, !number], "in order, once");
                if message.answer.is_some() {
                    message.answer([number, 9]);
                }
                into.serve(0);
            }
            Hand::Packet => {
                self.packet(now, out);
                into.serve(1);
            }
            Hand::Line => {
                let line = self.lines.peek().unwrap().expect("the line in hand");
                assert_eq!(line.len(), LINE);
                assert_eq!(line[..4], into.served[2].to_le_bytes(), "in order, once");
                self.lines.release();
                into.serve(2);
            }
        }
        true
    }

    /// Takes an entry in hand.
    fn take(&mut self, next: Next) -> bool {
        match next {
            Next::MostUrgent => self.end.next().is_some_and(|channel| self.take_of(channel)),
            Next::LeastUrgent => URGENCY.iter().rev().any(|&channel| self.take_of(channel)),
        }
    }

    fn take_of(&mut self, channel: u16) -> bool {
        let taken = match channel {
            MOTOR => self.motor.receive().unwrap().map(Hand::Message),
            // With a place for the answer. Without one, what the peer takes up makes one.
            CALLS => match self.tx.place(SIZE as usize) {
                Ok(_) if self.rx.peek().unwrap().is_some() => Some(Hand::Packet),
                Ok(_) => {
                    self.tx.commit(0).unwrap();
                    None
                }
                Err(refused) => {
                    assert_eq!(refused, Refused::Full);
                    None
                }
            },
            _ => self.lines.peek().unwrap().map(|_| Hand::Line),
        };
        let Some(taken) = taken else { return false };
        self.hand = taken;
        true
    }

    /// Gives the packet in hand to the engine that it is for.
    fn packet(&mut self, now: Instant, out: &mut Way) {
        let place = self.tx.place(SIZE as usize).expect("the place in hand");
        let bytes = self.rx.peek().unwrap().expect("the packet in hand");
        let packet = Packet::decode(bytes).expect("a packet");
        let len = if packet.packet_type.is_for_server() {
            let (server, service) = (&mut self.server, &mut self.service);
            server.handle_packet(&packet, &self.via, place, service, now)
        } else {
            let (len, event) = self.client.handle_packet(&packet, place, now);
            let event = event.expect("each packet belongs to a call that is open");
            let found = self.asked.iter().position(|it| it.call == event.call);
            let found = found.expect("a call that was made");
            let asked = &mut self.asked[found];
            match event.received {
                Received::Item(payload) => {
                    let item = Num(asked.number << 8 | asked.items);
                    assert_eq!(Num::decode(payload), Some(item), "in order, once");
                    asked.items += 1;
                }
                Received::Completed(Status::OK, payload) => {
                    let expected = match asked.streams {
                        true => Num(0),
                        false => Num(2 * asked.number),
                    };
                    assert_eq!(Num::decode(payload), Some(expected));
                    assert_eq!(asked.items, if asked.streams { ITEMS } else { 0 });
                    self.asked.remove(found);
                }
                other => panic!("{other:?}"),
            }
            len
        };
        self.tx.commit(len).expect("the place in hand");
        self.tx.flush();
        self.rx.release();
        if len > 0 {
            out.send(1);
        }
        let polled = self
            .server
            .poll(&self.via, &mut [0; 64], &mut self.service, now);
        assert_eq!(polled, Ok(0), "nothing ends by its deadline");
    }
}

/// Which channel a loop serves.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    /// As it should be.
    MostUrgent,
    /// The mutant.
    LeastUrgent,
}

/// Runs both sides, then to the end what they have begun: what went each way.
fn run(seed: u64, next: Next, rounds: u32) -> [Way; 2] {
    let mut prng = Prng::new(seed);
    // Between sides that trust each other, or not: read where it lies, or copied.
    let pair = match seed % 2 {
        0 => local::pair(LINK, Options::default()),
        _ => local::pair_untrusted(LINK, Options::default()),
    };
    let (first, second) = pair.unwrap();
    let mut sides = [Side::new(first), Side::new(second)];
    let mut ways = [Way::default(), Way::default()];
    let mut serving = 500;
    for round in 0..rounds {
        let now = Instant::from_micros(round.into());
        if round % 128 == 0 {
            // Times in which the loops keep up, and times in which they do not.
            serving = 400 + prng.below(590);
        }
        let index = prng.below(2) as usize;
        let [first, second] = &mut ways;
        let (out, into) = match index {
            0 => (first, second),
            _ => (second, first),
        };
        let side = &mut sides[index];
        // The log is always full.
        side.fill_log(out);
        if prng.chance(serving) {
            side.step(next, now, (out, into));
        } else {
            match prng.below(8) {
                0..2 => side.message(prng.chance(500), out),
                2 => side.ask(false, now, out),
                3 => side.ask(true, now, out),
                4 => {
                    assert_eq!(side.speed.set(&u64::from(round)), Ok(true));
                    out.speed = Some(round.into());
                }
                _ => side.stream(out),
            }
        }
        side.answers(out);
        for (side, into) in sides.iter().zip(ways.iter().rev()) {
            assert_eq!(side.speed.get(), Ok(into.speed), "the newest, at once");
        }
    }
    let now = Instant::from_micros(rounds.into());
    let mut idle = 0;
    while idle < 2 {
        idle = 0;
        for index in [0, 1] {
            let [first, second] = &mut ways;
            let (out, into) = match index {
                0 => (first, second),
                _ => (second, first),
            };
            sides[index].stream(out);
            sides[index].answers(out);
            idle += usize::from(!sides[index].step(next, now, (out, into)));
        }
    }
    for (side, way) in sides.iter().zip(&ways) {
        assert_eq!(way.sent, way.served, "everything arrives");
        assert!(side.asked.is_empty() && side.waiting.is_empty() && side.service.0.is_empty());
        assert!(side.end.check_books());
    }
    ways
}

const ROUNDS: u32 = 4000;

#[test]
fn an_urgent_entry_waits_for_the_one_in_hand_and_no_other() {
    let mut sum = [0; 3];
    let mut passed = [0; 3];
    for seed in 1..=100 {
        for way in run(seed, Next::MostUrgent, ROUNDS) {
            let [messages, calls, lines] = way.passed;
            assert!(
                messages <= IN_HAND,
                "seed {seed}: messages let {messages} pass"
            );
            assert!(calls <= IN_HAND, "seed {seed}: calls let {calls} pass");
            assert_eq!(lines, 0, "nothing is less urgent");
            for urgency in 0..3 {
                sum[urgency] += way.served[urgency];
                passed[urgency] = passed[urgency].max(way.passed[urgency]);
            }
            assert!(way.answered > 20, "seed {seed}: {} answers", way.answered);
        }
    }
    // There was enough of each, and the bound is reached.
    assert!(sum.iter().all(|&served| served > 20_000), "{sum:?}");
    assert_eq!(passed, [IN_HAND, IN_HAND, 0]);
}

#[test]
fn a_loop_that_serves_the_least_urgent_first_is_found_out() {
    // Everything still arrives, once and in order: only the waiting gives it away.
    for seed in 1..=4 {
        let ways = run(seed, Next::LeastUrgent, ROUNDS);
        let worst = ways.iter().map(|way| way.passed[0].max(way.passed[1]));
        let worst = worst.max().unwrap_or(0);
        assert!(
            worst > u32::from(LOGS),
            "seed {seed}: {worst} entries passed"
        );
    }
}
