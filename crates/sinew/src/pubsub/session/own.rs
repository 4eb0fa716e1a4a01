//! What every declared thing of one's own has: a number, and what of it the peer has not been told.

use crate::pubsub::keyexpr::KeyExpr;

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
    /// The same, now for some time.
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

/// What has a number on the wire: of its key, of itself, and of its interest. It never changes, so a
/// peer that is met again is told the same one; and it comes again late, so that what was on its way
/// when a thing was withdrawn, or lost on its way, is not taken for something of the next.
pub(super) trait Numbered {
    fn number(&self) -> u16;
}

/// A free slot, and the number of what comes there: of this sort, after so many were withdrawn.
pub(super) fn free<E: Numbered>(
    entries: &mut [Option<E>],
    sort: Sort,
    withdrawn: u16,
) -> Option<(u16, u16, &mut Option<E>)> {
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
    Some((index as u16, number, entries.get_mut(index)?))
}

/// The entry with this number, where it is of this sort.
pub(super) fn find<E: Numbered>(entries: &[Option<E>], number: u16) -> Option<&E> {
    let is = |entry: &&E| entry.number() == number;
    let slots = entries.len().min(MOST);
    let hint = usize::from(number.checked_sub(1)? / 3).checked_rem(slots)?;
    let hinted = entries.get(hint).and_then(Option::as_ref);
    hinted
        .filter(is)
        .or_else(|| entries.iter().flatten().find(is))
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

/// What of a key is declared by itself, and what is written behind it. For samples of one's own that
/// is the whole key; for what a peer sends, what stands before the first wildcard.
pub(super) fn parts(sort: Sort, key: &str) -> (&str, &str) {
    match sort {
        Sort::Publisher => (key, ""),
        _ => KeyExpr::unchecked(key).concrete_prefix(),
    }
}
