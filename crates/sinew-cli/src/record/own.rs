//! Streams that the recorder asks for itself: the log of a device, and what `--stream` names.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use sinew::link::SendError;
use sinew::rpc::Status;
use sinew::rpc::packet::{Packet, PacketType, Route};
use sinew_io::{Endpoint, Link as _, Want};

use super::file::Recording;
use super::format;
use super::line::Line;
use crate::connection::explain;
use crate::output;
use crate::schema::Method;

/// The link of the recorder itself.
const LINK: u32 = 0;
/// How soon it is seen that the recording is to end.
const TICK: Duration = Duration::from_millis(50);
/// Before a lost link is opened again.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a server may take for the last words of streams that are cancelled.
const LAST_WORD: Duration = Duration::from_millis(500);

/// A server stream that is asked for.
#[derive(Clone)]
pub struct Stream {
    pub method: Method,
    /// Encoded.
    pub request: Vec<u8>,
}

/// The streams of one endpoint, which are asked for again when its link is lost.
pub struct Own<'a> {
    pub recording: &'a Recording,
    pub source: usize,
    pub endpoint: &'a Endpoint,
    pub streams: Vec<Stream>,
    /// Set when the recording is to end.
    pub stop: &'a AtomicBool,
}

impl Own<'_> {
    /// Records until it is to end, or until the server has ended each stream.
    pub fn run(self, line: Line) {
        let mut line = Some(line);
        let mut is_told = false;
        while !self.is_over() {
            let mut open = match line.take() {
                Some(line) => line,
                None => match sinew_io::open(self.endpoint) {
                    Ok(link) => {
                        output::note(&format!("{} is back", self.endpoint.address));
                        is_told = false;
                        Line(link)
                    }
                    Err(error) => {
                        if !std::mem::replace(&mut is_told, true) {
                            let (cause, help) = explain(self.endpoint, &error);
                            let at = &self.endpoint.address;
                            output::note(&format!("lost {at}: {cause}; {help}; trying again"));
                        }
                        self.pause();
                        continue;
                    }
                },
            };
            let is_done = self.read(&mut open);
            self.recording.closed(self.source, LINK);
            if is_done {
                return;
            }
            self.pause();
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn pause(&self) {
        let until = Instant::now() + PAUSE;
        while !self.is_over() && Instant::now() < until {
            std::thread::sleep(TICK);
        }
    }

    /// Asks for the streams, and records them. `false`: the link was lost.
    fn read(&self, line: &mut Line) -> bool {
        let mut open: Vec<(Route, &Stream)> = Vec::new();
        for (at, stream) in self.streams.iter().enumerate() {
            let route = Route::new(self.endpoint.channel, stream.method.id, at as u32 + 1);
            if !self.send(
                line,
                PacketType::REQUEST,
                &route,
                &stream.request,
                Status::OK,
            ) {
                return false;
            }
            open.push((route, stream));
        }
        while !open.is_empty() {
            if self.is_over() {
                return self.cancel(line, &open);
            }
            let end = match self.take(line) {
                Err(()) => return false,
                Ok(None) => {
                    line.wait(Want::Packet, TICK);
                    continue;
                }
                Ok(Some(end)) => end,
            };
            let Some((ended, status)) = end else { continue };
            open.retain(|(route, stream)| {
                if *route == ended {
                    self.tell_end(stream, status);
                }
                *route != ended
            });
        }
        true
    }

    fn tell_end(&self, stream: &Stream, status: Status) {
        let (at, name) = (&self.endpoint.address, &stream.method.name);
        let is_taken = stream.method.id == format::RECORDS && status == Status::ABORTED;
        let why = match is_taken {
            true => {
                ": another reader has taken the log over, and a device has one at a time; \
                     end that one and record again, or leave the log to it by --no-log"
            }
            false => "",
        };
        output::note(&format!("{at} ended {name}: {status}{why}"));
    }

    /// Tells the server, and records what it still has to say.
    fn cancel(&self, line: &mut Line, open: &[(Route, &Stream)]) -> bool {
        for (route, _) in open {
            if !self.send(
                line,
                PacketType::CLIENT_ERROR,
                route,
                &[],
                Status::CANCELLED,
            ) {
                return true;
            }
        }
        let until = Instant::now() + LAST_WORD;
        while !line.0.is_idle() && Instant::now() < until {
            line.wait(Want::Idle, TICK);
        }
        // What was on its way.
        while let (Ok(Some(_)), true) = (self.take(line), Instant::now() < until) {}
        true
    }

    /// A packet, where there is one, and which call it ends with which status.
    fn take(&self, line: &mut Line) -> Result<Option<Option<(Route, Status)>>, ()> {
        let taken = line.receive(|bytes| {
            let time = SystemTime::now();
            self.recording.packet(self.source, LINK, time, bytes);
            let packet = Packet::decode(bytes).ok()?;
            let is_end = [PacketType::RESPONSE, PacketType::SERVER_ERROR];
            let is_end = is_end.contains(&packet.packet_type);
            is_end.then_some((packet.route, packet.status))
        });
        taken.map_err(drop)
    }

    fn send(
        &self,
        line: &mut Line,
        packet_type: PacketType,
        route: &Route,
        payload: &[u8],
        status: Status,
    ) -> bool {
        let until = Instant::now() + LAST_WORD;
        loop {
            let see = |packet: &[u8]| {
                let time = SystemTime::now();
                self.recording.packet(self.source, LINK, time, packet);
            };
            match line.send(packet_type, route, payload, status, see) {
                Ok(()) => return true,
                Err(SendError::Full) if Instant::now() < until => line.wait(Want::Place, TICK),
                Err(_) => return false,
            }
        }
    }
}
