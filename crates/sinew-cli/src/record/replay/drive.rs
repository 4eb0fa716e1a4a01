//! Makes recorded calls again, in one thread on one link, and compares what comes.
//!
//! A call begins when those that had ended before it in the recording have ended, and a step in it waits for what
//! came in it before: so a server sees its calls in the order in which it saw them, however fast it is. With the
//! recorded spacing, nothing leaves before its time as well.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sinew::link::SendError;
use sinew::rpc::packet::{Packet, PacketType, Route, is_open_id};
use sinew::rpc::{MethodKind, Status};
use sinew_io::{Link as _, Want};

use super::compare::{self, Difference, Ignored};
use super::read::{Call, Known, Recorded, What};
use crate::record::line::Line;

/// Call ids stay below this, as those of any client.
const CALL_IDS: u32 = 1 << 14;
/// Calls at the same time, fewer than ids: more wait until one has ended.
const MOST_RUNNING: usize = 1_024;
/// Packets that one turn takes up, so that deadlines are seen in between.
const BURST: usize = 64;
/// How long a turn sleeps at most, so that Ctrl-C is seen.
const TICK: Duration = Duration::from_millis(50);
/// A wait that is worth a word.
const LONG: Duration = Duration::from_secs(1);

/// How the calls are to be made.
pub struct Pace {
    /// Times as fast as they were; `None`: as fast as the server answers.
    pub speed: Option<f64>,
    /// How long the server may be silent, beyond the time that it was silent in the recording.
    pub timeout: Duration,
}

/// What came of a call.
#[derive(Debug)]
pub struct Verdict {
    /// Its place in the recording.
    pub at: usize,
    /// `None`: it went as it had gone.
    pub wrong: Option<Wrong>,
}

/// Where a call went otherwise, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// The response, an item by its number from 1, or the status.
    pub place: String,
    pub difference: Difference,
}

impl Wrong {
    fn whole(place: String, recorded: Option<String>, came: Option<String>) -> Option<Wrong> {
        let path = String::new();
        let difference = Difference {
            path,
            recorded,
            came,
        };
        Some(Wrong { place, difference })
    }
}

/// What is waited for so long that it is worth a word: the next step of a call.
#[derive(Clone, Copy, Debug)]
pub struct Waits<'r> {
    pub call: &'r Call,
    pub who: Who,
    /// When it leaves, or when it is given up.
    pub until: Instant,
}

/// By whom a step is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// By this side, when its recorded time is there.
    Client,
    Server,
}

/// Why a replay did not come to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stopped {
    Interrupted,
    LinkLost,
    /// Nothing has come at all.
    Silent,
    /// A message has so many bytes, and a packet of the link so many.
    TooLarge(usize, usize),
}

/// A call that is being made.
struct Running<'r> {
    at: usize,
    call: &'r Call,
    known: &'r Known,
    route: Route,
    /// The step that is next.
    next: usize,
    is_opened: bool,
    /// Messages that came and are not compared yet: no more than were recorded, and one.
    came: VecDeque<Vec<u8>>,
    /// How many came in all.
    count: usize,
    expected: usize,
    compared: usize,
    end: Option<What>,
    heard: Instant,
}

/// The replay.
pub struct Drive<'r> {
    recorded: &'r Recorded,
    /// The calls to make, by their places.
    calls: VecDeque<usize>,
    line: Line,
    channel: u32,
    pace: Pace,
    ignored: &'r Ignored,
    running: Vec<Running<'r>>,
    start: Instant,
    /// The recorded time of the start.
    origin: u64,
    last_id: u32,
    has_heard: bool,
    /// Something could not be sent, because the link was full.
    is_full: bool,
    /// Of what takes long, what comes first.
    waits: Option<Waits<'r>>,
    verdicts: VecDeque<Verdict>,
}

/// What a step of a call came to.
enum Turn {
    /// It went on.
    On,
    /// It waits: for one of both sides, until then, or for room on the link.
    Wait(Option<(Who, Instant)>),
    Over(Option<Wrong>),
}

