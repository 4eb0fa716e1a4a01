//! How a link begins.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, socketpair,
};

use super::wait::{Crowd, Queue};
use super::{Link, LinkError, MAX_SPIN, Options, Shared};
use crate::domain::{BELL, Config, Role, Trust};
use crate::linux::bell::{Bell, EventFdBell, FutexBell, SocketBell};
use crate::linux::exchange::{self, DoorbellKind, EventFds, Joined};
use crate::linux::memfd::{Segment, SegmentError};
use crate::linux::process::{Mapped, offer};
use crate::linux::role::Role as Claim;
use crate::linux::{Deadline, Region};
use crate::lock::Lock;

/// How the two sides of a link in a region ring each other.
pub enum RegionBell {
    /// Both are processes of this machine: they sleep on words of the region, and each sees by the
    /// lock of the other's side whether it is there.
    Process,
    /// The peer is another core, or an emulator: a bell that reaches it. Its death is seen by the
    /// bell's hang-up or by silence.
    Other(Arc<dyn Bell>),
}

/// What a link knows by the way it was made.
struct Known {
    claim: Option<Arc<Claim>>,
    files: Option<Arc<[OwnedFd; 2]>>,
}

impl<L: Lock> Link<L> {
    /// Connects to the [`Listener`](super::Listener) at `path`, as the second side. Waits up to
    /// [`Options::exchange`] for its answer, and as long before it where its queue is full.
    pub fn connect(
        path: impl AsRef<Path>,
        config: Config<'static>,
        options: Options,
    ) -> Result<Link<L>, LinkError> {
        let socket = connected(path, options.exchange).map_err(LinkError::Socket)?;
        let offer = offer(&config, Role::Second, options.doorbell);
        let joined = exchange::join(socket, &offer, options.exchange)?;
        Self::joined(joined, config, Role::Second, options)
    }

    /// A link with a process with which segments were traded ([`exchange`]), by the doorbell of
    /// `options`.
    pub fn joined(
        joined: Joined,
        config: Config<'static>,
        role: Role,
        options: Options,
    ) -> Result<Link<L>, LinkError> {
        let Joined {
            mine,
            peer,
            exchange,
            eventfds,
            socket,
            ..
        } = joined;
        let files = [&mine, &peer].map(|segment| segment.as_fd().try_clone_to_owned());
        let [mine_file, peer_file] = files;
        let (mine_file, peer_file) = (
            mine_file.map_err(SegmentError::Io)?,
            peer_file.map_err(SegmentError::Io)?,
        );
        let files = match role {
            Role::First => [mine_file, peer_file],
            Role::Second => [peer_file, mine_file],
        };
        let wrong_size = || SegmentError::NotMemory;
        let mapped = Mapped::joined(mine, peer, exchange).ok_or_else(wrong_size)?;
        let bell: Arc<dyn Bell> = match (options.doorbell, eventfds) {
            (DoorbellKind::EventFd, Some(EventFds { mine, peers })) => {
                Arc::new(EventFdBell::new(mine, peers, socket))
            }
            (DoorbellKind::Futex, _) => {
                let [mine, peer] = mapped.maps().ok_or_else(wrong_size)?;
                Arc::new(FutexBell::new((&mine, BELL), (&peer, BELL), socket)?)
            }
            (DoorbellKind::Socket | DoorbellKind::EventFd, _) => Arc::new(SocketBell::new(socket)),
        };
        let known = Known {
            claim: None,
            files: Some(Arc::new(files)),
        };
        Self::open(mapped, config, role, bell, known, options)
    }

    /// A link in a file or in physical memory, as this side of it. Whatever was there before, either
    /// side may come, go and come again, in any order.
    ///
    /// A side can be taken by one process at a time ([`MapError::Taken`](crate::linux::map::MapError)).
    /// Nor is a core written over that runs there with another configuration
    /// ([`MapError::Overlap`](crate::linux::map::MapError), after a second at most).
    pub fn in_region(
        region: &Region,
        config: Config<'static>,
        role: Role,
        bell: RegionBell,
        options: Options,
    ) -> Result<Link<L>, LinkError> {
        config
            .check()
            .map_err(|error| LinkError::Open(error.into()))?;
        let (mapped, claim, bell): (_, _, Arc<dyn Bell>) = match bell {
            RegionBell::Process => {
                let mapped = Mapped::beside(region, &config, role, None)?;
                let [mine, peer] = mapped.maps().ok_or(SegmentError::NotMemory)?;
                let bell = FutexBell::unwatched((&mine, BELL), (&peer, BELL))?;
                let claim = mapped.claim();
                (mapped, claim, Arc::new(bell))
            }
            RegionBell::Other(bell) => {
                let mapped = Mapped::beside(region, &config, role, Some(&|| bell.ring()))?;
                (mapped, None, bell)
            }
        };
        let known = Known { claim, files: None };
        Self::open(mapped, config, role, bell, known, options)
    }

