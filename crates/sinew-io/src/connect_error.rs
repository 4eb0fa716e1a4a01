//! Why an endpoint could not be opened.

use std::fmt;
use std::io;
use std::time::Duration;

use sinew_shm::linux::exchange::Refusal;
use sinew_shm::linux::overlap::Overlap;

use crate::endpoint::{Address, Endpoint, Use};
use crate::qemu::StartError;
use crate::remedy::remedy;
use crate::shm::config::mtu_of;

/// How long a connection may take to come about.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why an endpoint could not be opened. Says the likely cause and the remedy.
pub enum ConnectError {
    /// There is no such host.
    NoHost(Endpoint, io::Error),
    /// Nobody listens there, or there is no such file.
    NoServer(Endpoint),
    /// The process at the path hung up before the link was there: it is ending, or is no server of
    /// links over shared memory.
    HungUp(Endpoint),
    /// The server could not do its part: why.
    Trouble(Endpoint, io::Error),
    /// The connection did not come about in time.
    TimedOut(Endpoint),
    /// The operating system refuses access.
    Permission(Endpoint),
    /// The device is in use by another program, the server over shared memory has too many clients,
    /// or somebody else is this side of the link with another core.
    Busy(Endpoint),
    /// The path is no socket, or no serial device.
    WrongKind(Endpoint),
    /// The serial device does not know this speed.
    Baud(Endpoint, u32),
    /// The link file of shared memory cannot be used: why.
    Config(Endpoint, String),
    /// The two sides of shared memory do not fit: what differs.
    Differs(Endpoint, Refusal),
    /// This side would write over the core that shares the memory, which usually has another packet size.
    /// Nothing was written; the core goes on.
    Overlap(Endpoint, Box<Overlap>),
    /// The image could not be started in the emulator: why.
    Qemu(Endpoint, Box<StartError>),
    /// Something else went wrong.
    Io(Endpoint, io::Error),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::NoHost(at, error) => {
                write!(
                    f,
                    "{at}: the host name has no address ({error}): check its spelling"
                )
            }
            ConnectError::HungUp(at) => write!(
                f,
                "{at}: the process there hung up: it is ending, or is no server of links over \
                 shared memory; look at it, and try again"
            ),
            ConnectError::Trouble(at, error) => write!(
                f,
                "{at}: the server could not do its part ({error}): {}",
                remedy(error).unwrap_or("look at its process")
            ),
            ConnectError::NoServer(at) => match (&at.doorbell, &at.address) {
                (Some(bell), _) => write!(
                    f,
                    "{at}: there is no such file, or nobody listens at the doorbell {}: start the \
                     core or emulator that has both, or check the paths",
                    bell.socket.display()
                ),
                (_, Address::Serial(..)) => write!(
                    f,
                    "{at}: there is no such device: check the cable and the path (`ls /dev/tty*`)"
                ),
                _ if at.usage == Use::Batches => write!(
                    f,
                    "{at}: nobody listens there: start a Zenoh router or peer (`sinew sub '**' \
                     --listen {at}` is one), or check the address"
                ),
                _ => write!(
                    f,
                    "{at}: no server listens there: start it, or check the address (`sinew serve \
                     {at}` starts the demo)"
                ),
            },
            ConnectError::TimedOut(at) if matches!(at.address, Address::Qemu(_)) => write!(
                f,
                "{at}: the image does not open its side of the memory within {} s: check mtu= or \
                 config= against its own, and link=",
                CONNECT_TIMEOUT.as_secs()
            ),
            ConnectError::TimedOut(at) if at.doorbell.is_some() => write!(
                f,
                "{at}: the core that shares the memory does not open its side within {} s: start \
                 it, and check mtu= or config=, and offset=, against its own",
                CONNECT_TIMEOUT.as_secs()
            ),
            ConnectError::TimedOut(at) if matches!(at.address, Address::Shm(_)) => write!(
                f,
                "{at}: the server does not answer within {} s: it is stopped, or overloaded",
                CONNECT_TIMEOUT.as_secs()
            ),
            ConnectError::TimedOut(at) => write!(
                f,
                "{at}: no answer within {} s: check the address, the route and the firewall",
                CONNECT_TIMEOUT.as_secs()
            ),
            ConnectError::Permission(at) => match at.address {
                Address::Serial(..) => write!(
                    f,
                    "{at}: access denied: add yourself to the group that owns the device (often \
                     `dialout`) and log in again"
                ),
                _ => write!(
                    f,
                    "{at}: access denied: check the owner and the mode of the path"
                ),
            },
            ConnectError::Busy(at) if at.doorbell.is_some() => write!(
                f,
                "{at}: somebody else is this side of the link already: end the other one"
            ),
            ConnectError::Busy(at) if matches!(at.address, Address::Shm(_)) => {
                write!(f, "{at}: the server has too many clients: end one of them")
            }
            ConnectError::Busy(at) => {
                write!(f, "{at}: another program has it open: end that program")
            }
            ConnectError::WrongKind(at) => match at.address {
                Address::Serial(..) => write!(f, "{at}: this is no serial device or terminal"),
                _ => write!(f, "{at}: this is no socket, or one of another kind"),
            },
            ConnectError::Baud(at, baud) => {
                write!(
                    f,
                    "{at}: the device does not know the speed of {baud} baud: choose another"
                )
            }
            ConnectError::Config(at, why) => write!(f, "{at}: the link file: {why}"),
            ConnectError::Differs(at, refusal) => write!(
                f,
                "{at}: the two sides do not fit ({refusal}): give both the same mtu or link \
                 file, and build both from the same release"
            ),
            ConnectError::Overlap(at, overlap) => {
                write!(f, "{at}: {overlap}: ")?;
                match mtu_of(overlap) {
                    Some(mtu) => write!(f, "give mtu={mtu}")?,
                    None => f.write_str("give the link file of that side as config=")?,
                }
                f.write_str(
                    ", or check offset=; where no such side runs any more, clear the memory",
                )
            }
            ConnectError::Qemu(at, error) => write!(f, "{at}: {error}"),
            ConnectError::Io(at, error) => match remedy(error) {
                Some(remedy) => write!(f, "{at}: {error}: {remedy}"),
                None => write!(f, "{at}: {error}"),
            },
        }
    }
}

