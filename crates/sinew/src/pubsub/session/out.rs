//! What leaves: batches, frames, fragments, and their sequence numbers.
//!
//! The place of the link is the batch under construction. It holds one frame with network messages,
//! or transport messages, never both: Zenoh-Pico 1.9 reads no other batch.

use core::marker::PhantomData;

use crate::link::{SendError, Tx};
use crate::pubsub::codec::{Priority, Writer, transport};
use crate::time::Instant;

use super::agreed::{Agreed, Channel};
use super::tables::Tables;

/// Why a message was not sent, or not yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// No place is free.
    Full,
    /// The link took the first fragments, and is full now; the same message must go on.
    Cut,
    /// Larger than the configured bound.
    TooLarge,
    /// The link is gone.
    Closed,
}

impl From<SendError> for Refused {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Full => Refused::Full,
            SendError::TooLarge => Refused::TooLarge,
            SendError::Closed => Refused::Closed,
        }
    }
}

/// Bytes of the largest transport message, with a cookie of any router.
const HANDSHAKE: usize = 512;

/// A message of which some fragments have left.
#[derive(Clone, Copy, Debug)]
struct Cut {
    channel: Channel,
    /// Bytes of it that have left.
    offset: usize,
    /// All its bytes, and the first of them, to know it again.
    total: usize,
    head: [u8; KNOWN],
    declares: bool,
    /// It does not go on: the peer is to be told.
    given_up: bool,
}

impl Cut {
    /// Whether it is this message.
    #[inline(never)]
    fn is_of(&self, message: &mut dyn FnMut(&mut Writer<'_>)) -> bool {
        known(message) == (self.total, self.head)
    }
}

/// By so many bytes a message is known again: its kind, its key, its id.
const KNOWN: usize = 24;

/// What is to be sent.
pub(super) trait Message {
    /// Writes it into the batch, which is the common case.
    fn write(&mut self, writer: &mut Writer<'_>);

    /// Writes it where it begins a batch, or a window onto it.
    fn write_again(&mut self, writer: &mut Writer<'_>) {
        self.write(writer);
    }
}

/// What a function writes.
pub(super) struct By<F>(F);

pub(super) fn by<F: FnMut(&mut Writer<'_>)>(write: F) -> By<F> {
    By(write)
}

impl<F: FnMut(&mut Writer<'_>)> Message for By<F> {
    #[inline]
    fn write(&mut self, writer: &mut Writer<'_>) {
        (self.0)(writer);
    }
}

/// How a message is to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    pub channel: Channel,
    /// The batch is kept for others to follow.
    pub wait: bool,
    /// In one batch, or not at all.
    pub whole: bool,
    /// It is said again until it has gone, whatever becomes of a part of it.
    pub declares: bool,
}

impl How {
    /// What the session itself says: reliable, and with what follows it.
    pub(super) const CONTROL: How = How {
        channel: Channel::Reliable,
        wait: true,
        whole: false,
        declares: false,
    };

    /// The same, of what is owed until it has been said.
    pub(super) const DECLARATION: How = How {
        declares: true,
        ..How::CONTROL
    };
}

/// Whether messages are cut is for the tables to say.
#[derive(Debug)]
pub(super) struct Out<T> {
    /// With the peer.
    pub(super) agreed: Agreed,
    /// How far the place is written; 0 where no batch is under construction.
    at: usize,
    /// Of its frame.
    channel: Channel,
    /// When its first message was written.
    since: Instant,
    /// The next sequence number of each channel.
    sn: [u32; 2],
    cut: Option<Cut>,
    /// When something left last.
    pub(super) left: Instant,
    /// Messages of more bytes are refused.
    largest: usize,
    tables: PhantomData<T>,
}

impl<T: Tables> Out<T> {
    pub(super) const fn new(largest: usize) -> Self {
        Out {
            agreed: Agreed::NONE,
            at: 0,
            channel: Channel::Reliable,
            since: Instant::FAR,
            sn: [0; 2],
            cut: None,
            left: Instant::START,
            largest,
            tables: PhantomData,
        }
    }

    /// Begins anew on another link. A place of the link before is not touched any more.
    #[inline(never)]
    pub(super) fn reset(&mut self, sn: u32, now: Instant) {
        self.forget();
        self.sn = [sn; 2];
        self.left = now;
    }

    /// What is under construction goes nowhere.
    #[inline(never)]
    pub(super) fn forget(&mut self) {
        self.at = 0;
        self.since = Instant::FAR;
        self.cut = None;
    }

