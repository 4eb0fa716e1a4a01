//! `sinew shm status`: who is there, and where every block is.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use sinew_shm::domain::Role;
use sinew_shm::domain::file::LinkFile;
use sinew_shm::domain::observe::Link;

use super::place::Place;
use super::report::{ROLES, Report};
use super::{source, text};
use crate::failure::Failure;
use crate::output;

/// Show the state of a link, and where every block of its channels is.
///
/// The link is only read: neither side notices. A process shows its links at their socket; a file or
/// a device is read at the offset, and where it has slots, all of them are shown. An image is started in
/// QEMU, with this command as the other side; it is looked at when the link is up.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// shm:SOCKET, shm:FILE?offset=N for a file or physical memory, or qemu:IMAGE, which is started for it
    #[arg(value_name = "ENDPOINT")]
    place: Place,
    /// Look again each second, until Ctrl-C, and show rates
    #[arg(short, long)]
    watch: bool,
    /// Write the link file of the running link
    #[arg(long, conflicts_with = "watch")]
    toml: bool,
    /// The link file, by which the second side is found before the first one has opened
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  sinew shm status shm:/run/camera.sock --watch
  sinew shm status shm:/dev/mem?offset=0x3000_0000 --config link.toml
  sinew shm status qemu:firmware/target/thumbv7m-none-eabi/release/shared";

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);

pub fn run(mut args: Args) -> Result<(), Failure> {
    let mut board = args.place.start()?;
    let config = match &args.config {
        Some(path) => Some(sinew_io::shm::config::load(path).map_err(|why| {
            Failure::usage(
                why,
                "correct the file, which is the one that both sides load",
            )
        })?),
        None => None,
    };
    if args.toml {
        return write_toml(&args, config.as_ref());
    }
    let mut before: Vec<Report> = Vec::new();
    loop {
        let found = source::open(&args.place, config.as_ref().map(LinkFile::config).as_ref())?;
        let links = found.links.into_iter().enumerate();
        let now: Vec<Report> = links
            .map(|(index, [first, second])| {
                let slot = found.slots.get(index).copied();
                Report::new(&Link::new(first, second), slot, before.get(index))
            })
            .collect();
        let shown = match output::is_json() {
            true => json_text(&args, &now, found.more),
            false => {
                let style = text::Style {
                    has_colour: output::has_colour(),
                    is_watched: args.watch,
                };
                let page = text::page(&args.place, &now, found.more, style);
                // A terminal shows one page, each over the last; elsewhere they follow each other.
                match args.watch && std::io::stdout().is_terminal() {
                    true => format!("\x1b[H{}\x1b[J", page.replace('\n', "\x1b[K\n")),
                    false if args.watch => page + "\n",
                    false => page,
                }
            }
        };
        let is_read = output::line_of_many(shown.trim_end_matches('\n'))?;
        if !args.watch || !is_read {
            return Ok(());
        }
        before = now;
        thread::sleep(INTERVAL);
        if let Some(board) = &mut board {
            // Its sign of life, and what the image has rung for.
            board.link().link().on_ready();
        }
    }
}

fn json_text(args: &Args, links: &[Report], more: u32) -> String {
    let links: Vec<Value> = links.iter().map(Report::json).collect();
    let all = json!({ "endpoint": args.place.to_string(), "links": links, "more_links": more });
    match args.watch {
        true => all.to_string(),
        false => format!("{all:#}"),
    }
}

fn write_toml(args: &Args, config: Option<&LinkFile>) -> Result<(), Failure> {
    let found = source::open(&args.place, config.map(LinkFile::config).as_ref())?;
    // The slots of a memory have one configuration.
    let are_slots = !found.slots.is_empty();
    let mut refused = None;
    let failed = |cause: &str, help: &str| Failure::NoConnection {
        endpoint: args.place.to_string(),
        cause: cause.into(),
        help: help.into(),
    };
    if found.links.is_empty() {
        return Err(failed(
            "the process there has no link now",
            "let somebody connect to it first",
        ));
    }
    for [first, second] in found.links {
        let link = Link::new(first, second);
        // What no side could run with is not worth a file.
        let fits = |role: &Role| {
            let file = LinkFile::observed(&link, *role)?;
            let hash = link.side(*role).ok()?.hash;
            let config = file.config();
            (config.check().is_ok() && config.hash() == hash).then_some(file)
        };
        let has_opened = ROLES.into_iter().any(|role| link.side(role).is_ok());
        let file = ROLES.iter().find_map(fits).ok_or_else(|| match has_opened {
            false => failed("no side has opened", "start one"),
            true => failed(
                "the directories of the link do not fit to its configuration's hash",
                "something wrote over the memory: start the link again",
            ),
        });
        match file {
            Ok(file) => {
                let toml = file.config().to_toml();
                output::line(&match output::is_json() {
                    true => json!({ "toml": toml }).to_string(),
                    false => toml,
                })?;
            }
            Err(error) if are_slots => {
                refused = Some(error);
                continue;
            }
            Err(error) => return Err(error),
        }
        if are_slots {
            return Ok(());
        }
    }
    refused.map_or(Ok(()), Err)
}
