//! Which states are the same one.

use std::vec::Vec;

use super::super::Status;
use super::super::config::Role;
use super::super::layout::{self, ENTRY, SESSION, entry, identity, session};
use super::world::{Model, World};

/// What a state is made of: sessions by whose they are, everything else as it stands.
struct Key {
    plain: Vec<u32>,
    sessions: [Vec<u32>; 2],
}

impl Key {
    fn plain(&mut self, value: u32) {
        self.plain.push(value);
    }

    fn session(&mut self, of: usize, value: u32) {
        self.sessions[of].push(value);
    }

    /// A ring whose blocks are of this side. Of an entry without a number that a reader could wait
    /// for, nothing else is ever read. Returns the blocks that are named.
    fn entries(&mut self, words: &[u32], (at, log2): (u32, u32), owner: usize) -> u32 {
        let mut named = 0;
        for position in 0..1 << log2 {
            let at = (at + position * ENTRY) as usize / 4;
            let sequence = words[at + entry::SEQUENCE];
            self.plain(sequence);
            let is_read = (sequence as i32) > 0;
            let word = |word| if is_read { words[at + word] } else { 0 };
            self.plain(word(entry::LEN));
            self.plain(word(entry::FLAGS));
            let block = word(entry::BLOCK);
            self.plain(block & 0xFFFF);
            self.session(owner, block >> 16);
            if is_read {
                named |= 1 << (block & 0x1F);
            }
        }
        named
    }
}

/// The same for all states that differ only in the names of sessions. Of a side's sessions there
/// are the present one, the one that the peer knows, and those that nothing is ever compared with
/// again, because a new one differs from all before it.
pub(super) fn key(model: &Model, world: &World) -> u128 {
    let mut key = Key {
        plain: Vec::with_capacity(128),
        sessions: [Vec::with_capacity(32), Vec::with_capacity(32)],
    };
    for (index, role) in [Role::First, Role::Second].into_iter().enumerate() {
        let other = 1 - index;
        let words = &world.words[index];
        let word = |at: u32, word: usize| words[at as usize / 4 + word];
        key.session(index, word(SESSION, session::SESSION));
        key.session(other, word(SESSION, session::ACKNOWLEDGED));
        key.plain(word(SESSION, session::STATE));
        key.plain(word(layout::IDENTITY, identity::MAGIC));
        let parts = layout::parts(&model.config, role, 0);
        let mut named = key.entries(words, (parts.ring, parts.ring_log2), index);
        key.entries(words, (parts.returns, parts.returns_log2), other);
        for held in world.sides[other].iter().flat_map(|side| &side.held) {
            named |= 1 << held.block;
        }
        for block in 0..u32::from(model.config.channels[0].pool(role).blocks) {
            // What is neither named nor held is written before it is read.
            let is_read = named >> block & 1 != 0;
            let at = parts.pool + block * parts.stride;
            key.session(index, if is_read { word(at, 0) } else { 0 });
            key.session(other, if is_read { word(at, 1) } else { 0 });
        }
        let side = world.sides[index].as_ref();
        let private = side.map(|side| side.end().private());
        let (Some(side), Some(private)) = (side, private) else {
            key.plain(u32::MAX);
            continue;
        };
        key.plain(match private.status {
            Status::Waiting => 0,
            Status::Up => 1,
            _ => 2,
        });
        key.plain(private.is_draining.into());
        key.plain(private.is_rest.into());
        key.plain(private.is_live.0.into());
        key.plain(private.is_live.1.into());
        let [me, peer, state] = private.session;
        key.session(index, me);
        key.session(other, peer);
        key.plain(state);
        key.session(index, private.outbox[0]);
        key.session(other, private.inbox[0]);
        private.outbox[1..]
            .iter()
            .for_each(|&value| key.plain(value));
        private.inbox[1..]
            .iter()
            .for_each(|&value| key.plain(value));
        for (state, next) in private.blocks {
            key.plain(state);
            key.plain(next);
        }
        for held in &side.held {
            let is_current = held.pairing == side.end().pairing();
            key.plain(u32::from(held.block) << 1 | u32::from(is_current));
            let theirs = layout::parts(&model.config, role.peer(), 0);
            let at = (theirs.pool + u32::from(held.block) * theirs.stride) as usize / 4;
            let is_there = world.words[other][at..].starts_with(&held.says);
            key.plain((side.end().is_trusted() && is_there).into());
        }
    }
    for (of, sessions) in key.sessions.iter().enumerate() {
        let current = world.words[of][SESSION as usize / 4 + session::SESSION];
        let other = world.sides[1 - of].as_ref();
        let known = other.map_or(0, |side| side.end().private().session[1]);
        let name = |value| match value {
            0 => 0,
            // Sides that forget come back to few numbers, and to the same ones.
            _ if model.forgets => value,
            _ if value == current => 1,
            _ if value == known => 2,
            _ => 3,
        };
        key.plain.extend(sessions.iter().copied().map(name));
    }
    fingerprint(&key.plain)
}

/// 128 bits in which two different states differ, as good as surely.
fn fingerprint(values: &[u32]) -> u128 {
    let mut hash = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C834u128;
    for &value in values {
        hash = (hash ^ u128::from(value)).wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645);
        hash ^= hash >> 61;
    }
    hash
}
