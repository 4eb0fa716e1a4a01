//! Looks at a link from outside: who is there, and where every block is.
//!
//! Nothing but the two segments is needed, and they are only read: no configuration, no lock, no
//! word of either side changes. So a tool, a debugger's memory dump or a watchdog core can look at a
//! link that runs. (Through caches that do not see each other, what is seen is as old as the
//! observer's own; map the memory uncached there.)
//!
//! Everything read is foreign. Each line of words is copied once; what a directory says of offsets
//! is checked by the [`Source`]; no more than [`MAX_CHANNELS`] entries
//! are looked at. Numbers that no honest side can have are bounded and marked
//! ([`Flow::is_consistent`]): a torn or hostile segment makes no nonsense and no panic.
//!
//! ```
//! use sinew_shm::domain::{Role, observe::Link};

//! # fn print(first: &[u8], second: &[u8]) {
//! let link = Link::new(first, second); // live `Segment`s, or bytes of a dump
//! if link.is_up() {
//!     for channel in link.channels() {
//!         if let Some(flow) = channel.flow(Role::First) {
//!             println!("{}: {} of {} blocks wait", channel.id(), flow.queued, flow.blocks);
//!         }
//!     }
//! }
//! # }
//! ```

use super::config::{Kind, MAX_CHANNELS, Role};
use super::layout;
use super::region::Region;
#[cfg(not(loom))]
use crate::word::full_fence;
use crate::word::{SESSION_LOAD, Segment};

mod channel;
mod flow;
mod lock;
mod message;
mod side;
mod value;

pub use channel::{ChannelSide, Counts};
pub use flow::Flow;
pub use lock::LockInfo;
pub use message::MessageFlow;
pub use side::{NoSide, Side, State};
pub use value::{NoValue, ValueInfo};

/// From where the words of a segment are read.
pub trait Source {
    /// The 16 little-endian words of the line at `offset`, each read once; `None` where the offset
    /// is no multiple of 64 or the line does not lie in the segment.
    fn line(&self, offset: u32) -> Option<[u32; 16]>;

    /// Copies the bytes from `offset` on into all of `out`; `None` as for [`Source::line`]. What is
    /// read after it is not older.
    fn copy(&self, offset: u32, out: &mut [u8]) -> Option<()> {
        let mut at = offset;
        for line in out.chunks_mut(64) {
            let words = self.line(at)?;
            for (bytes, word) in line.chunks_mut(4).zip(words) {
                for (to, from) in bytes.iter_mut().zip(word.to_le_bytes()) {
                    *to = from;
                }
            }
            at = at.checked_add(64)?;
        }
        Some(())
    }
}

/// Live memory.
impl Source for Segment {
    fn line(&self, offset: u32) -> Option<[u32; 16]> {
        let words = self.words(offset)?;
        let mut line = [0; 16];
        // The words of a line are positions, each of which follows the one before it: read
        // backwards, none is seen to be ahead of the one it follows.
        for (index, word) in line.iter_mut().enumerate().rev() {
            *word = words.at(index).load(SESSION_LOAD);
        }
        Some(line)
    }

    /// By machine words, as its owner writes them.
    #[cfg(not(loom))]
    fn copy(&self, offset: u32, out: &mut [u8]) -> Option<()> {
        let len = u32::try_from(out.len()).ok()?;
        let stride = len.checked_next_multiple_of(64)?;
        let block = self.blocks(offset, stride, len, 1)?;
        block.for_reading(0, len).copy_to(out);
        full_fence(SESSION_LOAD);
        Some(())
    }
}

/// A copy.
impl Source for [u8] {
    fn line(&self, offset: u32) -> Option<[u32; 16]> {
        if !offset.is_multiple_of(64) {
            return None;
        }
        let bytes = self.get(offset as usize..)?.first_chunk::<64>()?;
        let mut line = [0; 16];
        for (word, bytes) in line.iter_mut().zip(bytes.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        Some(line)
    }
}

impl<S: Source + ?Sized> Source for &S {
    fn line(&self, offset: u32) -> Option<[u32; 16]> {
        (**self).line(offset)
    }

    fn copy(&self, offset: u32, out: &mut [u8]) -> Option<()> {
        (**self).copy(offset, out)
    }
}

/// What begins at an offset of a source: a segment of a region, where all of the region is read.
#[derive(Clone, Copy, Debug)]
pub struct Part<S> {
    source: S,
    offset: u32,
}

impl<S: Source> Part<S> {
    /// What begins `offset` bytes from the base of `source`, and ends where that does.
    pub const fn new(source: S, offset: u32) -> Part<S> {
        Part { source, offset }
    }
}

impl<S: Source> Source for Part<S> {
    fn line(&self, offset: u32) -> Option<[u32; 16]> {
        self.source.line(self.offset.checked_add(offset)?)
    }

    fn copy(&self, offset: u32, out: &mut [u8]) -> Option<()> {
        self.source.copy(self.offset.checked_add(offset)?, out)
    }
}

/// Every side whose segment begins in `source`, at a multiple of [`Region::ALIGN`] bytes, as all do in
/// a region, and at how many: for who does not know the configuration by which they lie there.
///
/// Of a side that runs no more the segment stands as well, as long as nobody writes over it.
pub fn sides(source: &impl Source) -> impl Iterator<Item = (u32, Side)> + '_ {
    let places = (0..=u32::MAX).step_by(Region::ALIGN as usize);
    let lines = places.map_while(|at| Some((at, source.line(at)?)));
    let begun = lines.filter(|(_, line)| line[layout::identity::MAGIC] == layout::MAGIC);
    begun.filter_map(move |(at, _)| Some((at, Side::read(&Part::new(source, at)).ok()?)))
}

