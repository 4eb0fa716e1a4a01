//! Why there is no link: the error of `sinew-io` in two parts, what happened and what to do.

use sinew_io::{Address, ConnectError, Endpoint};

use crate::failure::Failure;

/// The endpoint cannot be reached.
pub fn unreachable(endpoint: &Endpoint, error: &ConnectError) -> Failure {
    let (cause, help) = explain(endpoint, error);
    Failure::NoConnection {
        endpoint: endpoint.address.to_string(),
        cause,
        help,
    }
}

/// What happened, and what to do about it.
pub fn explain(endpoint: &Endpoint, error: &ConnectError) -> (String, String) {
    let serial = matches!(endpoint.address, Address::Serial(..));
    match error {
        ConnectError::NoHost(_, error) => (
            format!("the host name has no address ({error})"),
            "check its spelling and the network".into(),
        ),
        ConnectError::NoServer(_) if serial => (
            "there is no such device".into(),
            "check the cable and the path; `ls /dev/tty*` lists what there is".into(),
        ),
        ConnectError::NoServer(_) => (
            "no server listens there".into(),
            format!("start it, or check the address; `sinew serve {endpoint}` starts the demo"),
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
        ConnectError::Busy(_) => (
            "another program has it open".into(),
            "end that program, for example a terminal on the same line".into(),
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
        ConnectError::Unsupported(_) => (
            "this version does not open such endpoints".into(),
            "use unix: between processes of one machine".into(),
        ),
        ConnectError::Io(_, error) => (error.to_string(), "check the address".into()),
    }
}
