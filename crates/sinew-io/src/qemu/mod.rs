//! `qemu:IMAGE`: a board that QEMU emulates, started for the link, and ended with it.
//!
//! | module | what it is for |
//! |---|---|
//! | `machine` | the machines that can be started: [`MACHINES`] |
//! | `image` | what an image says of itself |
//! | `board` | the emulator's process |
//! | `error` | why there is no board |
//!
//! An image says on which machine it runs, and by what it talks, in the section `.sinew.board`, which is
//! not loaded. It is text: `machine=mps2-an385 link=uart mtu=64`, where `mtu` is its largest packet in
//! bytes; `second=serve` is the image of the second core, in the same folder; words that are not known here
//! are passed over. `sinew_rt::board!` of `firmware/rt` writes it.
//!
//! The board's UART, or its doorbell, is a socket of this process, and the memory that it shares has no
//! name, so nothing is left behind, whatever ends first. QEMU gets SIGKILL from the kernel when this
//! process ends.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use sinew::frame::{Framing, hdlc};

use crate::bytes::ByteLink;
use crate::connect_error::ConnectError;
use crate::endpoint::{Carrier, Emulated, Endpoint};
use crate::link::{AnyLink, Erased};
use crate::shm::process::ProcessLink;
use crate::shm::region;

mod board;
mod error;
mod image;
mod machine;

pub use board::{Ended, on_end};
pub use error::StartError;
pub use machine::{MACHINES, Machine};

use board::{Board, Talks};
use image::Image;

/// On which machine an image runs, and by what it talks.
pub fn look(emulated: &Emulated) -> Result<(&'static Machine, Carrier), StartError> {
    let image = Image::read(emulated)?;
    Ok((image.machine, image.carrier))
}

/// A link with a board, which keeps it.
pub(crate) enum Link {
    Uart(ByteLink),
    Shm(ProcessLink),
}

/// Starts the board; over shared memory, the image has opened its side.
pub(crate) fn link(endpoint: &Endpoint, emulated: &Emulated) -> Result<Link, ConnectError> {
    let failed = |error| ConnectError::Qemu(endpoint.clone(), Box::new(error));
    let image = Image::read(emulated).map_err(failed)?;
    match image.carrier {
        Carrier::Uart => uart(endpoint, &image).map(Link::Uart),
        Carrier::Shm => Ok(Link::Shm(Shared::start(endpoint, &image)?.link)),
    }
}

/// The endpoint with the packet size that holds.
fn sized(endpoint: &Endpoint, image: &Image) -> Endpoint {
    let mut endpoint = endpoint.clone();
    if endpoint.mtu == 0 {
        endpoint.mtu = image.mtu;
    }
    endpoint
}

fn uart(endpoint: &Endpoint, image: &Image) -> Result<ByteLink, ConnectError> {
    let io = |error| ConnectError::Io(endpoint.clone(), error);
    let started = Board::start(endpoint, image, Talks::Uart);
    let (board, uart) =
        started.map_err(|error| ConnectError::Qemu(endpoint.clone(), Box::new(error)))?;
    let Endpoint { framing, mtu, .. } = sized(endpoint, image);
    // A UART loses the byte that it has when it is switched on: this flag, and not that of the first frame.
    if matches!(framing, Framing::Hdlc { .. }) {
        let flagged = File::from(uart.try_clone().map_err(io)?).write_all(&[hdlc::FLAG]);
        flagged.map_err(io)?;
    }
    let link = ByteLink::duplex(uart, framing, mtu).map_err(io)?;
    Ok(link.keeping(board))
}

/// A board that shares its memory with this process.
pub struct Shared {
    link: ProcessLink,
    memory: OwnedFd,
}

impl Shared {
    /// Starts the board of an endpoint, which must be `qemu:`, and waits until the image has opened its
    /// side of the memory.
    pub fn open(endpoint: &Endpoint, emulated: &Emulated) -> Result<Shared, ConnectError> {
        let failed = |error| ConnectError::Qemu(endpoint.clone(), Box::new(error));
        let image = Image::read(emulated).map_err(failed)?;
        match image.carrier {
            Carrier::Shm => Shared::start(endpoint, &image),
            Carrier::Uart => Err(failed(StartError::SharesNothing(image.machine))),
        }
    }

    fn start(endpoint: &Endpoint, image: &Image) -> Result<Shared, ConnectError> {
        let at = endpoint;
        let failed = |error| ConnectError::Qemu(at.clone(), Box::new(error));
        let no_memory = || failed(StartError::SharesNothing(image.machine));
        let len = image.machine.shared.ok_or_else(no_memory)?;
        let memory = memory(len).map_err(|error| failed(error.into()))?;
        let (mut board, bell) =
            Board::start(endpoint, image, Talks::Shm(&path(&memory))).map_err(failed)?;
        let link = region::over(&sized(endpoint, image), &path(&memory), 0, bell);
        let link = link.map_err(|error| match (board.ended(), error) {
            (Some(ended), _) => failed(StartError::Ended(ended)),
            // As it was asked for.
            (None, ConnectError::TimedOut(_)) => ConnectError::TimedOut(at.clone()),
            (None, error) => error,
        })?;
        Ok(Shared {
            link: link.keeping(board),
            memory,
        })
    }

    /// One side of the link, which keeps the board.
    pub fn link(&mut self) -> &mut ProcessLink {
        &mut self.link
    }

    /// The side of the link, for calls, which keeps the board, and the memory.
    pub fn into_parts(self) -> (AnyLink, OwnedFd) {
        (Box::new(Erased(self.link)), self.memory)
    }

    /// The memory, in which the link lies at the beginning.
    pub fn memory(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

/// Memory without a name.
fn memory(len: u64) -> std::io::Result<OwnedFd> {
    let memory = memfd_create("sinew-board", MemfdFlags::CLOEXEC)?;
    ftruncate(&memory, len)?;
    Ok(memory)
}

/// By which this process, and others of its user, reach it.
fn path(memory: &OwnedFd) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd()).into()
}