    /// When the first message of the batch under construction was written; `FAR` without one.
    #[inline]
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// Writes one network message into the batch.
    ///
    /// `message` may be called several times, with windows onto what it writes.
    #[inline(never)]
    pub(super) fn send<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        now: Instant,
        how: How,
        message: &mut dyn FnMut(&mut Writer<'_>),
    ) -> Result<(), Refused> {
        self.put(tx, now, how, &mut by(message))
    }

    /// As [`Out::send`], with a copy of its code for each kind of message: for samples, which are many.
    #[inline]
    pub(super) fn put<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        now: Instant,
        how: How,
        message: &mut impl Message,
    ) -> Result<(), Refused> {
        if self.at != 0 && self.channel == how.channel {
            // The common case: there is a frame of this channel, and room behind it.
            let place = self.place(tx)?;
            let mut writer = Writer::behind(place, self.at);
            message.write(&mut writer);
            if let Some(len) = writer.finish() {
                self.at = len;
                if how.wait {
                    return Ok(());
                }
                return self.flush(tx, now);
            }
        }
        self.begin(tx, now, how, &mut |w| message.write_again(w))
    }

    /// As [`Out::send`], with a new batch, and in fragments where one batch is not enough.
    #[inline(never)]
    fn begin<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        now: Instant,
        how: How,
        message: &mut dyn FnMut(&mut Writer<'_>),
    ) -> Result<(), Refused> {
        self.settle(tx, now)?;
        if let Some(cut) = self.cut.filter(|cut| cut.channel == how.channel)
            && T::ASSEMBLES
        {
            if cut.is_of(message) && !how.whole {
                return self.fragments(tx, now, cut, message);
            }
            // What follows must not come between two fragments of the same channel.
            if !(how.declares && cut.declares) {
                return Err(Refused::Full);
            }
            // What was being declared has been taken back, or something goes before it now.
            self.abandon();
            self.settle(tx, now)?;
        }
        let result = self.whole(tx, now, how, message);
        if result.is_err() {
            // What was committed before should not wait for what is refused.
            tx.flush();
        }
        result
    }

    fn whole<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        now: Instant,
        how: How,
        message: &mut dyn FnMut(&mut Writer<'_>),
    ) -> Result<(), Refused> {
        self.commit(tx, now)?;
        let mut writer = Writer::new(self.place(tx)?);
        self.frame(how.channel, &mut writer);
        let head = writer.total();
        message(&mut writer);
        let total = writer.total().saturating_sub(head);
        if let Some(len) = writer.finish() {
            self.at = len;
            self.channel = how.channel;
            self.since = now;
            return if how.wait {
                Ok(())
            } else {
                self.flush(tx, now)
            };
        }
        if how.whole || total > self.largest || !T::ASSEMBLES {
            tx.commit(0)?;
            return Err(Refused::TooLarge);
        }
        if self.cut.is_some() {
            // Who receives puts one message together at a time.
            tx.commit(0)?;
            return Err(Refused::Full);
        }
        let (total, head) = known(message);
        let cut = Cut {
            channel: how.channel,
            offset: 0,
            total,
            head,
            declares: how.declares,
            given_up: false,
        };
        self.fragments(tx, now, cut, message)
    }

    /// Sends the rest of a message in fragments, each written straight into the place it leaves
    /// from.
    fn fragments<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        now: Instant,
        mut cut: Cut,
        message: &mut dyn FnMut(&mut Writer<'_>),
    ) -> Result<(), Refused> {
        // What waits on the other channel goes first, so that the place is free.
        self.commit(tx, now)?;
        while cut.offset < cut.total {
            let place = match self.place(tx) {
                Ok(place) => place,
                Err(Refused::Full) if cut.offset > 0 => {
                    self.cut = Some(cut);
                    tx.flush();
                    return Err(Refused::Cut);
                }
                Err(refused) => return Err(refused),
            };
            let mut writer = Writer::new(place);
            transport::Fragment {
                first: cut.offset == 0 && self.agreed.patch > 0,
                ..self.fragment(cut.channel)
            }
            .encode_head(&mut writer);
            let at = writer.total();
            let room = self.agreed.limit.saturating_sub(at);
            let rest = cut.total.saturating_sub(cut.offset);
            if rest <= room
                && let Some(header) = place.first_mut()
            {
                *header &= !transport::Fragment::MORE;
            }
            let len = rest.min(room);
            let (_, body) = place.split_at_mut_checked(at).ok_or(Refused::TooLarge)?;
            let mut writer = Writer::window(body, cut.offset);
            message(&mut writer);
            tx.commit(at.saturating_add(len))?;
            self.advance(cut.channel);
            self.left = now;
            cut.offset = cut.offset.saturating_add(len.max(1));
        }
        self.cut = None;
        tx.flush();
        Ok(())
    }

