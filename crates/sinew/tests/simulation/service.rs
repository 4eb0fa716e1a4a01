//! The simulated service. Every number that it sees or sends is `tag << 4 | n`, and the tag belongs
//! to one call: a number in the wrong call is noticed.

use sinew::rpc::{
    AnswerError, Call, Cx, Input, MethodKind, Responder, Service, Status, Stop, StreamCx, StreamIn,
    Writer,
};
use sinew::time::Instant;

use crate::prng::Prng;
use crate::support::kinds::{COUNT, DOUBLE, ECHO_ALL, SERVICE, SUM};
use crate::support::wire::Num;

/// How many calls a server holds.
pub const CALLS: usize = 8;

/// Where the tag starts in a number.
pub const TAG: u32 = 4;

pub struct Sim {
    pub prng: Prng,
    /// Calls taken away, with the time of their next step.
    pub answers: Vec<(Instant, Responder<Num>, Num)>,
    pub streams: Vec<(Instant, Writer<Num>, Num, u32)>,
    /// Tag and number of items of the open client streams.
    state: [(u32, u32); CALLS],
    /// Steps of handlers.
    pub steps: u64,
    /// Items that belonged to another call. Must stay 0.
    pub mixed_up: u64,
    pub met_full: u64,
}

impl Sim {
    pub fn new(seed: u64) -> Sim {
        Sim {
            prng: Prng::new(seed),
            answers: Vec::new(),
            streams: Vec::new(),
            state: [(0, 0); CALLS],
            steps: 0,
            mixed_up: 0,
            met_full: 0,
        }
    }

    fn later(&mut self, now: Instant) -> Instant {
        now.after(core::time::Duration::from_micros(self.prng.below(8_000)))
    }

    /// When [`Sim::work`] has something to do.
    pub fn due(&self) -> Instant {
        let answers = self.answers.iter().map(|(due, ..)| *due);
        let streams = self.streams.iter().map(|(due, ..)| *due);
        answers.chain(streams).min().unwrap_or(Instant::FAR)
    }

    /// Answers and streams what is due, as tasks of their own would do it. Some tasks die.
    pub fn work(&mut self, now: Instant) {
        for (due, mut responder, answer) in std::mem::take(&mut self.answers) {
            if due > now {
                self.answers.push((due, responder, answer));
            } else if self.prng.chance(50) {
                drop(responder);
            } else if responder.answer(&answer) == Err(AnswerError::Full) {
                self.met_full += 1;
                let retry = self.later(now);
                self.answers.push((retry, responder, answer));
            }
        }
        for (due, mut writer, request, n) in std::mem::take(&mut self.streams) {
            if due > now {
                self.streams.push((due, writer, request, n));
                continue;
            }
            let sent = match n {
                0..4 => writer.send(&Num(request.0 | n)),
                _ if self.prng.chance(300) => continue, // dropped: ends with OK as well
                _ => writer.finish(Status::OK),
            };
            let next = self.later(now);
            match sent {
                Ok(()) if n < 4 => self.streams.push((next, writer, request, n + 1)),
                Err(AnswerError::Full) => {
                    self.met_full += 1;
                    self.streams.push((next, writer, request, n));
                }
                _ => {}
            }
        }
    }

    fn double(&mut self, q: &Num, cx: Cx<'_, Responder<Num>>) -> Result<Num, Stop> {
        self.steps += 1;
        if self.prng.chance(500) {
            return Ok(*q);
        }
        let due = self.later(cx.now());
        let (responder, stop) = cx.defer()?;
        self.answers.push((due, responder, *q));
        Err(stop)
    }

    fn count(&mut self, q: &Num, cx: Cx<'_, Writer<Num>>) -> Result<(), Stop> {
        self.steps += 1;
        let due = self.later(cx.now());
        let (writer, stop) = cx.defer()?;
        self.streams.push((due, writer, *q, 0));
        Err(stop)
    }

    /// Notes an item of a client stream; its tag must be that of the items before.
    fn note(&mut self, slot: usize, item: &Num) {
        let (tag, items) = &mut self.state[slot];
        if *items > 0 && *tag != item.0 >> TAG {
            self.mixed_up += 1;
        }
        *tag = item.0 >> TAG;
        *items += 1;
    }

    fn sum(
        &mut self,
        input: StreamIn<'_, Num>,
        cx: StreamCx<'_, Responder<Num>>,
    ) -> Result<Num, Stop> {
        self.steps += 1;
        let slot = cx.slot();
        match input {
            StreamIn::Open => self.state[slot] = (0, 0),
            StreamIn::Item(item) => self.note(slot, item),
            StreamIn::End => {
                let (tag, items) = self.state[slot];
                let answer = Num(tag << TAG | items.min(15));
                if self.prng.chance(500) {
                    return Ok(answer);
                }
                let due = self.later(cx.now());
                let (responder, stop) = cx.defer()?;
                self.answers.push((due, responder, answer));
                return Err(stop);
            }
            StreamIn::Closed(_) => {}
        }
        Err(cx.wait())
    }

    fn echo_all(
        &mut self,
        input: StreamIn<'_, Num>,
        cx: StreamCx<'_, Writer<Num>>,
    ) -> Result<(), Stop> {
        self.steps += 1;
        let slot = cx.slot();
        match input {
            StreamIn::Open => self.state[slot] = (0, 0),
            StreamIn::Item(item) => {
                self.note(slot, item);
                return Err(cx.send(item));
            }
            StreamIn::End => return Ok(()),
            StreamIn::Closed(_) => {}
        }
        Err(cx.wait())
    }
}

impl Service for Sim {
    fn kind(&self, service: u32, method: u32) -> Option<MethodKind> {
        match (service, method) {
            (SERVICE, DOUBLE) => Some(MethodKind::Unary),
            (SERVICE, COUNT) => Some(MethodKind::ServerStream),
            (SERVICE, SUM) => Some(MethodKind::ClientStream),
            (SERVICE, ECHO_ALL) => Some(MethodKind::Bidi),
            _ => None,
        }
    }

    fn handle(&mut self, call: &mut Call<'_>, input: Input<'_>) -> bool {
        match (call.service(), call.method()) {
            (SERVICE, DOUBLE) => call.unary(input, |q: &Num, cx| self.double(q, cx)),
            (SERVICE, COUNT) => call.server_stream(input, |q: &Num, cx| self.count(q, cx)),
            (SERVICE, SUM) => call.client_stream(input, |q, cx| self.sum(q, cx)),
            (SERVICE, ECHO_ALL) => call.bidi(input, |q, cx| self.echo_all(q, cx)),
            _ => false,
        }
    }
}
