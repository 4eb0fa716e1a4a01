//! Publishing: samples out.

use core::convert::Infallible;

use crate::link::Tx;
use crate::pubsub::codec::{Body, Push, Qos, WireExpr, Writer};
use crate::pubsub::keyexpr::{KeyExpr, KeyExprError};
use crate::time::Instant;

use super::agreed::Channel;
use super::out::{How, Message, Refused, by};
use super::own::{self, Owes, Sort};
use super::stats::count;
use super::{Phase, Session, Tables};

/// How the samples of a publisher are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PublisherOptions {
    /// Priority; whether a full link drops a sample or lets the publisher wait; whether a sample
    /// leaves at once, also where others are batched.
    pub qos: Qos,
    /// On the reliable channel. On links that lose, this says only which numbers are counted.
    pub reliable: bool,
    /// Ask the router, or as a client the peer, who subscribes, and send nothing while nobody does.
    /// Between peers this is so without asking. Needs tables that listen ([`Tables::LISTENS`]);
    /// without them it has no effect.
    pub filter: bool,
}

impl Default for PublisherOptions {
    fn default() -> Self {
        PublisherOptions::DEFAULT
    }
}

impl PublisherOptions {
    /// Priority data, dropped where the link is full, batched, reliable, unfiltered.
    pub const DEFAULT: PublisherOptions = PublisherOptions {
        qos: Qos::DEFAULT,
        reliable: true,
        filter: false,
    };
}

/// A publisher as the application holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct PublisherId(pub(super) u16);

impl PublisherId {
    /// Where it stands in its table.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Why something with a key could not be entered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeclareError {
    /// The key is no key expression.
    Key(KeyExprError),
    /// The table is full. Withdraw one, or give the session larger tables.
    NoRoom,
}

impl core::fmt::Display for DeclareError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            DeclareError::Key(error) => error.fmt(f),
            DeclareError::NoRoom => {
                f.write_str("the table is full: withdraw one, or give the session larger tables")
            }
        }
    }
}

impl core::error::Error for DeclareError {}

impl From<KeyExprError> for DeclareError {
    fn from(error: KeyExprError) -> Self {
        DeclareError::Key(error)
    }
}

/// A key that was checked before.
impl From<Infallible> for DeclareError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// A sample without options.
struct Plain<'p> {
    /// Of its declared key.
    number: u16,
    qos: Qos,
    payload: &'p [u8],
}

impl Message for Plain<'_> {
    // Who writes nothing else does not link the options.
    #[inline(always)]
    fn write(&mut self, writer: &mut Writer<'_>) {
        let key = WireExpr::declared(self.number, true);
        Push::put_head(key, self.qos, self.payload.len(), writer);
        writer.bytes(self.payload);
    }

    // The same, field by field: less code.
    #[inline(never)]
    fn write_again(&mut self, writer: &mut Writer<'_>) {
        let key = WireExpr::declared(self.number, true);
        Push::long_put_head(key, self.qos, self.payload.len(), writer);
        writer.bytes(self.payload);
    }
}

/// The same, whose payload a function writes.
struct Filled<F> {
    number: u16,
    qos: Qos,
    len: usize,
    fill: Option<F>,
}

impl<F: FnOnce(&mut [u8])> Filled<F> {
    #[inline]
    fn fill(&mut self, writer: &mut Writer<'_>) {
        if let Some(room) = writer.room(self.len)
            && let Some(fill) = self.fill.take()
        {
            fill(room);
        }
    }
}

impl<F: FnOnce(&mut [u8])> Message for Filled<F> {
    #[inline(always)]
    fn write(&mut self, writer: &mut Writer<'_>) {
        let key = WireExpr::declared(self.number, true);
        Push::put_head(key, self.qos, self.len, writer);
        self.fill(writer);
    }

    #[inline(never)]
    fn write_again(&mut self, writer: &mut Writer<'_>) {
        let key = WireExpr::declared(self.number, true);
        Push::long_put_head(key, self.qos, self.len, writer);
        self.fill(writer);
    }
}

/// What became of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Put {
    /// It is on its way, or in the batch, and somebody there subscribes to it.
    Heard,
    /// It is on its way, or in the batch; whether somebody subscribes is not known.
    Sent,
    /// Nobody there subscribes to it, so it was not sent.
    Unheard,
    /// The link is full and the publisher's policy is to drop, so it was not sent.
    Dropped,
}

