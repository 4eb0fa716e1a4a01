//! The likely cause of a call that failed, and the remedy, from what was seen on the link.

use std::time::Duration;

use sinew::rpc::Status;
use sinew_io::{Address, Endpoint, Traffic};

use super::talk::Strays;
use crate::failure::Failure;
use crate::schema::Method;

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
        help: Some(help.into()),
    }
}

/// Nothing came for the call in time, after so many items: why, judged by what came instead.
pub fn silence(
    endpoint: &Endpoint,
    timeout: Duration,
    items: u64,
    strays: &Strays,
    traffic: &Traffic,
) -> Failure {
    let at = &endpoint.address;
    let span = humantime::format_duration(timeout);
    let (what, help) = match items {
        0 => (
            format!("no answer from {at} within {span}"),
            why_silent(endpoint, strays, traffic),
        ),
        _ => (
            format!(
                "{} came from {at}, then nothing for {span}",
                count(items, "item")
            ),
            match traffic.frames.too_large {
                0 => "the stream may be quiet (give a longer time, as in --timeout 1h), or an \
                      item or the end was lost"
                    .into(),
                too_large => over_mtu(too_large, endpoint),
            },
        ),
    };
    Failure::Timeout { what, help }
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

fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn over_mtu(packets: u32, endpoint: &Endpoint) -> String {
    format!(
        "{packets} packets were larger than this side takes ({} bytes): raise --mtu",
        endpoint.mtu
    )
}

fn why_silent(endpoint: &Endpoint, strays: &Strays, traffic: &Traffic) -> String {
    let frames = &traffic.frames;
    if let Some(channel) = strays.channel {
        return format!(
            "answers arrive for channel {channel}, this call is on channel {}: give --channel \
             {channel}",
            endpoint.channel
        );
    }
    if strays.echoes > 0 {
        return "our own packets come back: the line echoes, or no server is behind it; connect \
                the device, or turn its echo off"
            .into();
    }
    if frames.too_large > 0 {
        return over_mtu(frames.too_large, endpoint);
    }
    if frames.frames == 0 && traffic.bytes_in > 0 {
        let speed = match endpoint.address {
            Address::Serial(_, baud) => {
                format!("the baud rate is wrong (here {baud}: give serial:PATH?baud=N), ")
            }
            _ => String::new(),
        };
        return format!(
            "{} bytes arrived, but no valid {} frame: {speed}the peer uses another framing (give \
             --frame), or it writes its log on the same line",
            traffic.bytes_in,
            endpoint.framing.name(),
        );
    }
    if frames.frames > 0 && frames.frames == strays.malformed {
        return format!(
            "{} frames arrived, but none is a pw_rpc packet: another protocol is spoken here",
            frames.frames
        );
    }
    if frames.frames > 0 {
        return "packets arrive, but none for this call: the server is still at work (give \
                --timeout a longer time) or lost the request"
            .into();
    }
    let carrier = match &endpoint.address {
        Address::Serial(_, baud) => format!(
            "; the cable, the device or the baud rate is wrong (here {baud}: give \
             serial:PATH?baud=N)"
        ),
        Address::Udp(..) => "; nobody listens there, or the datagram was lost".into(),
        _ => String::new(),
    };
    let framing = match endpoint.address.is_stream() {
        true => "it uses another framing (give --frame); ",
        false => "",
    };
    format!(
        "not one byte came back. The likely causes: the server does not serve channel {} (give \
         --channel; an unknown channel is never answered); {framing}it hangs or needs longer (give \
         --timeout){carrier}",
        endpoint.channel
    )
}

/// The link went away before the call was complete.
pub fn lost(endpoint: &Endpoint, traffic: &Traffic) -> Failure {
    let silent = traffic.bytes_in == 0;
    let help = match &endpoint.address {
        Address::Exec(_) if silent => {
            "the command ended without an answer: run it alone to see why"
        }
        Address::Udp(..) if silent => {
            "nobody listens on that port: start the server, or correct it"
        }
        Address::Tcp(..) | Address::Unix(_) if silent => {
            "the server closed the connection at once: it may speak another protocol or framing"
        }
        Address::Qemu(_) => "look why the image ends, then call again",
        Address::Serial(..) => "the device was unplugged or reset: connect it, then call again",
        _ => "the server stopped or closed the link: look at its log, then call again",
    };
    Failure::ConnectionLost {
        endpoint: endpoint.address.to_string(),
        help: help.into(),
    }
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
