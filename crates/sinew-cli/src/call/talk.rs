//! One call on one link, from the first packet to the last: the engine's loop in one thread.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sinew::link::SendError;
use sinew::rpc::packet::{HEADER_MAX, Packet};
use sinew::rpc::{Client, ClientCall, Received, Status};
use sinew::time;
use sinew_io::{AnyLink, Link, Want};

use super::input::{Lines, Next};
use super::outgoing::Outgoing;
use crate::failure::Failure;
use crate::json;
use crate::output;
use crate::progress::Progress;
use crate::schema::Method;
use crate::silence::Strays;

/// How a call ended, when nothing in the tool failed.
#[derive(Debug)]
pub enum End {
    Ok,
    /// The method ended the call with this status.
    Status(Status),
    /// The server's engine refused the call.
    Refused(Status),
    TimedOut,
    Cancelled,
    LinkLost,
}

/// How the user wants the call.
pub struct Wish<'a> {
    pub method: &'a Method,
    pub channel: u32,
    /// The longest silence of the server. It does not count while the user still types.
    pub timeout: Duration,
    /// JSON over several lines.
    pub pretty: bool,
    /// Set when the user wants the call to end.
    pub cancel: &'a AtomicBool,
}

/// The call with all that it needs.
pub struct Talk<'a> {
    wish: Wish<'a>,
    link: &'a mut AnyLink,
    out: &'a mut dyn Write,
    client: Client<1>,
    call: ClientCall,
    /// What leaves next; it waits here while the link is full.
    outgoing: Option<Outgoing>,
    lines: Option<Lines>,
    start: Instant,
    heard: Instant,
    /// What this turn came to wait for; nothing where it left work to the next one.
    wait_for: Option<Want>,
    /// Until the first item.
    pub shown: Option<Progress>,
    pub strays: Strays,
    /// Items of the server's stream so far.
    pub items: u64,
}

impl<'a> Talk<'a> {
    /// A call that will open with the encoded `request`, and go on with `lines`.
    pub fn new(
        wish: Wish<'a>,
        link: &'a mut AnyLink,
        out: &'a mut dyn Write,
        request: Vec<u8>,
        lines: Option<Lines>,
    ) -> Result<Self, Failure> {
        let mut client = Client::new(wish.channel, seed());
        // The engine's deadline is not used: the one here stands still while the user types.
        let call = client
            .open(wish.method.id, Duration::MAX, time::Instant::START)
            .map_err(|_| Failure::internal("cannot open the call", "every call slot is in use"))?;
        let start = Instant::now();
        Ok(Talk {
            wish,
            link,
            out,
            client,
            call,
            outgoing: Some(Outgoing::Request(request)),
            lines,
            start,
            heard: start,
            wait_for: None,
            shown: None,
            strays: Strays::default(),
            items: 0,
        })
    }

    /// Runs the call to its end. Whatever ends it on this side, the server is told.
    pub fn run(&mut self) -> Result<End, Failure> {
        let end = self.exchange();
        match &end {
            Err(_) | Ok(End::Cancelled) => self.give_up(Status::CANCELLED),
            Ok(End::TimedOut) => self.give_up(Status::DEADLINE_EXCEEDED),
            Ok(_) => {}
        }
        end
    }

    fn exchange(&mut self) -> Result<End, Failure> {
        loop {
            self.wait_for = Some(Want::Packet);
            if let Some(end) = self.receive()? {
                return Ok(end);
            }
            if self.wish.cancel.load(Ordering::Acquire) {
                return Ok(End::Cancelled);
            }
            self.send()?;
            let typing = self.lines.is_some() && self.outgoing.is_none();
            if typing {
                self.heard = Instant::now();
            }
            let left = self.wish.timeout.saturating_sub(self.heard.elapsed());
            if left.is_zero() {
                return Ok(End::TimedOut);
            }
            if let Some(want) = self.wait_for {
                self.link.wait(want, if typing { None } else { Some(left) });
            }
        }
    }

    /// Takes up packets that are there, as long as there is a place for the answer.
    fn receive(&mut self) -> Result<Option<End>, Failure> {
        for _ in 0..BURST {
            let (tx, rx) = self.link.halves();
            let bytes = match rx.peek() {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return Ok(None),
                Err(_) => return Ok(Some(End::LinkLost)),
            };
            let place = match tx.place(HEADER_MAX) {
                Ok(place) => place,
                Err(SendError::Full) => {
                    self.wait_for = Some(Want::Place);
                    return Ok(None);
                }
                // What has arrived is still of use where nothing can be sent any more.
                Err(_) => &mut [],
            };
            let now = time::Instant::START.after(self.start.elapsed());
            let (len, event) = match Packet::decode(bytes) {
                Ok(packet) => {
                    self.strays.note(&packet, self.wish.channel);
                    self.client.handle_packet(&packet, place, now)
                }
                Err(error) => {
                    self.strays.malformed += 1;
                    self.client.refuse(error);
                    (0, None)
                }
            };
            let mut print = |payload| print(self.out, payload, &self.wish);
            let server_streams = self.wish.method.id.kind.server_streams();
            let end = match event.map(|event| event.received) {
                None => None,
                Some(Received::Item(payload)) => {
                    self.heard = Instant::now();
                    self.shown = None;
                    print(payload)?;
                    self.items += 1;
                    None
                }
                Some(Received::Completed(Status::OK, payload)) => {
                    if !server_streams {
                        self.shown = None;
                        print(payload)?;
                    }
                    Some(End::Ok)
                }
                Some(Received::Completed(status, _)) => Some(End::Status(status)),
                Some(Received::Failed(status)) => Some(End::Refused(status)),
            };
            // A link that is gone shows at the next peek.
            let _ = tx.commit(len);
            if len > 0 {
                tx.flush();
            }
            rx.release();
            if end.is_some() {
                return Ok(end);
            }
        }
        self.wait_for = None;
        Ok(None)
    }

