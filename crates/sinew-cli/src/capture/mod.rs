//! `sinew capture`: every packet between two links, in a file that Wireshark reads.
//!
//! | module | what it is for |
//! |---|---|
//! | `file` | packets as blocks of pcapng |
//! | `keep` | the thread that writes them, and what it could not |

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, exit};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::json;
use sinew_io::endpoint::MAX_MTU;
use sinew_io::relay::{Carried, Relay, Totals};
use sinew_io::{Address, Endpoint, apart};

use crate::connection::{takes_several, unreachable};
use crate::failure::Failure;
use crate::output::{self, thousands};
use crate::relay::{summary, tell};
use crate::replace::{self, Kind, begins};
use crate::serve::{cannot_serve, end_at_ctrl_c, say};

mod file;
mod keep;

use keep::{Kept, keep};

/// Stand between a client and a server of pw_rpc, and write each packet into a file for Wireshark.
///
/// Clients call what --at says; each of them is carried on to ENDPOINT, as `sinew relay` does. The file is
/// pcapng: one interface for each link, with the time and the direction of each packet, which is written as
/// it passes, without framing (link type USER0). tools/wireshark/sinew.lua shows what is in it.
///
/// A command behind -- is run, with the endpoint to call for each {}, and ends the capture; else Ctrl-C does.
/// A file that cannot be written ends it as well. Where the file is slower than the packets, they pass all the
/// same, and what is not in the file is counted.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The server: tcp:HOST:PORT, udp:HOST:PORT, unix:PATH, shm:PATH, serial:PATH?baud=N, qemu:IMAGE or
    /// exec:COMMAND
    endpoint: Endpoint,
    /// The file to write, or - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Where clients call instead [default: a free port of tcp:127.0.0.1]
    #[arg(long, value_name = "LISTEN")]
    at: Option<Endpoint>,
    /// Say when links come and go, and what each has carried
    #[arg(short, long)]
    verbose: bool,
    /// What is to be captured; {} stands for the endpoint to call
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const EXAMPLES: &str = "Examples:
  sinew capture serial:/dev/ttyUSB0?baud=921600 --at tcp:127.0.0.1:33000 -o board.pcapng
  sinew capture tcp:10.0.0.2:33000 -o - | wireshark -k -i -
  sinew capture tcp:10.0.0.2:33000 -o call.pcapng -- sinew call {} demo.Kinds/Double '{\"n\": 21}'

  tshark -X lua_script:tools/wireshark/sinew.lua -r board.pcapng";

/// How often it is looked whether something else than Ctrl-C has ended it.
const LOOK: Duration = Duration::from_millis(50);
/// Stands in a command for the endpoint that it is to call.
const CALLED: &str = "{}";
/// What a shell says of a command that a signal has ended, without its number.
const KILLED: i32 = 128;

pub fn run(args: Args) -> Result<(), Failure> {
    let to_stdout = args.output == Path::new("-");
    let served = match &args.at {
        Some(at) => at.clone(),
        None => beside(&args.endpoint),
    };
    check(&args, &served, to_stdout)?;
    if !args.command.is_empty() && takes_several(&args.endpoint) {
        // The command would only see that its link closes.
        let far = apart::open(&args.endpoint);
        far.map_err(|error| unreachable(&args.endpoint, None, &error))?;
    }
    let (end, ended) = channel();
    end_at_ctrl_c(end)?;
    let (keeper, waiting) = keep();
    let verbose = args.verbose;
    let relay = Relay::start_watched(
        &served,
        &args.endpoint,
        move |event| tell(&event, verbose),
        move |passing| keeper.see(passing),
    );
    let relay = relay.map_err(|error| cannot_serve(&served, error))?;
    let served = relay.served();
    // Only now: a capture that does not begin leaves an earlier file as it is.
    let out = open(&args.output, to_stdout)?;
    let links = [served, &args.endpoint].map(|side| side.address.to_string());
    let writer = waiting.write_to(out, links);
    let writer = writer.map_err(|error| Failure::internal("cannot write the capture", error))?;
    let quiet = to_stdout || output::is_json() || !args.command.is_empty();
    say(quiet, &format!("capturing {served} to {}", args.endpoint))?;
    let mut child = match args.command.as_slice() {
        [] => None,
        command => Some(start(command, served, to_stdout)?),
    };
    // An error means that nobody is left who could end it.
    while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        let child_ended = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
        if child.as_mut().is_some_and(child_ended) || relay.is_over() || writer.is_over() {
            break;
        }
    }
    // It has its own Ctrl-C, or sees the end of its link.
    let totals = relay.stop();
    let ended = child.map(|mut child| child.wait());
    let kept = writer.end();
    report(&args, &kept, &totals)?;
    match kept.error {
        // Whoever read standard output and went has seen enough.
        Some(error) if error.kind() == ErrorKind::BrokenPipe && to_stdout => {}
        Some(error) => return Err(replace::unwritten(&args.output, &error, "capture")),
        None => {}
    }
    match ended.map(|ended| ended.ok().and_then(|status| status.code())) {
        None | Some(Some(0)) => Ok(()),
        // It has said why.
        Some(code) => exit(code.unwrap_or(KILLED)),
    }
}

