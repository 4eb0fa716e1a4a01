//! System files: the memory, the links and the domains of a whole machine in one TOML file, of which
//! each side makes its constants, or which it loads.
//!
//! ```toml
//! [[domain]]
//! name = "linux"
//! bits = 64                # of an address; default 32
//!
//! [[domain]]
//! name = "rtos"
//!
//! [[region]]
//! name = "sram"
//! len = 0x1_0000           # bytes
//! align = 4096             # of each segment, a power of two from 64 on; default 4096
//! base = { linux = 0x3000_0000, rtos = 0x2000_0000 }  # where each of them sees its first byte
//!
//! [[link]]
//! name = "control"
//! region = "sram"
//! first = "linux"
//! second = "rtos"
//! config = "link.toml"     # a link file beside this one, or its keys here: trust, line, [[link.channel]]
//!
//! [[link]]
//! name = "trace"
//! region = "sram"
//! first = "linux"
//! second = "rtos"
//! offset = 0x8000          # of the link; default: the first place that is free. Or of each segment:
//!                          # { first = 0x8000, second = 0xA000, exchange = 0xC000 }
//!
//! [[link.channel]]
//! id = 1
//! name = "trace"
//! first = { blocks = 0, size = 0 }
//! second = { blocks = 16, size = 256 }
//! ```
//!
//! Every mistake is found at once, with its line: what overlaps what, what is not aligned, what does not
//! fit. [`SystemFile::to_rust`] (`sinew gen`) makes a Rust module of the file, for sides that compile it
//! in; a side that loads the file has the same configurations, offsets and hashes.

use std::path::{Path, PathBuf};
use std::string::String;
use std::vec::Vec;

use super::super::config::{Config, Role};
use super::super::region::{Region, Span};
use super::{FileError, LinkFile, Problem};

mod error;
mod place;
mod read;
mod rust;
mod spans;

pub use error::{Mistake, SystemError, SystemProblem};

/// A machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SystemFile {
    domains: Vec<Domain>,
    regions: Vec<MemoryRegion>,
    links: Vec<SystemLink>,
}

/// Whatever runs on its own: Linux, an RTOS, a core.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Domain {
    /// As the file names it.
    pub name: String,
    /// Of its addresses: 32 or 64.
    pub bits: u8,
}

/// MemoryRegion that several domains reach.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryRegion {
    /// As the file names it.
    pub name: String,
    /// Bytes.
    pub len: u64,
    /// To which each segment is aligned.
    pub align: u64,
    /// Where each domain that reaches it sees its first byte: an address, or an offset in a file.
    pub bases: Vec<(String, u64)>,
}

impl MemoryRegion {
    /// Where this domain sees the first byte; `None` where it does not.
    pub fn base(&self, domain: &str) -> Option<u64> {
        let found = self.bases.iter().find(|(name, _)| name == domain);
        found.map(|(_, base)| *base)
    }
}

/// A link of a machine: what it is, where it lies, and who its sides are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SystemLink {
    name: String,
    region: String,
    file: LinkFile,
    /// Of the first side, of the second.
    domains: [String; 2],
    bases: [u64; 2],
    /// Of the first segment, the second, the exchange segment: from the region's base.
    spans: [Span; 3],
}

