//! Why there is no link: the error of `sinew-io` in two parts, what happened and what to do.

use std::os::unix::fs::FileTypeExt;

use sinew_io::{Address, ConnectError, Endpoint};

use crate::failure::Failure;
use crate::schema::Method;

/// The endpoint, at which the method was to be called, cannot be reached.
pub fn unreachable(endpoint: &Endpoint, method: &Method, error: &ConnectError) -> Failure {
    let (cause, mut help) = explain(endpoint, error);
    let may_serve = !matches!(endpoint.address, Address::Serial(..))
        && other_file(&endpoint.address).is_none()
        && matches!(error, ConnectError::NoServer(_));
    if may_serve && method.is_demo() {
        help += &format!("; `sinew serve {endpoint}` starts the demo");
    }
    Failure::NoConnection {
        endpoint: endpoint.address.to_string(),
        cause,
        help,
    }
}

/// What happened, and what to do about it.
pub fn explain(endpoint: &Endpoint, error: &ConnectError) -> (String, String) {
    let serial = matches!(endpoint.address, Address::Serial(..));
    let shared = matches!(endpoint.address, Address::Shm(_));
    match error {
        ConnectError::NoHost(_, error) => (
            format!("the host name has no address ({error})"),
            "check its spelling and the network".into(),
        ),
        ConnectError::NoServer(_) if serial => (
            "there is no such device".into(),
            "check the cable and the path; `ls /dev/tty*` lists what there is".into(),
        ),
        ConnectError::NoServer(_) => match other_file(&endpoint.address) {
            Some(kind) => (
                format!("it is a {kind}, not a socket"),
                "check the path".into(),
            ),
            None => (
                "no server listens there".into(),
                "start it, or check the address".into(),
            ),
        },
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
        ConnectError::Busy(_) if shared => (
            "the server has too many clients".into(),
            "end one of them, then call again".into(),
        ),
        ConnectError::Busy(_) => (
            "another program has it open".into(),
            "end that program, for example a terminal on the same line".into(),
        ),
        ConnectError::WrongKind(_) if !serial && other_file(&endpoint.address).is_none() => (
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
            "give both the same --mtu or link file, and build both from the same release".into(),
        ),
        ConnectError::Io(_, error) => (error.to_string(), "check the address".into()),
    }
}

/// What stands in the place of the socket.
pub fn other_file(address: &Address) -> Option<&'static str> {
    let (Address::Unix(path) | Address::Shm(path)) = address else {
        return None;
    };
    let kind = std::fs::metadata(path).ok()?.file_type();
    match kind.is_socket() {
        true => None,
        false if kind.is_dir() => Some("folder"),
        false => Some("file"),
    }
}
