//! One packet, message by message.

use crate::link::Tx;
use crate::pubsub::codec::{
    CodecError, Declare, Decode, Interest, Oam, Priority, Push, Reader, Request, Response,
    ResponseFinal, id_of, network, transport,
};
use crate::time::Instant;

use super::event::{Closed, Event, Step};
use super::incoming::Incoming;
use super::out::{Out, Refused};
use super::stats::{Stats, count};
use super::tables::All;
use super::{Known, Phase, Session, Tables};

/// Why a transport message was not handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Trouble {
    /// No place for the answer.
    Full,
    /// The peer begins anew, with this message.
    Anew,
    /// This ends the session.
    End(Closed),
}

impl From<CodecError> for Trouble {
    fn from(_: CodecError) -> Self {
        Trouble::End(Closed::Malformed)
    }
}

impl From<Refused> for Trouble {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Full | Refused::Cut => Trouble::Full,
            Refused::TooLarge => Trouble::End(Closed::Refused),
            Refused::Closed => Trouble::End(Closed::Link),
        }
    }
}

/// Where the message that is being handled stands.
pub(super) struct Spot<'s> {
    incoming: &'s mut Incoming,
    /// Bytes of the message.
    len: usize,
    /// It was put together from fragments.
    assembled: bool,
}

impl Spot<'_> {
    /// The first entity to look at for this message.
    pub(super) fn entity(&self) -> usize {
        self.incoming.entity
    }

    pub(super) fn reliable(&self) -> bool {
        self.incoming.reliable
    }

    /// The message is handled.
    #[cfg_attr(target_os = "none", inline(never))]
    pub(super) fn next<'e>(self) -> Step<'e> {
        self.stay(None);
        Step::More
    }

    /// The message is handled, or there is more to it for entities behind this one.
    #[inline(never)]
    pub(super) fn stay(self, behind: Option<usize>) {
        let incoming = self.incoming;
        if let Some(index) = behind {
            incoming.entity = index.saturating_add(1);
            return;
        }
        incoming.entity = 0;
        incoming.counted = false;
        if self.assembled {
            incoming.assembly.whole = None;
        } else {
            incoming.at = incoming.at.saturating_add(self.len);
        }
    }
}

/// What handling one network message needs.
pub(super) struct Cx<'s, T: Tables> {
    pub all: All<'s, T::Key, T::Rows>,
    pub place: Spot<'s>,
    pub stats: &'s mut Stats,
    pub out: &'s mut Out<T>,
    pub known: &'s mut Known,
    pub owed: &'s mut bool,
    pub expires: &'s mut Instant,
    broken: &'s mut Option<Closed>,
    pub now: Instant,
}

impl<T: Tables> Session<T> {
    /// There are messages in frames that this session takes.
    const TAKES: bool = T::SUBSCRIBES || T::ANSWERS || T::ASKS || T::LISTENS;