    /// Sends until the link is full or there is nothing to send.
    fn send(&mut self) -> Result<(), Failure> {
        for _ in 0..BURST {
            if self.outgoing.is_none() {
                self.outgoing = self.next_item()?;
            }
            let (tx, _) = self.link.halves();
            let Some(next) = &self.outgoing else {
                tx.flush();
                return Ok(());
            };
            match next.send(&mut self.client, &self.call, tx) {
                Ok(()) => {
                    self.outgoing = None;
                    self.heard = Instant::now();
                }
                Err(SendError::Full) => {
                    tx.flush();
                    self.wait_for = self.wait_for.and(Some(Want::Place));
                    return Ok(());
                }
                // The server may have said why before it went: its last packets are read first.
                Err(SendError::Closed) => {
                    (self.outgoing, self.lines) = (None, None);
                    return Ok(());
                }
                Err(SendError::TooLarge) => {
                    let limit = tx.mtu();
                    return Err(Failure::TooLarge {
                        bytes: next.len(),
                        limit,
                        room: limit.saturating_sub(HEADER_MAX),
                    });
                }
            }
        }
        self.link.halves().0.flush();
        self.wait_for = None;
        Ok(())
    }

    fn next_item(&mut self) -> Result<Option<Outgoing>, Failure> {
        let Some(lines) = &mut self.lines else {
            return Ok(None);
        };
        match lines.next() {
            Next::NotYet => Ok(None),
            Next::Line(number, text) => {
                let origin = format!("line {number} of standard input");
                let item = json::to_bytes(&text, &origin, &self.wish.method.request)?;
                Ok(Some(Outgoing::Item(item)))
            }
            Next::End => {
                self.lines = None;
                Ok(Some(Outgoing::Completion))
            }
            Next::NoText(number, why) => Err(Failure::usage(
                format!("line {number} of standard input is {why}"),
                "pipe one JSON message per line into the command",
            )),
            Next::Failed(error) => Err(Failure::internal("cannot read standard input", error)),
        }
    }

    /// Tells the server that the call has ended, where the link still takes a packet, and waits
    /// until that has left.
    fn give_up(&mut self, status: Status) {
        let end = Instant::now() + LAST_WORD;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let (tx, rx) = self.link.halves();
            rx.release();
            match tx.place(HEADER_MAX) {
                Ok(place) => {
                    let len = self.client.cancel(&self.call, status, place);
                    let _ = tx.commit(len);
                    tx.flush();
                    return drain(self.link, end);
                }
                Err(SendError::Full) if !left.is_zero() => self.link.wait(Want::Place, Some(left)),
                Err(_) => return,
            }
        }
    }
}

/// Packets that one turn takes up, or sends, so that Ctrl-C and the time-out are seen in between.
const BURST: usize = 64;
/// How long a link that takes nothing, or never falls silent, may keep the tool from ending.
const LAST_WORD: Duration = Duration::from_millis(500);

/// Silence after which nothing more of a cancelled stream is on its way.
const QUIET: Duration = Duration::from_millis(50);

/// Waits until everything committed has left, and drops what still arrives: a socket that is
/// closed with unread bytes would take the last word back.
fn drain(link: &mut AnyLink, end: Instant) {
    let mut quiet = Instant::now() + QUIET;
    loop {
        let now = Instant::now();
        let (_, rx) = link.halves();
        match rx.peek() {
            Ok(Some(_)) => {
                rx.release();
                quiet = now + QUIET;
                if now < end {
                    continue;
                }
            }
            Ok(None) => {}
            Err(_) => return,
        }
        let idle = link.is_idle();
        let until = if idle { quiet.min(end) } else { end };
        if now >= until {
            return;
        }
        link.wait(
            if idle { Want::Packet } else { Want::Idle },
            Some(until - now),
        );
    }
}

fn print(out: &mut dyn Write, payload: &[u8], wish: &Wish<'_>) -> Result<(), Failure> {
    let text = json::from_bytes(payload, &wish.method.response, wish.pretty)?;
    match output::write_line(out, &text)? {
        // Whoever read the output has seen enough, as in `sinew call ... | head`.
        false => Err(Failure::Cancelled),
        true => Ok(()),
    }
}

/// A number that differs from run to run, so that a call of the last run is not continued.
fn seed() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) as u32
}
