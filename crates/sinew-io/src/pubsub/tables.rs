//! The tables of a session on a host: they grow.

use sinew::pubsub::session::{All, Entry, Foreign, Query, Request, Rows, Tables};

/// Keys that a peer can declare, and bytes of all of them. The wire carries 65,535 of one.
const FOREIGN: usize = 4096;
const KEYS: usize = 16 << 20;
/// Two parts of a key: one declared, one written out.
const JOINED: usize = 2 * u16::MAX as usize;
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
    keys: Keys,
    key: Vec<u8>,
    fragments: Vec<u8>,
}

/// Keys of the peer, and the bytes of all of them.
#[derive(Default)]
pub(super) struct Keys {
    rows: Vec<Box<str>>,
    used: usize,
}

impl Rows for Keys {
    fn set(&mut self, index: usize, key: &str) -> bool {
        self.free(index);
        let has_room = key.len() <= KEYS - self.used;
        if has_room {
            if self.rows.len() <= index {
                self.rows.resize_with(index + 1, Box::default);
            }
            self.rows[index] = key.into();
            self.used += key.len();
        }
        has_room
    }

    fn get(&self, index: usize, _len: usize) -> &str {
        self.rows.get(index).map_or("", |key| key)
    }

    fn free(&mut self, index: usize) {
        if let Some(key) = self.rows.get_mut(index) {
            self.used -= std::mem::take(key).len();
        }
    }
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
            keys: Keys::default(),
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
        if spare.len() != self.fragments.len() {
            // Not written to here: a peer that sends one short message does not cost all of it.
            *spare = vec![0; self.fragments.len()];
        }
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
    type Rows = Keys;

    const SUBSCRIBES: bool = true;
    const ANSWERS: bool = true;
    const ASKS: bool = true;
    const LISTENS: bool = true;
    const ASSEMBLES: bool = true;

    #[inline]
    fn all(&mut self) -> All<'_, Box<str>, Keys> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_all_keys_are_bounded_and_those_of_what_is_gone_are_free() {
        let mut keys = Keys::default();
        let longest = "k".repeat(u16::MAX.into());
        let taken = (0..FOREIGN).take_while(|&index| keys.set(index, &longest));
        let taken = taken.count();
        assert_eq!(taken, KEYS / longest.len());
        assert!(!keys.set(taken, &longest));
        assert!(keys.set(0, &longest));
        keys.free(1);
        assert_eq!(
            (keys.get(0, longest.len()), keys.get(1, 0)),
            (&*longest, "")
        );
        assert!(keys.set(taken, &longest));
        for index in 0..FOREIGN {
            keys.free(index);
        }
        assert_eq!(keys.used, 0);
    }
}
