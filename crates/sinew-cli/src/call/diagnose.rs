//! The likely cause of a call that failed, and the remedy, from what was seen on the link.

use std::time::Duration;

use sinew::rpc::Status;
use sinew_io::{Endpoint, Traffic};

use crate::failure::Failure;
use crate::schema::Method;
use crate::silence::{self, Patience, Strays};

/// The server's engine, not the method, ended the call: what each status then means.
pub fn refused(method: &Method, status: Status) -> Failure {
    let help = match status {
        Status::NOT_FOUND => {
            "the server has no such service or method: compare the package, service and method \
             names of --proto with those that the server was built from"
        }
        Status::DATA_LOSS => {
            "the server could not decode the request: its .proto differs from --proto, or a text \
             or list exceeds its capacity there"
        }
        Status::RESOURCE_EXHAUSTED => {
            "every call slot or queue of the server is in use: end other calls and try again, or \
             give the server more"
        }
        Status::FAILED_PRECONDITION => {
            "the server does not know the call any more: it restarted, or ended the stream before"
        }
        Status::INTERNAL => "the answer did not fit into the server's packet: raise its mtu",
        Status::INVALID_ARGUMENT => {
            "client and server disagree about which side streams: compare their .proto files"
        }
        _ => "the server gave the call up; look at its log",
    };
    Failure::Status {
        method: method.name.clone(),
        status,
        help: help.into(),
    }
}

/// The method itself ended the call.
pub fn ended(method: &Method, endpoint: &Endpoint, status: Status) -> Failure {
    let name = &method.name;
    Failure::Status {
        method: name.clone(),
        status,
        help: format!(
            "change the request, or what it asks for; `sinew describe {} {name}` shows what the method \
             says of it",
            endpoint.address
        ),
    }
}

/// Nothing came for the call in time, after so many items.
pub fn silence(
    endpoint: &Endpoint,
    timeout: Duration,
    items: u64,
    strays: &Strays,
    traffic: &Traffic,
) -> Failure {
    if items == 0 {
        return silence::no_answer(endpoint, Patience::Option(timeout), strays, traffic);
    }
    let span = humantime::format_duration(timeout);
    let items = counted(items, "item");
    Failure::Timeout {
        what: format!(
            "{items} came from {}, then nothing for {span}",
            endpoint.address
        ),
        help: match traffic.frames.too_large {
            0 => "the stream may be quiet (give a longer time, as in --timeout 1h), or an item or \
                  the end was lost"
                .into(),
            too_large => silence::over_mtu(too_large, endpoint),
        },
    }
}

/// What to say of packets that the kernel dropped on this side, if any.
pub fn dropped(traffic: &Traffic) -> Option<String> {
    let datagrams = match traffic.dropped {
        0 => return None,
        1 => "1 datagram was".into(),
        n => format!("{n} datagrams were"),
    };
    Some(format!(
        "{datagrams} dropped by the receiver: items may be missing; use tcp"
    ))
}

fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_datagrams_are_said_and_their_absence_is_not() {
        let after = |count| {
            dropped(&Traffic {
                dropped: count,
                ..Traffic::default()
            })
        };
        assert_eq!(after(0), None);
        assert!(after(1).unwrap().starts_with("1 datagram was dropped"));
        assert!(after(7).unwrap().starts_with("7 datagrams were dropped"));
    }
}
