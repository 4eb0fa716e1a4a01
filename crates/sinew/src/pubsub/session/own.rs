//! What every declared thing of one's own has: a number, and what of it the peer has not been told.

use crate::pubsub::keyexpr::KeyExpr;

/// What of a declaration has not left yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owes {
    /// The key, and then the thing itself.
    Key,
    /// The thing: a subscriber, a queryable, the interest of a publisher.
    Thing,
    /// Nothing.
    Nothing,
    /// That it is gone.
    Withdrawal,
}

/// The kinds of things that have a key, as the numbers on the wire tell them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sort {
    Publisher,
    Subscriber,
    Queryable,
}

/// The number of a thing on the wire: of its key, of itself, and of its interest. They never
/// change, so a peer that is met again is told the same ones.
pub(super) const fn number(sort: Sort, index: usize) -> u16 {
    (index as u16).wrapping_mul(3).wrapping_add(1 + sort as u16)
}

/// The opposite of [`number`].
pub(super) const fn of_number(number: u16) -> Option<(Sort, usize)> {
    let Some(from_zero) = number.checked_sub(1) else {
        return None;
    };
    let sort = match from_zero % 3 {
        0 => Sort::Publisher,
        1 => Sort::Subscriber,
        _ => Sort::Queryable,
    };
    Some((sort, (from_zero / 3) as usize))
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
