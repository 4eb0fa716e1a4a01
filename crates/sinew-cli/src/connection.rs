//! Why there is no link: the error of `sinew-io` in two parts, what happened and what to do.

use std::io;
use std::os::unix::fs::FileTypeExt;

use rustix::io::Errno;
use sinew_io::open::remedy;
use sinew_io::shm::config::mtu_of;
use sinew_io::{Address, AnyLink, ConnectError, Endpoint};

use crate::failure::Failure;
use crate::progress::Progress;
use crate::schema::Method;

/// The link to an endpoint, at which the method is to be called, or whoever is there to be asked.
pub fn open(endpoint: &Endpoint, method: Option<&Method>) -> Result<AnyLink, Failure> {
    let _shown = Progress::waiting(format!("connecting to {}", endpoint.address));
    sinew_io::open(endpoint).map_err(|error| unreachable(endpoint, method, &error))
}

/// The endpoint, at which the method was to be called, or whoever is there to be asked, cannot be reached.
pub fn unreachable(endpoint: &Endpoint, method: Option<&Method>, error: &ConnectError) -> Failure {
    let (cause, mut help) = explain(endpoint, error);
    let may_serve = !matches!(endpoint.address, Address::Serial(..))
        && other_file(endpoint).is_none()
        && endpoint.doorbell.is_none()
        && matches!(error, ConnectError::NoServer(_));
    if may_serve && method.is_some_and(Method::is_demo) {
        help += &format!("; `sinew serve {endpoint}` starts the demo");
    }
    Failure::NoConnection {
        endpoint: endpoint.address.to_string(),
        cause,
        help,
    }
}

/// Whether the tool can have a link there beside those of others, and after one that it has closed.
pub fn takes_several(endpoint: &Endpoint) -> bool {
    match endpoint.address {
        Address::Tcp(..) | Address::Udp(..) | Address::Unix(_) => true,
        Address::Shm(_) => endpoint.doorbell.is_none(),
        _ => false,
    }
}

