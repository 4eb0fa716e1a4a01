//! Opens the segments of links for reading: of a process at a socket, or in a file or device.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use sinew_shm::domain::observe::{Side, Source, sides};
use sinew_shm::domain::{Config, Region, Regions, Role, Span};
use sinew_shm::linux::exchange::{ExchangeError, Field};
use sinew_shm::linux::link::{connected, connected_stream};
use sinew_shm::linux::{self, Mapping, exchange};

use super::place::Place;
use crate::failure::Failure;
use crate::progress::Progress;

/// How long a process may take to show its links.
const PATIENCE: Duration = Duration::from_secs(2);

/// One segment, read-only.
pub enum Segment {
    /// A part of a file, which is read at each look: whoever truncates it does no harm.
    File {
        file: Arc<File>,
        offset: u64,
        len: u64,
    },
    /// Memory of a device, or sealed memory of a process.
    Map(Mapping),
    /// Not to be found yet.
    Unknown,
}

impl Source for Segment {
    fn line(&self, offset: u32) -> Option<[u32; 16]> {
        match self {
            Segment::File {
                file,
                offset: base,
                len,
            } => {
                let offset = u64::from(offset);
                if !offset.is_multiple_of(64) || offset + 64 > *len {
                    return None;
                }
                let mut bytes = [0; 64];
                file.read_exact_at(&mut bytes, base.checked_add(offset)?)
                    .ok()?;
                bytes.line(0)
            }
            Segment::Map(map) => map.line(offset),
            Segment::Unknown => None,
        }
    }
}

/// The segments of one link: the first side's, the second's.
pub type Segments = [Segment; 2];

/// What was found at a place: the links, and how many more there are.
pub struct Found {
    pub links: Vec<Segments>,
    pub more: u32,
    /// Of each link, where they lie in slots.
    pub slots: Vec<Slot>,
}

impl Found {
    fn links(links: Vec<Segments>, more: u32) -> Found {
        Found {
            links,
            more,
            slots: Vec::new(),
        }
    }
}

/// One of several slots in a file or device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// From 0.
    pub number: u32,
    pub count: u32,
    /// Whether a process of this machine has the first side, and the second; `None` where the system
    /// cannot tell.
    pub is_taken: [Option<bool>; 2],
}

/// Opens what is at a place. A configuration says where the second side lies also before the first
/// one has opened.
pub fn open(place: &Place, config: Option<&Config<'_>>) -> Result<Found, Failure> {
    let _shown = Progress::waiting(format!("looking at {place}"));
    let failed = |cause: String, help: &str| Failure::NoConnection {
        endpoint: place.to_string(),
        cause,
        help: help.into(),
    };
    let silent = || {
        failed(
            "the process there does not answer".into(),
            "it is stopped or overloaded, or it accepts nobody just now, or its socket is for \
             something else: look at it",
        )
    };
    let io_failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => failed(
            "there is no such file or socket".into(),
            "start what makes it, or check the path",
        ),
        io::ErrorKind::PermissionDenied => failed(
            "access denied".into(),
            "check the owner and the mode of the path; physical memory is for root",
        ),
        io::ErrorKind::ConnectionRefused => failed(
            "no process shows its links there".into(),
            "start it, or check the path",
        ),
        io::ErrorKind::WouldBlock => silent(),
        _ if Errno::from_io_error(&error) == Some(Errno::PROTOTYPE) => failed(
            "the socket is of another kind".into(),
            "check that it is that of a link over shared memory",
        ),
        _ => failed(
            error.to_string(),
            sinew_io::open::remedy(&error).unwrap_or("check the path"),
        ),
    };
    let kind = std::fs::metadata(&place.path)
        .map_err(io_failed)?
        .file_type();
    if kind.is_socket() {
        let socket = match connected(&place.path, PATIENCE) {
            // A program of its own making may trade its segments over a stream.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::PROTOTYPE) => {
                connected_stream(&place.path, PATIENCE)
            }
            connected => connected,
        };
        return shown_by_process(socket.map_err(io_failed)?).map_err(|error| match error {
            ExchangeError::Silent => silent(),
            ExchangeError::RefusedByPeer(refusal) if refusal.field == Field::Busy => failed(
                "the process there is shown to as many as it can".into(),
                "end another observer or client, then look again",
            ),
            ExchangeError::HungUp => failed(
                error.to_string(),
                "the process is ending, or its socket is for something else: look at it",
            ),
            error => failed(
                error.to_string(),
                "check that the socket is that of a link over shared memory",
            ),
        });
    }
    if kind.is_dir() || kind.is_fifo() {
        let what = if kind.is_dir() { "folder" } else { "pipe" };
        return Err(failed(format!("it is a {what}"), "check the path"));
    }
    let is_device = kind.is_char_device();
    let part = |offset: u64, len: u64| -> Result<Segment, Failure> {
        match is_device {
            true => mapped(&place.path, offset, len).map_err(|error| {
                failed(
                    error.to_string(),
                    "check the offset; of a UIO device it is the number of the map times 4096",
                )
            }),
            false => Ok(Segment::File {
                file: Arc::new(File::open(&place.path).map_err(io_failed)?),
                offset,
                len,
            }),
        }
    };
    if let Ok(regions) = Regions::read(&part(place.offset, 64)?) {
        return slots(place, &regions, part);
    }
    let region = match config {
        Some(config) => Some(Region::of(config)),
        None => match Side::read(&part(place.offset, HEADER)?) {
            Ok(first) => Some(Region::of_lengths(first.length, 0, 0)),
            Err(_) => None,
        },
    };
    let first = part(
        place.offset,
        region.map_or(HEADER, |region| region.first.len),
    )?;
    let expected = region.map(|region| region.second.offset);
    let second = match (expected, config) {
        (Some(at), Some(_)) => Some((at, region.map_or(HEADER, |region| region.second.len))),
        (Some(at), None) => {
            let side = Side::read(&part(place.offset.saturating_add(at), HEADER)?);
            side.ok().map(|side| (at, u64::from(side.length)))
        }
        (None, _) => None,
    };
    // A second side that began before the first one, or with other sizes, lies elsewhere.
    let elsewhere = || match is_device {
        true => None,
        false => alone(&part(place.offset, ALONE).ok()?),
    };
    let second = second
        .or_else(elsewhere)
        .or(expected.map(|at| (at, HEADER)));
    let second = match second {
        Some((at, len)) => part(place.offset.saturating_add(at), len)?,
        None => Segment::Unknown,
    };
    Ok(Found::links(vec![[first, second]], 0))
}

