//! Opens a serial line or a pseudo-terminal for bytes as they are.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::termios::{
    ControlModes, OptionalActions, QueueSelector, SpecialCodeIndex, ioctl_tiocexcl, tcflush,
    tcgetattr, tcsetattr,
};

/// Why a line could not be opened.
#[derive(Debug)]
pub enum SerialError {
    /// The device does not know the speed.
    Baud,
    /// The operating system refused.
    Io(io::Error),
}

impl<E: Into<io::Error>> From<E> for SerialError {
    fn from(error: E) -> Self {
        SerialError::Io(error.into())
    }
}

/// Opens the device for this program alone: raw, 8 data bits, no parity, no flow control, at
/// `baud`. What had arrived before is dropped.
pub fn open(path: &Path, baud: u32) -> Result<OwnedFd, SerialError> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let line = rustix::fs::open(path, flags, Mode::empty())?;
    let mut settings = tcgetattr(&line)?;
    settings.make_raw();
    settings.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
    settings.control_modes -= ControlModes::CRTSCTS;
    settings.special_codes[SpecialCodeIndex::VMIN] = 1;
    settings.special_codes[SpecialCodeIndex::VTIME] = 0;
    settings.set_speed(baud).map_err(|_| SerialError::Baud)?;
    tcsetattr(&line, OptionalActions::Now, &settings)?;
    if tcgetattr(&line)?.output_speed() != baud {
        return Err(SerialError::Baud);
    }
    ioctl_tiocexcl(&line)?;
    tcflush(&line, QueueSelector::IFlush)?;
    Ok(line)
}