impl core::fmt::Display for Put {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Put::Heard => "sent to somebody who subscribes",
            Put::Sent => "sent; whether somebody subscribes is not known",
            Put::Unheard => "not sent: nobody subscribes",
            Put::Dropped => "dropped: the link is full",
        })
    }
}

/// Why a sample was not sent, or not yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PutError {
    /// The link is full: wait for a place, then put it again. Only where the policy is to block, or
    /// the declaration of the key has to go first.
    Full,
    /// The link took a part of it: wait for a place, then put the *same* sample again, which goes on
    /// where it was; or give it up with [`Session::abandon`]. Nothing else of this reliability
    /// is sent until then.
    Cut,
    /// Larger than [`Config::largest`](super::Config::largest).
    TooLarge,
    /// There is no session now. It may come back: see [`Session::state`].
    NotOpen,
    /// There is no such publisher, or no more; or the query to answer has ended.
    NoSuch,
    /// A queryable whose own key has wildcards must say which key its reply is about.
    KeyNeeded,
}

impl core::fmt::Display for PutError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            PutError::Full => "the link is full: put it again when there is a place",
            PutError::Cut => "a part of it has left: put the same again when there is a place",
            PutError::TooLarge => {
                "it is larger than the bound of this session: send it in parts, or configure more"
            }
            PutError::NotOpen => "there is no session now: it is being opened, or was closed",
            PutError::NoSuch => "it was withdrawn, or has ended",
            PutError::KeyNeeded => {
                "the queryable's key has wildcards: say which key the reply is about"
            }
        })
    }
}

impl core::error::Error for PutError {}

impl From<Refused> for PutError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Full => PutError::Full,
            Refused::Cut => PutError::Cut,
            Refused::TooLarge => PutError::TooLarge,
            Refused::Closed => PutError::NotOpen,
        }
    }
}

impl<T: Tables> Session<T> {
    /// Enters a publisher on `key`: text that is checked now, or a [`KeyExpr`] that was when it was
    /// compiled. The peer is told of it by [`Session::poll`], again after every reconnect.
    pub fn publisher<K: TryInto<T::Key, Error: Into<DeclareError>>>(
        &mut self,
        key: K,
        options: PublisherOptions,
    ) -> Result<PublisherId, DeclareError> {
        let key = key.try_into().map_err(Into::into)?;
        let mut heard = 0;
        let all = self.tables.all();
        if T::LISTENS {
            heard = all.tables().hearers(KeyExpr::unchecked(key.as_ref()));
        }
        let entered = own::enter(all.publishers, Sort::Publisher, self.withdrawn, key);
        let (index, publisher) = entered.ok_or(DeclareError::NoRoom)?;
        publisher.options = options;
        publisher.heard = heard;
        publisher.known = self.known.told;
        self.owed = true;
        Ok(PublisherId(index))
    }

    /// Ends a publisher.
    pub fn withdraw_publisher(&mut self, id: PublisherId) {
        let slot = self.tables.all().publishers.get_mut(usize::from(id.0));
        if let Some(slot) = slot {
            own::withdraw(slot);
            self.owed = true;
        }
    }

    /// Whether somebody there subscribes to what the publisher sends; `None` where that is not
    /// known: no filter was asked for, or the answer is not there yet.
    pub fn is_heard(&mut self, id: PublisherId) -> Option<bool> {
        let overflowed = self.known.overflowed;
        let publisher = self
            .tables
            .all()
            .publishers
            .get(usize::from(id.0))?
            .as_ref()?;
        match publisher.heard {
            0 => (publisher.known && !overflowed).then_some(false),
            _ => Some(true),
        }
    }

