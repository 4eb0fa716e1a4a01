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
    pub(super) generation: u32,
    /// Newer calls have higher numbers.
    pub(super) order: u32,
    pub(super) deadline: Instant,
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
        deadline: Instant::FAR,
        seen: 0,
    };
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
        let deadlines = open.take(self.live).map(|entry| entry.deadline);
        deadlines.min().unwrap_or(Instant::FAR)
    }
}

/// The book with its slots, borrowed for one step.
#[derive(Debug)]
pub(super) struct Table<'a> {
    pub(super) slots: &'static [Slot],
    pub(super) book: &'a mut Book<[Entry]>,
}

impl Table<'_> {
    /// Frees the entry where its responder has finished.
    fn settle(&mut self, index: usize) {
        let (Some(entry), Some(slot)) = (self.book.entries.get_mut(index), self.slots.get(index))
        else {
            return;
        };
        if entry.open && entry.taken && slot.progress(entry.generation) == Progress::Finished {
            self.close(index);
        }
    }

    /// The open call of this key; an open id, on either side, matches any call of the method
    /// (specs/pw_rpc.md, section 4). The same id goes before an open one, then the newest, so that
    /// an unrequested stream takes no packet from a call that was requested.
    pub(super) fn find(&mut self, link: LinkId, route: &Route) -> Option<usize> {
        if self.book.live == 0 {
            return None;
        }
        let mut found: Option<(usize, (bool, u32))> = None;
        for index in 0..self.book.entries.len() {
            self.settle(index);
            let Some(entry) = self.book.entries.get(index) else {
                break;
            };
            if !entry.open || entry.link != link || !entry.route.same_method(route) {
                continue;
            }
            let same_id = entry.route.call_id == route.call_id;
            let matches = same_id || is_open_id(entry.route.call_id) || is_open_id(route.call_id);
            let rank = (same_id, entry.order);
            if matches && found.is_none_or(|(_, best)| rank > best) {
                found = Some((index, rank));
            }
        }
        let (index, _) = found?;
        if let (Some(entry), Some(slot)) = (self.book.entries.get_mut(index), self.slots.get(index))
            && is_open_id(entry.route.call_id)
            && !is_open_id(route.call_id)
        {
            entry.route.call_id = route.call_id;
            slot.set_call_id(route.call_id);
        }
        Some(index)
    }

    /// Opens an entry; `None` where every slot is in use.
    pub(super) fn open(
        &mut self,
        link: LinkId,
        route: Route,
        kind: MethodKind,
        now: Instant,
    ) -> Option<usize> {
        for index in 0..self.book.entries.len().min(self.slots.len()) {
            self.settle(index);
            let (entry, slot) = (self.book.entries.get_mut(index)?, self.slots.get(index)?);
            let responder_lives =
                entry.taken && matches!(slot.progress(entry.generation), Progress::Working(_));
            if entry.open || responder_lives {
                continue;
            }
            let generation = slot.open(route.call_id);
            self.book.live += 1;
            self.book.newest = self.book.newest.wrapping_add(1);
            *entry = Entry {
                route,
                link,
                kind,
                ended: false,
                open: true,
                taken: false,
                generation,
                order: self.book.newest,
                deadline: now.after_micros(self.book.lifetime),
                seen: generation,
            };
            return Some(index);
        }
        None
    }

    /// Closes the call for good: its responder's next send says so.
    pub(super) fn close(&mut self, index: usize) {
        if let (Some(entry), Some(slot)) = (self.book.entries.get_mut(index), self.slots.get(index))
        {
            if entry.open {
                entry.open = false;
                self.book.live = self.book.live.saturating_sub(1);
            }
            slot.close();
        }
    }

    /// The call's entry, with a sign of life from the client noted.
    pub(super) fn touch(&mut self, index: usize, now: Instant) -> Option<&mut Entry> {
        let deadline = now.after_micros(self.book.lifetime);
        let entry = self.book.entries.get_mut(index)?;
        entry.deadline = deadline;
        Some(entry)
    }

    pub(super) fn get(&self, index: usize) -> Option<&Entry> {
        self.book.entries.get(index)
    }

    /// Whether a call of this link must be ended at `now`: a responder that sent something since
    /// the last look has its deadline moved.
    pub(super) fn overdue(&mut self, index: usize, link: LinkId, now: Instant) -> Option<Overdue> {
        self.settle(index);
        let (entry, slot) = (self.book.entries.get_mut(index)?, self.slots.get(index)?);
        if !entry.open || entry.link != link {
            return None;
        }
        if entry.taken {
            match slot.progress(entry.generation) {
                Progress::Dropped => return Some(Overdue::Dropped),
                Progress::Working(word) if word != entry.seen => {
                    entry.seen = word;
                    entry.deadline = now.after_micros(self.book.lifetime);
                }
                _ => {}
            }
        }
        (now >= entry.deadline).then_some(Overdue::Expired)
    }
}
