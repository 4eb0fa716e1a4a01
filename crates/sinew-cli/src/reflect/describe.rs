//! `sinew describe`: a service, a method or a message as .proto text.

use std::io::Read as _;
use std::path::PathBuf;

use clap_complete::engine::ArgValueCompleter;
use prost::Message as _;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::FileDescriptorSet;
use serde_json::json;

use super::MOST_BYTES;
use super::proto::{self, Element};
use crate::complete::values;
use crate::endpoint::At;
use crate::failure::Failure;
use crate::output;
use crate::replace::{self, Kind};
use crate::schema::nearest;
use crate::silence::Timeout;

/// Show a service, a method or a message of a server as .proto text, with its comments.
///
/// What it needs is shown behind it, so that the text is a .proto file. The server says it by itself where it
/// serves sinew.Reflection.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    at: At,
    /// package.Service, package.Service/Method, package.Message; the package may be left out
    #[arg(required_unless_present = "descriptor_set", add = ArgValueCompleter::new(values::element))]
    name: Option<String>,
    /// Write all that the server has as a FileDescriptorSet, for Wireshark and other tools
    #[arg(long, value_name = "FILE")]
    descriptor_set: Option<PathBuf>,
    #[command(flatten)]
    silence: Timeout,
}

const EXAMPLES: &str = "Examples:
  sinew describe tcp:localhost:33000 demo.Kinds
  sinew describe serial:/dev/ttyUSB0 Kinds > kinds.proto
  sinew describe tcp:localhost:33000 --descriptor-set demo.binpb";

pub fn run(args: Args) -> Result<(), Failure> {
    let endpoint = args.at.endpoint()?;
    let (_, pool) = super::ask(&endpoint, args.silence.patience())?;
    if let Some(path) = &args.descriptor_set {
        replace::write(path, &SET, &pool.encode_to_vec())?;
    }
    match &args.name {
        Some(name) => show(find(&pool, name)?),
        None => Ok(()),
    }
}

fn show(element: Element) -> Result<(), Failure> {
    let (name, kind) = (element.full_name().to_owned(), element.kind());
    let text = proto::text(element);
    match output::is_json() {
        true => output::line(&json!({ "name": name, "kind": kind, "proto": text }).to_string()),
        false => output::line(text.trim_end()),
    }
}

/// What `--descriptor-set` writes. It has no magic: it is what reads as one, and names a file.
const SET: Kind = Kind {
    name: "FileDescriptorSet",
    is: |file| {
        let mut bytes = Vec::new();
        file.take(MOST_BYTES.into()).read_to_end(&mut bytes)?;
        let set = FileDescriptorSet::decode(bytes.as_slice());
        Ok(set.is_ok_and(|set| set.file.iter().any(|file| file.name.is_some())))
    },
};

/// The element of this name, or the one that has it inside.
fn find(pool: &DescriptorPool, name: &str) -> Result<Element, Failure> {
    let wanted = name.trim_matches('/').replace('/', ".");
    let names = |element: &Element| {
        let mut names = vec![element.full_name().to_owned()];
        if let Element::Service(service) = element {
            names.extend(service.methods().map(|it| it.full_name().to_owned()));
        }
        names
    };
    let suffix = format!(".{wanted}");
    let mut all = Element::all(pool);
    for fits in [
        &(|it: &String| *it == wanted) as &dyn Fn(&String) -> bool,
        &|it: &String| it.ends_with(&suffix),
    ] {
        let mut found = (0..all.len()).filter(|&at| names(&all[at]).iter().any(fits));
        match (found.next(), found.next()) {
            (Some(at), None) => return Ok(all.swap_remove(at)),
            (Some(_), Some(_)) => {
                return Err(Failure::usage(
                    format!("{name} is the name of several things"),
                    "write it with its package, as `sinew list` does",
                ));
            }
            (None, _) => {}
        }
    }
    let known: Vec<String> = all.iter().flat_map(names).collect();
    let near = nearest(&wanted, known.iter().map(String::as_str));
    let hint = near.map_or(String::new(), |near| format!("did you mean {near}? "));
    Err(Failure::usage(
        format!("the server has no {name}"),
        format!("{hint}`sinew list` shows what it has"),
    ))
}
