//! `sinew gen`: Rust out of .proto files, and whether it is stale.

use std::path::PathBuf;

use sinew_gen::{Builder, Stale};

use crate::failure::Failure;
use crate::output;

/// Generate Rust from .proto files: messages, services, clients.
///
/// One Rust file is written for all the files given, named after the first. All mistakes are shown
/// at once, with their source lines. `NAME.options` beside `NAME.proto` bounds its fields.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The .proto files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The folder to write to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write nothing; list what is stale, and exit with 1 where anything is
    #[arg(long)]
    check: bool,
    /// A folder in which imports are looked up
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    include: Vec<PathBuf>,
    /// An .options file for all .proto files
    #[arg(long, value_name = "FILE")]
    options: Vec<PathBuf>,
    /// The name of the Rust file, without .rs
    #[arg(long)]
    name: Option<String>,
    /// Make mocks of services and clients as well
    #[arg(long)]
    mocks: bool,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let mut builder = Builder::new().protos(&args.files).mocks(args.mocks);
    for folder in &args.include {
        builder = builder.include(folder);
    }
    for file in &args.options {
        builder = builder.options(file);
    }
    if let Some(name) = &args.name {
        builder = builder.name(name);
    }
    if args.check {
        let stale = builder.check(&args.out)?;
        return match stale.is_empty() {
            true => Ok(()),
            false => Err(Failure::Stale {
                files: stale.iter().map(describe).collect::<Vec<_>>().join("\n  "),
            }),
        };
    }
    let path = builder.generate_to(&args.out)?;
    output::line(&path.display().to_string())
}

fn describe(stale: &Stale) -> String {
    let path = stale.path.display();
    match stale.line {
        Some(line) => format!("{path}, from line {line} on"),
        None => format!("{path}, which does not exist"),
    }
}
