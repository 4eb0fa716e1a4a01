//! What a shell completes: commands, options, endpoints, and what the server at one has.
//!
//! A script that `sinew completions SHELL` writes starts this program with `SINEW_COMPLETE` set and the words
//! so far ([`shell`]). The engine is clap's: it knows the commands and options from their description, and asks
//! [`values`] for the values of arguments.
//!
//! Whatever happens here, a shell must go on: nothing is written but candidates, nothing takes longer than
//! [`PATIENCE`], and nothing is started or opened that a look would change.

use std::any::TypeId;
use std::ffi::OsString;
use std::io::Write as _;
use std::panic;
use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use clap::{Arg, Command, CommandFactory as _, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use clap_complete::{CompletionCandidate, engine};
use serde_json::json;
use sinew_io::Endpoint;

use crate::failure::Failure;
use crate::shm::place::Place;
use crate::{Cli, output};

mod line;
mod shell;
pub mod values;

/// As long as somebody who pressed a key may wait for anything, such as a folder of another machine.
const PATIENCE: Duration = Duration::from_secs(1);

/// Write the script by which a shell completes this command.
///
/// It completes commands, options and endpoints, and behind an endpoint what the server there says that it has:
/// services, methods, and the request of a method with its fields. A server on tcp, udp, unix or shm is asked,
/// briefly; of any other, and of one that does not answer, what it said last is known.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Whose script
    shell: Shell,
}

const EXAMPLES: &str = "Examples:
  eval \"$(sinew completions bash)\"                            # in ~/.bashrc
  eval \"$(sinew completions zsh)\"                             # in ~/.zshrc, behind compinit
  sinew completions fish > ~/.config/fish/completions/sinew.fish";

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let script = args.shell.script();
    output::line(&match output::is_json() {
        true => json!({ "script": script }).to_string(),
        false => script.trim_end().into(),
    })
}

/// The words behind which something is completed.
static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Answers a shell, where one asks: `true`.
pub fn answer() -> bool {
    let Some(name) = std::env::var_os("SINEW_COMPLETE") else {
        return false;
    };
    let shell = Shell::value_variants().iter().copied();
    let Some(shell) = shell.into_iter().find(|it| name == it.name()) else {
        return true;
    };
    // A fault is a completion that does not come.
    panic::set_hook(Box::new(|_| {}));
    let (send, found) = channel();
    thread::spawn(move || {
        let _ = send.send(candidates(shell));
    });
    if let Ok(Some(text)) = found.recv_timeout(PATIENCE) {
        let _ = std::io::stdout().write_all(text.as_bytes());
    }
    true
}

/// Every argument that is an endpoint is completed as one, whatever its command.
fn with_endpoints(command: Command) -> Command {
    let kinds = [TypeId::of::<Endpoint>(), TypeId::of::<Place>()];
    let of_arg = move |arg: Arg| {
        let kind = arg.get_value_parser().type_id();
        match kinds.iter().any(|known| kind == *known) {
            true => arg.add(ArgValueCompleter::new(values::endpoint)),
            false => arg,
        }
    };
    command.mut_args(of_arg).mut_subcommands(with_endpoints)
}

fn candidates(shell: Shell) -> Option<String> {
    let asked = shell.asked()?;
    let index = asked.words.len().checked_sub(1)?;
    let is_new = asked.words.last().is_some_and(String::is_empty);
    let words: Vec<OsString> = asked.words.iter().map(OsString::from).collect();
    let before = words.get(..index)?.to_vec();
    WORDS.set(before).ok()?;
    let here = std::env::current_dir().ok();
    let found = engine::complete(
        &mut with_endpoints(Cli::command()),
        words,
        index,
        here.as_deref(),
    )
    .ok()?;
    let is_option = |it: &CompletionCandidate| it.get_value().as_encoded_bytes().starts_with(b"-");
    // Options wait for their dash where there is anything else to write.
    let without = is_new && !found.iter().all(is_option);
    let mut text = String::new();
    for candidate in found.iter().filter(|it| !(without && is_option(it))) {
        // What is no text, or steers a terminal, is no candidate.
        let Some(value) = candidate.get_value().to_str() else {
            continue;
        };
        let help = candidate.get_help().map(|help| help.to_string());
        let help = help.as_deref().and_then(|help| help.lines().next());
        if let Some(line) = asked.line(value, help.unwrap_or_default()) {
            text += &line;
            text.push('\n');
        }
    }
    Some(text)
}
