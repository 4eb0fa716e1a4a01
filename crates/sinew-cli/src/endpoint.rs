//! The endpoint of a command, and the options that may stand beside it.

use clap::Args;
use clap::builder::RangedU64ValueParser;
use sinew::frame::Framing;
use sinew_io::Endpoint;
use sinew_io::endpoint::{MAX_MTU, MIN_MTU};

/// Where the link is. Options win over those in the endpoint's text.
#[derive(Debug, Args)]
pub struct At {
    /// tcp:HOST:PORT, udp:HOST:PORT, unix:PATH, shm:PATH, serial:PATH?baud=N, exec:COMMAND or stdio:
    endpoint: Endpoint,
    /// The channel id of the calls [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    channel: Option<u32>,
    /// The framing on a byte stream: hdlc, len or cobs [default: hdlc]
    #[arg(long, value_parser = framing)]
    frame: Option<Framing>,
    /// The largest packet in bytes, 64 to 4096 [default: 1024]
    #[arg(long, value_name = "BYTES", value_parser = mtu())]
    mtu: Option<usize>,
}

fn framing(name: &str) -> Result<Framing, &'static str> {
    Framing::from_name(name).ok_or("the framings are hdlc, len and cobs")
}

fn mtu() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(MIN_MTU as u64..=MAX_MTU as u64)
}

impl At {
    /// The endpoint with every option applied.
    pub fn endpoint(&self) -> Endpoint {
        let mut endpoint = self.endpoint.clone();
        endpoint.channel = self.channel.unwrap_or(endpoint.channel);
        endpoint.framing = self.frame.unwrap_or(endpoint.framing);
        endpoint.mtu = self.mtu.unwrap_or(endpoint.mtu);
        endpoint
    }
}
