//! The directory of a segment: each channel in words, by which a difference can be named.

use super::config::{Channel, Config, Kind, Role};
use super::layout::{self, Parts, directory as at};
use super::port::{Cache, clean, invalidate};
use super::{Difference, Field};
use crate::word::{Segment, Words};

/// Words of a directory entry.
pub(super) const DIRECTORY_WORDS: usize = layout::DIRECTORY_ENTRY as usize / 4;

/// What the directory in the segment of `role` says of a channel.
pub(super) const fn words(channel: &Channel, role: Role, parts: &Parts) -> [u32; DIRECTORY_WORDS] {
    let (pool, peer) = (channel.pool(role), channel.pool(role.peer()));
    let mut words = [0; DIRECTORY_WORDS];
    words[at::ID] =
        channel.id as u32 | (channel.kind as u32) << 16 | (channel.priority as u32) << 24;
    words[at::BLOCKS] = pool.blocks as u32 | parts.ring_log2 << 16 | (channel.replies as u32) << 24;
    words[at::SIZE] = pool.size;
    words[at::TYPE] = channel.type_hash;
    words[at::CONTROL] = parts.control;
    words[at::STATISTICS] = parts.statistics;
    words[at::RING] = parts.ring;
    words[at::RETURNS] = parts.returns;
    words[at::POOL] = parts.pool;
    words[at::PEER_BLOCKS] = peer.blocks as u32 | parts.returns_log2 << 16;
    words[at::PEER_SIZE] = peer.size;
    words[at::MESSAGES] = match channel.kind {
        Kind::Lock => channel.semaphore as u32,
        _ => channel.requests as u32 | (channel.calls as u32) << 16,
    };
    words[at::ANSWERS] = parts.answers;
    let (uuid, name) = (channel.uuid.to_le_bytes(), channel.name.0);
    let mut index = 0;
    while index < 4 {
        words[at::UUID + index] = word(&uuid, index);
        words[at::NAME + index] = word(&name, index);
        index += 1;
    }
    words
}

const fn word(bytes: &[u8; 16], at: usize) -> u32 {
    let at = 4 * (at & 3);
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The two lines of a channel's directory entry.
fn entry(segment: &Segment, index: usize) -> [Option<Words>; 2] {
    let at = layout::DIRECTORY + index as u32 * layout::DIRECTORY_ENTRY;
    [segment.words(at), segment.words(at + 64)]
}

/// Writes a channel's entry into the own directory.
pub(super) fn write(
    mine: &Segment,
    index: usize,
    words: &[u32; DIRECTORY_WORDS],
    cache: &impl Cache,
) {
    for (line, words) in entry(mine, index)
        .into_iter()
        .zip(words.as_chunks::<16>().0)
    {
        let Some(line) = line else { continue };
        for (at, word) in words.iter().enumerate() {
            line.at(at).set(*word);
        }
        clean(&line, cache);
    }
}

/// What a directory entry is compared by, in this order.
const FIELDS: [(Field, usize); 21] = {
    use Field as F;
    [
        (F::Id, at::ID),
        (F::Blocks, at::BLOCKS),
        (F::Size, at::SIZE),
        (F::PeerBlocks, at::PEER_BLOCKS),
        (F::PeerSize, at::PEER_SIZE),
        (F::Messages, at::MESSAGES),
        (F::Type, at::TYPE),
        (F::Name, at::NAME),
        (F::Name, at::NAME + 1),
        (F::Name, at::NAME + 2),
        (F::Name, at::NAME + 3),
        (F::Uuid, at::UUID),
        (F::Uuid, at::UUID + 1),
        (F::Uuid, at::UUID + 2),
        (F::Uuid, at::UUID + 3),
        (F::Directory, at::CONTROL),
        (F::Directory, at::STATISTICS),
        (F::Directory, at::RING),
        (F::Directory, at::RETURNS),
        (F::Directory, at::POOL),
        (F::Directory, at::ANSWERS),
    ]
};

/// The first thing in which the directory of `role`, the peer, is not what this side expects.
#[cold]
pub(super) fn differs(
    config: &Config<'_>,
    role: Role,
    peer: &Segment,
    cache: &impl Cache,
) -> Option<Difference> {
    config
        .channels
        .iter()
        .enumerate()
        .find_map(|(index, channel)| {
            let ours = words(channel, role, &layout::parts(config, role, index));
            let lines = entry(peer, index);
            lines
                .iter()
                .flatten()
                .for_each(|line| invalidate(line, cache));
            FIELDS.into_iter().find_map(|(field, at)| {
                let line = lines.get(at / 16).copied().flatten()?;
                let (ours, theirs) = (ours.get(at).copied()?, line.at(at % 16).get());
                let (field, ours, theirs) = first_part(field, ours, theirs)?;
                let field = match (field, channel.kind) {
                    (Field::Messages, Kind::Lock) => Field::Semaphore,
                    (field, _) => field,
                };
                Some(Difference {
                    field,
                    channel: Some(channel.id),
                    ours,
                    theirs,
                })
            })
        })
}

/// The first part of a word that differs, where it says several things.
fn first_part(field: Field, ours: u32, theirs: u32) -> Option<(Field, u32, u32)> {
    use Field as F;
    let [low, third, high] = match field {
        F::Id => [F::Id, F::Kind, F::Priority],
        F::Blocks => [F::Blocks, F::Directory, F::Replies],
        F::PeerBlocks => [F::PeerBlocks, F::Directory, F::Directory],
        _ => return (ours != theirs).then_some((field, ours, theirs)),
    };
    let parts = [(low, 0, 0xFFFF), (third, 16, 0xFF), (high, 24, 0xFF)];
    parts.into_iter().find_map(|(field, shift, mask)| {
        let (ours, theirs) = (ours >> shift & mask, theirs >> shift & mask);
        (ours != theirs).then_some((field, ours, theirs))
    })
}
