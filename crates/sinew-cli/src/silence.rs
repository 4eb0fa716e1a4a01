//! Why a server that was asked says nothing, judged by what came instead: the same words for every command.

use std::time::Duration;

use sinew::rpc::CallError;
use sinew::rpc::packet::Packet;
use sinew_io::{Address, AnyLink, Client, Endpoint, Traffic};

use crate::failure::Failure;
use crate::span::above_zero;

/// The option of commands that ask a server, and wait for what it says.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Timeout {
    /// How long the server may stay silent, for example 500ms or 2min; 365d for ever
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = above_zero)]
    pub timeout: Duration,
}

impl Timeout {
    pub fn patience(self) -> Patience {
        Patience::Option(self.timeout)
    }
}

/// How long an answer was waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Patience {
    /// As --timeout of the command says.
    Option(Duration),
    /// The command has no such option.
    Fixed(Duration),
}

impl Patience {
    pub fn span(self) -> Duration {
        let (Patience::Option(span) | Patience::Fixed(span)) = self;
        span
    }
}

/// Packets that arrived and were not ours.
#[derive(Clone, Copy, Debug, Default)]
pub struct Strays {
    /// The channel of an answer for another channel, where it is known.
    pub channel: Option<u32>,
    /// Answers for other channels.
    pub others: u32,
    /// Packets meant for a server: our own, come back.
    pub echoes: u32,
    /// Frames without a packet in them.
    pub malformed: u32,
}

impl Strays {
    /// Those that a client has refused.
    pub fn of<const CALLS: usize, const INBOX: usize>(
        client: &Client<AnyLink, CALLS, INBOX>,
    ) -> Strays {
        let stats = client.stats();
        Strays {
            channel: None,
            others: stats.unknown_channel,
            echoes: stats.wrong_direction,
            malformed: stats.malformed.saturating_add(stats.zero_id),
        }
    }

    /// Looks at a packet that came for a call on this channel.
    pub fn note(&mut self, packet: &Packet<'_>, channel: u32) {
        if packet.packet_type.is_for_server() {
            self.echoes += 1;
        } else if packet.route.channel != channel {
            self.others += 1;
            self.channel = Some(packet.route.channel);
        }
    }
}

/// What a call that failed says of the link; `None` where the server said something.
pub fn explain<const CALLS: usize, const INBOX: usize>(
    client: &Client<AnyLink, CALLS, INBOX>,
    endpoint: &Endpoint,
    patience: Patience,
    error: CallError,
) -> Option<Failure> {
    let traffic = client.traffic();
    match error {
        CallError::DeadlineExceeded => {
            let strays = Strays::of(client);
            Some(no_answer(endpoint, patience, &strays, &traffic))
        }
        CallError::Closed => Some(lost(endpoint, &traffic)),
        _ => None,
    }
}

/// Nothing came in time.
pub fn no_answer(
    endpoint: &Endpoint,
    patience: Patience,
    strays: &Strays,
    traffic: &Traffic,
) -> Failure {
    let span = humantime::format_duration(patience.span());
    Failure::Timeout {
        what: format!("no answer from {} within {span}", endpoint.address),
        help: why(endpoint, patience, strays, traffic),
    }
}

/// Packets were too large for this side.
pub fn over_mtu(packets: u32, endpoint: &Endpoint) -> String {
    format!(
        "{packets} packets were larger than this side takes ({} bytes): raise --mtu",
        endpoint.mtu
    )
}

/// The likely cause and the remedy.
fn why(endpoint: &Endpoint, patience: Patience, strays: &Strays, traffic: &Traffic) -> String {
    let frames = &traffic.frames;
    if let Some(channel) = strays.channel {
        return format!(
            "answers arrive for channel {channel}, this call is on channel {}: give --channel \
             {channel}",
            endpoint.channel
        );
    }
    if strays.others > 0 {
        return format!(
            "answers arrive for another channel, this call is on channel {}: give --channel",
            endpoint.channel
        );
    }
    let longer = match patience {
        Patience::Option(_) => " (give --timeout a longer time)",
        Patience::Fixed(_) => "",
    };
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
        return format!(
            "packets arrive, but none for this call: the server is still at work{longer} or lost the request"
        );
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
         --channel; an unknown channel is never answered); {framing}it hangs or needs longer{longer}{carrier}",
        endpoint.channel
    )
}

/// The link went away before what was asked was answered.
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
