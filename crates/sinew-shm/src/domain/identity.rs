//! By what two sides recognise that they fit, before they compare each channel.

use super::config::{Config, Role, Trust};
use super::layout;

/// By what two sides recognise that they fit.
#[derive(Clone, Copy)]
pub(super) struct Identity {
    pub(super) hash: u32,
    /// Of the own segment, and of the peer's, in bytes.
    pub(super) len: u32,
    pub(super) peer_len: u32,
    pub(super) shape: u32,
    pub(super) peer_shape: u32,
}

impl Identity {
    /// That of a side; the configuration is one.
    pub(super) const fn of(config: &Config<'_>, role: Role) -> Identity {
        Identity {
            hash: config.hash(),
            len: layout::segment_len(config, role) as u32,
            peer_len: layout::segment_len(config, role.peer()) as u32,
            shape: shape(config, role),
            peer_shape: shape(config, role.peer()),
        }
    }
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
