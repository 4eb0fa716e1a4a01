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

/// Bytes of a key that a peer declares, in [`Fixed`].
pub const KEY_ROOM: usize = 64;

/// The tables of a session: what it can hold. What there is no room for is not compiled in.
pub trait Tables {
    /// How keys of one's own are held: `&'static str`, or on a host `Box<str>`.
    type Key: AsRef<str>;

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
    fn all(&mut self) -> All<'_, Self::Key>;
}

/// The tables of a session, borrowed at once.
pub struct All<'t, K> {
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
    /// The keys of `foreign`: an equal part of it for each.
    pub keys: &'t mut [u8],
    /// Where the key of what has arrived is put together.
    pub key: &'t mut [u8],
    /// Where fragments are put together.
    pub fragments: &'t mut [u8],
}

/// The tables, borrowed for what an event refers to.
pub(super) struct Shared<'t, K> {
    pub publishers: &'t [Option<Entry<K>>],
    pub subscribers: &'t [Option<Entry<K>>],
    pub queryables: &'t [Option<Entry<K>>],
    pub foreign: &'t [Option<Foreign>],
    pub keys: &'t [u8],
}

impl<K> Clone for Shared<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Shared<'_, K> {}

impl<'t, K> All<'t, K> {
    /// What is one's own, in the order in which keys are declared.
    pub(super) fn own(&mut self) -> [&mut [Option<Entry<K>>]; 3] {
        [self.publishers, self.subscribers, self.queryables]
    }

    /// The tables to look into, the room to put a key together, and the queries of the peer.
    #[inline]
    pub(super) fn share(self) -> (Shared<'t, K>, &'t mut [u8], &'t mut [Option<Request>]) {
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
    pub(super) fn tables(&self) -> Shared<'_, K> {
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
    Key = &'static str,
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
/// use sinew::time::Instant;
///
/// let accept: fn(&mut Session<Opens<Fixed<1>>>, Instant) = Session::accept; // opens only
/// ```
#[derive(Debug)]
pub struct Opens<T>(pub T);

impl<T: Tables> Tables for Opens<T> {
    type Key = T::Key;

    const ACCEPTS: bool = false;
    const SUBSCRIBES: bool = T::SUBSCRIBES;
    const ANSWERS: bool = T::ANSWERS;
    const ASKS: bool = T::ASKS;
    const LISTENS: bool = T::LISTENS;
    const ASSEMBLES: bool = T::ASSEMBLES;

    #[inline]
    fn all(&mut self) -> All<'_, T::Key> {
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

    const SUBSCRIBES: bool = S > 0;
    const ANSWERS: bool = A > 0;
    const ASKS: bool = Q > 0;
    const LISTENS: bool = K > SCRATCH;
    const ASSEMBLES: bool = B > 0;

    #[inline]
    fn all(&mut self) -> All<'_, Key> {
        let rows = K.saturating_sub(SCRATCH);
        let (keys, key) = self
            .keys
            .as_flattened_mut()
            .split_at_mut_checked(rows * KEY_ROOM)
            .unwrap_or_default();
        All {
            publishers: &mut self.publishers,
            subscribers: &mut self.subscribers,
            queryables: &mut self.queryables,
            requests: &mut self.requests,
            queries: &mut self.queries,
            foreign: self.foreign.get_mut(..rows).unwrap_or_default(),
            keys,
            key,
            fragments: &mut self.fragments,
        }
    }
}
