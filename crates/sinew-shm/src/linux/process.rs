//! One side of a link in a process of this machine: memory and doorbell put together.
//!
//! | from | memory | the peer's segment | death |
//! |---|---|---|---|
//! | [`Mapped::joined`] | sealed memfds, from [`exchange`] | read-only, for good | the socket's hang-up |
//! | [`Mapped::in_region`] | a file or physical memory, from [`Region`] | read-only to this side | heartbeat, or what the system tells |

use core::marker::PhantomData;
use core::ptr::NonNull;
use std::boxed::Box;
use std::sync::Arc;
use std::vec;
use std::vec::Vec;

use super::exchange::{self, DoorbellKind, Offer};
use super::map::{MapError, Mapping};
use super::memfd;
use super::overlap::{self, Placed};
use super::region::Region;
use super::role::Role as Claim;
use crate::domain::observe::Source;
use crate::domain::{
    self, Block, Coherent, Config, Doorbell, End, Memory, OpenError, Options, Parts, Platform,
    Role, Slot,
};
use crate::lock::{Lock, StdLock};

/// What an end in a process is made of. `L` is [`StdLock`] where threads share the end, or
/// [`Unshared`](crate::Unshared) where one thread has it.
pub struct Process<L = StdLock> {
    /// Kept mapped for as long as the end lives.
    _memory: Vec<Arc<Mapping>>,
    /// Kept until the end is closed.
    _claim: Option<Arc<Claim>>,
    _lock: PhantomData<fn() -> L>,
}

/// The doorbell of an end in a process: whichever was agreed on.
pub type AnyDoorbell = Box<dyn Doorbell + Send + Sync>;

impl<L: Lock> Platform for Process<L> {
    type Lock = L;
    type Doorbell = AnyDoorbell;
    type Cache = Coherent;
    type Slots = Vec<Slot>;
    type Blocks = Vec<Block>;
}

/// Memory of a side, and what keeps it mapped.
pub struct Mapped {
    memory: Memory,
    maps: Vec<Arc<Mapping>>,
    claim: Option<Arc<Claim>>,
}

/// What this side of a link offers in [`exchange`].
pub fn offer(config: &Config<'_>, role: Role, doorbell: DoorbellKind) -> Offer {
    Offer {
        config_hash: config.hash(),
        own_len: config.segment_len(role) as u32,
        peer_len: config.segment_len(role.peer()) as u32,
        trust: match config.trust {
            domain::Trust::None => exchange::Trust::None,
            domain::Trust::Mutual => exchange::Trust::Mutual,
        },
        exchange_len: match config.trust {
            domain::Trust::None => 0,
            domain::Trust::Mutual => (config.exchange_len() as u32).max(1),
        },
        doorbell,
    }
}

impl Mapped {
    /// The segments that two processes have traded. `None` where a map cannot be used as a segment,
    /// which its size and alignment rule out.
    pub fn joined(
        mine: memfd::Segment,
        peer: memfd::Segment,
        exchange: Option<memfd::Segment>,
    ) -> Option<Mapped> {
        let map = |segment: memfd::Segment| segment.into_parts().1;
        let mapped = Mapped::new(map(mine), map(peer), exchange.map(map))?;
        // Anonymous memory of these two sides, and of nobody before them.
        let memory = mapped.memory.zeroed();
        Some(Mapped { memory, ..mapped })
    }

    /// The parts of a region: a file that an emulator shares, or physical memory. The peer has its
    /// own core.
    ///
    /// [`MapError::Taken`] where another process of this machine is this side already; the side is
    /// free again when the end is closed, or its process is gone. [`MapError::OtherSide`] where the
    /// peer's segment stands in the place of the own one; [`MapError::Overlap`], after a second at
    /// most, where it would be written over otherwise. Nothing is written yet.
    pub fn in_region(region: &Region, config: &Config<'_>, role: Role) -> Result<Mapped, MapError> {
        Mapped::beside(region, config, role, Some(&|| {}))
    }

