//! Which link carries calls, and which of its channels.
//!
//! Where an endpoint says nothing of it, that is a link with one channel named `rpc`, which both sides
//! derive from the packet size. Else it is a channel of a link file. Either way its hash is compared
//! when two sides meet.

use std::collections::BTreeMap;
use std::sync::Mutex;

use sinew_shm::domain::file::LinkFile;
use sinew_shm::domain::{Channel, Config, Pool};

use crate::endpoint::{Endpoint, Queue};
use crate::lock;
use crate::open::ConnectError;

/// Blocks of one direction.
pub const BLOCKS: u16 = 16;

/// The id of the channel.
pub const CHANNEL: u16 = 1;

/// Its name.
const NAME: &str = "rpc";

/// The link for calls with packets of up to `mtu` bytes. The sides need not trust each other.
///
/// Each size that was ever asked for stays allocated, some 100 bytes.
pub fn calls(mtu: usize) -> Config<'static> {
    static KNOWN: Mutex<BTreeMap<u32, &'static [Channel; 1]>> = Mutex::new(BTreeMap::new());
    let size = u32::try_from(mtu).unwrap_or(u32::MAX);
    let make = || {
        let channel = Channel::new(CHANNEL, NAME, Pool::new(BLOCKS, size));
        &*Box::leak(Box::new([channel]))
    };
    Config::new(*lock(&KNOWN).entry(size).or_insert_with(make))
}

/// The link and the channel that an endpoint names.
#[derive(Clone, Copy)]
pub(crate) struct Chosen {
    pub(crate) config: Config<'static>,
    pub(crate) channel: u16,
}

/// Reads the link file, where the endpoint names one.
pub(crate) fn chosen(endpoint: &Endpoint) -> Result<Chosen, ConnectError> {
    match &endpoint.queue {
        Some(queue) => of_file(queue).map_err(|why| ConnectError::Config(endpoint.clone(), why)),
        None => Ok(Chosen {
            config: calls(endpoint.mtu),
            channel: CHANNEL,
        }),
    }
}

fn of_file(queue: &Queue) -> Result<Chosen, String> {
    let file = LinkFile::load(&queue.config).map_err(|error| error.to_string())?;
    let known = file.config();
    let channel = match &queue.name {
        Some(name) => find(known.channels, |channel| {
            channel.name.as_str() == name || channel.id.to_string() == *name
        }),
        None => find(known.channels, |channel| channel.name.as_str() == NAME)
            .or_else(|| known.channels.first().filter(|_| known.channels.len() == 1)),
    };
    let channel = channel.ok_or_else(|| {
        let names = known.channels.iter().map(|channel| channel.name.as_str());
        let names: Vec<_> = names.collect();
        format!(
            "say which channel by queue=NAME; there are {}",
            names.join(", ")
        )
    })?;
    if channel.first.blocks < 2 || channel.second.blocks < 2 {
        return Err(format!(
            "the channel {} has less than 2 blocks in a direction: calls need as many",
            channel.name
        ));
    }
    let channel = channel.id;
    Ok(Chosen {
        config: kept(file),
        channel,
    })
}

fn find(channels: &[Channel], mut is_it: impl FnMut(&Channel) -> bool) -> Option<&Channel> {
    channels.iter().find(|channel| is_it(channel))
}

/// A configuration that stays, once per content: who connects again and again loads it each time.
fn kept(file: LinkFile) -> Config<'static> {
    static KNOWN: Mutex<Vec<Config<'static>>> = Mutex::new(Vec::new());
    let mut known = lock(&KNOWN);
    if let Some(config) = known.iter().find(|config| **config == file.config()) {
        return *config;
    }
    let config = file.leak();
    known.push(config);
    config
}
