//! Both sides of a link in this thread, over a file. The file can be written from outside, as by a
//! peer that writes what it likes.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use sinew_shm::Unshared;
use sinew_shm::domain::{
    self, Channel, Config, End, Options, Place, Pool, Receiver, Role, Sender, Silent, State,
    Status, Trust,
};
use sinew_shm::linux::Region;
use sinew_shm::linux::process::{Mapped, Process};

use super::Meter;
use crate::Result;

/// Blocks of a large link, both ways.
pub const MANY: u16 = 1000;

/// An end without a lock, and without a doorbell: what is counted is the link's own work.
pub type Handle = Rc<End<Process<Unshared>>>;

/// Bytes of every block.
pub const SIZE: usize = 64;
/// Milliseconds between two signs of life.
pub const HEARTBEAT: u32 = 100;

/// The channel that the calls go over.
pub const CHANNEL: u16 = 1;

/// A state channel beside it, and its values.
const STATE: u16 = 2;
sinew_shm::value! {
    /// 16 bytes.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Sample {
        pub time: u64,
        pub level: [f32; 2],
    }
}
/// A side's value, and the peer's.
pub type Values = State<Handle, Sample>;

/// Words of a segment, as the wire reference has them.
pub mod word {
    pub const HASH: u64 = 6;
    pub const SESSION: u64 = 16;
    /// Of an entry of a ring.
    pub const SEQUENCE: u64 = 0;
    pub const BLOCK: u64 = 1;
    pub const LEN: u64 = 2;
    /// Of the control line of a channel.
    pub const FILTER: u64 = 4;
    /// Of the statistics line of a channel.
    pub const VIOLATIONS: u64 = 7;
    pub const RUNG: u64 = 8;
    /// Of a directory entry.
    pub const CONTROL: u64 = 4;
    pub const POOL: u64 = 8;
}
const DIRECTORY: u64 = 0x100 / 4;
const DIRECTORY_ENTRY: u64 = 128 / 4;
const STATISTICS: u64 = 5;
const RING: u64 = 6;
const RETURNS: u64 = 7;
const ENTRY: u64 = 4;

/// What a benchmark says about an error of the link.
pub fn told(error: impl std::fmt::Debug) -> Box<dyn std::error::Error> {
    format!("{error:?}").into()
}

/// The memory of a link.
pub struct World {
    config: Config<'static>,
    region: Region,
    file: File,
}

/// Both ends, up: the first sends, the second receives.
pub struct Ends {
    pub first: Handle,
    pub second: Handle,
    pub tx: Sender<Handle>,
    pub rx: Receiver<Handle>,
}

impl World {
    /// A link of one channel with so many blocks in both directions.
    pub fn of_blocks(blocks: u16) -> Result<World> {
        World::new(&[channel(CHANNEL, blocks)], Trust::None)
    }

    /// The same, whose receiver may answer in the block that it received.
    pub fn with_replies(blocks: u16) -> Result<World> {
        let mut channel = channel(CHANNEL, blocks);
        channel.replies = true;
        World::new(&[channel], Trust::Mutual)
    }

    /// A link with a state channel beside the other one.
    pub fn with_state() -> Result<World> {
        let state = Channel::of::<Sample>(STATE, "state");
        World::new(&[channel(CHANNEL, 4), state], Trust::None)
    }

    /// A link of so many channels of 4 blocks.
    pub fn of_channels(count: u16) -> Result<World> {
        let channels: Vec<_> = (CHANNEL..CHANNEL + count)
            .map(|id| channel(id, 4))
            .collect();
        World::new(&channels, Trust::None)
    }

    fn new(channels: &[Channel], trust: Trust) -> Result<World> {
        let mut config = Config::new(Box::leak(channels.into()));
        config.trust = trust;
        let path = std::env::temp_dir().join(format!("sinew-steps-{}", std::process::id()));
        let len = usize::try_from(domain::Region::of(&config).len)?;
        let region = Region::create(&path, 0, len)?;
        let file = OpenOptions::new().read(true).write(true).open(&path);
        std::fs::remove_file(&path)?;
        Ok(World {
            config,
            region,
            file: file?,
        })
    }