    /// As [`Mapped::in_region`]. `ring` rings the peer, for a sign of life; `None` where it is a process
    /// of this machine: one that is there has locked its segment, and what another left does not matter.
    pub(super) fn beside(
        region: &Region,
        config: &Config<'_>,
        role: Role,
        ring: Option<&dyn Fn()>,
    ) -> Result<Mapped, MapError> {
        let parts = domain::Region::of(config);
        let (own, other) = (parts.segment(role), parts.segment(role.peer()));
        let claim = region.claim(own, other)?;
        let range = |part: domain::Span| (part.offset as usize, part.len as usize);
        let (at, len) = range(own);
        let mine = region.own(at, len)?;
        let (at, len) = range(other);
        let peer = region.peer(at, len)?;
        let (at, len) = range(parts.exchange);
        let exchange = (len > 0).then(|| region.own(at, len)).transpose()?;
        // A peer that runs cannot mend what is written over its segment.
        let stands = domain::observe::Link::new(&mine, &mine).side(role);
        if stands.is_ok_and(|side| side.role == Some(role.peer())) {
            return Err(MapError::OtherSide);
        }
        if let Some(ring) = ring {
            let placed = |map, span| Placed { map, span };
            let both = exchange.iter().map(|map| placed(map, parts.exchange));
            let written: Vec<_> = [placed(&mine, own)].into_iter().chain(both).collect();
            let found = overlap::find(&written, placed(&peer, other), (config, role), ring);
            if let Some(mut overlap) = found {
                overlap.offset += region.offset();
                return Err(MapError::Overlap(overlap));
            }
        }
        let out_of_range = MapError::OutOfRange { offset: 0, len };
        let mapped = Mapped::new(mine, peer, exchange).ok_or(out_of_range)?;
        let claim = Some(Arc::new(claim));
        Ok(Mapped { claim, ..mapped })
    }

    fn new(mine: Mapping, peer: Mapping, exchange: Option<Mapping>) -> Option<Mapped> {
        let is_writable = |map: &Mapping| map.is_writable();
        if !is_writable(&mine) || !exchange.as_ref().is_none_or(is_writable) {
            return None;
        }
        let exchange_segment = match &exchange {
            Some(map) => Some(segment(map)?),
            None => None,
        };
        let (own, peers) = (segment(&mine)?, segment(&peer)?);
        // SAFETY: the own and the exchange map can be written, as was just checked, the peer's can be
        // read; they live as long as the end, which keeps them; they were just made or taken, so
        // that nothing else in this program reaches into them.
        let memory = unsafe { Memory::new(own, peers, exchange_segment) };
        let maps = [mine, peer].into_iter().chain(exchange);
        let maps = maps.map(Arc::new).collect();
        Some(Mapped {
            memory,
            maps,
            claim: None,
        })
    }

    /// Who has which side of a region.
    pub(super) fn claim(&self) -> Option<Arc<Claim>> {
        self.claim.clone()
    }

    /// The maps of the own segment and of the peer's, for a [`FutexBell`](super::bell::FutexBell) on
    /// the words at [`domain::BELL`].
    pub fn maps(&self) -> Option<[Arc<Mapping>; 2]> {
        let mut maps = self.maps.iter().cloned();
        Some([maps.next()?, maps.next()?])
    }

    /// Opens this side's end on it.
    pub fn open<L: Lock>(
        self,
        config: Config<'static>,
        role: Role,
        doorbell: AnyDoorbell,
        options: Options,
    ) -> Result<End<Process<L>>, OpenError> {
        let parts = Parts {
            doorbell,
            cache: Coherent,
            platform: Process {
                _memory: self.maps,
                _claim: self.claim,
                _lock: PhantomData,
            },
            slots: config.channels.iter().map(|_| Slot::EMPTY).collect(),
            blocks: vec![Block::NEW; config.blocks()],
        };
        End::open(self.memory, config, role, parts, options)
    }
}

/// For observers. Of a file that somebody truncates, see [`Mapping`].
impl Source for Mapping {
    fn line(&self, offset: u32) -> Option<[u32; 16]> {
        segment(self)?.line(offset)
    }
}

/// For words at places that nobody else in this program uses.
pub(super) fn segment(map: &Mapping) -> Option<crate::Segment> {
    let base: NonNull<u8> = map.as_ptr();
    // SAFETY: the range is mapped for as long as the map lives, and what is made of this segment
    // keeps the map; only the link's code reaches into it.
    unsafe { crate::Segment::from_raw(base, map.len()) }
}
