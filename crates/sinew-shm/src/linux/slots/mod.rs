//! One master with several remotes in one file or physical memory: a link each, in slots of its own.
//!
//! The master (a process, or a core that shares the memory) is the first side of every slot. Each
//! process [claims](Slots::claim) the second side of one that is free, by a lock on the bytes of its
//! segment. The kernel frees the lock when the process is gone, whatever way it went: exactly that slot
//! is free then, and no other notices anything. Where things lie says [`Regions`].
//!
//! # When the other side learns of a death
//! A lock wakes nobody. A side that waits looks at its peer's lock once in each heartbeat
//! ([`domain::Options::heartbeat`](crate::domain::Options), of the side that waits), so a wait ends with
//! [`Lost::Closed`](crate::domain::Lost) within one heartbeat and the time until its thread runs. Where the
//! slot is claimed anew before that, it ends at once, with
//! [`Lost::Restarted`](crate::domain::Lost): the new process rings. A process that is stopped keeps its
//! slot; its peer ends after [`domain::Options::silence`](crate::domain::Options), where that is set, and
//! pairs with it again when it goes on.
//!
//! A master that is no process of this machine has no lock: its death is seen by silence, or by its bell.

mod error;

use std::path::Path;
use std::time::Duration;

use super::link::{Link, LinkError, Options, RegionBell};
use super::map::MapError;
use super::process::segment;
use super::{Deadline, Region};
use crate::domain::observe::Source;
use crate::domain::{Config, NoRegions, Regions, Role, Span};
use crate::lock::{Lock, StdLock};
use crate::word::SESSION_STORE;

pub use error::SlotsError;

/// How long one process waits for another to write the header, which takes some stores.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is locked while the header is written: its line.
const HEADER: Span = Span { offset: 0, len: 64 };

/// The slots of a region.
#[derive(Debug)]
pub struct Slots {
    /// Of the header; each slot is one of its own in the same file.
    region: Region,
    regions: Regions,
    config: Config<'static>,
}

/// A slot that this process has. It is free again when the link and all handles on it are dropped, or
/// the process is gone.
#[derive(Debug)]
pub struct Claimed<L: Lock = StdLock> {
    /// Which one, from 0.
    pub slot: u32,
    /// Its second side.
    pub link: Link<L>,
}

