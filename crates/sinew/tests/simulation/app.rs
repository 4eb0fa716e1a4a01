//! The simulated application: opens calls of all four kinds and checks what comes back.

use core::time::Duration;

use sinew::rpc::{Client, ClientCall, Decode, Event, MethodKind, Received, Status};
use sinew::time::Instant;

use crate::prng::Prng;
use crate::service::{CALLS, TAG};
use crate::support::kinds::{COUNT, DOUBLE, ECHO_ALL, SUM, method};
use crate::support::wire::Num;

/// How a call ended, for the table.
#[derive(Default, Clone, Debug)]
pub struct Ends {
    pub calls: u64,
    pub ok: u64,
    pub aborted: u64,
    pub exhausted: u64,
    pub precondition: u64,
    pub other: u64,
    pub deadline: u64,
    pub cancelled: u64,
    pub rebooted: u64,
    pub items: u64,
}

impl Ends {
    pub fn ended(&self) -> u64 {
        self.ok
            + self.aborted
            + self.exhausted
            + self.precondition
            + self.other
            + self.deadline
            + self.cancelled
            + self.rebooted
    }
}

/// One call in flight.
struct Running {
    call: ClientCall,
    kind: MethodKind,
    tag: u32,
    /// Items still to be sent, and sent so far.
    to_send: u32,
    sent: u32,
    received: u32,
    /// When the next thing is to be done.
    next: Instant,
    /// When the call must have ended at the latest.
    due: Instant,
}

pub struct App {
    pub prng: Prng,
    pub client: Client<CALLS>,
    running: Vec<Running>,
    next_tag: u32,
    boots: u32,
    /// Items must be complete, in order and once: nothing goes wrong on the way.
    strict: bool,
    pub ends: Ends,
    /// Calls that could not be opened.
    pub refused: u64,
}

const TIMEOUT: Duration = Duration::from_millis(60);

impl App {
    pub fn new(seed: u64, strict: bool) -> App {
        let mut app = App {
            prng: Prng::new(seed),
            client: Client::new(1, 0),
            running: Vec::new(),
            next_tag: 1,
            boots: 0,
            strict,
            ends: Ends::default(),
            refused: 0,
        };
        app.client = app.boot();
        app
    }

    /// Ids of two lives lie apart, as with a boot counter for a seed.
    fn boot(&mut self) -> Client<CALLS> {
        self.boots += 1;
        Client::new(1, self.boots * 500)
    }

    pub fn reboot(&mut self) {
        self.ends.rebooted += self.running.len() as u64;
        self.running.clear();
        self.client = self.boot();
    }

    pub fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// When [`App::act`] has something to do.
    pub fn due(&self) -> Instant {
        let next = self.running.iter().map(|running| running.next).min();
        next.unwrap_or(Instant::FAR).min(self.client.deadline())
    }

    /// Opens a call of any kind.
    pub fn open(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        let (number, kind) = match self.prng.below(4) {
            0 => (DOUBLE, MethodKind::Unary),
            1 => (COUNT, MethodKind::ServerStream),
            2 => (SUM, MethodKind::ClientStream),
            _ => (ECHO_ALL, MethodKind::Bidi),
        };
        let Ok(call) = self.client.open(method(number, kind), TIMEOUT, now) else {
            self.refused += 1;
            return;
        };
        let tag = self.next_tag;
        self.next_tag += 1;
        self.ends.calls += 1;
        let mut place = [0; 64];
        let len = match kind.client_streams() {
            true => call.open_stream(&mut place),
            false => call.request(&mut place, &Num(tag << TAG)),
        };
        out.push(place[..len.expect("room")].to_vec());
        let to_send = 1 + self.prng.below(6) as u32;
        let next = self.later(now, kind.client_streams());
        self.running.push(Running {
            call,
            kind,
            tag,
            to_send: if kind.client_streams() { to_send } else { 0 },
            sent: 0,
            received: 0,
            next,
            due: now.after(TIMEOUT),
        });
    }