/// As [`fmt::Display`]: a program that returns the error from `main` then shows its cause and
/// remedy.
impl fmt::Debug for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ConnectError {}

impl ConnectError {
    /// What could not be opened.
    pub fn endpoint(&self) -> &Endpoint {
        match self {
            ConnectError::NoHost(at, _)
            | ConnectError::NoServer(at)
            | ConnectError::HungUp(at)
            | ConnectError::Trouble(at, _)
            | ConnectError::TimedOut(at)
            | ConnectError::Permission(at)
            | ConnectError::Busy(at)
            | ConnectError::WrongKind(at)
            | ConnectError::Baud(at, _)
            | ConnectError::Config(at, _)
            | ConnectError::Differs(at, _)
            | ConnectError::Overlap(at, _)
            | ConnectError::Qemu(at, _)
            | ConnectError::Io(at, _) => at,
        }
    }

    pub(crate) fn new(at: &Endpoint, error: io::Error) -> ConnectError {
        use io::ErrorKind::*;
        use rustix::io::Errno;
        let at = at.clone();
        match error.kind() {
            ConnectionRefused | NotFound => ConnectError::NoServer(at),
            // Nobody took the connection up.
            TimedOut | WouldBlock => ConnectError::TimedOut(at),
            PermissionDenied => ConnectError::Permission(at),
            ResourceBusy => ConnectError::Busy(at),
            _ => match Errno::from_io_error(&error) {
                Some(Errno::NOTTY | Errno::PROTOTYPE | Errno::NOTSOCK) => {
                    ConnectError::WrongKind(at)
                }
                _ => ConnectError::Io(at, error),
            },
        }
    }
}
