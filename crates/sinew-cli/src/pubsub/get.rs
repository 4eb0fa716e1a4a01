//! `sinew get`: asks, and writes the answers.

use std::time::{Duration, Instant};

use clap::ValueEnum;
use sinew::pubsub::codec::{self, Encoding};
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::{Ask, AskError, Ended, PutError};
use sinew::rpc::Status;
use sinew_io::pubsub::{Answer, Options};

use super::place::Connect;
use super::{Interrupt, encoding, key, show};
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::span::above_zero;

/// Ask the queryables of a Zenoh network.
///
/// Replies are written as they come (with the usual consolidation, the newest of each key, at the
/// end); errors that queryables answer with go to standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// KEY or KEY?PARAMETERS, as in 'demo/**?since=1;limit=10'
    #[arg(value_parser = key::parse_selector)]
    selector: (String, String),
    #[command(flatten)]
    connect: Connect,
    /// A value that goes with the question
    #[arg(long, value_name = "TEXT", allow_negative_numbers = true)]
    payload: Option<String>,
    /// What the payload is: text/plain, application/json;SCHEMA, or words of your own
    #[arg(long, requires = "payload", value_parser = encoding)]
    encoding: Option<String>,
    /// A text that goes with the question
    #[arg(long, value_name = "TEXT", allow_negative_numbers = true)]
    attachment: Option<String>,
    /// Of whom: the nearest that knows all or else everybody, everybody, or all that know all
    #[arg(long, value_enum, default_value = "best")]
    target: Target,
    /// What becomes of several replies with one key
    #[arg(long, value_enum, default_value = "auto")]
    consolidation: Consolidation,
    /// How long to wait for replies
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = above_zero)]
    timeout: Duration,
    /// Write what came along with each reply as well
    #[arg(short, long)]
    verbose: bool,
}

const EXAMPLES: &str = "Examples:
  sinew get 'demo/**'
  sinew get 'demo/log?since=1' --target all --consolidation none --json
  sinew get demo/sum --payload '[1, 2]' --encoding application/json";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Target {
    Best,
    All,
    AllComplete,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Consolidation {
    Auto,
    None,
    Monotonic,
    Latest,
}

pub fn run(args: Args) -> Result<(), Failure> {
    // Ctrl-C ends the whole process: there is nothing to be told of.
    let interrupt = Interrupt::default();
    let options = Options::client();
    let nodes = args.connect.open(options, &interrupt, Box::new(|_| Ok(())));
    let mut nodes = nodes?;
    let ask = args.ask();
    let started = Instant::now();
    let asked = nodes.all().first().map(|party| party.node.ask(&ask));
    let mut replies = match asked {
        Some(Ok(replies)) => replies,
        Some(Err(AskError::Put(PutError::TooLarge))) => {
            return Err(Failure::outcome(
                Status::OUT_OF_RANGE,
                "the question is too large",
                "shorten --payload and --attachment",
            ));
        }
        Some(Err(AskError::Put(PutError::NotOpen))) | None => return Err(nodes.lost()),
        Some(Err(error)) => return Err(Failure::internal("cannot ask", error)),
    };
    let (mut samples, mut errors) = (0, 0);
    let _shown = Progress::waiting(format!("waiting for answers about {}", args.selector.0));
    for answer in replies.by_ref() {
        let goes_on = match answer {
            Answer::Sample(sample) => {
                samples += 1;
                output::line_of_many(&match output::is_json() {
                    true => show::json(&sample),
                    false => show::text(&sample, args.verbose),
                })?
            }
            Answer::Error { encoding, payload } => {
                errors += 1;
                match output::is_json() {
                    true => output::line_of_many(&show::json_error(&encoding, &payload))?,
                    false => {
                        output::note(&format!("error: {}", show::words(&payload)));
                        true
                    }
                }
            }
        };
        if !goes_on {
            return Ok(());
        }
    }
    let dropped = replies.dropped();
    if dropped > 0 {
        output::note(&format!(
            "{dropped} answers were dropped: they were more than can wait here; ask for fewer keys at a time"
        ));
    }
    match replies.ended() {
        Some(Ended::Lost) => Err(nodes.lost()),
        Some(Ended::TimedOut) => Err(args.timed_out(samples)),
        // The other side gives up at the same time.
        _ if samples == 0 && started.elapsed() >= args.timeout => Err(args.timed_out(0)),
        _ => args.verdict(samples, errors),
    }
}

impl Args {
    fn ask(&self) -> Ask<'_> {
        let (key, parameters) = &self.selector;
        // It was checked when it was read.
        let mut ask = Ask::new(KeyExpr::unchecked(key));
        ask.target = match self.target {
            Target::Best => codec::Target::BestMatching,
            Target::All => codec::Target::All,
            Target::AllComplete => codec::Target::AllComplete,
        };
        ask.timeout = self.timeout;
        ask.query.consolidation = match self.consolidation {
            Consolidation::Auto => codec::Consolidation::Auto,
            Consolidation::None => codec::Consolidation::None,
            Consolidation::Monotonic => codec::Consolidation::Monotonic,
            Consolidation::Latest => codec::Consolidation::Latest,
        };
        ask.query.parameters = parameters;
        ask.query.body = self.payload.as_ref().map(|payload| {
            let encoding = self.encoding.as_deref().unwrap_or_default();
            (Encoding::parse(encoding), payload.as_bytes())
        });
        ask.query.attachment = self.attachment.as_deref().map(str::as_bytes);
        ask
    }

    fn timed_out(&self, samples: u32) -> Failure {
        let span = humantime::format_duration(self.timeout);
        let key = &self.selector.0;
        let what = match samples {
            0 => format!("no reply to {key} within {span}"),
            1 => format!("1 reply to {key} came, but not the end within {span}"),
            many => format!("{many} replies to {key} came, but not the end within {span}"),
        };
        let help = "a queryable is at work still, hangs, or has gone without a word: wait longer \
                    (--timeout 1min), or look at it";
        Failure::outcome(Status::DEADLINE_EXCEEDED, what, help)
    }

    fn verdict(&self, samples: u32, errors: u32) -> Result<(), Failure> {
        let key = &self.selector.0;
        match (samples, errors) {
            (0, 0) => Err(Failure::outcome(
                Status::NOT_FOUND,
                format!("nobody answered for {key}"),
                match self.target {
                    Target::AllComplete => {
                        "start the queryable, compare the keys, or ask those as well that do not \
                         know all: --target all"
                    }
                    _ => {
                        "start the queryable, or compare the keys; if it runs, it has nothing to say, \
                         or has ended meanwhile"
                    }
                },
            )),
            (0, _) => Err(Failure::outcome(
                Status::UNKNOWN,
                format!("only errors came for {key}"),
                "each says above what the queryable could not do",
            )),
            _ => Ok(()),
        }
    }
}
