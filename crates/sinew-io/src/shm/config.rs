//! Which link carries calls, and which of its channels.
//!
//! Where an endpoint says nothing of it, that is a link with one channel named `rpc`, which both sides
//! derive from the packet size. Else it is a channel of a link file. Either way its hash is compared
//! when two sides meet.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Mutex;

use rustix::fs::{Mode, OFlags, open};
use sinew_shm::domain::file::LinkFile;
use sinew_shm::domain::{Channel, Config, Pool};
use sinew_shm::linux::overlap::Overlap;

use crate::connect_error::ConnectError;
use crate::endpoint::{Endpoint, MIN_MTU, Queue};
use crate::lock;

/// Blocks of one direction.
pub const BLOCKS: u16 = 16;

/// The id of the channel.
pub const CHANNEL: u16 = 1;

/// The longest link file in bytes; one with every channel and key has less than a tenth.
const MAX_FILE: u64 = 1 << 20;

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

/// The `mtu=` by which this side would have the configuration of the core that it would have written
/// over; `None` where that is another link than [`calls`], which takes a link file.
pub fn mtu_of(overlap: &Overlap) -> Option<u32> {
    let size = overlap.channel.as_ref()?.pool.size;
    let channel = [Channel::new(CHANNEL, NAME, Pool::new(BLOCKS, size))];
    (Config::new(&channel).hash() == overlap.side.hash).then_some(size)
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

/// Loads a link file. What is no file, and might have no end or never begin, is not read.
pub fn load(path: &Path) -> Result<LinkFile, String> {
    // The wrong path may name a pipe, which would block.
    let careful = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let at = path.display();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("{at}: there is no such file: check the path"),
        io::ErrorKind::InvalidData => format!("{at}: this is no text in UTF-8"),
        _ => format!("{at}: cannot be read: {error}"),
    };
    let file = open(path, careful, Mode::empty()).map_err(|error| failed(error.into()))?;
    let file = std::fs::File::from(file);
    let kind = file.metadata().map_err(failed)?.file_type();
    if !kind.is_file() {
        let what = if kind.is_dir() { "a folder" } else { "no file" };
        return Err(format!("{at}: it is {what}: check the path"));
    }
    let mut text = String::new();
    let read = file.take(MAX_FILE + 1).read_to_string(&mut text);
    if matches!(read, Ok(read) if read as u64 > MAX_FILE) {
        return Err(format!(
            "{at}: it is above {MAX_FILE} bytes: this is no link file"
        ));
    }
    read.map_err(failed)?;
    LinkFile::parse(path, &text).map_err(|error| error.to_string())
}

fn of_file(queue: &Queue) -> Result<Chosen, String> {
    let file = load(&queue.config)?;
    let at = queue.config.display();
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
        let names = names.collect::<Vec<_>>().join(", ");
        match &queue.name {
            Some(name) => format!("{at}: there is no channel `{name}`; there are {names}"),
            None => format!("{at}: say which channel by queue=NAME; there are {names}"),
        }
    })?;
    for pool in [channel.first, channel.second] {
        let why = match (pool.blocks, pool.size as usize) {
            (..2, _) => "less than 2 blocks in a direction: calls need as many".into(),
            (_, size @ ..MIN_MTU) => {
                format!("blocks of {size} bytes: a packet of a call needs at least {MIN_MTU}")
            }
            _ => continue,
        };
        return Err(format!("{at}: the channel {} has {why}", channel.name));
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
