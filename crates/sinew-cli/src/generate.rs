//! `sinew gen`: Rust out of .proto files or a system file, and whether it is stale.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sinew_gen::{Builder, Stale};
use sinew_shm::domain::file::system::SystemFile;

use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;

/// Generate Rust from .proto files: messages, services, clients; or from a system file: links.
///
/// One Rust file is written for all the .proto files given, named after the first. All mistakes are
/// shown at once, with their source lines. `NAME.options` beside `NAME.proto` bounds its fields.
///
/// Of a system file, NAME.toml, the constants of every side are written: configurations, hashes,
/// addresses.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The .proto files, or one system file
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
    let is_system = |file: &&PathBuf| file.extension().is_some_and(|it| it == "toml");
    match (args.files.iter().find(is_system), args.files.len()) {
        (None, _) => protos(&args),
        (Some(file), 1) => system(&args, file),
        (Some(file), _) => Err(Failure::usage(
            format!("{} is a system file, and there are others", file.display()),
            "give one system file, or .proto files alone",
        )),
    }
}

fn protos(args: &Args) -> Result<(), Failure> {
    let _shown = Progress::waiting("generating");
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
        return fresh(&builder.check(&args.out)?);
    }
    let path = builder.generate_to(&args.out)?;
    written(&path)
}

fn system(args: &Args, file: &Path) -> Result<(), Failure> {
    if args.mocks || !args.include.is_empty() || !args.options.is_empty() {
        return Err(Failure::usage(
            "--mocks, --include and --options are for .proto files",
            "leave them out",
        ));
    }
    let name_of = |part: Option<&std::ffi::OsStr>| {
        let part = part.unwrap_or_default();
        part.to_string_lossy().into_owned()
    };
    let system = SystemFile::load(file)?;
    let text = system.to_rust(&name_of(file.file_name()));
    let name = args.name.clone().unwrap_or(name_of(file.file_stem()));
    if name.is_empty() || name.contains(['/', '\\']) {
        return Err(Failure::usage(
            format!("{name:?} is no name of a Rust file"),
            "give a name without folders; --out says where it goes",
        ));
    }
    let path = args.out.join(format!("{name}.rs"));
    if args.check {
        let stale: Vec<Stale> = Stale::of(&path, &text).into_iter().collect();
        return fresh(&stale);
    }
    sinew_gen::write(&path, &text).map_err(|error| {
        Failure::usage(
            format!("cannot write {}: {error}", path.display()),
            "check the path and its permissions",
        )
    })?;
    written(&path)
}

fn written(path: &Path) -> Result<(), Failure> {
    let path = path.display().to_string();
    output::line(&match output::is_json() {
        true => json!({ "written": path }).to_string(),
        false => path,
    })
}

/// Fails where something is stale.
fn fresh(stale: &[Stale]) -> Result<(), Failure> {
    if output::is_json() {
        let file = |it: &Stale| json!({ "file": it.path.display().to_string(), "line": it.line });
        let files: Vec<Value> = stale.iter().map(file).collect();
        output::line(&json!({ "stale": files }).to_string())?;
    }
    match stale.is_empty() {
        true => Ok(()),
        false => Err(Failure::Stale {
            files: stale.iter().map(describe).collect::<Vec<_>>().join("\n  "),
        }),
    }
}

fn describe(stale: &Stale) -> String {
    let path = stale.path.display();
    match stale.line {
        Some(line) => format!("{path}, from line {line} on"),
        None => format!("{path}, which does not exist"),
    }
}