/// How far from the base a second side is looked for whose place nobody tells, in bytes.
const ALONE: u64 = 64 << 20;

/// Where a second side lies, and how long it is, if none but a first side at the base comes before it.
fn alone(file: &Segment) -> Option<(u64, u64)> {
    let mut behind = sides(file).skip_while(|(at, _)| *at == 0);
    let (at, side) = behind.next()?;
    let is_second = side.role == Some(Role::Second);
    is_second.then(|| (u64::from(at), u64::from(side.length)))
}

/// The links of slots, and which of their sides processes have.
fn slots(
    place: &Place,
    regions: &Regions,
    part: impl Fn(u64, u64) -> Result<Segment, Failure>,
) -> Result<Found, Failure> {
    let len = usize::try_from(regions.len()).ok();
    let locks =
        len.and_then(|len| linux::Region::open_read_only(&place.path, place.offset, len).ok());
    let mut found = Found::links(Vec::new(), 0);
    for number in 0..regions.slots {
        let sides = [Role::First, Role::Second].map(|role| regions.segment(number, role));
        let [Some(first), Some(second)] = sides else {
            continue;
        };
        let open = |side: Span| part(place.offset.saturating_add(side.offset), side.len);
        found.links.push([open(first)?, open(second)?]);
        found.slots.push(Slot {
            number,
            count: regions.slots,
            is_taken: [first, second].map(|side| locks.as_ref()?.is_taken(side).ok()),
        });
    }
    Ok(found)
}

/// What every segment has, whatever its length.
const HEADER: u64 = 192;

fn mapped(path: &Path, offset: u64, len: u64) -> io::Result<Segment> {
    let len = usize::try_from(len).map_err(io::Error::other)?;
    let region = linux::Region::open_read_only(path, offset, len)?;
    let map = region.peer(0, len).map_err(io::Error::other)?;
    Ok(Segment::Map(map))
}

fn shown_by_process(socket: OwnedFd) -> Result<Found, exchange::ExchangeError> {
    let observed = exchange::observe(socket, PATIENCE)?;
    let shown = observed.links.len() as u32;
    let links = observed.links.into_iter().map(|(serving, joined)| {
        let [serving, joined] = [serving, joined].map(|segment| segment.into_parts().1);
        let is_second =
            |map: &Mapping| Side::read(map).is_ok_and(|side| side.role == Some(Role::Second));
        if is_second(&serving) {
            [Segment::Map(joined), Segment::Map(serving)]
        } else {
            [Segment::Map(serving), Segment::Map(joined)]
        }
    });
    let more = observed.total.saturating_sub(shown);
    Ok(Found::links(links.collect(), more))
}
