//! `sinew shm`: looks at links over shared memory.

use clap::Subcommand;

use crate::failure::Failure;

pub mod place;
pub mod report;
pub mod source;
mod status;
mod text;

/// Look at links over shared memory.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Status(status::Args),
}

pub fn run(args: Args) -> Result<(), Failure> {
    match args.command {
        Command::Status(args) => status::run(args),
    }
}
