//! What a link for calls is made with, and why there is none.

use std::io;

use sinew_shm::domain;
use sinew_shm::linux::exchange::{DoorbellKind, ExchangeError, Field, TIMEOUT};
use sinew_shm::linux::link::{Link, LinkError, Options};
use sinew_shm::linux::map::MapError;
use sinew_shm::linux::memfd::SegmentError;

use super::config::Chosen;
use super::process::ProcessLink;
use super::spin::SPIN;
use crate::connect_error::ConnectError;
use crate::endpoint::Endpoint;

/// Milliseconds between two signs of life, which are for observers: the socket's hang-up says when
/// the peer has ended.
const HEARTBEAT: u32 = 1000;

/// This side's choices.
pub(crate) fn options() -> Options {
    Options {
        end: domain::Options {
            heartbeat: HEARTBEAT,
            ..domain::Options::default()
        },
        doorbell: DoorbellKind::Socket,
        // The links of this crate look by themselves.
        spin: std::time::Duration::ZERO,
        exchange: TIMEOUT,
    }
}

/// The channel for calls of a link that was made for this endpoint.
pub(crate) fn over(
    endpoint: &Endpoint,
    link: Link,
    Chosen { channel, .. }: Chosen,
) -> Result<ProcessLink, ConnectError> {
    let spin = endpoint.spin.unwrap_or(SPIN);
    ProcessLink::new(link, channel, spin).ok_or_else(|| no_room(endpoint))
}

/// Why there is no link.
pub(crate) fn refused(endpoint: &Endpoint, error: LinkError) -> ConnectError {
    let at = || endpoint.clone();
    match error {
        LinkError::Socket(error)
        | LinkError::Segment(SegmentError::Io(error))
        | LinkError::Map(MapError::Io(error)) => ConnectError::new(endpoint, error),
        LinkError::Map(MapError::Taken) => ConnectError::Busy(at()),
        LinkError::Map(MapError::Overlap(overlap)) => ConnectError::Overlap(at(), overlap),
        LinkError::Exchange(error) => match error {
            ExchangeError::RefusedByPeer(refusal) if refusal.field == Field::Trouble => {
                let error = match refusal.theirs {
                    0 => io::Error::other("it does not say why"),
                    number => io::Error::from_raw_os_error(number as i32),
                };
                ConnectError::Trouble(at(), error)
            }
            ExchangeError::Refused(refusal) | ExchangeError::RefusedByPeer(refusal) => {
                match refusal.field {
                    Field::Busy => ConnectError::Busy(at()),
                    _ => ConnectError::Differs(at(), refusal),
                }
            }
            ExchangeError::Silent => ConnectError::TimedOut(at()),
            ExchangeError::HungUp => ConnectError::HungUp(at()),
            ExchangeError::Io(error) => ConnectError::Io(at(), error),
            ExchangeError::EventFdWithoutTrust => other(endpoint, error),
        },
        error => other(endpoint, error),
    }
}

fn other(
    endpoint: &Endpoint,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> ConnectError {
    ConnectError::Io(endpoint.clone(), io::Error::other(error))
}

/// The configuration has the channel, so only descriptors can be missing.
pub(crate) fn no_room(endpoint: &Endpoint) -> ConnectError {
    other(endpoint, "no descriptor is left for the doorbell")
}
