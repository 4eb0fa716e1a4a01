//! The tables of a session on a host: they grow.

use sinew::pubsub::session::{All, Entry, Foreign, Query, Request, Tables};

/// Keys that a peer can declare, and bytes of each.
const FOREIGN: usize = 4096;
const KEY: usize = 256;
/// Two parts of a key: one declared, one written out.
const JOINED: usize = KEY + u16::MAX as usize;
/// Queries of the peer that are open at once.
const REQUESTS: usize = 1024;

/// Grows where something is entered. Memory that is not touched is not taken from the system.
pub(super) struct Host {
    publishers: Vec<Option<Entry<Box<str>>>>,
    subscribers: Vec<Option<Entry<Box<str>>>>,
    queryables: Vec<Option<Entry<Box<str>>>>,
    requests: Vec<Option<Request>>,
    queries: Vec<Option<Query>>,
    foreign: Vec<Option<Foreign>>,
    keys: Vec<u8>,
    key: Vec<u8>,
    fragments: Vec<u8>,
}

impl Host {
    /// Tables for messages of up to `largest` bytes.
    pub(super) fn new(largest: usize) -> Host {
        Host {
            publishers: Vec::new(),
            subscribers: Vec::new(),
            queryables: Vec::new(),
            requests: none(REQUESTS),
            queries: Vec::new(),
            foreign: none(FOREIGN),
            keys: vec![0; FOREIGN * KEY],
            key: vec![0; JOINED],
            fragments: vec![0; largest],
        }
    }

    /// Where fragments are put together.
    pub(super) fn fragments(&self) -> &[u8] {
        &self.fragments
    }

    /// Gives the memory with a message that was put together, for other memory.
    pub(super) fn exchange_fragments(&mut self, spare: &mut Vec<u8>) {
        spare.resize(self.fragments.len(), 0);
        std::mem::swap(&mut self.fragments, spare);
    }

    pub(super) fn room_for_publisher(&mut self) {
        grow(&mut self.publishers);
    }

    pub(super) fn room_for_subscriber(&mut self) {
        grow(&mut self.subscribers);
    }

    pub(super) fn room_for_queryable(&mut self) {
        grow(&mut self.queryables);
    }

    pub(super) fn room_for_query(&mut self) {
        grow(&mut self.queries);
    }
}

fn none<E>(count: usize) -> Vec<Option<E>> {
    std::iter::repeat_with(|| None).take(count).collect()
}

/// Makes room for one more, and for one that is gone to stay for a while.
fn grow<E>(entries: &mut Vec<Option<E>>) {
    while entries.iter().filter(|entry| entry.is_none()).count() < 2 {
        entries.push(None);
    }
}

impl Tables for Host {
    type Key = Box<str>;

    const SUBSCRIBES: bool = true;
    const ANSWERS: bool = true;
    const ASKS: bool = true;
    const LISTENS: bool = true;
    const ASSEMBLES: bool = true;

    #[inline]
    fn all(&mut self) -> All<'_, Box<str>> {
        All {
            publishers: &mut self.publishers,
            subscribers: &mut self.subscribers,
            queryables: &mut self.queryables,
            requests: &mut self.requests,
            queries: &mut self.queries,
            foreign: &mut self.foreign,
            keys: &mut self.keys,
            key: &mut self.key,
            fragments: &mut self.fragments,
        }
    }
}