    /// Both sides of a link between two threads of this program: the first, and the second.
    ///
    /// It is the same link as between processes, with the same protection of each side's memory from
    /// mistakes of the other.
    pub fn pair(
        config: Config<'static>,
        options: Options,
    ) -> Result<(Link<L>, Link<L>), LinkError> {
        let io = |error: Errno| LinkError::Socket(error.into());
        let flags = SocketFlags::CLOEXEC;
        let sockets = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (first, second) = sockets.map_err(io)?;
        config
            .check()
            .map_err(|error| LinkError::Open(error.into()))?;
        let copy = |fd: &dyn AsFd| fd.as_fd().try_clone_to_owned();
        let segment = |role| {
            let len = config.segment_len(role);
            let own = Segment::create(len)?;
            let seen = Segment::accept(copy(&own).map_err(SegmentError::Io)?, len)?;
            Ok::<_, SegmentError>((own, seen))
        };
        let ((mine, mine_seen), (theirs, theirs_seen)) =
            (segment(Role::First)?, segment(Role::Second)?);
        let mut exchanges = (None, None);
        if config.trust == Trust::Mutual {
            let len = config.exchange_len().max(1);
            let made = Segment::create_exchange(len)?;
            let fd = copy(&made).map_err(SegmentError::Io)?;
            exchanges = (Some(made), Some(Segment::accept_exchange(fd, len)?));
        }
        let mut eventfds = (None, None);
        if options.doorbell == DoorbellKind::EventFd {
            let make = || EventFdBell::create().map_err(SegmentError::Io);
            let (one, two) = (make()?, make()?);
            let copied = |mine: &OwnedFd, peers: &OwnedFd| {
                let (mine, peers) = (copy(mine)?, copy(peers)?);
                Ok(EventFds { mine, peers })
            };
            eventfds = (
                Some(copied(&one, &two).map_err(SegmentError::Io)?),
                Some(copied(&two, &one).map_err(SegmentError::Io)?),
            );
        }
        let joined = |mine, peer, exchange, eventfds, socket| Joined {
            mine,
            peer,
            exchange,
            eventfds,
            socket,
        };
        let one = joined(mine, theirs_seen, exchanges.0, eventfds.0, first);
        let two = joined(theirs, mine_seen, exchanges.1, eventfds.1, second);
        Ok((
            Self::joined(one, config, Role::First, options)?,
            Self::joined(two, config, Role::Second, options)?,
        ))
    }

    fn open(
        mapped: Mapped,
        config: Config<'static>,
        role: Role,
        bell: Arc<dyn Bell>,
        known: Known,
        options: Options,
    ) -> Result<Link<L>, LinkError> {
        // The end rings it, and the link waits on it.
        let doorbell = std::boxed::Box::new(bell.clone());
        let end = mapped.open(config, role, doorbell, options.end)?;
        let heartbeat = Duration::from_millis(u64::from(options.end.heartbeat.max(1)));
        #[allow(clippy::arc_with_non_send_sync)]
        Ok(Link(Arc::new(Shared {
            end: Arc::new(end),
            bell,
            is_gone: OnceLock::new(),
            claim: known.claim,
            files: known.files,
            config,
            spin: options.spin.min(MAX_SPIN),
            heartbeat,
            begin: Instant::now(),
            looked: Mutex::new(None),
            crowd: Crowd::default(),
            queues: config
                .channels
                .iter()
                .map(|_| core::array::from_fn(|_| Arc::<Queue>::default()))
                .collect(),
            any: Arc::default(),
        })))
    }
}

/// A socket that is connected to the [`Listener`](super::Listener) at `path`, for who goes through
/// the exchange itself: an observer. Waits at most `timeout`.
pub fn connected(path: impl AsRef<Path>, timeout: Duration) -> io::Result<OwnedFd> {
    connected_as(path.as_ref(), SocketType::SEQPACKET, timeout)
}

/// A stream that is connected to the unix socket at `path`, which does not block. Waits at most
/// `timeout`: [`io::ErrorKind::WouldBlock`] where whoever listens has taken nobody for so long.
pub fn connected_stream(path: impl AsRef<Path>, timeout: Duration) -> io::Result<OwnedFd> {
    connected_as(path.as_ref(), SocketType::STREAM, timeout)
}

fn connected_as(path: &Path, kind: SocketType, timeout: Duration) -> io::Result<OwnedFd> {
    let deadline = Deadline::after(timeout);
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, kind, flags, None)?;
    loop {
        match connect(&socket, &address) {
            Ok(()) => return Ok(socket),
            Err(Errno::INTR) => {}
            // More have connected than the listener has taken.
            Err(Errno::AGAIN) if !deadline.is_over() => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error.into()),
        }
    }
}