/// The two segments of a link.
#[derive(Clone, Copy, Debug)]
pub struct Link<S> {
    first: S,
    second: S,
}

impl<S: Source> Link<S> {
    /// The first side's segment, and the second's.
    pub const fn new(first: S, second: S) -> Link<S> {
        Link { first, second }
    }

    /// What a side says of itself, now.
    pub fn side(&self, role: Role) -> Result<Side, NoSide> {
        Side::read(self.source(role))
    }

    /// Whether both sides are ready and have acknowledged each other, now.
    pub fn is_up(&self) -> bool {
        match (self.side(Role::First), self.side(Role::Second)) {
            (Ok(first), Ok(second)) => first.is_up_with(&second),
            _ => false,
        }
    }

    /// The channels in the order of the configuration, each read when the iterator comes to it.
    ///
    /// Where the two directories differ, each side's channels are shown for themselves.
    pub fn channels(&self) -> impl Iterator<Item = Channel> + '_ {
        let (first, second) = (self.side(Role::First), self.side(Role::Second));
        let is_up = match (&first, &second) {
            (Ok(first), Ok(second)) => first.is_up_with(second),
            _ => false,
        };
        let (first, second) = (first.ok(), second.ok());
        (0..MAX_CHANNELS).flat_map(move |index| {
            // The sides in turns, each twice: an instant lies between all earlier and all later
            // looks, so that differences across the sides can be bounded.
            let read = |side: &Option<Side>, source| side.as_ref()?.channel(source, index);
            let first_early = read(&first, &self.first);
            let second_early = read(&second, &self.second);
            let first_late = read(&first, &self.first);
            let second_late = read(&second, &self.second);
            let looks = |early: Option<_>, late: Option<_>| Some([early?, late?]);
            Channel::of(
                looks(first_early, first_late),
                looks(second_early, second_late),
                is_up,
            )
        })
    }

    /// The segment of a side.
    pub fn source(&self, role: Role) -> &S {
        match role {
            Role::First => &self.first,
            Role::Second => &self.second,
        }
    }
}

/// One channel as both sides show it.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    first: Option<Looks>,
    second: Option<Looks>,
    is_up: bool,
}

/// What a side shows of a channel, earlier and later.
type Looks = [ChannelSide; 2];

impl Channel {
    /// One channel where both sides mean the same one, else one for each.
    fn of(
        first: Option<Looks>,
        second: Option<Looks>,
        is_up: bool,
    ) -> impl Iterator<Item = Channel> {
        let are_same = match (&first, &second) {
            (Some([first, _]), Some([second, _])) => first.id == second.id,
            _ => false,
        };
        let one = |first: Option<Looks>, second: Option<Looks>, is_up| {
            (first.is_some() || second.is_some()).then_some(Channel {
                first,
                second,
                is_up,
            })
        };
        let shown = match are_same {
            true => [one(first, second, is_up), None],
            false => [one(first, None, false), one(None, second, false)],
        };
        shown.into_iter().flatten()
    }

    /// What a side's directory and statistics say; `None` where the side is not there, or does not
    /// have this channel.
    pub fn side(&self, role: Role) -> Option<&ChannelSide> {
        self.looks(role).map(|[_, later]| later)
    }

    /// The first side that is there: for what both sides have the same (id, name, priority, type).
    pub fn any_side(&self) -> Option<&ChannelSide> {
        self.side(Role::First).or(self.side(Role::Second))
    }

    /// By which programs find it.
    pub fn id(&self) -> u16 {
        self.any_side().map_or(0, |side| side.id)
    }

    /// What it carries; `None`: nothing that this version knows.
    pub fn kind(&self) -> Option<Kind> {
        self.any_side()?.kind
    }

    /// What this side sends; `None` where the side is not there, or has no blocks here, and of a channel
    /// that is no queue: see [`Channel::value`] and [`Channel::messages`].
    pub fn flow(&self, from: Role) -> Option<Flow> {
        let sender = self.looks(from)?;
        if self.kind() != Some(Kind::Queue) {
            return None;
        }
        Flow::of(sender, self.looks(from.peer()), self.is_up)
    }

    /// Of a state channel, which value of this side is the latest; `None` where the side is not there,
    /// or has no value here. [`Link::value`] reads it.
    pub fn value(&self, from: Role) -> Option<ValueInfo> {
        ValueInfo::of(self.side(from)?)
    }

    /// Of a lock channel, who has the lock and how the area is; `None` where no side is there.
    pub fn lock(&self) -> Option<LockInfo> {
        LockInfo::of(self.side(Role::First), self.side(Role::Second))
    }

    /// Of a message channel, what this side sends; `None` where the side is not there.
    pub fn messages(&self, from: Role) -> Option<MessageFlow> {
        let sender = self.looks(from)?;
        if self.kind() != Some(Kind::Message) {
            return None;
        }
        let receiver = self.looks(from.peer());
        Some(MessageFlow::of(sender, receiver, self.is_up))
    }

    fn looks(&self, role: Role) -> Option<&Looks> {
        match role {
            Role::First => self.first.as_ref(),
            Role::Second => self.second.as_ref(),
        }
    }
}
