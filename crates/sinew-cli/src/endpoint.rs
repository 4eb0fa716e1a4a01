//! The endpoint of a command, and the options that may stand beside it.

use clap::Args;
use clap::builder::RangedU64ValueParser;
use clap_complete::engine::ArgValueCandidates;
use sinew::frame::Framing;
use sinew_io::Endpoint;
use sinew_io::endpoint::{MAX_MTU, MIN_MTU};

use crate::complete::values;
use crate::failure::Failure;

/// Where the link is. Options win over those in the endpoint's text.
#[derive(Debug, Args)]
pub struct At {
    /// tcp:HOST:PORT, udp:HOST:PORT, unix:PATH, shm:PATH, serial:PATH?baud=N, qemu:IMAGE,
    /// exec:COMMAND or stdio:
    endpoint: Endpoint,
    #[command(flatten)]
    options: Options,
}

/// The options that may stand beside an endpoint, or several.
#[derive(Debug, Args)]
pub struct Options {
    /// The channel id of the calls [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    channel: Option<u32>,
    /// The framing on a byte stream: hdlc, len, cobs or zenoh [default: hdlc]
    #[arg(long, value_parser = framing, add = ArgValueCandidates::new(values::framing))]
    frame: Option<Framing>,
    /// The largest packet in bytes, 64 to 4096 [default: 1024; of qemu what the
    /// image says]
    #[arg(long, value_name = "BYTES", value_parser = mtu())]
    mtu: Option<usize>,
}

fn framing(name: &str) -> Result<Framing, &'static str> {
    Framing::from_name(name).ok_or("the framings are hdlc, len, cobs and zenoh")
}

fn mtu() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(MIN_MTU as u64..=MAX_MTU as u64)
}

impl At {
    /// The endpoint with every option applied.
    pub fn endpoint(&self) -> Result<Endpoint, Failure> {
        self.options.apply(&self.endpoint)
    }
}

impl Options {
    /// The endpoint with every option applied.
    pub fn apply(&self, endpoint: &Endpoint) -> Result<Endpoint, Failure> {
        let mut endpoint = endpoint.clone();
        if self.mtu.is_some() && endpoint.queue.is_some() {
            return Err(Failure::usage(
                "--mtu does not apply beside config=",
                "leave one out: the link file says how large a block is",
            ));
        }
        endpoint.channel = self.channel.unwrap_or(endpoint.channel);
        endpoint.framing = self.frame.unwrap_or(endpoint.framing);
        endpoint.mtu = self.mtu.unwrap_or(endpoint.mtu);
        Ok(endpoint)
    }
}