    /// The next step of a call; only some others are ever touched again (and given up).
    fn later(&mut self, now: Instant, busy: bool) -> Instant {
        if busy || self.prng.chance(100) {
            now.after(Duration::from_micros(self.prng.below(6_000)))
        } else {
            Instant::FAR
        }
    }

    /// Sends items, completes, cancels, abandons and expires what is due.
    pub fn act(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        let mut place = [0; 64];
        for mut running in std::mem::take(&mut self.running) {
            if running.next > now {
                self.running.push(running);
                continue;
            }
            let call = running.call;
            let give_up = if running.kind.client_streams() {
                20
            } else {
                1000
            };
            let len = if self.prng.chance(give_up) {
                self.ends.cancelled += 1;
                match self.prng.chance(500) {
                    true => self.client.cancel(&call, Status::CANCELLED, &mut place),
                    false => self.client.abandon(&call, &mut place),
                }
            } else if running.sent < running.to_send {
                let item = Num(running.tag << TAG | running.sent);
                running.sent += 1;
                running.next = self.later(now, true);
                self.running.push(running);
                call.item(&mut place, &item).expect("room")
            } else {
                running.next = Instant::FAR;
                self.running.push(running);
                self.client.complete(&call, &mut place)
            };
            if len > 0 {
                out.push(place[..len].to_vec());
            }
        }
        while let Some((call, len)) = self.client.expire(&mut place, now) {
            self.ends.deadline += 1;
            let running = self.take(&call);
            assert_eq!(running.due, now, "a call expires at its deadline");
            out.push(place[..len].to_vec());
        }
        for running in &self.running {
            assert!(now < running.due, "every call ends by its deadline");
        }
    }

    fn take(&mut self, call: &ClientCall) -> Running {
        let found = self
            .running
            .iter()
            .position(|running| running.call == *call);
        self.running
            .remove(found.expect("an event names an open call"))
    }

    /// Checks what came back; nothing of another call is ever taken for this one's.
    pub fn receive(&mut self, event: Event<'_>, now: Instant) {
        let strict = self.strict;
        let found = self
            .running
            .iter_mut()
            .find(|running| running.call == event.call);
        let running = found.expect("an event names an open call");
        let check = |payload: &[u8], tag: u32| {
            let num = Num::decode(payload).expect("a number").0;
            let ours = num >> TAG == tag;
            assert!(ours, "an answer of call {} in call {tag}", num >> TAG);
            num & 15
        };
        match event.received {
            Received::Item(payload) => {
                let n = check(payload, running.tag);
                assert!(
                    !strict || n == running.received,
                    "items in order, each once"
                );
                running.received += 1;
                running.due = now.after(TIMEOUT);
                self.ends.items += 1;
                return;
            }
            Received::Completed(Status::OK, payload) => {
                match running.kind {
                    MethodKind::Unary => drop(check(payload, running.tag)),
                    // Without an item the service knows no tag: all were lost.
                    MethodKind::ClientStream if payload.is_empty() => assert!(!strict),
                    MethodKind::ClientStream => {
                        let items = check(payload, running.tag);
                        assert!(!strict || items == running.sent, "no item is lost");
                    }
                    MethodKind::ServerStream => assert!(!strict || running.received == 4),
                    MethodKind::Bidi => assert!(!strict || running.received == running.sent),
                }
                self.ends.ok += 1;
            }
            Received::Completed(status, _) | Received::Failed(status) => {
                *match status {
                    Status::ABORTED => &mut self.ends.aborted,
                    Status::RESOURCE_EXHAUSTED => &mut self.ends.exhausted,
                    Status::FAILED_PRECONDITION => &mut self.ends.precondition,
                    _ => &mut self.ends.other,
                } += 1;
            }
        }
        self.take(&event.call);
    }
}
