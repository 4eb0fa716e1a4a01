//! By what two sides recognise that they fit, before they compare each channel.

use super::config::{Config, MAJOR, MINOR, Role, Trust};
use super::layout;

/// Words of the identity line that are the same each time that a side opens.
const WORDS: usize = layout::identity::HASH + 1;

/// By what two sides recognise that they fit.
#[derive(Clone, Copy)]
pub(super) struct Identity {
    /// What stands in the line of this side's identity, and what is to stand in the peer's.
    mine: [u32; WORDS],
    peers: [u32; WORDS],
}

impl Identity {
    /// That of a side; the configuration is one.
    pub(super) const fn of(config: &Config<'_>, role: Role) -> Identity {
        Identity {
            mine: words(config, role),
            peers: words(config, role.peer()),
        }
    }

    /// This side's words.
    pub(super) const fn words(&self) -> &[u32; WORDS] {
        &self.mine
    }

    /// The peer's words, if it fits.
    pub(super) const fn of_peer(&self) -> &[u32; WORDS] {
        &self.peers
    }

    /// The hash of the configuration.
    pub(super) const fn hash(&self) -> u32 {
        self.mine[layout::identity::HASH]
    }

    /// Bytes of the own segment, and of the peer's.
    pub(super) const fn lens(&self) -> (u32, u32) {
        let at = layout::identity::LENGTH;
        (self.mine[at], self.peers[at])
    }
}

const fn words(config: &Config<'_>, role: Role) -> [u32; WORDS] {
    let mut words = [0; WORDS];
    words[layout::identity::MAGIC] = layout::MAGIC;
    words[layout::identity::VERSION] = (MAJOR as u32) << 16 | MINOR as u32;
    words[layout::identity::PROBE] = layout::PROBE;
    words[layout::identity::LENGTH] = layout::segment_len(config, role) as u32;
    words[layout::identity::SHAPE] = shape(config, role);
    words[layout::identity::DIRECTORY] = layout::DIRECTORY;
    words[layout::identity::HASH] = config.hash();
    words
}

const fn shape(config: &Config<'_>, role: Role) -> u32 {
    let role = match role {
        Role::First => 0,
        Role::Second => 1,
    };
    let trust = match config.trust {
        Trust::None => 0,
        Trust::Mutual => 1,
    };
    u32::from_le_bytes([config.line_log2, role, config.channels.len() as u8, trust])
}
