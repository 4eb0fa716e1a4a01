//! `sinew serve`: the demo services for any number of clients, at any endpoint.

use std::sync::mpsc::{Sender, channel};

use sinew_demo::{CacheService, KindsService, cache, kinds};
use sinew_io::serve::{LinkEvent, ListenError};
use sinew_io::{Address, Endpoint, Server};

use crate::connection::{explain, other_file};
use crate::endpoint::At;
use crate::failure::Failure;
use crate::interrupt::at_ctrl_c;
use crate::output;

/// Serve demo.Cache and demo.Kinds.
///
/// Clients may come at the same time and one after another. Ctrl-C ends the server, which then
/// says what it had to refuse.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    at: At,
    /// Say when clients come and go, and why one is refused
    #[arg(short, long)]
    verbose: bool,
}

const EXAMPLES: &str = "Examples:
  sinew serve tcp:127.0.0.1:33000
  sinew serve serial:/dev/ttyUSB0?baud=921600
  sinew call 'exec:sinew serve stdio:' demo.Kinds/Double '{\"n\": 21}'";

/// Call slots of the server: streams and late answers at the same time, over all clients.
const CALLS: usize = 64;

/// The services, as every placement has them.
pub type Services = (
    cache::Serve<CacheService>,
    kinds::Serve<KindsService<CALLS>>,
);

/// A server of the demo services.
pub fn server() -> Server<Services> {
    Server::new((
        cache::Serve(CacheService::new()),
        kinds::Serve(KindsService::new()),
    ))
}

/// What the ready line starts with; the endpoint follows.
pub const READY: &str = "serving demo.Cache, demo.Kinds on ";

pub fn run(args: Args) -> Result<(), Failure> {
    let endpoint = args.at.endpoint()?;
    let server = server();
    let (end, ended) = channel();
    end_at_ctrl_c(end.clone())?;
    // A line or a pair of pipes ends with its peer; a listener goes on until it is stopped.
    let listens = matches!(
        endpoint.address,
        Address::Tcp(..) | Address::Udp(..) | Address::Unix(_) | Address::Shm(_)
    );
    server.on_link(move |event| match event {
        LinkEvent::Opened(link) if args.verbose => output::note(&format!("client {link} is there")),
        LinkEvent::Refused(why) if args.verbose => output::note(&format!("client refused: {why}")),
        LinkEvent::Opened(_) | LinkEvent::Refused(_) => {}
        LinkEvent::Closed(link) => {
            if args.verbose {
                output::note(&format!("client {link} is gone"));
            }
            if !listens {
                let _ = end.send(());
            }
        }
    });
    let listening = server
        .listen(&endpoint)
        .map_err(|error| cannot_serve(&endpoint, error))?;
    let quiet = endpoint.address == Address::Stdio;
    say(quiet, &format!("{READY}{}", listening.endpoint()))?;
    // An error means that nobody is left who could end it.
    let _ = ended.recv();
    drop(listening);
    output::note(&report(&server));
    Ok(())
}

pub fn end_at_ctrl_c(end: Sender<()>) -> Result<(), Failure> {
    at_ctrl_c(move || {
        let _ = end.send(());
    })
}

/// Standard output, unless that is a link.
pub fn say(is_link: bool, text: &str) -> Result<(), Failure> {
    if is_link {
        output::note(text);
        return Ok(());
    }
    output::line(text)
}

/// What has been refused, by the names of the counters.
fn report(server: &Server<Services>) -> String {
    let stats = server.stats();
    let links = ("clients", server.refused());
    let counts: Vec<String> = stats
        .iter()
        .chain([links])
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    match counts.as_slice() {
        [] => "refused nothing".into(),
        counts => format!("refused or ended early: {}", counts.join(", ")),
    }
}

/// The endpoint, at which somebody was to be waited for, cannot be.
pub fn cannot_serve(endpoint: &Endpoint, error: ListenError) -> Failure {
    let (cause, help) = match error {
        ListenError::Open(error) => explain(endpoint, &error),
        ListenError::InUse(_) => match other_file(endpoint) {
            Some(kind) => (
                format!("it is a {kind}, not a socket"),
                "choose another path; what is no socket is never replaced".into(),
            ),
            None => (
                "already in use".into(),
                "end the other server, or choose another address".into(),
            ),
        },
        ListenError::Permission(_) => (
            "access denied".into(),
            "choose a port above 1023, or a folder of your own".into(),
        ),
        ListenError::NotLocal(_) => (
            "this machine does not have the address".into(),
            "use 0.0.0.0 for all of its own".into(),
        ),
        ListenError::Io(_, error) if endpoint.doorbell.is_some() => (
            error.to_string(),
            "leave doorbell= and offset= out to serve processes of this machine".into(),
        ),
        ListenError::Io(_, error) => (
            error.to_string(),
            sinew_io::open::remedy(&error)
                .unwrap_or("check the address, or the folder of the path")
                .into(),
        ),
    };
    Failure::CannotServe {
        endpoint: endpoint.address.to_string(),
        cause,
        help,
    }
}
