//! Link files: a configuration in TOML, which both sides load instead of compiling it in.
//!
//! ```toml
//! trust = "none"       # or "mutual"; default "none"
//! line = 64            # bytes of the longest cache line of either side; default 64
//!
//! [[channel]]
//! id = 1
//! name = "control"
//! priority = 0         # 0 is the most urgent; default 128
//! blocks = 8           # the same for both directions:
//! size = 64            # bytes of a block
//!
//! [[channel]]
//! id = 2
//! name = "camera"
//! first = { blocks = 4, size = 65536 }  # what the first side sends; `second` sends nothing
//! replies = false      # answers in the lent block; default false
//! uuid = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
//! type = 0x1234_5678   # of what the packets are
//!
//! [[channel]]
//! id = 3
//! name = "speed"
//! kind = "state"       # the latest value; default "queue"
//! size = 8             # bytes of the value of each side, or as above: first = { size = 8 }
//!
//! [[channel]]
//! id = 4
//! name = "motor"
//! kind = "message"     # five words, with and without an answer
//! requests = 8         # that wait to be taken up, at most, in each direction
//! calls = 4            # that wait for an answer, at most; default 0
//!
//! [[channel]]
//! id = 5
//! name = "map"
//! kind = "lock"        # one area that both sides change, one at a time
//! size = 4096          # bytes of the area
//! semaphore = 3        # of the chip, where one guards it; default none
//! ```
//!
//! A file and a constant with the same content have the same hash, so one side may load what the
//! other has compiled in. Unknown keys are refused: they are a spelling mistake.
//!
//! [`system`] has files of several links, and where they lie.

use std::io;
use std::path::{Path, PathBuf};
use std::string::String;
use std::vec::Vec;

use super::check::ConfigError;
use super::config::{Channel, Config, Role, Trust};
use super::observe::{Link, Source};

mod read;
mod write;

pub mod system;

/// A configuration that was loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkFile {
    trust: Trust,
    line_log2: u8,
    channels: Vec<Channel>,
}

impl LinkFile {
    /// Loads a file.
    pub fn load(path: impl AsRef<Path>) -> Result<LinkFile, FileError> {
        let path = path.as_ref();
        let text = read(path).map_err(|problem| FileError {
            file: path.into(),
            line: None,
            problem,
        })?;
        LinkFile::parse(path, &text)
    }

    /// Reads the text of a file; `file` is its name in errors.
    pub fn parse(file: impl AsRef<Path>, text: &str) -> Result<LinkFile, FileError> {
        read::parse(text).map_err(|(line, problem)| FileError {
            file: file.as_ref().into(),
            line,
            problem,
        })
    }

    /// What a side of a running link was configured with, from its directory; `None` where the side
    /// is not there. It need not be a good configuration: see [`Config::check`], and whether its
    /// hash is that of the side.
    pub fn observed(link: &Link<impl Source>, role: Role) -> Option<LinkFile> {
        let side = link.side(role).ok()?;
        let channels = (0..usize::from(side.channels)).map_while(|index| {
            let channel = side.channel(link.source(role), index)?;
            let (first, second) = match role {
                Role::First => (channel.pool, channel.peer_pool),
                Role::Second => (channel.peer_pool, channel.pool),
            };
            Some(Channel {
                id: channel.id,
                kind: channel.kind?,
                name: channel.name,
                uuid: channel.uuid,
                priority: channel.priority,
                type_hash: channel.type_hash,
                first,
                second,
                replies: channel.replies,
                requests: channel.requests,
                calls: channel.calls,
                semaphore: channel.semaphore,
            })
        });
        Some(LinkFile {
            trust: side.trust?,
            line_log2: side.line_log2,
            channels: channels.collect(),
        })
    }

    /// The configuration.
    pub fn config(&self) -> Config<'_> {
        Config {
            trust: self.trust,
            line_log2: self.line_log2,
            channels: &self.channels,
        }
    }

    /// The configuration for [`End::open`](super::End::open), as long as the program runs: the
    /// channels are never freed, so load once.
    pub fn leak(self) -> Config<'static> {
        Config {
            trust: self.trust,
            line_log2: self.line_log2,
            channels: self.channels.leak(),
        }
    }
}

impl Config<'_> {
    /// As the text of a link file.
    ///
    /// ```
    /// use sinew_shm::domain::{Channel, Config, Pool, file::LinkFile};
    ///
    /// const LINK: Config = Config::new(&[Channel::new(1, "control", Pool::new(8, 64))]);
    /// let loaded = LinkFile::parse("link.toml", &LINK.to_toml()).unwrap();
    /// assert_eq!(loaded.config().hash(), LINK.hash());
    /// ```
    pub fn to_toml(&self) -> String {
        write::to_toml(self)
    }
}

/// Why a link file is none, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileError {
    /// The file's name.
    pub file: PathBuf,
    /// The line, from 1 on, where there is one.
    pub line: Option<usize>,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong in a link file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem {
    /// It cannot be read: check the path and its permissions.
    Io(io::ErrorKind),
    /// It is a folder, a pipe or a device: check the path.
    NoFile,
    /// It is no TOML; what the parser says.
    Syntax(String),
    /// There is no such key here: a spelling mistake, or a newer file.
    UnknownKey {
        /// The key.
        key: String,
        /// What there is.
        known: &'static [&'static str],
    },
    /// A key is missing that a table needs.
    MissingKey(&'static str),
    /// A value is not what the key takes.
    Value {
        /// The key.
        key: &'static str,
        /// What it takes.
        takes: &'static str,
    },
    /// `blocks` and `size` are for both directions, and `first` and `second` for one: both stand
    /// there.
    TwoPools,
    /// The values are right by themselves, and not together.
    Config(ConfigError),
}

impl core::fmt::Display for FileError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.problem)
    }
}

impl core::fmt::Display for Problem {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Problem::NoFile => f.write_str("it is no file: check the path"),
            Problem::Io(kind) => write!(f, "cannot be read ({kind}): check path and permissions"),
            Problem::Syntax(message) => write!(f, "no TOML: {message}: correct it"),
            Problem::UnknownKey { key, known } => {
                let known = known.join(", ");
                write!(f, "there is no key `{key}`: known here are {known}")
            }
            Problem::MissingKey(key) => write!(f, "`{key}` is missing: add it"),
            Problem::Value { key, takes } => write!(f, "`{key}` takes {takes}: correct it"),
            Problem::TwoPools => f.write_str(
                "`blocks` and `size` are for both directions: leave them out, or `first` and \
                 `second`",
            ),
            Problem::Config(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for FileError {}

/// The text of a file. What is none, and might never begin or have no end, is not read.
fn read(path: &Path) -> Result<String, Problem> {
    let of = |error: io::Error| Problem::Io(error.kind());
    match std::fs::metadata(path).map_err(of)?.is_file() {
        true => std::fs::read_to_string(path).map_err(of),
        false => Err(Problem::NoFile),
    }
}
