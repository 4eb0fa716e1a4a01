//! Placements in another process: `sinew serve`, started as a child, or QEMU with an image.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use indicatif::ProgressBar;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use sinew::frame::Framing;
use sinew_io::bytes::ByteLink;
use sinew_io::endpoint::{Carrier, DEFAULT_MTU};
use sinew_io::{Address, Endpoint, qemu};

use super::Outcome;
use super::here::over;
use crate::serve::READY;

pub fn unix(calls: u64, bar: &ProgressBar) -> Result<Outcome, String> {
    let socket = Socket::new();
    at(&format!("unix:{}", socket.path()), calls, bar)
}

pub fn shared_memory(calls: u64, bar: &ProgressBar) -> Result<Outcome, String> {
    let socket = Socket::new();
    at(&format!("shm:{}", socket.path()), calls, bar)
}

pub fn tcp(calls: u64, bar: &ProgressBar) -> Result<Outcome, String> {
    at("tcp:127.0.0.1:0", calls, bar)
}

pub fn udp(calls: u64, bar: &ProgressBar) -> Result<Outcome, String> {
    at("udp:127.0.0.1:0", calls, bar)
}

/// The child has the terminal's side, as it would have a serial line; this process has the other.
pub fn pty(calls: u64, bar: &ProgressBar) -> Result<Outcome, String> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
        .map_err(|error| format!("no pseudo-terminal: {error}"))?;
    grantpt(&master)
        .and_then(|()| unlockpt(&master))
        .map_err(|error| format!("the pseudo-terminal stays locked: {error}"))?;
    let path = ptsname(&master, Vec::new()).map_err(|error| error.to_string())?;
    let _server = Serve::start(&format!("serial:{}", path.to_string_lossy()))?;
    let link = ByteLink::duplex(master, Framing::HDLC, DEFAULT_MTU);
    over(link.map_err(|error| error.to_string())?, calls, bar)
}

/// The core of an emulated board, and by what its image talks.
pub fn board_name(at: &Endpoint) -> Result<(&'static str, &'static str), String> {
    let Address::Qemu(emulated) = &at.address else {
        return Err(format!("{at} is no board: write qemu:IMAGE"));
    };
    let look = qemu::look(emulated).map_err(|error| format!("{at}: {error}"));
    look.map(|(machine, carrier)| (machine.core, link_name(carrier)))
}

pub fn link_name(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Uart => "UART + HDLC",
        Carrier::Shm => "shared memory",
    }
}

/// Calls of a board: the emulator handles a UART byte by byte, some milliseconds per call.
const BOARD_CALLS: u64 = 2_000;

/// An image that serves the demo.
pub fn board(at: &Endpoint, calls: u64, bar: &ProgressBar) -> Result<Outcome, String> {
    let calls = calls.min(BOARD_CALLS);
    let link = sinew_io::open(at).map_err(|error| error.to_string())?;
    over(link, calls, bar)
}

/// A server at this endpoint, and a client that connects to it.
fn at(endpoint: &str, calls: u64, bar: &ProgressBar) -> Result<Outcome, String> {
    let server = Serve::start(endpoint)?;
    let link = sinew_io::open(&server.endpoint).map_err(|error| error.to_string())?;
    over(link, calls, bar)
}

/// A child that serves until it is dropped.
struct Serve {
    child: Child,
    endpoint: Endpoint,
}

impl Serve {
    /// Starts it and waits until it is ready.
    fn start(endpoint: &str) -> Result<Serve, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child = Command::new(program)
            .args(["serve", endpoint])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start the server: {error}"))?;
        let mut line = String::new();
        if let Some(out) = &mut child.stdout {
            let _ = BufReader::new(out).read_line(&mut line);
        }
        match line
            .trim()
            .strip_prefix(READY)
            .and_then(|at| at.parse().ok())
        {
            Some(endpoint) => Ok(Serve { child, endpoint }),
            None => Err(complaint(child)),
        }
    }
}

/// What a child that did not get ready says.
fn complaint(mut child: Child) -> String {
    let mut text = String::new();
    if let Some(err) = &mut child.stderr {
        let _ = err.read_to_string(&mut text);
    }
    let _ = child.wait();
    format!("the server did not get ready: {}", text.trim())
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The path of a socket of this process, removed at the end.
pub struct Socket(PathBuf);

impl Socket {
    pub fn new() -> Socket {
        let name = format!("sinew-demo-{}.sock", std::process::id());
        Socket(std::env::temp_dir().join(name))
    }

    /// Where it is.
    pub fn path(&self) -> std::path::Display<'_> {
        self.0.display()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
