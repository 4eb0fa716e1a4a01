//! `sinew reply`: a queryable, which answers what is asked.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use sinew::pubsub::codec::{Body, Encoding};
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::{PutError, Question};
use sinew_io::pubsub::{Node, Options, Queryable, ReplyError, Responder};

use super::place::{Meet, Nodes, TICK};
use super::show::Asked;
use super::{Interrupt, encoding, key, linger, payload, too_large};
use crate::failure::Failure;
use crate::output::{self, thousands};

/// Answer questions for a key of a Zenoh network: a queryable.
///
/// Each question is written, and gets every VALUE as a reply, until Ctrl-C. The replies are about KEY;
/// where that has wildcards, about the key that was asked for, and who asks with wildcards as well
/// gets an error.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The key expression, as in demo/lamp or demo/*
    #[arg(value_parser = key::parse)]
    key: String,
    /// What to reply with
    #[arg(
        value_name = "VALUE",
        allow_negative_numbers = true,
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    values: Vec<String>,
    /// Reply with what is in this file; - is standard input, up to its end
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    meet: Meet,
    /// Reply that there is no answer: VALUE says why
    #[arg(long)]
    error: bool,
    /// Say that all that there is for the key is known here: who asks for the best asks no other
    #[arg(long)]
    complete: bool,
    /// End after so many questions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// What the value is: text/plain, application/json;SCHEMA, or words of your own
    #[arg(long, value_parser = encoding)]
    encoding: Option<String>,
    /// A text that goes with each reply
    #[arg(
        long,
        value_name = "TEXT",
        conflicts_with = "error",
        allow_negative_numbers = true
    )]
    attachment: Option<String>,
    /// Write what came along with each question as well
    #[arg(short, long)]
    verbose: bool,
}

const EXAMPLES: &str = "Examples:
  sinew reply demo/lamp on
  sinew reply 'demo/**' '{\"on\": true}' --encoding application/json --complete
  sinew reply demo/sum 'no numbers' --error --listen tcp:127.0.0.1:7448";

/// A question, to be answered outside of the node's thread.
type Open = (Asked, Responder);

pub fn run(args: Args) -> Result<(), Failure> {
    let values = match &args.file {
        Some(path) => vec![payload(path)?],
        None => args.values.iter().map(|it| it.clone().into()).collect(),
    };
    let interrupt = Interrupt::listen()?;
    let options = Options {
        linger: linger(&args.meet),
        ..Options::client()
    };
    let (send, questions) = channel();
    let (key, complete) = (args.key.clone(), args.complete);
    let make = move |node: &Node| queryable(node, &key, complete, send.clone());
    let mut nodes = args.meet.open(options, &interrupt, Box::new(make))?;
    for party in nodes.all() {
        if let Some(who) = party.who() {
            output::note(&format!("answering for {} at {who}", args.key));
        }
    }
    let answered = args.answer_all(&values, &mut nodes, &questions, &interrupt)?;
    let text = match answered {
        1 => "1 question".into(),
        many => format!("{} questions", thousands(many)),
    };
    output::note(&text);
    // Here the nodes end, which lets everything arrive.
    Ok(())
}

fn queryable(
    node: &Node,
    key: &str,
    complete: bool,
    to: Sender<Open>,
) -> Result<Queryable, Failure> {
    let take = move |question: &Question<'_>, responder| {
        let _ = to.send((Asked::from(question), responder));
    };
    node.queryable(key, complete, take)
        .map_err(|error| Failure::internal("cannot answer", error))
}

impl Args {
    /// How many were answered.
    fn answer_all(
        &self,
        values: &[Vec<u8>],
        nodes: &mut Nodes<Queryable>,
        questions: &Receiver<Open>,
        interrupt: &Interrupt,
    ) -> Result<u64, Failure> {
        let mut answered = 0;
        while !interrupt.is_set() && self.count.is_none_or(|count| answered < count) {
            match questions.recv_timeout(TICK) {
                Ok((asked, responder)) => {
                    nodes.look()?;
                    self.reply(&asked, &responder, values)?;
                    drop(responder);
                    answered += 1;
                    let text = match output::is_json() {
                        true => asked.json(),
                        false => asked.text(self.verbose),
                    };
                    if !output::line_of_many(&text)? {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => nodes.look()?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(answered)
    }

    fn reply(
        &self,
        asked: &Asked,
        responder: &Responder,
        values: &[Vec<u8>],
    ) -> Result<(), Failure> {
        let encoding = Encoding::parse(self.encoding.as_deref().unwrap_or_default());
        let is_wild = |key: &str| KeyExpr::unchecked(key).is_wild();
        let key = [&self.key, &asked.key]
            .into_iter()
            .find(|key| !is_wild(key));
        for value in values {
            let body = Body {
                encoding,
                attachment: self.attachment.as_deref().map(str::as_bytes),
                ..Body::put(value)
            };
            let sent = match key {
                _ if self.error => responder.error(encoding, value),
                Some(key) => responder.reply_on(key, &body),
                None => responder.error(Encoding::TEXT_PLAIN, WILD),
            };
            match sent {
                Ok(()) if key.is_none() && !self.error => break,
                Ok(()) => {}
                Err(ReplyError::Put(PutError::TooLarge)) => return Err(too_large(value.len())),
                Err(why) => {
                    output::note(&format!("{}: not answered: {why}", asked.selector()));
                    break;
                }
            }
        }
        Ok(())
    }
}

const WILD: &[u8] = b"ask for one key, without wildcards";
