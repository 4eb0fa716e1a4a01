//! `sinew relay`: packets from one link to another, and back.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};
use sinew_io::endpoint::{EndpointError, Use};
use sinew_io::relay::{Carried, Event, Relay, Totals};
use sinew_io::{Address, Endpoint};

use crate::connection::explain;
use crate::failure::Failure;
use crate::output::{self, thousands};
use crate::serve::{cannot_serve, end_at_ctrl_c, say, say_json};

/// Carry packets between any two links, as they are.
///
/// The first endpoint is served: tcp, unix, udp and shm listen there for any number of peers; serial,
/// exec, stdio, qemu and shm with doorbell= are one link. The second is opened for each link of the first: when
/// its peer connects, and where there are no connections, when its first packet comes, and again with the
/// next packet after the second has closed. Where one side closes, so does the other.
///
/// A side that takes no packets holds the other one back. Packets that are larger than the other side's
/// mtu= are dropped and counted; the last line says what has passed. Ctrl-C ends the relay.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What is served; frame= and mtu= of each endpoint apply to its own side
    #[arg(value_name = "ENDPOINT", value_parser = endpoint)]
    served: Endpoint,
    /// What is opened for each link of the first
    #[arg(value_name = "ENDPOINT", value_parser = endpoint)]
    far: Endpoint,
    /// Say when links come and go, and what each has carried
    #[arg(short, long)]
    verbose: bool,
}

const EXAMPLES: &str = "Examples:
  sinew relay tcp:127.0.0.1:33000 shm:/tmp/x.sock
  sinew relay serial:/dev/ttyUSB0?baud=921600 'tcp:127.0.0.1:7447?frame=zenoh'
  sinew relay 'unix:/tmp/x.sock?frame=zenoh' 'tcp:127.0.0.1:7447?frame=zenoh'
  sinew relay 'shm:/tmp/x.sock?mtu=65535' 'tcp:127.0.0.1:7447?frame=zenoh'
  sinew relay 'unix:/tmp/x.sock?mtu=1450' 'udp:10.0.0.2:7447?mtu=1450'

frame=zenoh is a length of 2 bytes before each packet, as Zenoh has it on tcp and unix, and so every side of
a relay that a Zenoh node opens or serves there needs it; packets may then have up to 65,535 bytes, and
elsewhere with mtu=N. Over shm both sides must say the same mtu: nodes of Zenoh take 65,535 there.
Without options frames are hdlc, and packets of up to 1,024 bytes.";

/// How often it is looked whether a line or a pair of pipes has ended.
const LOOK: Duration = Duration::from_millis(50);

fn endpoint(text: &str) -> Result<Endpoint, EndpointError> {
    Endpoint::parse(text, Use::Any)
}

pub fn run(args: Args) -> Result<(), Failure> {
    let Args {
        served,
        far,
        verbose,
    } = args;
    if served.address == Address::Stdio && far.address == Address::Stdio {
        return Err(Failure::usage(
            "both sides cannot be stdio",
            "there is one standard input and output: name another link for one side",
        ));
    }
    let (end, ended) = channel();
    end_at_ctrl_c(end)?;
    let relay = Relay::start(&served, &far, move |event| tell(&event, verbose));
    let relay = relay.map_err(|error| cannot_serve(&served, error))?;
    let uses_stdout = [&served, &far].map(|side| &side.address);
    let quiet = uses_stdout.contains(&&Address::Stdio);
    let served = relay.served().to_string();
    match output::is_json() {
        true => {
            let ready = json!({ "relaying": served, "to": far.to_string() });
            say_json(quiet, &ready)?;
        }
        false => say(quiet, &format!("relaying {served} to {far}"))?,
    }
    // An error means that nobody is left who could end it.
    while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        if relay.is_over() {
            break;
        }
    }
    let totals = relay.stop();
    match output::is_json() {
        true => say_json(quiet, &as_json(&totals)),
        false => {
            output::note(&summary(&totals));
            Ok(())
        }
    }
}

fn as_json(totals: &Totals) -> Value {
    let way = |way: &Carried| json!({ "packets": way.packets, "bytes": way.bytes, "too_large": way.too_large });
    json!({
        "forth": way(&totals.forth),
        "back": way(&totals.back),
        "damaged": totals.bad_frames,
        "dropped": totals.dropped,
        "refused_links": totals.refused,
    })
}

/// Says on standard error what happens on a relay; with `verbose` each link as well.
pub fn tell(event: &Event<'_>, verbose: bool) {
    let text = match event {
        Event::Opened(id) if verbose => format!("link {id} is there"),
        Event::Closed(id, totals) if verbose => format!("link {id} is gone: {}", summary(totals)),
        Event::Opened(_) | Event::Closed(..) => return,
        Event::Unreachable(error) => {
            let far = error.endpoint();
            let (cause, help) = explain(far, error);
            format!("cannot reach {}: {cause}; {help}", far.address)
        }
        Event::TooMany => "too many links: a peer was refused; end one of them".into(),
        Event::TooLarge(to, bytes, mtu) => format!(
            "dropped a packet of {} bytes: {} takes up to {}; raise mtu= there, or send less",
            thousands(*bytes as u64),
            to.address,
            thousands(*mtu as u64)
        ),
        Event::CameTooLarge(from) => format!(
            "dropped a packet of {}, which is larger than its {} bytes here; raise mtu= there, or send less",
            from.address,
            thousands(from.mtu as u64)
        ),
        Event::NoFrame(from, bytes) => format!(
            "{} bytes came from {}, and no frame of {} in them: give frame= of the other side there \
             (zenoh for Zenoh on tcp and unix){}",
            thousands(*bytes),
            from.address,
            from.framing.name(),
            match from.address {
                Address::Serial(..) => ", or its baud=",
                _ => "",
            }
        ),
    };
    output::note(&text);
}

/// What has passed, and what has not.
pub fn summary(totals: &Totals) -> String {
    let way = |name: &str, way: &Carried| {
        format!(
            "{name} {} packets, {} bytes",
            thousands(way.packets),
            thousands(way.bytes)
        )
    };
    let mut text = format!(
        "{}; {}",
        way("forth", &totals.forth),
        way("back", &totals.back)
    );
    let lost = [
        ("too large", totals.forth.too_large + totals.back.too_large),
        ("damaged", totals.bad_frames),
        ("too fast for the kernel", totals.dropped),
    ];
    let lost: Vec<String> = lost
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{} {name}", thousands(*count)))
        .collect();
    if !lost.is_empty() {
        text += &format!("; dropped: {}", lost.join(", "));
    }
    if totals.refused > 0 {
        text += &format!("; links refused: {}", totals.refused);
    }
    text
}