    /// Opens one side. A bad peer is counted, and does not stop the link.
    pub fn open(&self, role: Role) -> Result<Handle> {
        let mapped = Mapped::in_region(&self.region, &self.config, role)?;
        let options = Options {
            heartbeat: HEARTBEAT,
            silence: 0,
            faults: false,
        };
        let end = mapped.open(self.config, role, Box::new(Silent), options);
        Ok(Rc::new(end.map_err(told)?))
    }

    /// Opens both.
    pub fn up(&self) -> Result<Ends> {
        let (first, second) = (self.open(Role::First)?, self.open(Role::Second)?);
        first.look(0);
        second.look(0);
        first.look(0);
        match (first.status(), second.status()) {
            (Status::Up, Status::Up) => Ok(Ends {
                tx: Sender::new(&first, CHANNEL).ok_or("no channel")?,
                rx: Receiver::new(&second, CHANNEL).ok_or("no channel")?,
                first,
                second,
            }),
            other => Err(told(other)),
        }
    }

    /// A word of a segment.
    pub fn peek(&self, role: Role, word: u64) -> Result<u32> {
        let mut bytes = [0; 4];
        self.file.read_exact_at(&mut bytes, self.at(role, word))?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Writes a word of a segment.
    pub fn poke(&self, role: Role, word: u64, value: u32) -> Result<()> {
        let at = self.at(role, word);
        Ok(self.file.write_all_at(&value.to_le_bytes(), at)?)
    }

    fn at(&self, role: Role, word: u64) -> u64 {
        domain::Region::of(&self.config).segment(role).offset + 4 * word
    }

    /// Whether a side has counted something once in each round, so that the case is what it says.
    pub fn check(&self, role: Role, word: u64, meter: &Meter) -> Result<()> {
        let line = self.peek(role, self.directory(0, STATISTICS))?;
        match self.peek(role, u64::from(line) / 4 + word)? {
            count if u64::from(count) == meter.all() => Ok(()),
            count => Err(format!("{count} in {} rounds", meter.all()).into()),
        }
    }

    /// Where a word of a channel's directory entry is.
    pub fn directory(&self, channel: u16, word: u64) -> u64 {
        DIRECTORY + u64::from(channel) * DIRECTORY_ENTRY + word
    }

    /// Where the entry of a position in the ring of packets is.
    pub fn entry(&self, role: Role, position: u32) -> Result<u64> {
        self.entry_of(role, RING, position)
    }

    /// The same in the ring of returns.
    pub fn return_entry(&self, role: Role, position: u32) -> Result<u64> {
        self.entry_of(role, RETURNS, position)
    }

    fn entry_of(&self, role: Role, ring: u64, position: u32) -> Result<u64> {
        let ring = self.peek(role, self.directory(0, ring))?;
        let [channel] = self.config.channels else {
            return Err("not a link of one channel".into());
        };
        let capacity = u32::from(channel.first.blocks).next_power_of_two();
        Ok(u64::from(ring) / 4 + u64::from(position % capacity) * ENTRY)
    }
}

impl Ends {
    /// The values as the first side has them, and the second.
    pub fn values(&self) -> Result<(Values, Values)> {
        let values = |end| State::new(end, STATE).ok_or("no state channel");
        Ok((values(&self.first)?, values(&self.second)?))
    }

    /// A place for a packet of zeros.
    pub fn place(&self) -> Result<Place<'_, Handle>> {
        let mut place = self.tx.place(SIZE).map_err(told)?;
        place.fill(0);
        Ok(place)
    }

    /// Sends packets of zeros.
    pub fn send(&self, count: u16) -> Result<()> {
        for _ in 0..count {
            if !self.place()?.send(SIZE).map_err(told)? {
                return Err("a filter is set".into());
            }
        }
        Ok(())
    }

    /// Receives packets and gives them back.
    pub fn receive(&self, count: u16) -> Result<()> {
        for _ in 0..count {
            let packet = self.rx.receive().map_err(told)?;
            packet.ok_or("no packet")?;
        }
        Ok(())
    }
}

fn channel(id: u16, blocks: u16) -> Channel {
    Channel::new(id, "steps", Pool::new(blocks, SIZE as u32))
}
