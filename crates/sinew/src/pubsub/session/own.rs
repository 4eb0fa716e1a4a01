//! What every declared thing of one's own has: a number, and what of it the peer has not been told.

use crate::pubsub::codec::{EntityKind, WireExpr};
use crate::pubsub::keyexpr::KeyExpr;

use super::publish::PublisherOptions;

/// What of a declaration has not left yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owes {
    /// The key, and then the thing itself.
    Key,
    /// The same once more, where what was said may have been lost.
    Again,
    /// The thing: a subscriber, a queryable, the interest of a publisher.
    Thing,
    /// Nothing.
    Nothing,
    /// That it is gone.
    Withdrawal,
    /// That its key is gone, later: what the peer sent before it heard may still name it.
    Gone,
    /// Nothing; the peer may not have heard yet that the key is gone.
    Stale,
}

impl Owes {
    /// Whether nothing is for it any more.
    pub(super) fn is_withdrawn(self) -> bool {
        matches!(self, Owes::Withdrawal | Owes::Gone | Owes::Stale)
    }
}

/// The kinds of things that have a key, as the numbers on the wire tell them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sort {
    Publisher,
    Subscriber,
    Queryable,
}

impl Sort {
    /// What the peer is told of it; a publisher is only a key.
    pub(super) fn kind(self) -> Option<EntityKind> {
        match self {
            Sort::Publisher => None,
            Sort::Subscriber => Some(EntityKind::Subscriber),
            Sort::Queryable => Some(EntityKind::Queryable),
        }
    }
}

/// A publisher, a subscriber, or a queryable in the tables: one type, so that what is done for all
/// three is there once.
#[derive(Debug)]
pub struct Entry<K> {
    pub(super) key: K,
    pub(super) sort: Sort,
    pub(super) owes: Owes,
    /// Its number on the wire: of its key, of itself, and of its interest. It never changes, so a peer
    /// that is met again is told the same one; and it comes again late, so that what was on its way
    /// when a thing was withdrawn, or lost on its way, is not taken for something of the next.
    pub(super) number: u16,
    /// Bytes of the key that are declared by themselves. For a publisher that is the whole key; for what
    /// a peer sends, what stands before the first wildcard.
    declared: usize,
    /// How a publisher sends.
    pub(super) options: PublisherOptions,
    /// Subscribers of the peer that take a publisher's samples.
    pub(super) heard: u16,
    /// The peer has said who subscribes to them.
    pub(super) known: bool,
    /// A queryable knows all that there is for its key.
    pub(super) complete: bool,
}

impl<K: AsRef<str>> Entry<K> {
    /// What of its key is declared by itself, and what is written behind it.
    #[inline(never)]
    pub(super) fn parts(&self) -> (&str, &str) {
        let key = self.key.as_ref();
        key.split_at_checked(self.declared).unwrap_or((key, ""))
    }

    /// Its key as it stands in messages after it was declared.
    pub(super) fn expr(&self) -> WireExpr<'_> {
        let (prefix, suffix) = self.parts();
        WireExpr {
            scope: if prefix.is_empty() { 0 } else { self.number },
            of_sender: true,
            suffix,
        }
    }
}

/// Enters a thing of this sort where a slot is free, after so many were withdrawn.
pub(super) fn enter<K: AsRef<str>>(
    entries: &mut [Option<Entry<K>>],
    sort: Sort,
    withdrawn: u16,
    key: K,
) -> Option<(u16, &mut Entry<K>)> {
    let slots = entries.len().min(MOST);
    let index = entries.iter().take(slots).position(Option::is_none)?;
    let turns = MOST.checked_div(slots)?;
    let mut number = 0;
    for turn in 0..turns {
        let turn = turn
            .wrapping_add(usize::from(withdrawn))
            .checked_rem(turns)?;
        number = (index + turn * slots) as u16 * 3 + 1 + sort as u16;
        // Only where the table has grown.
        if find(entries, number).is_none() {
            break;
        }
    }
    let declared = match sort {
        Sort::Publisher => key.as_ref(),
        _ => KeyExpr::unchecked(key.as_ref()).concrete_prefix().0,
    };
    let declared = declared.len();
    let entry = entries.get_mut(index)?.insert(Entry {
        key,
        sort,
        declared,
        owes: Owes::Key,
        number,
        options: PublisherOptions::DEFAULT,
        heard: 0,
        known: false,
        complete: false,
    });
    Some((index as u16, entry))
}

/// The entry with this number, where it is of this sort.
#[inline(never)]
pub(super) fn find<K>(entries: &[Option<Entry<K>>], number: u16) -> Option<&Entry<K>> {
    let is = |entry: &&Entry<K>| entry.number == number;
    let slots = entries.len().min(MOST);
    let hint = usize::from(number.checked_sub(1)? / 3).checked_rem(slots)?;
    let hinted = entries.get(hint).and_then(Option::as_ref);
    hinted
        .filter(is)
        .or_else(|| entries.iter().flatten().find(is))
}

/// Marks an entry as ended; one that the peer has not heard of simply goes.
pub(super) fn withdraw<K>(slot: &mut Option<Entry<K>>) {
    if let Some(entry) = slot {
        match entry.owes {
            Owes::Key => *slot = None,
            owes if owes.is_withdrawn() => {}
            _ => entry.owes = Owes::Withdrawal,
        }
    }
}

/// A new peer has heard of nothing, and has said nothing.
pub(super) fn forget<K>(entries: &mut [Option<Entry<K>>]) {
    for slot in entries {
        if let Some(entry) = slot {
            if entry.owes.is_withdrawn() {
                *slot = None;
                continue;
            }
            entry.owes = Owes::Key;
            entry.heard = 0;
            entry.known = false;
        }
    }
}

/// What was said may have been lost.
pub(super) fn again<K>(entries: &mut [Option<Entry<K>>]) {
    for entry in entries.iter_mut().flatten() {
        if matches!(entry.owes, Owes::Thing | Owes::Nothing) {
            entry.owes = Owes::Again;
        }
    }
}

/// Of which sort a number is.
pub(super) const fn sort_of(number: u16) -> Sort {
    match number % 3 {
        1 => Sort::Publisher,
        2 => Sort::Subscriber,
        _ => Sort::Queryable,
    }
}

/// More entries than the numbers can tell apart.
pub(super) const MOST: usize = 21_844;
