//! Values that arguments can have: endpoints, and what the server at one says that it has.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use clap_complete::CompletionCandidate as Candidate;
use clap_complete::engine::{PathCompleter, ValueCompleter as _};
use prost_reflect::DescriptorPool;
use sinew_io::{Address, Endpoint};

use super::WORDS;
use crate::endpoint::At;
use crate::reflect::proto::{Element, signature};
use crate::schema::Place;
use crate::{Cli, json, reflect, schema};

/// How long a server may take to say what it has.
const PATIENCE: Duration = Duration::from_millis(400);

/// The kinds of endpoints, and what follows.
const KINDS: [(&str, &str); 8] = [
    ("tcp:", "HOST:PORT"),
    ("udp:", "HOST:PORT"),
    ("unix:", "the path of a socket"),
    ("shm:", "the path of a socket, for shared memory"),
    ("serial:", "the path of a device"),
    ("qemu:", "an image, which is started"),
    ("exec:", "a command, which is started"),
    ("stdio:", "the own standard input and output"),
];

/// An endpoint: its kind, its path, or one that has answered before.
pub fn endpoint(current: &OsStr) -> Vec<Candidate> {
    let Some(current) = current.to_str() else {
        return Vec::new();
    };
    let known = reflect::cache::endpoints().into_iter();
    let known = known.filter(|known| known.starts_with(current));
    let mut found: Vec<Candidate> = known
        .map(|known| Candidate::new(known).help(Some("has answered before".into())))
        .collect();
    let Some((kind, path)) = current.split_once(':') else {
        let kinds = KINDS.iter().filter(|(kind, _)| kind.starts_with(current));
        found.extend(kinds.map(|(kind, what)| Candidate::new(*kind).help(Some((*what).into()))));
        return found;
    };
    let paths = match kind {
        "unix" | "shm" => paths(path, |file| {
            fs::metadata(file).is_ok_and(|it| it.file_type().is_socket())
        }),
        "serial" if path.is_empty() => lines(),
        "serial" => paths(path, |file| {
            fs::metadata(file).is_ok_and(|it| it.file_type().is_char_device())
        }),
        "qemu" => paths(path, is_image),
        _ => Vec::new(),
    };
    let paths = paths
        .into_iter()
        .map(|it| it.add_prefix(format!("{kind}:")));
    let is_new = |it: &Candidate| {
        found
            .iter()
            .all(|known| known.get_value() != it.get_value())
    };
    let paths: Vec<Candidate> = paths.filter(is_new).collect();
    found.extend(paths);
    found
}

fn paths(path: &str, is_wanted: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Vec<Candidate> {
    let found = PathCompleter::any()
        .filter(is_wanted)
        .complete(OsStr::new(path));
    // It offers the folder itself as well.
    found
        .into_iter()
        .filter(|it| it.get_value() != ".")
        .collect()
}

/// The serial devices of this machine.
fn lines() -> Vec<Candidate> {
    let named = |folder: &str, starts: &'static [&str]| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                starts.iter().any(|start| name.starts_with(start))
            })
            .map(|entry| entry.path())
            .collect()
    };
    let mut found: Vec<PathBuf> = named("/dev/serial/by-id", &[""]);
    let mut devices: Vec<PathBuf> = named("/dev", &["ttyUSB", "ttyACM", "ttyAMA", "ttyS"]);
    devices.sort();
    found.sort();
    found.extend(devices);
    found.into_iter().map(Candidate::new).collect()
}

/// An ELF file.
fn is_image(path: &Path) -> bool {
    // Reading from a pipe or a device would wait, or take what is not meant for this.
    let is_file = fs::metadata(path).is_ok_and(|it| it.is_file());
    let mut start = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    is_file && read.is_ok() && start == *b"\x7fELF"
}

/// How packets are framed.
pub fn framing() -> Vec<Candidate> {
    ["hdlc", "len", "cobs", "zenoh"].map(Candidate::new).into()
}