    /// Handles one message of a packet that has arrived. Call it again with the same packet until it is
    /// [`Step::Done`], then release the packet.
    ///
    /// A call handles one message of it, and looks at every entry of the tables at most twice.
    pub fn receive<'s, X: Tx + ?Sized>(
        &'s mut self,
        packet: &'s [u8],
        tx: &mut X,
        now: Instant,
    ) -> Step<'s> {
        if let Err(trouble) = self.whole() {
            return self.troubled(tx, trouble, now);
        }
        if let Some(len) = self.incoming.assembly.whole.filter(|_| T::ASSEMBLES) {
            return self.network(Some(len), &[], tx, now);
        }
        let rest = packet.get(self.incoming.at..).unwrap_or_default();
        let mut reader = Reader::new(rest);
        let header = reader.one();
        if rest.is_empty() || self.phase == Phase::Closed {
            self.incoming.finish();
            return Step::Done;
        }
        if Self::TAKES && network::is_network(header) && self.incoming.frame.is_some() {
            return self.network(None, rest, tx, now);
        }
        match self.transport(header, &mut reader, tx, now) {
            Ok(event) => {
                let read = rest.len().saturating_sub(reader.len());
                self.incoming.at = self.incoming.at.saturating_add(read);
                event.map_or(Step::More, Step::Event)
            }
            Err(trouble) => {
                if matches!(trouble, Trouble::End(_)) {
                    self.incoming.skip();
                }
                self.troubled(tx, trouble, now)
            }
        }
    }

    fn transport<X: Tx + ?Sized>(
        &mut self,
        header: u8,
        reader: &mut Reader<'_>,
        tx: &mut X,
        now: Instant,
    ) -> Result<Option<Event<'static>>, Trouble> {
        self.incoming.frame = None;
        let open = self.phase == Phase::Open;
        if open {
            self.heard = now;
        }
        match id_of(header) {
            transport::FRAME if open && Self::TAKES => {
                let frame = transport::Frame::read(header, reader);
                reader.end(())?;
                // Priorities of frames were not agreed on (section 4.3).
                if frame.priority != Priority::Data {
                    return Err(Trouble::End(Closed::Malformed));
                }
                if self.take(frame.reliable, false, frame.sn)? && T::ASSEMBLES {
                    self.incoming
                        .assembly
                        .framed(frame.reliable, &mut self.stats);
                }
                Ok(None)
            }
            transport::FRAGMENT if open && Self::TAKES => {
                let fragment = transport::Fragment::read(header, reader);
                reader.end(())?;
                if fragment.priority != Priority::Data {
                    return Err(Trouble::End(Closed::Malformed));
                }
                if self.take(fragment.reliable, !fragment.more, fragment.sn)? {
                    if T::ASSEMBLES {
                        let buffer = self.tables.all().fragments;
                        let (agreed, stats) = (&self.out.agreed, &mut self.stats);
                        self.incoming.assembly.add(&fragment, buffer, agreed, stats);
                    } else if !fragment.more {
                        count(&mut self.stats.too_large);
                    }
                }
                self.incoming.frame = None;
                Ok(None)
            }
            transport::KEEP_ALIVE => {
                transport::KeepAlive::read(header, reader);
                reader.end(())?;
                Ok(None)
            }
            transport::CLOSE => {
                let close = transport::Close::read(header, reader);
                reader.end(())?;
                self.incoming.skip();
                Ok(self.closed_by_peer(close.reason))
            }
            transport::INIT => {
                let init = transport::Init::read(header, reader);
                reader.end(())?;
                self.init(&init, tx, now)
            }
            transport::OPEN => {
                let open = transport::Open::read(header, reader);
                reader.end(())?;
                self.opening(&open, tx, now)
            }
            transport::OAM => {
                Oam::skip(header, reader);
                Ok(reader.end(None)?)
            }
            // What is for an open session can overtake the end of the handshake on links that lose. Where
            // nothing of it is taken, it is not looked at.
            transport::FRAME | transport::FRAGMENT | transport::JOIN => {
                count(&mut self.stats.unexpected);
                self.incoming.skip();
                Ok(None)
            }
            _ => Err(Trouble::End(Closed::Malformed)),
        }
    }

    /// Takes the number of a frame or a fragment.
    fn take(&mut self, reliable: bool, last: bool, sn: u32) -> Result<bool, Trouble> {
        let taken = self
            .incoming
            .take(reliable, last, sn, &self.out.agreed, &mut self.stats);
        self.incoming.frame = taken;
        self.incoming.reliable = reliable;
        taken.ok_or(Trouble::End(Closed::Malformed))
    }

    /// Handles one network message: that of `assembled` bytes among the fragments, or the first of
    /// `rest`.
    fn network<'s, X: Tx + ?Sized>(
        &'s mut self,
        assembled: Option<usize>,
        rest: &'s [u8],
        tx: &mut X,
        now: Instant,
    ) -> Step<'s> {
        let mut all = self.tables.all();
        let bytes = match assembled {
            Some(len) => core::mem::take(&mut all.fragments)
                .get(..len)
                .unwrap_or_default(),
            None => rest,
        };
        let skipped = assembled.is_none() && self.incoming.frame == Some(false);
        let cx = Cx {
            all,
            place: Spot {
                incoming: &mut self.incoming,
                len: bytes.len(),
                assembled: assembled.is_some(),
            },
            stats: &mut self.stats,
            out: &mut self.out,
            known: &mut self.known,
            owed: &mut self.owed,
            expires: &mut self.expires,
            broken: &mut self.broken,
            now,
        };
        message(cx, bytes, skipped, tx)
    }
}

impl<'s, T: Tables> Cx<'s, T> {
    /// What has arrived is no message. The next step ends the session: in this one, the tables are
    /// borrowed.
    fn malformed(self) -> Step<'s> {
        *self.broken = Some(Closed::Malformed);
        Step::More
    }
}

/// Reads one network message, and handles it unless it is `skipped`.
fn message<'s, T: Tables, X: Tx + ?Sized>(
    mut cx: Cx<'s, T>,
    bytes: &'s [u8],
    skipped: bool,
    tx: &mut X,
) -> Step<'s> {
    let mut reader = Reader::new(bytes);
    let header = reader.one();
    // Sets how long the message is, once it is read.
    macro_rules! read {
        ($message:ty) => {{
            let message = <$message>::read(header, &mut reader);
            if reader.end(()).is_err() {
                return cx.malformed();
            }
            cx.place.len = bytes.len().saturating_sub(reader.len());
            if skipped {
                return cx.place.next();
            }
            message
        }};
    }
    if !core::mem::replace(&mut cx.place.incoming.counted, true) {
        count(&mut cx.stats.messages);
    }
    match id_of(header) {
        network::PUSH if T::SUBSCRIBES => {
            let push = read!(Push<'s>);
            cx.push(push)
        }
        network::DECLARE if T::LISTENS => {
            let declare = read!(Declare<'s>);
            cx.declared(&declare)
        }
        network::INTEREST if T::LISTENS => {
            let interest = read!(Interest<'s>);
            cx.interest(&interest, tx)
        }
        network::REQUEST if T::ANSWERS => {
            let request = read!(Request<'s>);
            cx.request(request, tx)
        }
        network::RESPONSE if T::ASKS => {
            let response = read!(Response<'s>);
            cx.response(response)
        }
        network::RESPONSE_FINAL if T::ASKS => {
            let end = read!(ResponseFinal);
            cx.response_final(&end)
        }
        network::OAM => {
            Oam::skip(header, &mut reader);
            cx.place.len = bytes.len().saturating_sub(reader.len());
            match reader.end(()) {
                Ok(()) => cx.place.next(),
                Err(_) => cx.malformed(),
            }
        }
        // Nothing that this session can have asked for. What it is not able to read has no end, so the
        // rest of the packet goes with it.
        _ => {
            count(&mut cx.stats.unexpected);
            let place = cx.place;
            place.incoming.skip();
            place.next()
        }
    }
}