impl SystemLink {
    /// As the file names it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The region that it lies in.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// The configuration.
    pub fn config(&self) -> Config<'_> {
        self.file.config()
    }

    /// The configuration for [`End::open`](super::super::End::open), as long as the program runs: the
    /// channels are never freed, so load once.
    pub fn leak(&self) -> Config<'static> {
        self.file.clone().leak()
    }

    /// Which side this domain is; `None` where it is neither.
    pub fn role(&self, domain: &str) -> Option<Role> {
        [Role::First, Role::Second]
            .into_iter()
            .find(|&role| self.domain(role) == domain)
    }

    /// The domain that is this side.
    pub fn domain(&self, role: Role) -> &str {
        &self.domains[index(role)]
    }

    /// A side's segment, from the base of the region.
    pub fn segment(&self, role: Role) -> Span {
        self.spans[index(role)]
    }

    /// What both sides may write, from the base of the region; of no bytes where there is none.
    pub fn exchange(&self) -> Span {
        self.spans[2]
    }

    /// Where this side sees a part of the region: the offset is an address, or one in a file.
    pub fn seen_by(&self, role: Role, part: Span) -> Span {
        let offset = part.offset.saturating_add(self.bases[index(role)]);
        Span { offset, ..part }
    }

    /// The range of a file or device that this side maps the whole link in, as
    /// `linux::Link::in_region` wants it (offset and bytes of `linux::Region::open`). `None` where the
    /// segments do not lie as [`Region`] lays them, at whole pages one behind the other.
    pub fn whole(&self, role: Role) -> Option<Span> {
        let region = Region::of(&self.config());
        let start = self.spans[0].offset;
        let moved = |part: Span| {
            let offset = part.offset + start;
            Span { offset, ..part }
        };
        let laid = [region.first, region.second, region.exchange].map(moved);
        let whole = Span {
            offset: start,
            len: region.len,
        };
        let seen = self.seen_by(role, whole);
        // Where the exchange segment would be does not matter where there is none.
        let is_alike = laid[..2] == self.spans[..2]
            && (laid[2] == self.spans[2] || self.spans[2].len == 0)
            && seen.offset.is_multiple_of(Region::ALIGN);
        is_alike.then_some(seen)
    }
}

fn index(role: Role) -> usize {
    match role {
        Role::First => 0,
        Role::Second => 1,
    }
}

impl SystemFile {
    /// Loads a file, and the link files that it names.
    pub fn load(path: impl AsRef<Path>) -> Result<SystemFile, SystemError> {
        let path = path.as_ref();
        let text = super::read(path).map_err(|problem| {
            SystemError::one(Mistake {
                file: path.into(),
                line: None,
                problem: SystemProblem::Link(problem),
            })
        })?;
        SystemFile::parse(path, &text)
    }

    /// Reads the text of a file. `file` is its name in mistakes, and beside it lie the link files that
    /// it names.
    pub fn parse(file: impl AsRef<Path>, text: &str) -> Result<SystemFile, SystemError> {
        let file = file.as_ref();
        let beside = |name: &str| LinkFile::load(Self::beside(file, name));
        SystemFile::parse_with(file, text, beside)
    }

    /// As [`SystemFile::parse`], where link files come from somewhere else: `load` gets the name that
    /// stands in the file.
    pub fn parse_with(
        file: impl AsRef<Path>,
        text: &str,
        load: impl FnMut(&str) -> Result<LinkFile, FileError>,
    ) -> Result<SystemFile, SystemError> {
        let file = file.as_ref();
        let (raw, mut mistakes) = read::read(file, text, load);
        let system = place::place(file, raw, &mut mistakes);
        if mistakes.is_empty() {
            return Ok(system);
        }
        // Those of link files behind those of the file itself.
        mistakes.sort_by_key(|mistake| (mistake.file != file, mistake.line));
        Err(SystemError { mistakes })
    }

    /// Where a link file lies that a system file names.
    pub fn beside(file: &Path, name: &str) -> PathBuf {
        match file.parent() {
            Some(folder) => folder.join(name),
            None => name.into(),
        }
    }

    /// The domains, in the order of the file.
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// The regions, in the order of the file.
    pub fn regions(&self) -> &[MemoryRegion] {
        &self.regions
    }

    /// The links, in the order of the file.
    pub fn links(&self) -> &[SystemLink] {
        &self.links
    }

    /// The link of this name.
    pub fn link(&self, name: &str) -> Option<&SystemLink> {
        self.links.iter().find(|link| link.name == name)
    }

    /// A Rust module with the constants of every domain. `from` is the name of the file, for its first
    /// line. It needs this crate and no feature of it, and says at compile time where it does not fit
    /// the crate.
    pub fn to_rust(&self, from: &str) -> String {
        rust::to_rust(self, from)
    }
}
