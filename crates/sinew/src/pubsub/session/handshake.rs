//! How a session comes about, from either side (section 4.5).
//!
//! ```text
//! opener    Closed -open-> Opening -INIT_ACK-> Asked -OPEN_ACK-> Open
//! acceptor  Closed -accept-> Listening -INIT_SYN-> Greeted -OPEN_SYN-> Open
//! ```

use crate::link::Tx;
use crate::pubsub::codec::transport::{Close, Init, Open};
use crate::pubsub::codec::{self, Zid};
use crate::time::Instant;

use super::agreed::{Agreed, Peer, RESOLUTION, lesser, mask};
use super::event::{Closed, Event};
use super::out::Refused;
use super::receive::Trouble;
use super::{Phase, Session, Tables};

/// Fragments with marks.
const PATCH: u8 = 1;
/// The least that two sides can agree on, in bytes of a batch: a handshake fits.
pub const SMALLEST_BATCH: u16 = 64;

impl<T: Tables> Session<T> {
    /// Sends the first message of the opener.
    pub(super) fn send_init<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        now: Instant,
    ) -> Result<(), Refused> {
        let offer = self.offer(tx);
        if self.phase == Phase::Asked {
            // The other side may think the session open, and would not listen.
            let close = Close {
                session: true,
                reason: Close::GENERIC,
            };
            self.out.transport(tx, now, &|w| close.encode(w))?;
            self.phase = Phase::Opening;
        }
        self.out.transport(tx, now, &|w| offer.encode(w))?;
        self.offered = offer.batch_size;
        Ok(())
    }

    /// What this side would agree to.
    fn offer<X: Tx + ?Sized>(&self, tx: &X) -> Init<'static> {
        let mtu = u16::try_from(tx.mtu()).unwrap_or(u16::MAX);
        Init {
            ack: false,
            version: codec::VERSION,
            whatami: self.config.whatami,
            zid: self.config.zid,
            resolution: RESOLUTION,
            batch_size: mtu.min(self.config.batch_size),
            cookie: &[],
            patch: PATCH,
        }
    }

    pub(super) fn init<X: Tx + ?Sized>(
        &mut self,
        init: &Init<'_>,
        tx: &mut X,
        now: Instant,
    ) -> Result<Option<Event<'static>>, Trouble> {
        match (init.ack, self.phase) {
            (true, Phase::Opening) => {
                self.checked(init)?;
                if init.batch_size > self.offered || init.batch_size < SMALLEST_BATCH {
                    return Err(Trouble::End(Closed::Refused));
                }
                self.agree(init, init.batch_size, tx.mtu());
                let open = Open {
                    ack: false,
                    lease_ms: self.config.lease_ms,
                    initial_sn: self.out.agreed.first_sn,
                    cookie: init.cookie,
                };
                self.out.transport(tx, now, &|w| open.encode(w))?;
                self.phase = Phase::Asked;
                self.retry = self.next_retry(now);
                Ok(None)
            }
            (false, Phase::Listening | Phase::Greeted | Phase::Open) if self.accepts() => {
                self.checked(init)?;
                let open = self.phase == Phase::Open;
                let offer = self.offer(tx);
                let batch_size = init.batch_size.min(offer.batch_size);
                if open {
                    // One that was repeated on the way is answered, and nobody takes the answer up. To
                    // who has forgotten the session, the answer is the same, and OPEN will say so.
                    let agreed = Agreed {
                        first_sn: self.out.agreed.first_sn,
                        lease: self.out.agreed.lease,
                        ..Agreed::by(init, batch_size, tx.mtu())
                    };
                    if self.peer != Some(Peer::by(init)) || self.out.agreed != agreed {
                        return Err(Trouble::Anew);
                    }
                } else {
                    if batch_size < SMALLEST_BATCH {
                        return Err(Trouble::End(Closed::Refused));
                    }
                    self.agree(init, batch_size, tx.mtu());
                }
                let ack = Init {
                    ack: true,
                    resolution: lesser(RESOLUTION, init.resolution),
                    batch_size,
                    cookie: &self.cookie(),
                    patch: self.out.agreed.patch,
                    ..offer
                };
                self.out.transport(tx, now, &|w| ack.encode(w))?;
                if !open {
                    self.phase = Phase::Greeted;
                    self.give_up = now.later(self.config.patience);
                }
                Ok(None)
            }
            // Repeated, or out of order.
            _ => Ok(None),
        }
    }

    pub(super) fn opening<X: Tx + ?Sized>(
        &mut self,
        open: &Open<'_>,
        tx: &mut X,
        now: Instant,
    ) -> Result<Option<Event<'static>>, Trouble> {
        match (open.ack, self.phase) {
            (true, Phase::Asked) => self.opened(open, now).map(Some),
            (false, Phase::Greeted | Phase::Open)
                if self.accepts() && open.cookie == self.cookie() =>
            {
                let ack = Open {
                    ack: true,
                    lease_ms: self.config.lease_ms,
                    initial_sn: self.out.agreed.first_sn,
                    cookie: &[],
                };
                if open.initial_sn > self.out.agreed.mask {
                    return Err(Trouble::End(Closed::Malformed));
                }
                if self.phase == Phase::Open && !self.incoming.is_at(open.initial_sn) {
                    return Err(Trouble::Anew);
                }
                self.out.transport(tx, now, &|w| ack.encode(w))?;
                // In an open session, the acknowledgement was lost on the way.
                match self.phase {
                    Phase::Open => Ok(None),
                    _ => self.opened(open, now).map(Some),
                }
            }
            _ => Ok(None),
        }
    }

    fn opened(&mut self, open: &Open<'_>, now: Instant) -> Result<Event<'static>, Trouble> {
        if open.initial_sn > self.out.agreed.mask {
            return Err(Trouble::End(Closed::Malformed));
        }
        self.out.agreed.lease = u64::from(open.lease_ms).saturating_mul(1000);
        self.incoming.reset(open.initial_sn);
        self.out.reset(self.out.agreed.first_sn, now);
        Ok(self.begin(now))
    }

    /// Refuses who cannot be a peer.
    fn checked(&self, init: &Init<'_>) -> Result<(), Trouble> {
        let fits = |bits: u8| init.resolution & bits <= RESOLUTION & bits;
        if init.version != codec::VERSION || init.ack && !(fits(3) && fits(12)) {
            return Err(Trouble::End(Closed::Refused));
        }
        if init.zid == self.config.zid {
            return Err(Trouble::End(Closed::Myself));
        }
        Ok(())
    }

    fn agree(&mut self, init: &Init<'_>, batch_size: u16, mtu: usize) {
        self.peer = Some(Peer::by(init));
        self.out.agreed = Agreed::by(init, batch_size, mtu);
        let turn = self.config.seed ^ self.stats.opened;
        self.out.agreed.first_sn = scramble(turn) & self.out.agreed.mask;
    }

    /// When the handshake is asked for again.
    #[cfg_attr(target_os = "none", inline(never))]
    pub(super) fn next_retry(&self, now: Instant) -> Instant {
        match self.config.resend {
            0 => Instant::FAR,
            resend => now.later(resend),
        }
    }

    /// Shows that who sends OPEN is who was answered.
    fn cookie(&self) -> [u8; 4] {
        let mut cookie = scramble(self.config.seed.wrapping_add(0x5157));
        if let Some(peer) = &self.peer {
            for &byte in peer.zid.as_bytes() {
                cookie = scramble(cookie ^ u32::from(byte));
            }
        }
        cookie.to_le_bytes()
    }

    /// Of a session in the making or at work: who is there.
    pub fn peer(&self) -> Option<Peer> {
        self.peer.filter(|_| self.phase == Phase::Open)
    }

    /// The id of this node.
    pub fn zid(&self) -> Zid {
        self.config.zid
    }
}

impl Peer {
    fn by(init: &Init<'_>) -> Peer {
        Peer {
            zid: init.zid,
            whatami: init.whatami,
        }
    }
}

impl Agreed {
    fn by(init: &Init<'_>, batch_size: u16, mtu: usize) -> Agreed {
        Agreed {
            first_sn: 0,
            mask: mask(lesser(RESOLUTION, init.resolution)),
            // The length that stands before a batch on a stream is part of it.
            limit: usize::from(batch_size).saturating_sub(2).min(mtu),
            patch: init.patch.min(PATCH),
            lease: 0,
        }
    }
}

/// Numbers that differ where what goes in differs (the finaliser of MurmurHash3).
const fn scramble(mut number: u32) -> u32 {
    number ^= number >> 16;
    number = number.wrapping_mul(0x85eb_ca6b);
    number ^= number >> 13;
    number = number.wrapping_mul(0xc2b2_ae35);
    number ^ number >> 16
}
