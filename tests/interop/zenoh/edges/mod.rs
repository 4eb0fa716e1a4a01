//! What Zenoh's router does with input at the edges, seen from a bare socket: what our engine
//! follows, and the reason where it differs, is measured here.

mod bad_input;
mod datagrams;
mod handshakes;
mod routing;
mod sequence;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::node::{At, Event, Failure, Happened, Kind, Maker};
use crate::peer::{Peer, Real};

/// A batch with its length.
fn batch(message: &[u8]) -> Vec<u8> {
    let mut bytes = (message.len() as u16).to_le_bytes().to_vec();
    bytes.extend(message);
    bytes
}

/// What became of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Outcome {
    /// It goes on: a query is answered.
    Stays,
    /// The connection ends without a word.
    Drops,
    /// A CLOSE came, with this flag for the whole session and this reason.
    Closes { session: bool, reason: u8 },
    /// Neither within the time.
    Silent,
}
use Outcome::*;

struct Raw {
    stream: TcpStream,
    /// Of the next frame.
    sn: u32,
    /// Received, and not yet looked at.
    pending: Vec<u8>,
}

impl Raw {
    fn connect(at: &At) -> Result<Self, Failure> {
        let stream = TcpStream::connect(&at.address).map_err(|error| error.to_string())?;
        stream
            .set_nodelay(true)
            .map_err(|error| error.to_string())?;
        Ok(Self {
            stream,
            sn: 0,
            pending: Vec::new(),
        })
    }

    /// INIT with this zid, and what is said besides; returns the answer.
    fn init(&mut self, version: u8, zid: &[u8], sizes: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let mut message = vec![if sizes.is_empty() { 0x01 } else { 0x41 }, version];
        message.push((zid.len() as u8 - 1) << 4 | 2);
        message.extend(zid);
        message.extend(sizes);
        self.send(&message)?;
        self.receive(SOON)
    }

    /// OPEN with a lease in milliseconds (up to 16,383) and the cookie of an INIT's answer.
    fn open(&mut self, lease: u16, init: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        // Header, version, zid with its length, resolution and size; the router's cookie is short.
        let zid = usize::from(init.get(2).ok_or("no answer")? >> 4) + 1;
        let cookie = init.get(3 + zid + 3..).ok_or("no cookie")?;
        let len = usize::from(*cookie.first().ok_or("no cookie")?) + 1;
        let mut message = vec![0x02, lease as u8 | 0x80, (lease >> 7) as u8, 0];
        message.extend(cookie.get(..len).ok_or("no cookie")?);
        self.send(&message)?;
        self.receive(SOON)
    }

    /// Opens, with the extension that offers marks of fragments (patch 1), or without (0).
    fn handshake(&mut self, zid: &[u8], patch: u8) -> Result<(), Failure> {
        let mut message = vec![0xc1, 9, (zid.len() as u8 - 1) << 4 | 2];
        message.extend(zid);
        message.extend([0x0a, 0x00, 0x08, 0x27, patch]);
        self.send(&message)?;
        let init = self.receive(SOON)?.ok_or("no INIT")?;
        let open = self.open(10_000, &init)?.ok_or("no OPEN")?;
        match open.first() {
            Some(header) if header & 0x3f == 0x22 => Ok(()),
            _ => Err(format!("{open:02x?} instead of OPEN")),
        }
    }

    /// An open session with initial SN 0.
    fn opened(at: &At, zid: &[u8]) -> Result<Self, Failure> {
        let mut raw = Self::connect(at)?;
        let init = raw.init(9, zid, &[0x0a, 0x00, 0x08])?.ok_or("no INIT")?;
        if init.first().map(|header| header & 0x3f) != Some(0x21) {
            return Err(format!("{init:02x?} instead of INIT"));
        }
        let open = raw.open(10_000, &init)?.ok_or("no OPEN")?;
        if open.first().map(|header| header & 0x3f) != Some(0x22) {
            return Err(format!("{open:02x?} instead of OPEN"));
        }
        Ok(raw)
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Failure> {
        self.write(&batch(message))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self.stream.write_all(bytes) {
            // The end is seen by who reads.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
            done => done.map_err(|error| error.to_string()),
        }
    }

    /// A frame of the next SN.
    fn frame(&mut self, messages: &[u8]) -> Result<(), Failure> {
        let mut message = vec![0x25];
        vle(&mut message, self.sn);
        self.sn = self.sn.wrapping_add(1) & 0x0fff_ffff;
        message.extend(messages);
        self.send(&message)
    }

    /// The next batch, without its length; empty at the end of the connection.
    fn receive(&mut self, within: Duration) -> Result<Option<Vec<u8>>, Failure> {
        let end = Instant::now() + within;
        loop {
            if let Some((len, rest)) = self.pending.split_at_checked(2) {
                let len = usize::from(u16::from_le_bytes([len[0], len[1]]));
                if let Some((batch, rest)) = rest.split_at_checked(len) {
                    let batch = batch.to_vec();
                    self.pending = rest.to_vec();
                    return Ok(Some(batch));
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let mut bytes = [0; 65_536];
            self.stream
                .set_read_timeout(Some(left))
                .map_err(|error| error.to_string())?;
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(Some(Vec::new())),
                Ok(len) => self.pending.extend(bytes.get(..len).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return Ok(Some(Vec::new()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Asks for what nobody serves: a session that stays says that there is no answer.
    fn outcome(&mut self, within: Duration) -> Result<Outcome, Failure> {
        let mut ask = vec![0x7c, 0x01, 0x00, 0x05];
        ask.extend(b"probe");
        ask.push(0x03);
        self.frame(&ask)?;
        let end = Instant::now() + within;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Some(batch) = self.receive(left)? else {
                return Ok(Silent);
            };
            match batch.as_slice() {
                [] => return Ok(Drops),
                [header, reason, ..] if header & 0x1f == 0x03 => {
                    return Ok(Closes {
                        session: header & 0x20 != 0,
                        reason: *reason,
                    });
                }
                // RESPONSE_FINAL of request 1 somewhere in a frame.
                [0x25 | 0xa5, ..] if batch.ends_with(&[0x1a, 0x01]) => {
                    return Ok(Stays);
                }
                _ => {}
            }
        }
    }
}

fn vle(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Longer than anything takes that comes about at all.
const SOON: Duration = Duration::from_secs(60);

/// A PUSH of "x" to a key that is said in full.
fn push(key: &str) -> Vec<u8> {
    let mut message = vec![0x7d, 0x00, key.len() as u8];
    message.extend(key.as_bytes());
    message.extend([0x01, 0x01, b'x']);
    message
}

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn router() -> Peer {
    Peer::router(&At::any(Kind::Tcp, "".as_ref())).expect("a router")
}
