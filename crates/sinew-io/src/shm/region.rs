//! `shm:FILE?doorbell=SOCKET`: one side of a link in memory that an emulator or another core shares,
//! with a byte on a socket as the doorbell.
//!
//! This process is the first side of the link; its layout is that of [`Region`](domain::Region), from
//! `offset` on. The peer may start again at any time, and so may this process. The end of the socket
//! ends the link.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sinew_shm::domain::{self, Role};
use sinew_shm::linux::Region;
use sinew_shm::linux::bell::SocketBell;
use sinew_shm::linux::link::{Link, LinkError, Options, RegionBell, WaitError, connected_stream};

use super::call_link;
use super::config::chosen;
use super::process::ProcessLink;
use crate::connect_error::{CONNECT_TIMEOUT, ConnectError};
use crate::endpoint::{Doorbell, Endpoint};

/// How long a peer that does not fit may be one that is just starting anew.
const MISFIT: Duration = Duration::from_millis(300);

/// The link for calls; the peer is there and fits.
pub(crate) fn open(
    endpoint: &Endpoint,
    file: &Path,
    doorbell: &Doorbell,
) -> Result<ProcessLink, ConnectError> {
    let bell = connected_stream(&doorbell.socket, CONNECT_TIMEOUT);
    let bell = bell.map_err(|error| ConnectError::new(endpoint, error))?;
    over(endpoint, file, doorbell.offset, bell)
}

/// The same with a doorbell that is connected.
pub(crate) fn over(
    endpoint: &Endpoint,
    file: &Path,
    offset: u64,
    bell: OwnedFd,
) -> Result<ProcessLink, ConnectError> {
    let fail = |error| ConnectError::new(endpoint, error);
    let chosen = chosen(endpoint)?;
    let config = chosen.config;
    let len = domain::Region::of(&config).len;
    let len = usize::try_from(len).map_err(|error| fail(io::Error::other(error)))?;
    let region = Region::open(file, offset, len).map_err(fail)?;
    let bell = RegionBell::Other(Arc::new(SocketBell::new(bell)));
    let link = Link::in_region(&region, config, Role::First, bell, options());
    let link = link.map_err(|error: LinkError| call_link::refused(endpoint, error))?;
    // A peer that does not fit does not get any better.
    let up = match link.up_within(Some(MISFIT)) {
        Err(WaitError::TimedOut) => link.up_within(Some(CONNECT_TIMEOUT)),
        up => up,
    };
    match up {
        Ok(()) => call_link::over(endpoint, link, chosen),
        Err(WaitError::TimedOut) => Err(ConnectError::TimedOut(endpoint.clone())),
        Err(error) => Err(fail(io::Error::other(error))),
    }
}

/// What the peer rings before the emulator has accepted this side's connection is lost, so this side
/// looks more often than where both are processes.
fn options() -> Options {
    Options {
        end: domain::Options::default(),
        spin: Duration::ZERO,
        ..call_link::options()
    }
}
