//! What follows from a configuration for one side. An end works it out when it opens; where flash is
//! scarce, the compiler does, and the code for it is left out.

use super::config::{Channel, Config, Kind, Pool, Role};
use super::directory::{self, DIRECTORY_WORDS};
use super::identity::Identity;
use super::layout::{self, Parts};

/// A configuration as one side of it sees it, with all that follows from it.
///
/// ```
/// use sinew_shm::domain::{Block, Channel, ChannelPlan, Coherent, Config, Plan, Platform, Pool, Role,
///     Silent, Slot};
/// use sinew_shm::Unshared;
///
/// const LINK: Config = Config::new(&[Channel::new(1, "control", Pool::new(8, 64))]);
/// const CHANNELS: [ChannelPlan; LINK.channels.len()] = ChannelPlan::all(&LINK, Role::Second);
///
/// struct Board;
///
/// impl Platform for Board {
///     type Lock = Unshared;
///     type Doorbell = Silent;
///     type Cache = Coherent;
///     type Slots = [Slot; LINK.channels.len()];
///     type Blocks = [Block; LINK.blocks()];
///     const PLAN: Option<Plan<'static>> = Some(Plan::new(LINK, Role::Second, &CHANNELS));
/// }
/// ```
///
/// [`End::open_planned`](super::End::open_planned) then needs no configuration. Of a peer that does
/// not fit this side says only that the hash differs; the peer, which finds the same, can name what.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    pub(super) config: Config<'a>,
    pub(super) role: Role,
    pub(super) identity: Identity,
    pub(super) exchange_len: u32,
    pub(super) channels: &'a [ChannelPlan],
}

impl<'a> Plan<'a> {
    /// The plan of this side; `channels` are those of [`ChannelPlan::all`].
    ///
    /// # Panics
    /// Where the configuration is none, or `channels` are not as many as it has. In a constant that
    /// is an error at compile time.
    pub const fn new(config: Config<'a>, role: Role, channels: &'a [ChannelPlan]) -> Plan<'a> {
        assert!(config.check().is_ok(), "the configuration is none");
        assert!(
            channels.len() == config.channels.len(),
            "the channels are of another plan"
        );
        Plan {
            config,
            role,
            identity: Identity::of(&config, role),
            exchange_len: layout::exchange_len(&config) as u32,
            channels,
        }
    }
}

/// What the compiler knows of an end that has one queue and nothing else: all but its memory's addresses.
#[derive(Clone, Copy)]
#[cfg_attr(loom, allow(dead_code))] // loom keeps words and bytes apart
pub(super) struct Known {
    pub id: u16,
    pub ours: Parts,
    pub theirs: Parts,
    pub pool: Pool,
    pub peer_pool: Pool,
}

impl Plan<'_> {
    /// Of a link with one queue, without replies: what there is to know of it.
    pub(super) const fn known(&self) -> Option<Known> {
        match (self.config.channels, self.channels) {
            ([channel], [plan]) if matches!(channel.kind, Kind::Queue) && !channel.replies => {
                Some(Known {
                    id: channel.id,
                    ours: plan.ours,
                    theirs: plan.theirs,
                    pool: channel.pool(self.role),
                    peer_pool: channel.pool(self.role.peer()),
                })
            }
            _ => None,
        }
    }
}

/// Where one channel lies, and what the directory says of it.
#[derive(Clone, Copy)]
pub struct ChannelPlan {
    pub(super) ours: Parts,
    pub(super) theirs: Parts,
    pub(super) directory: [u32; DIRECTORY_WORDS],
}

impl ChannelPlan {
    /// The plans of all channels, for [`Plan::new`].
    ///
    /// # Panics
    /// Where the configuration is none, or has fewer channels than the array.
    pub const fn all<const N: usize>(config: &Config<'_>, role: Role) -> [ChannelPlan; N] {
        assert!(config.check().is_ok(), "the configuration is none");
        assert!(N > 0 && N <= config.channels.len());
        let mut all = [ChannelPlan::of(config, role, &config.channels[0], 0); N];
        let mut at = 1;
        while at < N {
            all[at] = ChannelPlan::of(config, role, &config.channels[at], at);
            at += 1;
        }
        all
    }

    /// The plan of the channel at `index`.
    pub(super) const fn of(
        config: &Config<'_>,
        role: Role,
        channel: &Channel,
        index: usize,
    ) -> ChannelPlan {
        let ours = layout::parts(config, role, index);
        ChannelPlan {
            ours,
            theirs: layout::parts(config, role.peer(), index),
            directory: directory::words(channel, role, &ours),
        }
    }
}