/// What happened, and what to do about it.
pub fn explain(endpoint: &Endpoint, error: &ConnectError) -> (String, String) {
    let serial = matches!(endpoint.address, Address::Serial(..));
    let shared = matches!(endpoint.address, Address::Shm(_));
    let emulated = matches!(endpoint.address, Address::Qemu(_));
    match error {
        ConnectError::NoHost(_, error) => (
            format!("the host name has no address ({error})"),
            "check its spelling and the network".into(),
        ),
        ConnectError::NoServer(_) if serial => (
            "there is no such device".into(),
            "check the cable and the path; `ls /dev/tty*` lists what there is".into(),
        ),
        ConnectError::NoServer(_) if endpoint.doorbell.is_some() => (
            no_core(endpoint).unwrap_or_default(),
            "start the core or emulator that has the memory and the doorbell, or check both \
             paths"
                .into(),
        ),
        ConnectError::NoServer(_) => match other_file(endpoint) {
            Some(kind) => (
                format!("it is a {kind}, not a socket"),
                "check the path".into(),
            ),
            None => (
                "no server listens there".into(),
                "start it, or check the address".into(),
            ),
        },
        ConnectError::HungUp(_) => (
            "the process there hung up".into(),
            "it is ending, or its socket is for something else: look at it, then call again".into(),
        ),
        ConnectError::Trouble(_, error) => (
            format!("the server could not do its part ({error})"),
            remedy(error).unwrap_or("look at its process").into(),
        ),
        ConnectError::Qemu(_, error) => (error.cause(), error.remedy()),
        ConnectError::TimedOut(_) if emulated => (
            "the image does not open its side of the memory".into(),
            "check mtu= or config= against its own, and link=".into(),
        ),
        ConnectError::TimedOut(_) if shared && endpoint.doorbell.is_some() => (
            "the core that shares the memory does not open its side".into(),
            "start it, and check mtu= or config=, and offset=, against its own".into(),
        ),
        ConnectError::TimedOut(_) if shared => (
            "the server does not answer".into(),
            "it is stopped or overloaded: look at its process".into(),
        ),
        ConnectError::TimedOut(_) => (
            "the other side does not answer".into(),
            "check the address, the route and the firewall".into(),
        ),
        ConnectError::Permission(_) if serial => (
            "access denied".into(),
            "join the group that owns the device (often `dialout`), then log in again".into(),
        ),
        ConnectError::Permission(_) => (
            "access denied".into(),
            "check the owner and the mode of the path".into(),
        ),
        ConnectError::Busy(_) if endpoint.doorbell.is_some() => (
            "somebody else is this side of the link already".into(),
            "end the other one".into(),
        ),
        ConnectError::Busy(_) if shared => (
            "the server has too many clients".into(),
            "end one of them, then call again".into(),
        ),
        ConnectError::Busy(_) => (
            "another program has it open".into(),
            "end that program, for example a terminal on the same line".into(),
        ),
        ConnectError::WrongKind(_) if !serial && other_file(endpoint).is_none() => (
            "the socket is of another kind".into(),
            "the server there may be one of unix: or of shm:; call it as such".into(),
        ),
        ConnectError::WrongKind(_) => (
            format!(
                "this is no {}",
                if serial { "serial device" } else { "socket" }
            ),
            "check the path".into(),
        ),
        ConnectError::Baud(_, baud) => (
            format!("the device does not know the speed of {baud} baud"),
            "choose another with serial:PATH?baud=N".into(),
        ),
        ConnectError::Config(_, why) => (
            format!("the link file cannot be used: {why}"),
            "check config= and queue= of the endpoint, and the file".into(),
        ),
        ConnectError::Differs(_, refusal) => (
            format!("the two sides do not fit ({refusal})"),
            "give both the same mtu (?mtu=N behind the path; 1,024 where nothing is said, 65,535 \
             of pub, sub, get and reply) or link file, and build both from the same release"
                .into(),
        ),
        ConnectError::Overlap(_, overlap) => {
            let of_it = match mtu_of(overlap) {
                Some(mtu) => format!("give mtu={mtu}"),
                None => {
                    "give its link file as config= (`sinew shm status --toml` writes it)".into()
                }
            };
            let besides = overlap.or_clear();
            (
                overlap.to_string(),
                format!("{of_it}, or check offset={besides}"),
            )
        }
        ConnectError::Io(_, error) => {
            let other = match endpoint.doorbell {
                _ if emulated => "check mtu= or config= against the image's own",
                Some(_) => "check the file, offset=, and mtu= or config= against the other side",
                None => "check the address",
            };
            let help = remedy_at(endpoint, error).unwrap_or(other);
            (error.to_string(), help.into())
        }
    }
}

/// What to do about an error of the operating system at an endpoint; `None` where that depends on what was
/// tried.
pub fn remedy_at(endpoint: &Endpoint, error: &io::Error) -> Option<&'static str> {
    let has_path = matches!(endpoint.address, Address::Unix(_) | Address::Shm(_));
    match error.kind() {
        // The library refuses it before the system can.
        io::ErrorKind::InvalidInput if has_path => remedy(&Errno::NAMETOOLONG.into()),
        _ => remedy(error),
    }
}

/// Which of the parts of a shared file is not there.
fn no_core(endpoint: &Endpoint) -> Option<String> {
    let (Address::Shm(file), Some(bell)) = (&endpoint.address, &endpoint.doorbell) else {
        return None;
    };
    let bell = bell.socket.display();
    Some(match (file.exists(), other_file(endpoint)) {
        (false, _) => "there is no such file".into(),
        (true, Some(kind)) => format!("the doorbell {bell} is a {kind}, not a socket"),
        (true, None) => format!("nobody listens at the doorbell {bell}"),
    })
}

/// What stands in the place of the socket.
pub fn other_file(endpoint: &Endpoint) -> Option<&'static str> {
    let path = match (&endpoint.address, &endpoint.doorbell) {
        (Address::Shm(_), Some(bell)) => &bell.socket,
        (Address::Unix(path) | Address::Shm(path), _) => path,
        _ => return None,
    };
    let link = std::fs::symlink_metadata(path).ok()?.file_type();
    let Ok(file) = std::fs::metadata(path) else {
        return link.is_symlink().then_some("symbolic link to nothing");
    };
    let kind = file.file_type();
    match kind.is_socket() {
        true => None,
        false if kind.is_dir() => Some("folder"),
        false => Some("file"),
    }
}
