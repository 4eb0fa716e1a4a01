//! `shm:PATH`, as its client: both processes trade their memory over the socket at the path.

use std::path::Path;

use sinew_shm::linux::link::Link;

use super::call_link::{no_room, options, over, refused};
use super::config::chosen;
use super::process::ProcessLink;
use super::region;
use crate::connect_error::ConnectError;
use crate::endpoint::Endpoint;
use crate::link::Halves;

/// The link for calls, to the server at the path, or to whoever shares the memory there.
pub(crate) fn open(endpoint: &Endpoint, path: &Path) -> Result<ProcessLink, ConnectError> {
    match &endpoint.doorbell {
        Some(doorbell) => region::open(endpoint, path, doorbell),
        None => {
            let chosen = chosen(endpoint)?;
            let link = Link::connect(path, chosen.config, options());
            let link = link.map_err(|error| refused(endpoint, error))?;
            over(endpoint, link, chosen)
        }
    }
}

/// As [`open`], but gives the halves.
pub(crate) fn open_halves(endpoint: &Endpoint, path: &Path) -> Result<Halves, ConnectError> {
    halves(endpoint, open(endpoint, path)?)
}

/// The halves of a link that was opened for this endpoint.
pub(crate) fn halves(endpoint: &Endpoint, mut link: ProcessLink) -> Result<Halves, ConnectError> {
    let keep = link.take_keep();
    let (tx, rx) = link.split().ok_or_else(|| no_room(endpoint))?;
    Ok(Halves {
        tx: Box::new(tx),
        rx: Box::new(rx),
        keep,
    })
}
