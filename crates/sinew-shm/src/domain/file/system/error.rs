//! What is wrong in a system file: all of it at once, each with cause and remedy.

use core::ops::Range;
use std::path::PathBuf;
use std::string::String;
use std::vec;
use std::vec::Vec;

use super::super::Problem;

/// Why a system file is none: every mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SystemError {
    /// By line, those of link files last; never empty.
    pub mistakes: Vec<Mistake>,
}

impl SystemError {
    pub(super) fn one(mistake: Mistake) -> SystemError {
        SystemError {
            mistakes: vec![mistake],
        }
    }
}

/// A mistake, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// The system file, or a link file that it names.
    pub file: PathBuf,
    /// The line, from 1 on, where there is one.
    pub line: Option<usize>,
    /// What is wrong there.
    pub problem: SystemProblem,
}

/// What is wrong in a system file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SystemProblem {
    /// What can be wrong in a link file too: no TOML, unknown and missing keys, wrong values, channels
    /// that do not fit together.
    Link(Problem),
    /// Two domains, regions or links have this name.
    Duplicate {
        /// `domain`, `region` or `link`.
        what: &'static str,
        /// The name.
        name: String,
        /// The line of the one before.
        line: usize,
    },
    /// Nothing of the file has this name.
    NoSuch {
        /// `domain` or `region`.
        what: &'static str,
        /// The name.
        name: String,
        /// Which there are.
        known: Vec<String>,
    },
    /// Both sides of a link are the same domain.
    SameSides(String),
    /// A link has a link file, and keys of one.
    TwoConfigs,
    /// A region does not say where a domain sees it that has a link there.
    NoBase {
        /// The region.
        region: String,
        /// The domain.
        domain: String,
    },
    /// Two parts lie on each other.
    Overlap {
        /// Where: a region, or what a domain sees.
        within: String,
        /// The part, and its bytes.
        part: (String, Range<u64>),
        /// The other one.
        other: (String, Range<u64>),
        /// Where the other one stands.
        line: usize,
    },
    /// A part does not begin at a multiple of the region's `align`.
    Misaligned {
        /// The part.
        part: String,
        /// Where it begins.
        offset: u64,
        /// What of this it is to be a multiple.
        align: u64,
    },
    /// A region's `align` is shorter than the cache line of a link in it.
    AlignBelowLine {
        /// The region.
        region: String,
        /// Its alignment.
        align: u64,
        /// The line of the link.
        line: u64,
    },
    /// A part ends behind its region.
    Beyond {
        /// The part, and its bytes.
        part: (String, Range<u64>),
        /// The region.
        region: String,
        /// Its bytes.
        len: u64,
    },
    /// A link finds no place in its region.
    NoPlace {
        /// The link.
        link: String,
        /// The bytes that it needs, at an aligned place.
        needed: u64,
        /// The region.
        region: String,
        /// Its bytes.
        len: u64,
    },
    /// A region ends behind what a domain can address.
    Bits {
        /// The region.
        region: String,
        /// The domain.
        domain: String,
        /// Where the region ends for it.
        end: u128,
        /// Of its addresses.
        bits: u8,
    },
}

impl core::fmt::Display for SystemProblem {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let range = |range: &Range<u64>| std::format!("{:#x} to {:#x}", range.start, range.end);
        match self {
            SystemProblem::Link(problem) => problem.fmt(f),
            SystemProblem::Duplicate { what, name, line } => write!(
                f,
                "there is a {what} `{name}` already, in line {line}: give one of them another name"
            ),
            SystemProblem::NoSuch { what, name, known } if known.is_empty() => write!(
                f,
                "there is no {what} `{name}`: add it, as a table [[{what}]]"
            ),
            SystemProblem::NoSuch { what, name, known } => write!(
                f,
                "there is no {what} `{name}`: there is `{}`; add it, or correct the name",
                known.join("`, `")
            ),
            SystemProblem::SameSides(domain) => write!(
                f,
                "both sides are `{domain}`: a link joins two domains, name the other one"
            ),
            SystemProblem::TwoConfigs => {
                f.write_str("a link has a link file, `config`, or its keys: leave one of them out")
            }
            SystemProblem::NoBase { region, domain } => write!(
                f,
                "region `{region}` does not say where `{domain}` sees it: add `{domain}` to its \
                 `base`"
            ),
            SystemProblem::Overlap {
                within,
                part,
                other,
                line,
            } => write!(
                f,
                "{} at {} and {} at {} (line {line}) overlap in {within}: move one of them",
                part.0,
                range(&part.1),
                other.0,
                range(&other.1),
            ),
            SystemProblem::Misaligned {
                part,
                offset,
                align,
            } => write!(
                f,
                "{part} begins at {offset:#x}, and every part of the region at a multiple of its \
                 `align`, {align}: move it to {:#x}",
                offset
                    .checked_next_multiple_of(*align)
                    .unwrap_or(offset - offset % align)
            ),
            SystemProblem::AlignBelowLine {
                region,
                align,
                line,
            } => write!(
                f,
                "the link is for cache lines of {line} bytes, and region `{region}` aligns to \
                 {align}: set its `align` to {line}, or the `line` of the link to what the sides have"
            ),
            SystemProblem::Beyond { part, region, len } => write!(
                f,
                "{} at {} does not fit into region `{region}` of {len} bytes: move it, make the \
                 region longer, or have fewer or smaller blocks",
                part.0,
                range(&part.1),
            ),
            SystemProblem::NoPlace {
                link,
                needed,
                region,
                len,
            } => write!(
                f,
                "link `{link}` needs {needed} bytes, and there is no such place in region `{region}` \
                 of {len} bytes: make the region longer, or have fewer or smaller blocks"
            ),
            SystemProblem::Bits {
                region,
                domain,
                end,
                bits,
            } => write!(
                f,
                "region `{region}` ends at {end:#x} for `{domain}`, whose addresses have {bits} bits: \
                 correct `base` or `len`, or the `bits` of the domain"
            ),
        }
    }
}

impl core::fmt::Display for Mistake {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.problem)
    }
}

impl core::fmt::Display for SystemError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (at, mistake) in self.mistakes.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            mistake.fmt(f)?;
        }
        Ok(())
    }
}

impl core::error::Error for Mistake {}
impl core::error::Error for SystemError {}