/// Where clients call if nothing is said: packets as large as the server's pass.
fn beside(far: &Endpoint) -> Endpoint {
    let address = Address::Tcp("127.0.0.1".into(), 0);
    let mut served = Endpoint::new(address, far.usage);
    served.mtu = match far.mtu {
        // What an image or a link file says is not known here.
        0 => MAX_MTU,
        _ if far.queue.is_some() => MAX_MTU,
        mtu => mtu,
    };
    served
}

fn check(args: &Args, served: &Endpoint, to_stdout: bool) -> Result<(), Failure> {
    let uses_stdio = [served, &args.endpoint].map(|side| side.address == Address::Stdio);
    if uses_stdio.contains(&true) {
        return Err(Failure::usage(
            "a capture has no stdio: link",
            "name another endpoint; exec:COMMAND is a server on its standard input and output",
        ));
    }
    if to_stdout && output::is_json() {
        return Err(Failure::usage(
            "standard output cannot be the capture and JSON",
            "give -o a file, or leave --json out",
        ));
    }
    if !args.command.is_empty() && !args.command.iter().any(|word| word.contains(CALLED)) {
        return Err(Failure::usage(
            "the command does not say what it calls",
            "write {} where it has its endpoint: sinew capture ENDPOINT -o FILE -- sinew list {}",
        ));
    }
    Ok(())
}

const PCAPNG: Kind = Kind {
    name: "file of pcapng",
    is: |file| begins(file, file::MAGIC),
};

/// The file, in the place of an earlier capture.
fn open(path: &Path, to_stdout: bool) -> Result<Box<dyn Write + Send>, Failure> {
    if to_stdout {
        return Ok(Box::new(io::stdout()));
    }
    let file = replace::create(path, &PCAPNG)?;
    Ok(Box::new(file))
}

/// The command, which calls the served endpoint.
fn start(command: &[String], served: &Endpoint, to_stdout: bool) -> Result<Child, Failure> {
    let called = served.to_string();
    let words: Vec<String> = command
        .iter()
        .map(|word| word.replace(CALLED, &called))
        .collect();
    let [name, rest @ ..] = words.as_slice() else {
        return Err(Failure::usage("there is no command", "give one behind --"));
    };
    let mut command = Command::new(name);
    command.args(rest);
    if to_stdout {
        // Standard output is the capture.
        command.stdout(io::stderr());
    }
    command.spawn().map_err(|error| {
        Failure::usage(
            format!("cannot start {name}: {error}"),
            "check its name and its permissions",
        )
    })
}

/// What has passed, and what of it is in the file.
fn report(args: &Args, kept: &Kept, totals: &Totals) -> Result<(), Failure> {
    if !output::is_json() {
        let mut text = format!(
            "captured {} packets: {}",
            thousands(kept.packets),
            summary(totals)
        );
        if kept.uncaptured > 0 {
            text += &format!("; not captured: {}", thousands(kept.uncaptured));
        }
        output::note(&text);
        return Ok(());
    }
    let way = |way: &Carried| json!({"packets": way.packets, "bytes": way.bytes, "too_large": way.too_large});
    let text = json!({
        "file": args.output.to_string_lossy(),
        "captured": kept.packets,
        "uncaptured": kept.uncaptured,
        "forth": way(&totals.forth),
        "back": way(&totals.back),
        "bad_frames": totals.bad_frames,
        "dropped": totals.dropped,
        "refused": totals.refused,
    });
    output::line(&text.to_string())
}
