//! `sinew serve`: the demo services for any number of clients, at any endpoint.

use std::sync::LazyLock;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde_json::{Map, Value, json};
use sinew::rpc::{Schema, ServerStats};
use sinew::time::Instant;
use sinew_demo::pw::rpc::benchmark;
use sinew_demo::{BenchmarkService, CacheService, KindsService, cache, kinds};
use sinew_io::serve::{LinkCounters, LinkEvent, ListenError};
use sinew_io::{Address, Endpoint, Server};
use sinew_services::Severity;
use sinew_services::device::{self, About, Counters, Observed, Show};
use sinew_services::log::{self, Clock, Logger, Records};
use sinew_services::reflection::{self, Schemas};
use sinew_shm::StdLock;

use crate::connection::{explain, other_file, remedy_at};
use crate::endpoint::At;
use crate::failure::Failure;
use crate::interrupt::at_ctrl_c;
use crate::output;
use crate::schema::DEMO;

/// Serve demo.Cache and demo.Kinds.
///
/// Clients may come at the same time and one after another. `sinew log` shows what happens. Ctrl-C
/// ends the server, which then says what it had to refuse.
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

/// More methods than there are.
const METHODS: usize = 16;

/// The services, as every placement has them.
pub type Services = (
    cache::Serve<CacheService>,
    kinds::Serve<KindsService<CALLS>>,
    benchmark::Serve<BenchmarkService>,
    reflection::Serve<Schemas>,
);

/// The same, with `sinew.Log` and `sinew.Device` beside them.
type Told = Observed<(Services, log::Serve<Records<StdLock, Uptime, RECORDS>>), METHODS, Counted>;

/// Records that wait for somebody who reads them.
const RECORDS: usize = 256;
/// How often it looks at what it has refused.
const LOOKS: Duration = Duration::from_secs(1);

static START: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
/// What the server itself has to say.
static LOG: Logger<StdLock, Uptime, RECORDS> = Logger::new();

/// The time since the server was made.
struct Uptime;

impl Clock for Uptime {
    fn now() -> Instant {
        Instant::START.after(START.elapsed())
    }
}

fn record(severity: Severity, text: &str) {
    LOG.write(severity, "sinew::serve", format_args!("{text}"));
}

/// What passes over the links.
struct Counted(LinkCounters);

impl Counters for Counted {
    fn each(&self, show: &mut Show<'_>) {
        show("log", "dropped", LOG.dropped().into());
        self.0.each(show); // last: there are more of them with each client
    }
}

/// What they look like.
static SCHEMAS: [Schema; 4] = [
    sinew_demo::SCHEMA,
    sinew_demo::BENCHMARK_SCHEMA,
    device::SCHEMA,
    log::SCHEMA,
];

const ABOUT: About = About {
    name: "sinew serve",
    version: env!("CARGO_PKG_VERSION"),
    build: if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    },
};

fn services() -> Services {
    (
        cache::Serve(CacheService::new()),
        kinds::Serve(KindsService::new()),
        benchmark::Serve(BenchmarkService),
        reflection::Serve(Schemas(&SCHEMAS)),
    )
}

/// A server of the demo services.
pub fn server() -> Server<Services> {
    Server::new(services())
}

/// The same, which tells of itself.
fn telling() -> Result<Server<Told>, Failure> {
    LazyLock::force(&START);
    let records = LOG.records();
    let records = records
        .ok_or_else(|| Failure::internal("cannot serve sinew.Log", "it is served already"))?;
    let links = LinkCounters::default();
    let services = (services(), log::Serve(records));
    let observed =
        Observed::new(ABOUT, Uptime::now, services).with_counters(Counted(links.clone()));
    let server = Server::new(observed);
    server.count_links(links);
    Ok(server)
}

/// What the ready line starts with; the endpoint follows.
pub const READY: &str = "serving demo.Cache, demo.Kinds on ";

pub fn run(args: Args) -> Result<(), Failure> {
    let endpoint = args.at.endpoint()?;
    let server = telling()?;
    let (end, ended) = channel();
    end_at_ctrl_c(end.clone())?;
    // A line or a pair of pipes ends with its peer; a listener goes on until it is stopped.
    let listens = matches!(
        endpoint.address,
        Address::Tcp(..) | Address::Udp(..) | Address::Unix(_) | Address::Shm(_)
    );
    server.on_link(move |event| {
        let (severity, text) = match &event {
            LinkEvent::Opened(link) => (Severity::Info, format!("client {link} is there")),
            LinkEvent::Closed(link) => (Severity::Info, format!("client {link} is gone")),
            LinkEvent::Refused(why) => (Severity::Warn, format!("client refused: {why}")),
        };
        record(severity, &text);
        if args.verbose {
            output::note(&text);
        }
        if matches!(event, LinkEvent::Closed(_)) && !listens {
            let _ = end.send(());
        }
    });
    let listening = server
        .listen(&endpoint)
        .map_err(|error| cannot_serve(&endpoint, error))?;
    let quiet = endpoint.address == Address::Stdio;
    let at = listening.endpoint().to_string();
    match output::is_json() {
        true => say_json(quiet, &json!({ "serving": DEMO, "endpoint": &at }))?,
        false => say(quiet, &format!("{READY}{at}"))?,
    }
    record(Severity::Info, &format!("serving on {at}"));
    let mut told = server.stats();
    // Another error than this means that nobody is left who could end it.
    while ended.recv_timeout(LOOKS) == Err(RecvTimeoutError::Timeout) {
        tell_refused(&mut told, server.stats());
    }
    drop(listening);
    match output::is_json() {
        true => say_json(quiet, &as_json(&server)),
        false => {
            output::note(&report(&server));
            Ok(())
        }
    }
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

/// The same for programs.
pub fn say_json(is_link: bool, value: &Value) -> Result<(), Failure> {
    if is_link {
        output::complain(&value.to_string());
        return Ok(());
    }
    output::line(&value.to_string())
}

/// Writes what has been refused since the last look.
fn tell_refused(told: &mut ServerStats, now: ServerStats) {
    for ((name, before), (_, count)) in told.iter().zip(now.iter()) {
        let more = count.wrapping_sub(before);
        if more > 0 {
            let text = format!("refused or ended early: {name} {more}");
            record(Severity::Warn, &text);
        }
    }
    *told = now;
}

/// What has been refused, by the names of the counters.
fn refused(server: &Server<Told>) -> Vec<(&'static str, u32)> {
    let stats = server.stats();
    stats
        .iter()
        .chain([("clients", server.refused())])
        .collect()
}

fn as_json(server: &Server<Told>) -> Value {
    let counts = refused(server).into_iter();
    let counts: Map<String, Value> = counts
        .map(|(name, count)| (name.into(), count.into()))
        .collect();
    json!({ "refused": counts })
}

fn report(server: &Server<Told>) -> String {
    let counts: Vec<String> = refused(server)
        .iter()
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
            remedy_at(endpoint, &error)
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
