//! The engine's own record of open server calls: one entry per static slot.
//!
//! Only calls that outlive their receive step are here: deferred ones and streams. An immediate
//! unary call never touches the table.

use super::super::message::MethodKind;
use super::super::packet::{Route, is_open_id};
use super::slot::{Progress, Slot};
use crate::time::Instant;

/// Which end of which link a call came in by; see [`super::Via`].
pub(super) type LinkId = u16;

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) route: Route,
    pub(super) link: LinkId,
    pub(super) kind: MethodKind,
    /// The client's stream is complete.
    pub(super) ended: bool,
    /// Open for the engine; a closed entry may still wait for its responder to go.
    pub(super) open: bool,
    /// A responder or writer exists or existed for this generation.
    pub(super) taken: bool,
    /// The high bits of what [`Entry::generation`] gives; the others are 0.
    generation: u8,
    /// Newer calls have higher numbers.
    pub(super) order: u32,
    /// The last sign of life from either side.
    pub(super) heard: Instant,
    /// `done` as last seen (a responder is born with its generation there): a change is a sign of
    /// life.
    pub(super) seen: u32,
}

impl Entry {
    pub(super) const FREE: Entry = Entry {
        route: Route {
            channel: 0,
            service: 0,
            method: 0,
            call_id: 0,
        },
        link: 0,
        kind: MethodKind::Unary,
        ended: false,
        open: false,
        taken: false,
        generation: 0,
        order: 0,
        heard: Instant::START,
        seen: 0,
    };

    /// As [`Slot::open`] gave it.
    pub(super) fn generation(&self) -> u32 {
        u32::from(self.generation) << 24
    }

    /// What its responder has done; as if it had sent nothing where there is none.
    // Here and below: one copy on small cores, where flash is short.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn progress(&self, slot: &Slot) -> Progress {
        if self.taken {
            slot.progress(self.generation())
        } else {
            Progress::Working(self.seen)
        }
    }

    /// Whether a new call can have it: no responder of the last one lives.
    fn is_free(&self, slot: &Slot) -> bool {
        match self.progress(slot) {
            Progress::Working(_) => !self.open && !self.taken,
            Progress::Dropped => !self.open,
            Progress::Finished => true,
        }
    }
}

/// A call that must be ended by the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Overdue {
    Expired,
    Dropped,
}

/// What the engine keeps of its calls between steps.
#[derive(Debug)]
pub(super) struct Book<E: ?Sized> {
    /// How many entries are open, so that a step without open calls searches nothing.
    live: usize,
    /// Order of the newest call.
    newest: u32,
    /// In microseconds.
    pub(super) lifetime: u64,
    pub(super) entries: E,
}

impl<const N: usize> Book<[Entry; N]> {
    pub(super) const fn new(lifetime: u64) -> Self {
        Book {
            live: 0,
            newest: 0,
            lifetime,
            entries: [Entry::FREE; N],
        }
    }
}

impl Book<[Entry]> {
    /// When the first open call must end.
    pub(super) fn deadline(&self) -> Instant {
        let open = self.entries.iter().filter(|entry| entry.open);
        let heard = open.take(self.live).map(|entry| entry.heard).min();
        heard.map_or(Instant::FAR, |heard| heard.after_micros(self.lifetime))
    }
}

/// The book with its slots, borrowed for one step.
#[derive(Debug)]
pub(super) struct Table<'a> {
    pub(super) slots: &'static [Slot],
    pub(super) book: &'a mut Book<[Entry]>,
}

impl Table<'_> {
    /// An entry with its slot.
    #[inline(always)]
    fn at(&mut self, index: usize) -> Option<(&mut Entry, &'static Slot)> {
        Some((self.book.entries.get_mut(index)?, self.slots.get(index)?))
    }

    /// The open call of this key; calls whose responder has finished are closed on the way. An open id, on
    /// either side, matches any call of the method (wire reference, section Call ids). The same id goes before
    /// an open one, then the newest, so that an unrequested stream takes no packet from a call that was
    /// requested.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub(super) fn find(&mut self, link: LinkId, route: &Route) -> Option<usize> {
        if self.book.live == 0 {
            return None;
        }
        let mut found = None;
        let mut best = (false, 0);
        for index in 0..self.book.entries.len() {
            let Some((entry, slot)) = self.at(index) else {
                break;
            };
            if !entry.open {
                continue;
            }
            if entry.progress(slot) == Progress::Finished {
                self.close(index);
                continue;
            }
            if entry.link != link || !entry.route.same_method(route) {
                continue;
            }
            let same_id = entry.route.call_id == route.call_id;
            let matches = same_id || is_open_id(entry.route.call_id) || is_open_id(route.call_id);
            let rank = (same_id, entry.order);
            if matches && rank >= best {
                (found, best) = (Some(index), rank);
            }
        }
        let (entry, slot) = self.at(found?)?;
        if is_open_id(entry.route.call_id) && !is_open_id(route.call_id) {
            entry.route.call_id = route.call_id;
            slot.set_call_id(route.call_id);
        }
        found
    }

    /// Opens an entry; `None` where every slot is in use.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub(super) fn open(
        &mut self,
        link: LinkId,
        route: &Route,
        kind: MethodKind,
        now: Instant,
    ) -> Option<usize> {
        let index = (0..self.book.entries.len()).find(|&index| {
            self.at(index)
                .is_some_and(|(entry, slot)| entry.is_free(slot))
        })?;
        let order = self.book.newest.wrapping_add(1);
        self.book.newest = order;
        let (entry, slot) = self.at(index)?;
        let was_open = entry.open;
        let generation = slot.open(route.call_id);
        *entry = Entry {
            route: *route,
            link,
            kind,
            ended: false,
            open: true,
            taken: false,
            generation: (generation >> 24) as u8,
            order,
            heard: now,
            seen: generation,
        };
        if !was_open {
            self.book.live += 1;
        }
        Some(index)
    }

    /// Closes the call for good: its responder's next send says so.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub(super) fn close(&mut self, index: usize) {
        if let Some((entry, slot)) = self.at(index) {
            let was_open = core::mem::replace(&mut entry.open, false);
            slot.close();
            self.book.live = self.book.live.saturating_sub(usize::from(was_open));
        }
    }

    /// The call's entry, with a sign of life from the client noted.
    pub(super) fn touch(&mut self, index: usize, now: Instant) -> Option<&mut Entry> {
        let entry = self.book.entries.get_mut(index)?;
        entry.heard = now;
        Some(entry)
    }

    pub(super) fn get(&self, index: usize) -> Option<&Entry> {
        self.book.entries.get(index)
    }

    /// Whether a call of this link must be ended at `now`: a responder that sent something since
    /// the last look counts as heard. One that has finished frees its entry.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub(super) fn overdue(&mut self, index: usize, link: LinkId, now: Instant) -> Option<Overdue> {
        let lifetime = self.book.lifetime;
        let (entry, slot) = self.at(index)?;
        if !entry.open || entry.link != link {
            return None;
        }
        match entry.progress(slot) {
            Progress::Finished => {
                self.close(index);
                return None;
            }
            Progress::Dropped => return Some(Overdue::Dropped),
            Progress::Working(word) if word != entry.seen => {
                entry.seen = word;
                entry.heard = now;
            }
            Progress::Working(_) => {}
        }
        (now >= entry.heard.after_micros(lifetime)).then_some(Overdue::Expired)
    }
}
