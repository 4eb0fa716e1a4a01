//! The `sinew` command.
//!
//! Exit codes: 0; 1 to 16 the status of the call; 64 usage; 69 no connection; 70 internal.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

mod call;
mod capture;
mod complete;
mod connection;
mod demo;
mod device;
mod endpoint;
mod failure;
mod generate;
mod interrupt;
mod json;
mod latency;
mod log;
mod output;
mod progress;
mod pubsub;
mod record;
mod reflect;
mod relay;
mod replace;
mod schema;
mod serve;
mod shm;
mod silence;
mod span;
mod top;

use failure::Failure;

/// Typed calls, publish and subscribe between the processors of a machine, and with anything that
/// speaks pw_rpc or Zenoh.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Write JSON, errors and notes as well
    #[arg(long, global = true)]
    json: bool,
}

const EXIT_CODES: &str = "Exit codes: 0 success; 1 to 16 the status of the call; 64 usage; \
                          69 no connection; 70 internal";

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Call(call::Args),
    List(reflect::list::Args),
    Describe(reflect::describe::Args),
    Info(device::info::Args),
    Top(top::Args),
    Ping(latency::ping::Args),
    Bench(latency::bench::Args),
    Log(log::Args),
    #[command(hide = true)]
    Texts(log::texts::Args),
    Relay(relay::Args),
    Capture(capture::Args),
    Record(record::Args),
    Replay(record::replay::Args),
    Pub(pubsub::publish::Args),
    Sub(pubsub::subscribe::Args),
    Get(pubsub::get::Args),
    Reply(pubsub::reply::Args),
    Gen(generate::Args),
    Demo(demo::Args),
    Shm(shm::Args),
    Completions(complete::Args),
}

fn main() -> ExitCode {
    if complete::answer() {
        return ExitCode::SUCCESS;
    }
    failure::look(output::has_colour_of_errors());
    match run() {
        Ok(code) => code,
        Err(failure) => {
            let code = failure.exit_code();
            output::complain(&match output::is_json() {
                true => failure.json().to_string(),
                false => failure.text(),
            });
            ExitCode::from(code)
        }
    }
}

fn run() -> Result<ExitCode, Failure> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let cli = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(error) if is_help(&error) => {
            // Whoever closed the output has seen enough.
            let _ = error.print();
            return Ok(match error.exit_code() {
                0 => ExitCode::SUCCESS,
                _ => ExitCode::from(failure::USAGE),
            });
        }
        Err(error) => {
            let mut before_values = words.iter().take_while(|word| *word != "--");
            output::set_json(before_values.any(|word| word == "--json"));
            return Err(Failure::arguments(&error, &command_of(&words)));
        }
    };
    output::set_json(cli.json);
    sinew_io::qemu::on_end(|at, ended| output::note(&format!("{}: {ended}", at.address)));
    match cli.command {
        Command::Serve(args) => serve::run(args),
        Command::Call(args) => call::run(args),
        Command::List(args) => reflect::list::run(args),
        Command::Describe(args) => reflect::describe::run(args),
        Command::Info(args) => device::info::run(args),
        Command::Top(args) => top::run(args),
        Command::Ping(args) => latency::ping::run(args),
        Command::Bench(args) => latency::bench::run(args),
        Command::Log(args) => log::run(args),
        Command::Texts(args) => log::texts::run(args),
        Command::Relay(args) => relay::run(args),
        Command::Capture(args) => capture::run(args),
        Command::Record(args) => record::run(args),
        Command::Replay(args) => record::replay::run(args),
        Command::Pub(args) => pubsub::publish::run(args),
        Command::Sub(args) => pubsub::subscribe::run(args),
        Command::Get(args) => pubsub::get::run(args),
        Command::Reply(args) => pubsub::reply::run(args),
        Command::Gen(args) => generate::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Shm(args) => shm::run(args),
        Command::Completions(args) => complete::run(args),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// What was asked for with `--help` or `--version`, or what stands for arguments that are all missing.
fn is_help(error: &clap::Error) -> bool {
    use ErrorKind::{
        DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand as Nothing, DisplayVersion,
    };
    matches!(error.kind(), DisplayHelp | DisplayVersion | Nothing)
}

/// `sinew`, and the commands that stand behind it.
fn command_of(words: &[OsString]) -> String {
    let mut name = String::from("sinew");
    let mut command = Cli::command();
    for word in words.iter().skip(1) {
        let Some(next) = command.find_subcommand(word) else {
            continue;
        };
        name += &format!(" {}", next.get_name());
        command = next.clone();
    }
    name
}