impl<'r> Drive<'r> {
    pub fn new(
        recorded: &'r Recorded,
        calls: Vec<usize>,
        line: Line,
        channel: u32,
        pace: Pace,
        ignored: &'r Ignored,
        seed: u32,
    ) -> Drive<'r> {
        let times = calls.iter().filter_map(|&at| recorded.calls.get(at));
        Drive {
            origin: times.map(|call| call.time).min().unwrap_or(0),
            recorded,
            calls: calls.into(),
            line,
            channel,
            pace,
            ignored,
            running: Vec::new(),
            start: Instant::now(),
            last_id: seed % CALL_IDS,
            has_heard: false,
            is_full: false,
            waits: None,
            verdicts: VecDeque::new(),
        }
    }

    /// The next call that has ended; `None` after the last one. `look` sees now and then what is waited for, and may
    /// interrupt it. Calls that are open when it stops are told so to the server.
    pub fn next(
        &mut self,
        look: impl Fn(Option<&Waits<'_>>) -> bool,
    ) -> Result<Option<Verdict>, Stopped> {
        loop {
            if let Some(verdict) = self.verdicts.pop_front() {
                return Ok(Some(verdict));
            }
            if self.calls.is_empty() && self.running.is_empty() {
                return Ok(None);
            }
            if look(self.waits.as_ref()) {
                self.cancel_all();
                return Err(Stopped::Interrupted);
            }
            self.turn()?;
        }
    }

    /// Keeps what a call waits for, where that takes long and comes first. The server was heard then.
    fn wait_for(&mut self, at: usize, who: Who, heard: Instant, until: Instant) {
        let now = Instant::now();
        let is_long = match who {
            Who::Client => until > now + LONG,
            Who::Server => now > heard + LONG,
        };
        let is_first = self.waits.is_none_or(|other| until < other.until);
        if let (true, Some(call)) = (is_long && is_first, self.recorded.calls.get(at)) {
            self.waits = Some(Waits { call, who, until });
        }
    }

    fn turn(&mut self) -> Result<(), Stopped> {
        self.is_full = false;
        self.waits = None;
        let mut has_more = true;
        for _ in 0..BURST {
            has_more = self.receive()?;
            if !has_more {
                break;
            }
        }
        let mut until = Instant::now() + TICK;
        let mut at = 0;
        while at < self.running.len() {
            match self.go_on(at)? {
                Turn::On => {}
                Turn::Wait(waits) => {
                    if let (Some(running), Some((who, end))) = (self.running.get(at), waits) {
                        until = until.min(end);
                        self.wait_for(running.at, who, running.heard, end);
                    }
                    at += 1;
                }
                Turn::Over(wrong) => {
                    let done = self.running.remove(at);
                    self.verdicts.push_back(Verdict { at: done.at, wrong });
                }
            }
        }
        while let Some(due) = self.open() {
            match due {
                // It is looked at in the next turn.
                None => until = Instant::now(),
                Some(due) => {
                    until = until.min(due);
                    if let Some(&next) = self.calls.front() {
                        self.wait_for(next, Who::Client, self.start, due);
                    }
                    break;
                }
            }
        }
        let left = until.saturating_duration_since(Instant::now());
        if !has_more && self.verdicts.is_empty() && !left.is_zero() {
            let want = match self.is_full {
                true => Want::Place,
                false => Want::Packet,
            };
            self.line.wait(want, left);
        }
        Ok(())
    }

    /// Takes the next call up, where it may begin: `Some(None)`. `Some(time)`: not before then. `None`: there is none,
    /// or it waits for others.
    fn open(&mut self) -> Option<Option<Instant>> {
        let recorded = self.recorded;
        let at = *self.calls.front()?;
        let call = recorded.calls.get(at)?;
        let is_before = |other: &Running<'_>| other.call.ended.is_some_and(|end| end < call.opened);
        if self.running.len() >= MOST_RUNNING || self.running.iter().any(is_before) {
            return None;
        }
        let due = self.due(call.time);
        if due > Instant::now() {
            return Some(Some(due));
        }
        self.calls.pop_front();
        // A call that is open has its id for itself.
        let (service, method) = call.ids;
        let route = loop {
            self.last_id = self.last_id % (CALL_IDS - 1) + 1;
            let route = Route {
                channel: self.channel,
                service,
                method,
                call_id: self.last_id,
            };
            if !self.running.iter().any(|running| running.route == route) {
                break route;
            }
        };
        let is_response = |what: &What| matches!(what, What::Response(_));
        let entries = call.entries.iter();
        self.running.push(Running {
            at,
            call,
            known: recorded.methods.get(&call.method).unwrap_or(&UNKNOWN),
            route,
            next: 0,
            is_opened: false,
            came: VecDeque::new(),
            count: 0,
            expected: entries.filter(|entry| is_response(&entry.what)).count(),
            compared: 0,
            end: None,
            heard: Instant::now(),
        });
        Some(None)
    }

    /// When something that was recorded at this time is to leave.
    fn due(&self, time: u64) -> Instant {
        let Some(speed) = self.pace.speed else {
            return self.start;
        };
        let span = time.saturating_sub(self.origin) as f64 / 1e9 / speed;
        let span = Duration::try_from_secs_f64(span).unwrap_or(Duration::MAX);
        // A time that no clock has does not come.
        let never = || Instant::now() + Duration::from_secs(3600);
        self.start.checked_add(span).unwrap_or_else(never)
    }

    /// Takes a packet up; `false` where there is none.
    fn receive(&mut self) -> Result<bool, Stopped> {
        let Drive { line, running, .. } = self;
        let taken = line.receive(|bytes| {
            let Ok(packet) = Packet::decode(bytes) else {
                return false;
            };
            let is_ours = !packet.packet_type.is_for_server();
            let call = running.iter_mut().find(|call| call.is_of(&packet));
            if let (Some(call), true) = (call, is_ours) {
                call.take(&packet);
            }
            is_ours
        });
        match taken {
            Ok(Some(is_ours)) => {
                self.has_heard |= is_ours;
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(_) => Err(Stopped::LinkLost),
        }
    }

    /// The next step of a call.
    fn go_on(&mut self, at: usize) -> Result<Turn, Stopped> {
        let Some(running) = self.running.get(at) else {
            return Ok(Turn::Over(None));
        };
        if !running.is_opened {
            return self.begin(at);
        }
        let Some(entry) = running.call.entries.get(running.next) else {
            // It was open when the recording ended.
            return self.give_up(at, Status::CANCELLED, None);
        };
        match &entry.what {
            What::Response(message) => self.expect(at, message),
            What::Answered(_) | What::Refused(_) => self.expect_end(at, &entry.what),
            // Whatever the server says to a call that it has ended.
            _ if running.end.is_some() => Ok(self.step_on(at)),
            What::Request(message) => self.say(
                at,
                PacketType::CLIENT_STREAM,
                message,
                Status::OK,
                entry.time,
            ),
            What::Completed => {
                let complete = PacketType::CLIENT_REQUEST_COMPLETION;
                self.say(at, complete, &[], Status::OK, entry.time)
            }
            What::GivenUp(status) => {
                self.say(at, PacketType::CLIENT_ERROR, &[], *status, entry.time)
            }
        }
    }

    fn step_on(&mut self, at: usize) -> Turn {
        if let Some(running) = self.running.get_mut(at) {
            running.next += 1;
            let is_last = running.next >= running.call.entries.len();
            if is_last && running.call.ended.is_some() {
                return Turn::Over(None);
            }
        }
        Turn::On
    }

    /// Opens the call, with its first message where that is a request.
    fn begin(&mut self, at: usize) -> Result<Turn, Stopped> {
        let Some(running) = self.running.get_mut(at) else {
            return Ok(Turn::On);
        };
        let streams = running.known.kind.is_some_and(MethodKind::client_streams);
        let first = running.call.entries.first().map(|entry| &entry.what);
        let request = match first {
            Some(What::Request(request)) if !streams => Some(request),
            _ => None,
        };
        let payload = request.map_or(&[][..], Vec::as_slice);
        let has_left = self.send(at, PacketType::REQUEST, payload, Status::OK)?;
        if let (true, Some(running)) = (has_left, self.running.get_mut(at)) {
            running.is_opened = true;
            running.heard = Instant::now();
            running.next = usize::from(request.is_some());
            return Ok(Turn::On);
        }
        Ok(Turn::Wait(None))
    }

    /// Sends a step of the client, at its time.
    fn say(
        &mut self,
        at: usize,
        packet_type: PacketType,
        payload: &[u8],
        status: Status,
        time: u64,
    ) -> Result<Turn, Stopped> {
        let due = self.due(time);
        if due > Instant::now() {
            return Ok(Turn::Wait(Some((Who::Client, due))));
        }
        if !self.send(at, packet_type, payload, status)? {
            return Ok(Turn::Wait(None));
        }
        if let Some(running) = self.running.get_mut(at) {
            running.heard = Instant::now();
        }
        Ok(self.step_on(at))
    }

    /// `false`: the link is full.
    fn send(
        &mut self,
        at: usize,
        packet_type: PacketType,
        payload: &[u8],
        status: Status,
    ) -> Result<bool, Stopped> {
        let Some(running) = self.running.get(at) else {
            return Ok(true);
        };
        let sent = self
            .line
            .send(packet_type, &running.route, payload, status, |_| {});
        match sent {
            Ok(()) => Ok(true),
            Err(SendError::Full) => {
                self.is_full = true;
                Ok(false)
            }
            Err(SendError::TooLarge) => Err(Stopped::TooLarge(payload.len(), self.line.mtu())),
            Err(SendError::Closed) => Err(Stopped::LinkLost),
        }
    }

    /// Waits for a message, and compares it.
    fn expect(&mut self, at: usize, message: &[u8]) -> Result<Turn, Stopped> {
        let ignored = self.ignored;
        let Some(running) = self.running.get_mut(at) else {
            return Ok(Turn::On);
        };
        let schema = running.known.response.as_ref();
        let place = running.place();
        if let Some(came) = running.came.pop_front() {
            running.compared += 1;
            let found = compare::messages(message, &came, schema, ignored);
            return match found {
                None => Ok(self.step_on(at)),
                Some(difference) => {
                    let wrong = Some(Wrong { place, difference });
                    self.give_up(at, Status::CANCELLED, wrong)
                }
            };
        }
        let recorded = Some(compare::text(message, schema));
        match &running.end {
            Some(end) => {
                let came = Some(said(end));
                Ok(Turn::Over(Wrong::whole(place, recorded, came)))
            }
            None => self.wait(at, place, recorded),
        }
    }

    /// Waits for the end of a call, and compares that.
    fn expect_end(&mut self, at: usize, recorded: &What) -> Result<Turn, Stopped> {
        let Some(running) = self.running.get_mut(at) else {
            return Ok(Turn::On);
        };
        let place = "status".to_owned();
        if let Some(came) = running.came.pop_front() {
            let schema = running.known.response.as_ref();
            let came = Some(compare::text(&came, schema));
            let wrong = Wrong::whole(running.place(), Some(said(recorded)), came);
            return self.give_up(at, Status::CANCELLED, wrong);
        }
        match &running.end {
            Some(end) if end == recorded => Ok(Turn::Over(None)),
            Some(end) => {
                let came = Some(said(end));
                Ok(Turn::Over(Wrong::whole(place, Some(said(recorded)), came)))
            }
            None => self.wait(at, place, Some(said(recorded))),
        }
    }

    /// For something that is not there: until the server has been silent for too long.
    fn wait(
        &mut self,
        at: usize,
        place: String,
        recorded: Option<String>,
    ) -> Result<Turn, Stopped> {
        let Some(running) = self.running.get(at) else {
            return Ok(Turn::On);
        };
        let until = running.heard + running.silence() + self.pace.timeout;
        if Instant::now() < until {
            return Ok(Turn::Wait(Some((Who::Server, until))));
        }
        if !self.has_heard {
            self.cancel_all();
            return Err(Stopped::Silent);
        }
        let wrong = Wrong::whole(place, recorded, None);
        self.give_up(at, Status::DEADLINE_EXCEEDED, wrong)
    }

    /// Ends a call that the server may still have, as far as the link takes a packet.
    fn give_up(
        &mut self,
        at: usize,
        status: Status,
        wrong: Option<Wrong>,
    ) -> Result<Turn, Stopped> {
        let is_open = self.running.get(at).is_some_and(|it| it.end.is_none());
        if is_open && !self.send(at, PacketType::CLIENT_ERROR, &[], status)? && wrong.is_none() {
            return Ok(Turn::Wait(None));
        }
        Ok(Turn::Over(wrong))
    }

    fn cancel_all(&mut self) {
        for at in 0..self.running.len() {
            let is_open = |it: &Running<'_>| it.is_opened && it.end.is_none();
            if self.running.get(at).is_some_and(is_open) {
                // A link that is full or gone is told nothing.
                let _ = self.send(at, PacketType::CLIENT_ERROR, &[], Status::CANCELLED);
            }
        }
        let until = Instant::now() + Duration::from_millis(500);
        while !self.line.0.is_idle() && Instant::now() < until {
            self.line.wait(Want::Idle, TICK);
        }
    }
}

static UNKNOWN: Known = Known {
    kind: None,
    request: None,
    response: None,
};

impl Running<'_> {
    fn is_of(&self, packet: &Packet<'_>) -> bool {
        let call_id = match is_open_id(packet.route.call_id) {
            true => self.route.call_id,
            false => packet.route.call_id,
        };
        let route = Route {
            call_id,
            ..packet.route
        };
        self.is_opened && self.end.is_none() && route == self.route
    }

    fn take(&mut self, packet: &Packet<'_>) {
        self.heard = Instant::now();
        let status = packet.status;
        let streams = self.known.kind.is_none_or(MethodKind::server_streams);
        match packet.packet_type {
            PacketType::SERVER_STREAM => self.keep(packet.payload),
            PacketType::RESPONSE => {
                // As the recorder takes them for messages.
                let has = self.known.kind.is_none() || !streams;
                if has && status == Status::OK || !packet.payload.is_empty() {
                    self.keep(packet.payload);
                }
                self.end = Some(What::Answered(status));
            }
            PacketType::SERVER_ERROR => self.end = Some(What::Refused(status)),
            _ => {}
        }
    }

    /// Keeps a message for being compared. One more than was recorded shows that there are more; the others say
    /// nothing new.
    fn keep(&mut self, message: &[u8]) {
        self.count += 1;
        if self.count <= self.expected + 1 {
            self.came.push_back(message.to_vec());
        }
    }

    /// How long the server was silent before the step that is waited for.
    fn silence(&self) -> Duration {
        let time = |at: usize| self.call.entries.get(at).map(|entry| entry.time);
        let before = self.next.checked_sub(1).and_then(time);
        let now = time(self.next).unwrap_or(0);
        Duration::from_nanos(now.saturating_sub(before.unwrap_or(self.call.time)))
    }

    /// The name of the message that is compared next.
    fn place(&self) -> String {
        match self.known.kind {
            Some(MethodKind::Unary | MethodKind::ClientStream) => "response".into(),
            _ => format!("item {}", self.compared + 1),
        }
    }
}

/// The end of a call, for people.
fn said(end: &What) -> String {
    match end {
        What::Answered(status) => status.to_string(),
        What::Refused(status) => format!("{status}, by the server and not the method"),
        _ => "more".into(),
    }
}
