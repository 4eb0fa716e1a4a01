//! What a session can hold, as a type.
//!
//! A session keeps everything it knows in arrays of fixed size that its type gives: an array per
//! kind of thing. What has room for nothing is not compiled in: the constants of [`Tables`] say
//! which messages are decoded at all. [`Fixed`] is the usual choice; a host can give tables that
//! grow.

use super::answer::Request;
use super::foreign::Foreign;
use super::own::Entry;
use super::query::Query;
use crate::pubsub::keyexpr::KeyExpr;
use crate::wire::copy;

/// Bytes of a key that a peer declares, in [`Fixed`].
pub const KEY_ROOM: usize = 64;

/// The tables of a session: what it can hold. What there is no room for is not compiled in.
pub trait Tables {
    /// How keys of one's own are held: [`KeyExpr`], or what a host makes on its heap of text that it has
    /// checked.
    type Key: AsRef<str>;
    /// How keys of the peer are held: rows of one length, or what grows.
    type Rows: Rows + ?Sized;

    /// The other side may ask for the session.
    const ACCEPTS: bool = true;
    /// Samples are taken in.
    const SUBSCRIBES: bool;
    /// Queries are answered.
    const ANSWERS: bool;
    /// Queries are made.
    const ASKS: bool;
    /// What the peer declares is kept: needed for wildcards, write filters, and unicast peers.
    const LISTENS: bool;
    /// Messages are cut into fragments where a batch is not enough, and those of the peer put together.
    /// Without, what is larger than a batch is refused.
    const ASSEMBLES: bool;

    /// All of them.
    fn all(&mut self) -> All<'_, Self::Key, Self::Rows>;
}

/// Where the keys of what a peer has declared are kept: one for each entry of [`All::foreign`].
pub trait Rows {
    /// Keeps the key of an entry. `false`: there is no room for it.
    fn set(&mut self, index: usize, key: &str) -> bool;

    /// The key that was kept for an entry; it had `len` bytes.
    fn get(&self, index: usize, len: usize) -> &str;

    /// An entry is gone, and its key may be.
    fn free(&mut self, _index: usize) {}
}

impl<const N: usize> Rows for [[u8; N]] {
    fn set(&mut self, index: usize, key: &str) -> bool {
        let row = self.get_mut(index).and_then(|row| row.get_mut(..key.len()));
        match row {
            Some(row) => {
                copy(row, key.as_bytes());
                true
            }
            None => false,
        }
    }

    #[cfg_attr(target_os = "none", inline(never))]
    fn get(&self, index: usize, len: usize) -> &str {
        let row = <[_]>::get(self, index).and_then(|row| row.get(..len));
        // It was a string when it was kept.
        crate::wire::text(row.unwrap_or_default()).unwrap_or_default()
    }
}

/// The tables of a session, borrowed at once.
pub struct All<'t, K, R: ?Sized> {
    /// Publishers. At most 16,383 of each of the first three.
    pub publishers: &'t mut [Option<Entry<K>>],
    /// Subscribers.
    pub subscribers: &'t mut [Option<Entry<K>>],
    /// Queryables.
    pub queryables: &'t mut [Option<Entry<K>>],
    /// Queries of the peer that are being answered.
    pub requests: &'t mut [Option<Request>],
    /// Queries of one's own that are being answered.
    pub queries: &'t mut [Option<Query>],
    /// What the peer has declared, or is interested in.
    pub foreign: &'t mut [Option<Foreign>],
    /// The keys of `foreign`.
    pub keys: &'t mut R,
    /// Where the key of what has arrived is put together.
    pub key: &'t mut [u8],
    /// Where fragments are put together.
    pub fragments: &'t mut [u8],
}

/// The tables, borrowed for what an event refers to.
pub(super) struct Shared<'t, K, R: ?Sized> {
    pub publishers: &'t [Option<Entry<K>>],
    pub subscribers: &'t [Option<Entry<K>>],
    pub queryables: &'t [Option<Entry<K>>],
    pub foreign: &'t [Option<Foreign>],
    pub keys: &'t R,
}

impl<K, R: ?Sized> Clone for Shared<'_, K, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, R: ?Sized> Copy for Shared<'_, K, R> {}

impl<'t, K, R: ?Sized> All<'t, K, R> {
    /// What is one's own, in the order in which keys are declared.
    pub(super) fn own(&mut self) -> [&mut [Option<Entry<K>>]; 3] {
        [self.publishers, self.subscribers, self.queryables]
    }

    /// The tables to look into, the room to put a key together, and the queries of the peer.
    #[inline]
    pub(super) fn share(self) -> (Shared<'t, K, R>, &'t mut [u8], &'t mut [Option<Request>]) {
        let shared = Shared {
            publishers: self.publishers,
            subscribers: self.subscribers,
            queryables: self.queryables,
            foreign: self.foreign,
            keys: self.keys,
        };
        (shared, self.key, self.requests)
    }

