//! `sinew call`: any method of any pw_rpc server, with JSON and without generated code.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap_complete::engine::ArgValueCompleter;
use sinew::rpc::MethodKind;
use sinew_io::{AnyLink, Endpoint, Link};

mod diagnose;
mod input;
mod outgoing;
mod talk;

use crate::complete::values;
use crate::connection;
use crate::endpoint::At;
use crate::failure::Failure;
use crate::interrupt::at_ctrl_c;
use crate::progress::Progress;
use crate::schema::{Method, Place};
use crate::silence::Timeout;
use crate::{json, output, reflect, schema, silence};
use input::Lines;
use talk::{End, Talk, Wish};

/// Call a method of any pw_rpc server.
///
/// Messages are JSON, one per line. A method with a client stream reads them from standard input,
/// up to its end. Ctrl-C cancels the call. Over udp, a stream may lose items.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    at: At,
    /// package.Service/Method; the package may be left out
    #[arg(value_name = "SERVICE/METHOD", add = ArgValueCompleter::new(values::method))]
    method: String,
    /// The request as JSON [default: {}]
    #[arg(add = ArgValueCompleter::new(values::request))]
    request: Option<String>,
    /// A .proto file with the service; without any, the server is asked
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
    /// A folder in which imports are looked up
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    include: Vec<PathBuf>,
    #[command(flatten)]
    silence: Timeout,
    /// Write each message over several lines
    #[arg(long)]
    pretty: bool,
}

const EXAMPLES: &str = "Examples:
  sinew call tcp:localhost:33000 demo.Kinds/Double '{\"n\": 21}'
  sinew call serial:/dev/ttyUSB0?baud=921600 Kinds/Count '{\"n\": 3}' --proto demo.proto
  seq 5 | jq -c '{n: .}' | sinew call unix:/run/demo.sock demo.Kinds/Sum";

pub fn run(args: Args) -> Result<(), Failure> {
    let endpoint = args.at.endpoint()?;
    let Known { method, link } = know(&args, &endpoint)?;
    let reads_input = method.id.kind.client_streams();
    let request = match (&args.request, reads_input) {
        (Some(_), true) => return Err(no_request_here(&method)),
        (None, true) => Vec::new(),
        (text, false) => {
            let text = text.as_deref().unwrap_or("{}");
            json::to_bytes(text, "the request", &method.request)?
        }
    };
    let mut link = match link {
        Some(link) => link,
        None => connection::open(&endpoint, Some(&method))?,
    };
    let cancel = cancel_at_ctrl_c(&mut link)?;
    let lines = reads_input.then(|| Lines::of_stdin(link.waker()));
    let wish = Wish {
        method: &method,
        channel: endpoint.channel,
        timeout: args.silence.timeout,
        pretty: args.pretty,
        cancel: &cancel,
    };
    let mut out = std::io::stdout().lock();
    let mut talk = Talk::new(wish, &mut link, &mut out, request, lines)?;
    talk.shown = (!reads_input).then(|| Progress::waiting(format!("calling {}", method.name)));
    let end = talk.run();
    talk.shown = None;
    let (strays, items) = (talk.strays, talk.items);
    let traffic = link.traffic();
    if let Some(text) = diagnose::dropped(&traffic) {
        output::note(&text);
    }
    match end? {
        End::Ok => Ok(()),
        End::Cancelled => Err(Failure::Cancelled),
        End::Status(status) => Err(diagnose::ended(&method, &endpoint, status)),
        End::Refused(status) => Err(diagnose::refused(&method, status)),
        End::TimedOut => Err(diagnose::silence(
            &endpoint,
            args.silence.timeout,
            items,
            &strays,
            &traffic,
        )),
        End::LinkLost => Err(silence::lost(&endpoint, &traffic)),
    }
}

/// The method that is meant, and the link where the server had to be asked for it.
struct Known {
    method: Method,
    link: Option<AnyLink>,
}

/// Looks the method up: in the .proto files, among the demo services, or at the server.
fn know(args: &Args, endpoint: &Endpoint) -> Result<Known, Failure> {
    let pool = schema::load(&args.proto, &args.include)?;
    let place = match args.proto.is_empty() {
        true => Place::Demo,
        false => Place::Files,
    };
    match schema::find(&pool, &args.method, place) {
        Ok(method) => Ok(Known { method, link: None }),
        Err(_) if place == Place::Demo => {
            let (client, pool) = reflect::ask(endpoint, args.silence.patience())?;
            let method = schema::find(&pool, &args.method, Place::Server)?;
            let link = Some(client.into_link());
            Ok(Known { method, link })
        }
        Err(failure) => Err(failure),
    }
}

fn no_request_here(method: &Method) -> Failure {
    let kind = match method.id.kind {
        MethodKind::Bidi => "streams in both directions",
        _ => "takes a stream",
    };
    Failure::usage(
        format!(
            "{} {kind}, so its messages come from standard input",
            method.name
        ),
        "leave the request out and pipe one JSON message per line into the command",
    )
}

/// A flag that Ctrl-C sets, and that the loop of the call looks at.
fn cancel_at_ctrl_c(link: &mut sinew_io::AnyLink) -> Result<Arc<AtomicBool>, Failure> {
    let cancel = Arc::new(AtomicBool::new(false));
    let waker = link.waker();
    let flag = cancel.clone();
    at_ctrl_c(move || {
        flag.store(true, Ordering::Release);
        waker.wake_by_ref();
    })?;
    Ok(cancel)
}