    /// Gives this message up, if it is the one of which only some fragments have left.
    #[cold]
    #[inline(never)]
    pub(super) fn abandon_this(&mut self, message: &mut dyn FnMut(&mut Writer<'_>)) {
        if let Some(cut) = &mut self.cut {
            cut.given_up |= cut.is_of(message);
        }
    }

    /// Gives up the message of which only some fragments have left.
    pub(super) fn abandon(&mut self) {
        if let Some(cut) = &mut self.cut {
            cut.given_up = true;
        }
    }

    /// Tells the peer of a message that was given up.
    pub(super) fn settle<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        now: Instant,
    ) -> Result<(), Refused> {
        let channel = match &self.cut {
            Some(cut) if cut.given_up && T::ASSEMBLES => cut.channel,
            _ => return Ok(()),
        };
        self.commit(tx, now)?;
        let place = tx.place(self.agreed.limit)?;
        let mut writer = Writer::new(place);
        let fragment = self.fragment(channel);
        if self.agreed.patch > 0 {
            transport::Fragment {
                drop: true,
                ..fragment
            }
            .encode_head(&mut writer);
        } else {
            // Without marks, a number that is left out makes the peer discard what it has, and an empty
            // frame says that what follows is no part of it.
            self.advance(channel);
            self.frame(channel, &mut writer);
        }
        let len = writer.finish().ok_or(Refused::TooLarge)?;
        tx.commit(len)?;
        tx.flush();
        self.left = now;
        self.advance(channel);
        self.cut = None;
        Ok(())
    }

    /// Sends transport messages, in a batch of their own.
    #[inline(never)]
    pub(super) fn transport<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        now: Instant,
        message: &dyn Fn(&mut Writer<'_>),
    ) -> Result<(), Refused> {
        self.commit(tx, now)?;
        let place = tx.place(tx.mtu().min(HANDSHAKE))?;
        let mut writer = Writer::new(place);
        message(&mut writer);
        let Some(len) = writer.finish() else {
            tx.commit(0)?;
            return Err(Refused::TooLarge);
        };
        tx.commit(len)?;
        tx.flush();
        self.left = now;
        Ok(())
    }

    /// Sends the batch under construction, if there is one.
    #[inline(never)]
    pub(super) fn commit<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        now: Instant,
    ) -> Result<(), Refused> {
        if self.at == 0 {
            return Ok(());
        }
        let len = core::mem::take(&mut self.at);
        self.since = Instant::FAR;
        tx.commit(len)?;
        self.advance(self.channel);
        self.left = now;
        Ok(())
    }

    /// [`Out::commit`], and what the link has batched leaves as well.
    #[inline(never)]
    pub(super) fn flush<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        now: Instant,
    ) -> Result<(), Refused> {
        self.commit(tx, now)?;
        tx.flush();
        Ok(())
    }

    /// The place of a batch.
    #[inline]
    fn place<'x, X: Tx + ?Sized>(&self, tx: &'x mut X) -> Result<&'x mut [u8], Refused> {
        let place = tx.place(self.agreed.limit)?;
        place.get_mut(..self.agreed.limit).ok_or(Refused::TooLarge)
    }

    /// Writes the head of the next frame.
    #[cfg_attr(target_os = "none", inline(never))]
    fn frame(&self, channel: Channel, writer: &mut Writer<'_>) {
        transport::Frame {
            reliable: channel == Channel::Reliable,
            sn: self.next(channel),
            priority: Priority::Data,
        }
        .encode(writer);
    }

    /// The head of the next fragment, which others follow.
    fn fragment(&self, channel: Channel) -> transport::Fragment<'static> {
        transport::Fragment {
            reliable: channel == Channel::Reliable,
            more: true,
            sn: self.next(channel),
            priority: Priority::Data,
            first: false,
            drop: false,
            payload: &[],
        }
    }

    fn next(&self, channel: Channel) -> u32 {
        let [reliable, best_effort] = self.sn;
        match channel {
            Channel::Reliable => reliable,
            Channel::BestEffort => best_effort,
        }
    }

    #[cfg_attr(target_os = "none", inline(never))]
    fn advance(&mut self, channel: Channel) {
        let [reliable, best_effort] = &mut self.sn;
        let sn = match channel {
            Channel::Reliable => reliable,
            Channel::BestEffort => best_effort,
        };
        *sn = sn.wrapping_add(1) & self.agreed.mask;
    }
}

/// How long a message is, and its first bytes.
#[inline(never)]
fn known(message: &mut dyn FnMut(&mut Writer<'_>)) -> (usize, [u8; KNOWN]) {
    let mut head = [0; KNOWN];
    let mut writer = Writer::window(&mut head, 0);
    message(&mut writer);
    (writer.total(), head)
}