/// A method of the server.
pub fn method(current: &OsStr) -> Vec<Candidate> {
    let Some(pool) = pool() else {
        return Vec::new();
    };
    let methods = pool.services().flat_map(|service| {
        let methods: Vec<_> = service.methods().collect();
        methods
    });
    let named = methods.map(|method| {
        let service = method.parent_service();
        let (takes, gives) = signature(&method, |message| message.name().to_owned());
        let what = format!("{takes} -> {gives}");
        // The package may be left out.
        [service.full_name(), service.name()].map(|service| {
            let name = format!("{service}/{}", method.name());
            Candidate::new(name).help(Some(what.clone().into()))
        })
    });
    let (mut full, short): (Vec<_>, Vec<_>) = named.map(|[full, short]| (full, short)).unzip();
    full.sort();
    match starting(full, current) {
        found if found.is_empty() => starting(short, current),
        found => found,
    }
}

/// Whatever of the server can be described.
pub fn element(current: &OsStr) -> Vec<Candidate> {
    let Some(pool) = pool() else {
        return Vec::new();
    };
    let all = Element::all(&pool);
    let all = all.iter().map(|it| {
        let kind = it.kind();
        Candidate::new(it.full_name()).help(Some(kind.into()))
    });
    let mut found: Vec<Candidate> = all.collect();
    found.sort();
    starting(found, current)
}

/// The request of the method, with all its fields.
pub fn request(current: &OsStr) -> Vec<Candidate> {
    let skeleton = || {
        let matches = matches()?;
        let name: &String = matches.try_get_one("method").ok()??;
        let method = schema::find(&pool()?, name, Place::Server).ok()?;
        if method.id.kind.client_streams() {
            return None;
        }
        json::from_bytes(&[], &method.request, false).ok()
    };
    let found = skeleton().into_iter().map(Candidate::new).collect();
    starting(found, current)
}

fn starting(found: Vec<Candidate>, current: &OsStr) -> Vec<Candidate> {
    let starts = current.to_string_lossy();
    let is_meant = |it: &Candidate| it.get_value().to_string_lossy().starts_with(&*starts);
    found.into_iter().filter(is_meant).collect()
}

/// What stands before, as far as it can be read.
fn matches() -> Option<ArgMatches> {
    let command = Cli::command().ignore_errors(true);
    let mut matches = command.try_get_matches_from(WORDS.get()?).ok()?;
    while let Some((_, inside)) = matches.remove_subcommand() {
        matches = inside;
    }
    Some(matches)
}

/// What there is by the words so far: in their .proto files, or at their server.
fn pool() -> Option<DescriptorPool> {
    let matches = matches()?;
    let files = |name| -> Vec<PathBuf> {
        let files = matches.try_get_many(name).ok().flatten();
        files.into_iter().flatten().cloned().collect()
    };
    let protos = files("proto");
    if !protos.is_empty() {
        return schema::load(&protos, &files("include")).ok();
    }
    known(&At::from_arg_matches(&matches).ok()?.endpoint().ok()?)
}

/// What a server says that it has, or said last.
///
/// Asked are those who wait for anybody anyway. To open anything else would change it: it starts an emulator or
/// a command, resets a board by its line, or takes the place of the core on the other side.
fn known(at: &Endpoint) -> Option<DescriptorPool> {
    let is_asked = match &at.address {
        Address::Tcp(..) | Address::Udp(..) | Address::Unix(_) => true,
        Address::Shm(_) => at.doorbell.is_none(),
        Address::Serial(..) | Address::Exec(_) | Address::Stdio | Address::Qemu(_) => false,
    };
    let asked = is_asked.then(|| {
        let (send, said) = channel();
        let at = at.clone();
        thread::spawn(move || {
            let _ = send.send(reflect::ask(&at, reflect::PATIENCE).map(|(_, pool)| pool));
        });
        said.recv_timeout(PATIENCE).ok()?.ok()
    });
    asked.flatten().or_else(|| reflect::remembered(at))
}
