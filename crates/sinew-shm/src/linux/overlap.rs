//! Whether the other side's segment stands where this side is about to write.
//!
//! Where segments lie depends on their sizes, so those of a side with another configuration than its
//! peer's, or at another offset, may lie over the peer's. A core that runs has written its header when it
//! started, and does not look at it again: written over, it is gone until it is started anew. So what
//! stands there is looked at before anything is written.

use std::boxed::Box;
use std::thread;
use std::time::Duration;

use super::Mapping;
use crate::domain::observe::{ChannelSide, Part, Side, State, sides};
use crate::domain::{Config, Role, Span};

/// How often is looked for a sign of life: for a second, ten times what passes between two where nobody
/// has chosen ([`Options`](crate::domain::Options)).
const LOOKS: u32 = 100;
/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(10);
/// Looks between two rings. One that comes before the next sign of life is due is in vain.
const RING_EACH: u32 = 10;

/// The segment of the other side where this side would write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overlap {
    /// Where it begins in the file or device, in bytes.
    pub offset: u64,
    /// What it says of itself.
    pub side: Side,
    /// Its first channel, where its directory can be read.
    pub channel: Option<ChannelSide>,
    /// It gave a sign of life. Else it may be that of a core which ran there before.
    pub is_alive: bool,
}

impl Overlap {
    /// What to do besides, as the end of a remedy: nothing where the side is known to run.
    pub fn or_clear(&self) -> &'static str {
        match self.is_alive {
            true => "",
            false => "; where no such side runs any more, clear the memory",
        }
    }
}

impl core::fmt::Display for Overlap {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let runs = match self.is_alive {
            true => "runs",
            false => "stands",
        };
        let at = self.offset;
        write!(
            f,
            "the other side {runs} at {at:#x}, where this side would write"
        )?;
        let Some(channel) = &self.channel else {
            return Ok(());
        };
        // Foreign: any characters.
        let name = channel.name.as_str().escape_debug();
        write!(f, " (channel {} `{name}`", channel.id)?;
        match channel.pool.blocks {
            0 => f.write_str(")"),
            blocks => write!(f, ": {blocks} blocks of {} bytes)", channel.pool.size),
        }
    }
}

/// A part of a region, and where it lies there.
#[derive(Clone, Copy)]
pub(super) struct Placed<'a> {
    pub(super) map: &'a Mapping,
    pub(super) span: Span,
}

/// A segment, as it is found in a part of a region.
struct Found<'a> {
    part: Part<&'a Mapping>,
    /// From the base of the region.
    offset: u64,
    side: Side,
}

/// Looks whether the peer's segment reaches into what this side would write: `written`.
///
/// Nobody can tell from a header alone whether the side behind it still runs. One that has closed does
/// not; another is left alone, unless a peer that fits shows where this side expects it that it is
/// the one that runs. `ring` rings the peer, so that it looks and gives a sign of life.
pub(super) fn find<'a>(
    written: &[Placed<'a>],
    peer: Placed<'a>,
    (config, role): (&Config<'_>, Role),
    ring: impl Fn(),
) -> Option<Box<Overlap>> {
    let other = role.peer();
    let fits = |side: &Side| {
        let len = config.segment_len(other) as u32;
        (side.role, side.hash, side.length) == (Some(other), config.hash(), len)
    };
    let stands = |side: &Side| side.role == Some(other) && side.state != State::Down;
    let found = |part: Placed<'a>, at: u32, side| Found {
        part: Part::new(part.map, at),
        offset: part.span.offset + u64::from(at),
        side,
    };
    let inside = written.iter().find_map(|part| {
        let (at, side) = sides(part.map).find(|(_, side)| stands(side))?;
        Some(found(*part, at, side))
    });
    // Or it lies where it is expected, and is longer.
    let longer = || {
        let side = Side::read(peer.map).ok();
        let side = side.filter(|side| stands(side) && !fits(side))?;
        let end = peer.span.offset + u64::from(side.length);
        let meets =
            |part: &Placed<'_>| peer.span.offset < part.span.end() && part.span.offset < end;
        written.iter().any(meets).then(|| found(peer, 0, side))
    };
    let found = inside.or_else(longer)?;

    let life = |side: Side| (side.session, side.heartbeat);
    let present = || Side::read(&found.part).ok().map(life);
    let expected = || Side::read(peer.map).ok().filter(fits).map(life);
    let (before, expected_before) = (Some(life(found.side)), expected());
    let mut is_alive = false;
    for look in 0..LOOKS {
        if look % RING_EACH == 0 {
            ring();
        }
        thread::sleep(INTERVAL);
        is_alive = present() != before;
        if is_alive {
            break;
        }
        let now = expected();
        if now.is_some() && now != expected_before {
            return None;
        }
    }
    Some(Box::new(Overlap {
        offset: found.offset,
        side: found.side,
        channel: found.side.channel(&found.part, 0),
        is_alive,
    }))
}
