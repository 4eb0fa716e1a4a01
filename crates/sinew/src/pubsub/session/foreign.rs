//! What the peer has declared: its keys, who subscribes there, and what it wants to be told.

use crate::pubsub::codec::WireExpr;
use crate::pubsub::keyexpr::KeyExpr;

use super::own::{self, Sort};
use super::stats::{Stats, count};
use super::tables::{All, Rows, Shared};
use crate::wire::copy;

/// An entry of what the peer has declared; its key is kept beside it.
#[derive(Debug)]
pub struct Foreign {
    pub(super) kind: Kind,
    /// The peer's number for it.
    pub(super) id: u32,
    /// Bytes of its key.
    pub(super) len: usize,
}

/// What the peer can declare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A key, for short.
    Key,
    /// Somebody who takes samples.
    Subscriber,
    /// That it wants to know what is declared here; until it is answered.
    Interest {
        /// What of it.
        options: u8,
        /// How many of the entries here it has been told.
        told: u16,
    },
}

/// Writes a key in two parts to the front of `to`; `None`, and counted, where it does not fit.
fn join<'k>(to: &'k mut [u8], first: &str, second: &str, stats: &mut Stats) -> Option<&'k str> {
    let len = first.len().saturating_add(second.len());
    let whole = to.get_mut(..len);
    let halves = whole.and_then(|whole| whole.split_at_mut_checked(first.len()));
    let Some((front, back)) = halves else {
        count(&mut stats.bad_key);
        return None;
    };
    copy(front, first.as_bytes());
    copy(back, second.as_bytes());
    crate::wire::text(to.get(..len)?)
}

/// The index of an entry.
#[inline(never)]
pub(super) fn find(foreign: &[Option<Foreign>], kind: Kind, id: u32) -> Option<usize> {
    let same = |slot: &Option<Foreign>| {
        slot.as_ref()
            .is_some_and(|entry| entry.id == id && entry.kind == kind)
    };
    // Peers count up, so an entry is most likely where its number says.
    let hint = (id as usize).checked_rem(foreign.len()).unwrap_or(0);
    if foreign.get(hint).is_some_and(same) {
        return Some(hint);
    }
    foreign.iter().position(same)
}

impl<K: AsRef<str>, R: Rows + ?Sized> All<'_, K, R> {
    /// Enters what the peer declares. `false`: there is no room for it, or its key is too long.
    pub(super) fn enter(&mut self, kind: Kind, id: u32, key: &str) -> bool {
        let rows = self.foreign.len();
        let hint = (id as usize).checked_rem(rows).unwrap_or(0);
        let is_free = |slot: &Option<Foreign>| slot.is_none();
        let index = match self.foreign.get(hint) {
            Some(None) => Some(hint),
            _ => self.foreign.iter().position(is_free),
        };
        let Some(index) = index else { return false };
        if !self.keys.set(index, key) {
            return false;
        }
        if let Some(slot) = self.foreign.get_mut(index) {
            let len = key.len();
            *slot = Some(Foreign { kind, id, len });
        }
        true
    }
}

impl<'t, K: AsRef<str>, R: Rows + ?Sized> Shared<'t, K, R> {
    /// How many subscribers of the peer take what is published on `key`.
    pub(super) fn hearers(self, key: KeyExpr<'_>) -> u16 {
        let mut count = 0u16;
        for (index, entry) in self.foreign.iter().enumerate() {
            let Some(entry) = entry else { continue };
            if entry.kind == Kind::Subscriber {
                let theirs = self.keys.get(index, entry.len);
                if key.intersects(KeyExpr::unchecked(theirs)) {
                    count = count.saturating_add(1);
                }
            }
        }
        count
    }

    /// What the number of a declared key stands for; `None`: nobody has declared it.
    #[cfg_attr(target_os = "none", inline(never))]
    pub(super) fn scope(self, key: &WireExpr<'_>) -> Option<&'t str> {
        if key.scope == 0 {
            return Some("");
        }
        match key.of_sender {
            true => self.declared(Kind::Key, u32::from(key.scope)),
            false => self.own_key(key.scope),
        }
    }

    /// The key of what the peer has declared with this number.
    pub(super) fn declared(self, kind: Kind, id: u32) -> Option<&'t str> {
        let index = find(self.foreign, kind, id)?;
        let len = self.foreign.get(index)?.as_ref()?.len;
        Some(self.keys.get(index, len))
    }

    /// What a number stands for that was declared here.
    pub(super) fn own_key(self, number: u16) -> Option<&'t str> {
        let entries = match own::sort_of(number) {
            Sort::Publisher => self.publishers,
            Sort::Subscriber => self.subscribers,
            Sort::Queryable => self.queryables,
        };
        Some(own::find(entries, number)?.parts().0)
    }

    /// The whole key of a message: it borrows from the message or from the tables, or is put
    /// together in `scratch`. `None`, and counted, where it is not known or does not fit.
    pub(super) fn resolve(
        self,
        key: &WireExpr<'t>,
        scratch: &'t mut [u8],
        stats: &mut Stats,
    ) -> Option<&'t str> {
        let Some(prefix) = self.scope(key) else {
            count(&mut stats.unknown_key);
            return None;
        };
        if key.suffix.is_empty() {
            return Some(prefix);
        }
        if prefix.is_empty() {
            return Some(key.suffix);
        }
        join(scratch, prefix, key.suffix, stats)
    }

    /// As [`Shared::resolve`], but always put together in `scratch`, so that the tables are free to
    /// change.
    pub(super) fn copy<'s>(
        self,
        key: &WireExpr<'_>,
        scratch: &'s mut [u8],
        stats: &mut Stats,
    ) -> Option<&'s str> {
        let Some(prefix) = self.scope(key) else {
            count(&mut stats.unknown_key);
            return None;
        };
        join(scratch, prefix, key.suffix, stats)
    }
}