    /// The tables to look into, which can be changed afterwards.
    #[inline]
    pub(super) fn tables(&self) -> Shared<'_, K, R> {
        Shared {
            publishers: self.publishers,
            subscribers: self.subscribers,
            queryables: self.queryables,
            foreign: self.foreign,
            keys: self.keys,
        }
    }
}

/// Tables for `P` publishers, `S` subscribers, `A` queryables (with as many queries of the peer
/// open at once), `Q` queries in flight; `K` keys of [`KEY_ROOM`] bytes (two to put keys together,
/// the others for what the peer declares); `B` bytes to put fragments together, 0 for none in either
/// direction.
///
/// ```
/// use sinew::pubsub::session::{Fixed, Session};
///
/// type Sensor = Session<Fixed<1>>; // publishes on one key, and holds nothing else
/// type Node = Session<Fixed<4, 2, 1, 1, 10, 4096>>;
/// ```
#[derive(Debug)]
pub struct Fixed<
    const P: usize,
    const S: usize = 0,
    const A: usize = 0,
    const Q: usize = 0,
    const K: usize = 0,
    const B: usize = 0,
    Key = KeyExpr<'static>,
> {
    publishers: [Option<Entry<Key>>; P],
    subscribers: [Option<Entry<Key>>; S],
    queryables: [Option<Entry<Key>>; A],
    requests: [Option<Request>; A],
    queries: [Option<Query>; Q],
    foreign: [Option<Foreign>; K],
    keys: [[u8; KEY_ROOM]; K],
    fragments: [u8; B],
}

impl<
    const P: usize,
    const S: usize,
    const A: usize,
    const Q: usize,
    const K: usize,
    const B: usize,
    Key,
> Fixed<P, S, A, Q, K, B, Key>
{
    /// Empty tables.
    pub const fn new() -> Self {
        Fixed {
            publishers: [const { None }; P],
            subscribers: [const { None }; S],
            queryables: [const { None }; A],
            requests: [const { None }; A],
            queries: [const { None }; Q],
            foreign: [const { None }; K],
            keys: [[0; KEY_ROOM]; K],
            fragments: [0; B],
        }
    }
}

impl<
    const P: usize,
    const S: usize,
    const A: usize,
    const Q: usize,
    const K: usize,
    const B: usize,
    Key,
> Default for Fixed<P, S, A, Q, K, B, Key>
{
    fn default() -> Self {
        Fixed::new()
    }
}

/// Tables of a session that is always asked for on this side: what accepts one is not compiled in.
///
/// ```
/// use sinew::pubsub::session::{Fixed, Opens, Session};
///
/// type Sensor = Session<Opens<Fixed<1>>>; // the smallest there is
/// ```
///
/// ```compile_fail
/// use sinew::pubsub::session::{Fixed, Opens, Session};
///
/// let accept: fn(&mut Session<Opens<Fixed<1>>>) = Session::accept; // opens only
/// ```
#[derive(Debug)]
pub struct Opens<T>(pub T);

impl<T: Tables> Tables for Opens<T> {
    type Key = T::Key;
    type Rows = T::Rows;

    const ACCEPTS: bool = false;
    const SUBSCRIBES: bool = T::SUBSCRIBES;
    const ANSWERS: bool = T::ANSWERS;
    const ASKS: bool = T::ASKS;
    const LISTENS: bool = T::LISTENS;
    const ASSEMBLES: bool = T::ASSEMBLES;

    #[inline]
    fn all(&mut self) -> All<'_, T::Key, T::Rows> {
        self.0.all()
    }
}

/// Rows of the keys that are for putting keys together.
const SCRATCH: usize = 2;

impl<
    const P: usize,
    const S: usize,
    const A: usize,
    const Q: usize,
    const K: usize,
    const B: usize,
    Key: AsRef<str>,
> Tables for Fixed<P, S, A, Q, K, B, Key>
{
    type Key = Key;
    type Rows = [[u8; KEY_ROOM]];

    const SUBSCRIBES: bool = S > 0;
    const ANSWERS: bool = A > 0;
    const ASKS: bool = Q > 0;
    const LISTENS: bool = K > SCRATCH;
    const ASSEMBLES: bool = B > 0;

    #[inline]
    fn all(&mut self) -> All<'_, Key, Self::Rows> {
        let rows = K.saturating_sub(SCRATCH);
        let (keys, key) = self.keys.split_at_mut_checked(rows).unwrap_or_default();
        All {
            publishers: &mut self.publishers,
            subscribers: &mut self.subscribers,
            queryables: &mut self.queryables,
            requests: &mut self.requests,
            queries: &mut self.queries,
            foreign: self.foreign.get_mut(..rows).unwrap_or_default(),
            keys,
            key: key.as_flattened_mut(),
            fragments: &mut self.fragments,
        }
    }
}