impl Slots {
    /// The slots at `offset` (a multiple of 64) of the file or device at `path`: `slots` links of this
    /// configuration. They are made where they are not there yet, so master and remotes may all call
    /// this, in any order. The file is for its owner alone.
    ///
    /// Other slots than these, or anything else that is there, are refused and left as they are.
    pub fn create(
        path: impl AsRef<Path>,
        offset: u64,
        config: Config<'static>,
        slots: u32,
    ) -> Result<Slots, SlotsError> {
        let regions = checked(&config, slots)?;
        let len = usize::try_from(regions.len()).unwrap_or(usize::MAX);
        let region = Region::create(path, offset, len).map_err(MapError::Io)?;
        let deadline = Deadline::after(PATIENCE);
        loop {
            match header(&region)? {
                Err(NoRegions::Absent) => {}
                Err(other) => return Err(SlotsError::Not(other)),
                Ok(found) => return Slots::of(region, config, regions, found),
            }
            match region.lock(HEADER)? {
                // Somebody may have written it since.
                Some(_turn) if header(&region)? == Err(NoRegions::Absent) => {
                    write_header(&region, &regions)?;
                }
                Some(_) => {}
                None if deadline.is_over() => return Err(SlotsError::Busy),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// The slots at `offset` of what somebody else has made, however many there are.
    pub fn open(
        path: impl AsRef<Path>,
        offset: u64,
        config: Config<'static>,
    ) -> Result<Slots, SlotsError> {
        let len = HEADER.len as usize;
        let region = Region::open(path, offset, len).map_err(MapError::Io)?;
        let found = header(&region)?.map_err(SlotsError::Not)?;
        let regions = checked(&config, found.slots)?;
        Slots::of(region, config, regions, found)
    }

    fn of(
        region: Region,
        config: Config<'static>,
        ours: Regions,
        found: Regions,
    ) -> Result<Slots, SlotsError> {
        let lens = |it: Regions| {
            [it.region.first, it.region.second, it.region.exchange].map(|part| part.len)
        };
        let (our_lens, their_lens) = (lens(ours), lens(found));
        let pairs = [
            ("number of slots", ours.slots.into(), found.slots.into()),
            ("configuration hash", ours.hash.into(), found.hash.into()),
            ("length of the first segment", our_lens[0], their_lens[0]),
            ("length of the second segment", our_lens[1], their_lens[1]),
            ("length of the exchange segment", our_lens[2], their_lens[2]),
        ];
        match pairs.into_iter().find(|(_, ours, theirs)| ours != theirs) {
            Some((what, ours, theirs)) => Err(SlotsError::Differs { what, ours, theirs }),
            None => Ok(Slots {
                region,
                regions: ours,
                config,
            }),
        }
    }

    /// Where everything lies.
    pub fn regions(&self) -> Regions {
        self.regions
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.regions.slots
    }

    /// Takes the second side of the first slot that is free, where both sides are processes.
    ///
    /// What the process before left in the slot is of no concern: the link begins in a new session.
    pub fn claim<L: Lock>(&self, options: Options) -> Result<Claimed<L>, SlotsError> {
        self.claim_with(|_| RegionBell::Process, options)
    }

    /// As [`Slots::claim`], with a bell for the slot that is taken: for a master on another core.
    pub fn claim_with<L: Lock>(
        &self,
        bell: impl Fn(u32) -> RegionBell,
        options: Options,
    ) -> Result<Claimed<L>, SlotsError> {
        for slot in 0..self.regions.slots {
            match self.side(slot, Role::Second, bell(slot), options) {
                Ok(link) => return Ok(Claimed { slot, link }),
                Err(SlotsError::Taken { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let slots = self.regions.slots;
        Err(SlotsError::AllTaken { slots })
    }

    /// Takes the first side of a slot, where both sides are processes.
    pub fn master<L: Lock>(&self, slot: u32, options: Options) -> Result<Link<L>, SlotsError> {
        self.side(slot, Role::First, RegionBell::Process, options)
    }

    /// Takes a side of a slot that is known by its number.
    pub fn side<L: Lock>(
        &self,
        slot: u32,
        role: Role,
        bell: RegionBell,
        options: Options,
    ) -> Result<Link<L>, SlotsError> {
        let region = self.region.elsewhere(self.slot(slot)?)?;
        match Link::in_region(&region, self.config, role, bell, options) {
            Err(LinkError::Map(MapError::Taken)) => Err(SlotsError::Taken { slot }),
            link => Ok(link?),
        }
    }

    /// Whether a process of this machine has this side of a slot.
    pub fn is_taken(&self, slot: u32, role: Role) -> Result<bool, SlotsError> {
        let region = self.region.elsewhere(self.slot(slot)?)?;
        Ok(region.is_taken(self.regions.region.segment(role))?)
    }

    fn slot(&self, slot: u32) -> Result<Span, SlotsError> {
        let slots = self.regions.slots;
        let found = self.regions.slot(slot);
        found.ok_or(SlotsError::NoSlot { slot, slots })
    }
}

/// Where so many links of this configuration lie.
fn checked(config: &Config<'static>, slots: u32) -> Result<Regions, SlotsError> {
    let open = |error| SlotsError::Link(LinkError::Open(error));
    config.check().map_err(|error| open(error.into()))?;
    Regions::of(config, slots).ok_or(SlotsError::Count(slots))
}

fn header(region: &Region) -> Result<Result<Regions, NoRegions>, MapError> {
    let map = region.peer(0, HEADER.len as usize)?;
    // The one place that cannot be read is one that is not aligned.
    map.line(0).ok_or_else(unaligned)?;
    Ok(Regions::read(&map))
}

/// Nobody else writes it now, and nobody believes it before its first word.
fn write_header(region: &Region, regions: &Regions) -> Result<(), MapError> {
    let map = region.own(0, HEADER.len as usize)?;
    let segment = segment(&map).ok_or_else(unaligned)?;
    let words = segment.words(0).ok_or_else(unaligned)?;
    let header = regions.header();
    for (at, word) in header.into_iter().enumerate().skip(1) {
        words.at(at).set(word);
    }
    words.at(0).store(header[0], SESSION_STORE);
    Ok(())
}

fn unaligned() -> MapError {
    MapError::OutOfRange {
        offset: HEADER.offset,
        len: HEADER.len as usize,
    }
}
