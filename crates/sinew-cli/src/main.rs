//! The `sinew` command.
//!
//! Exit codes: 0; 1 to 16 the status of the call; 64 usage; 69 no connection; 70 internal.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod call;
mod connection;
mod demo;
mod endpoint;
mod failure;
mod generate;
mod interrupt;
mod json;
mod output;
mod pubsub;
mod relay;
mod schema;
mod serve;
mod shm;

use failure::Failure;

/// Typed calls, publish and subscribe between the processors of a machine, and with anything that
/// speaks pw_rpc or Zenoh.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 success; 1 to 16 the status of the call; 64 usage; \
                          69 no connection; 70 internal";

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Call(call::Args),
    Relay(relay::Args),
    Pub(pubsub::publish::Args),
    Sub(pubsub::subscribe::Args),
    Get(pubsub::get::Args),
    Reply(pubsub::reply::Args),
    Gen(generate::Args),
    Demo(demo::Args),
    Shm(shm::Args),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Whoever closed the output has seen enough.
            let _ = error.print();
            return match error.exit_code() {
                0 => ExitCode::SUCCESS,
                _ => ExitCode::from(failure::USAGE),
            };
        }
    };
    sinew_io::qemu::on_end(|at, ended| output::note(&format!("{}: {ended}", at.address)));
    let result = match cli.command {
        Command::Serve(args) => serve::run(args),
        Command::Call(args) => call::run(args),
        Command::Relay(args) => relay::run(args),
        Command::Pub(args) => pubsub::publish::run(args),
        Command::Sub(args) => pubsub::subscribe::run(args),
        Command::Get(args) => pubsub::get::run(args),
        Command::Reply(args) => pubsub::reply::run(args),
        Command::Gen(args) => generate::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Shm(args) => shm::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let code = failure.exit_code();
            match failure {
                Failure::Mistakes(report) => output::note(&report.to_string()),
                Failure::System(_) => output::note(&failure.to_string()),
                failure => output::note(format!("{:?}", miette::Report::new(failure)).trim_end()),
            }
            ExitCode::from(code)
        }
    }
}