    /// Publishes `payload`, without options.
    #[inline]
    pub fn put<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        id: PublisherId,
        payload: &[u8],
        now: Instant,
    ) -> Result<Put, PutError> {
        self.push(tx, id, now, false, |number, qos| Plain {
            number,
            qos,
            payload,
        })
    }

    /// Publishes a sample with all its options: a value, or that the key is deleted.
    #[inline]
    pub fn publish<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        id: PublisherId,
        body: &Body<'_>,
        now: Instant,
    ) -> Result<Put, PutError> {
        let body = *body;
        self.push(tx, id, now, false, |number, qos| {
            let key = WireExpr::declared(number, true);
            by(move |writer| Push { key, qos, body }.encode(writer))
        })
    }

    /// Publishes a payload of `len` bytes that `fill` writes straight into the batch. It is called at
    /// most once, and only where there is room: a sample that does not fit one batch is
    /// [`PutError::TooLarge`].
    pub fn put_with<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        id: PublisherId,
        len: usize,
        now: Instant,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Put, PutError> {
        self.push(tx, id, now, true, |number, qos| Filled {
            number,
            qos,
            len,
            fill: Some(fill),
        })
    }

    /// Publishes on a key that is not declared: for what is sent once. The key is written out.
    pub fn publish_on<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        key: KeyExpr<'_>,
        options: PublisherOptions,
        body: &Body<'_>,
        now: Instant,
    ) -> Result<Put, PutError> {
        if self.phase != Phase::Open {
            return Err(PutError::NotOpen);
        }
        let push = Push {
            key: WireExpr::text(key.as_str()),
            qos: options.qos,
            body: *body,
        };
        let mut sent = Put::Sent;
        if T::LISTENS && self.known.told && !self.known.overflowed {
            if self.tables.all().tables().hearers(key) == 0 {
                self.out.abandon_this(&mut |writer| push.encode(writer));
                return Ok(Put::Unheard);
            }
            sent = Put::Heard;
        }
        let how = options.how(self.batching, false);
        let result = self
            .out
            .send(tx, now, how, &mut |writer| push.encode(writer));
        self.became(result, options.qos, sent)
    }

    /// Gives up the sample of which only a part has left ([`PutError::Cut`]); the peer is told as soon
    /// as there is a place.
    pub fn abandon(&mut self) {
        self.out.abandon();
    }

    /// A sample was dropped before it came here, by a driver that waited for a place in vain.
    pub fn count_dropped(&mut self) {
        count(&mut self.stats.dropped);
    }

    /// Everything that is waiting in the batch leaves now.
    pub fn flush<X: Tx + ?Sized>(&mut self, tx: &mut X, now: Instant) -> Result<(), PutError> {
        Ok(self.out.flush(tx, now)?)
    }

    #[inline]
    fn push<X: Tx + ?Sized, M: Message>(
        &mut self,
        tx: &mut X,
        id: PublisherId,
        now: Instant,
        whole: bool,
        message: impl FnOnce(u16, Qos) -> M,
    ) -> Result<Put, PutError> {
        if self.phase != Phase::Open {
            return Err(PutError::NotOpen);
        }
        if self.owed {
            self.key_first(tx, id, now)?;
        }
        let slot = self.tables.all().publishers.get(usize::from(id.0));
        let publisher = slot.and_then(Option::as_ref).ok_or(PutError::NoSuch)?;
        if publisher.owes.is_withdrawn() {
            return Err(PutError::NoSuch);
        }
        let options = publisher.options;
        let mut message = message(publisher.number, options.qos);
        let sent = match T::LISTENS {
            true if publisher.heard > 0 => Put::Heard,
            true if publisher.known && !self.known.overflowed => {
                self.out.abandon_this(&mut |w| message.write_again(w));
                return Ok(Put::Unheard);
            }
            _ => Put::Sent,
        };
        let how = options.how(self.batching, whole);
        let result = self.out.put(tx, now, how, &mut message);
        self.became(result, options.qos, sent)
    }

    /// Declares what is owed. A sample whose own key has been told of does not wait for the rest: the
    /// rest may be waiting for the sample, of which a part has left.
    #[inline(never)]
    fn key_first<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        id: PublisherId,
        now: Instant,
    ) -> Result<(), PutError> {
        let said = self.declare(tx, now);
        match self.tables.all().publishers.get(usize::from(id.0)) {
            Some(Some(publisher))
                if publisher.owes != Owes::Key && !publisher.owes.is_withdrawn() =>
            {
                Ok(())
            }
            _ => Ok(said?),
        }
    }

    #[inline]
    fn became(
        &mut self,
        result: Result<(), Refused>,
        qos: Qos,
        sent: Put,
    ) -> Result<Put, PutError> {
        match result {
            Ok(()) => Ok(sent),
            Err(Refused::Full) if !qos.is_blocking() => {
                count(&mut self.stats.dropped);
                Ok(Put::Dropped)
            }
            Err(refused) => Err(refused.into()),
        }
    }
}

impl PublisherOptions {
    #[inline]
    fn how(&self, batching: u64, whole: bool) -> How {
        How {
            channel: if self.reliable {
                Channel::Reliable
            } else {
                Channel::BestEffort
            },
            wait: batching != 0 && !self.qos.is_express(),
            whole,
            declares: false,
        }
    }
}
