//! The emulator's process: it starts when a link is opened, and never outlives this one.
//!
//! Its standard input and output are QEMU's monitor, whose first answer says that the machine has been
//! made and the image loaded. By then QEMU has also connected to the socket that is the board's UART or
//! doorbell. The socket has an abstract name, and whoever else connects is turned away.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::sockopt::socket_peercred;

use super::error::StartError;
use super::image::Image;
use crate::endpoint::Endpoint;

/// QEMU takes less to start, and to end, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// In bytes; an answer of its monitor has some hundreds.
const MOST_SAID: u64 = 1 << 20;
/// An image may write and read files of the host by semihosting, but start nothing.
const SANDBOX: &str = "on,spawn=deny,elevateprivileges=deny,obsolete=deny";
/// What `setpriv` ends with where there is no such program.
const NO_PROGRAM: i32 = 127;

/// What the board's socket is.
pub(super) enum Talks<'a> {
    Uart,
    /// Its doorbell; the memory is this file.
    Shm(&'a Path),
}

/// A running board. It ends when this is dropped.
pub(super) struct Board {
    endpoint: Endpoint,
    process: Child,
    monitor: UnixStream,
    /// The other end of the board's socket, once it is there.
    link: Option<OwnedFd>,
    /// What the emulator writes to standard error.
    complaints: File,
    /// Somebody was told that it has ended.
    is_told: bool,
}

/// How a board has ended by itself.
#[derive(Debug)]
pub struct Ended {
    status: ExitStatus,
    said: String,
}

impl Ended {
    /// What the emulator wrote to standard error.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// The image's exit code, or the emulator's.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.said.as_str(), self.status.code()) {
            ("", Some(code)) => write!(f, "the image has ended, with exit code {code}"),
            ("", None) => {
                let signal = self.status.signal().unwrap_or_default();
                write!(f, "the emulator was ended by signal {signal}")
            }
            (said, _) => write!(f, "the emulator has ended: {said}"),
        }
    }
}

static TELL: OnceLock<fn(&Endpoint, &Ended)> = OnceLock::new();

/// Has this called, once for each board that ends by itself, when its link is dropped: a link only says
/// that it is closed. To be set once in a program; what is set later is not used.
pub fn on_end(tell: fn(&Endpoint, &Ended)) {
    let _ = TELL.set(tell);
}

impl Board {
    /// Starts the image, and gives the other end of the socket.
    pub fn start(
        endpoint: &Endpoint,
        image: &Image,
        talks: Talks<'_>,
    ) -> Result<(Board, OwnedFd), StartError> {
        let machine = image.machine;
        let name = format!("sinew-{}-{:x}", std::process::id(), crate::random());
        let socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        socket.set_nonblocking(true)?;
        let (monitor, far) = UnixStream::pair()?;
        let complaints =
            File::from(memfd_create("sinew-qemu", MemfdFlags::CLOEXEC).map_err(io::Error::from)?);
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", machine.program])
            .args(["-nodefaults", "-display", "none", "-sandbox", SANDBOX])
            .args(["-chardev", "stdio,id=monitor"])
            .args(["-mon", "chardev=monitor,mode=control"])
            .args([
                "-chardev",
                &format!("socket,id=link,abstract=on,path={name}"),
            ]);
        match talks {
            Talks::Uart => command.args(["-M", machine.name, "-serial", "chardev:link"]),
            Talks::Shm(memory) => {
                let len = machine.shared.unwrap_or_default();
                let memory = memory.display();
                let object =
                    format!("memory-backend-file,id=shared,size={len},share=on,mem-path={memory}");
                command
                    .args(["-object", &object])
                    .args(["-M", &format!("{},memory-backend=shared", machine.name)])
                    .args(["-serial", "null", "-serial", "chardev:link"])
            }
        };
        let second = image.second.as_ref();
        let second = second.map(|path| {
            // QEMU takes a comma as the end of a value, and two as one.
            format!(
                "loader,file={}",
                path.display().to_string().replace(',', ",,")
            )
        });
        command
            .args(machine.arguments)
            .arg("-kernel")
            .arg(&image.path)
            .args(second.iter().flat_map(|loader| ["-device", loader]))
            .stdin(OwnedFd::from(far.try_clone()?))
            .stdout(OwnedFd::from(far))
            .stderr(Stdio::from(complaints.try_clone()?))
            // A group of its own: Ctrl-C is for this process, which may still want the board.
            .process_group(0);
        let process = spawn(command).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StartError::NoGuard,
            _ => StartError::Io(error),
        })?;
        let mut board = Board {
            endpoint: endpoint.clone(),
            process,
            monitor,
            link: None,
            complaints,
            is_told: false,
        };
        board.wait_up().map_err(|error| match error {
            // An image may end with this as well, and says nothing of setpriv.
            StartError::Ended(ended)
                if ended.code() == Some(NO_PROGRAM) && ended.said().contains("setpriv:") =>
            {
                StartError::NoProgram(machine)
            }
            error => error,
        })?;
        let link = board.accept(&socket)?;
        board.link = Some(link.try_clone()?);
        Ok((board, link))
    }

    /// Waits until the machine has been made.
    fn wait_up(&mut self) -> Result<(), StartError> {
        match self.asks("qmp_capabilities") {
            Ok(()) => Ok(()),
            Err(io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Err(StartError::Silent),
            Err(_) => Err(self.ended().map_or(StartError::Silent, StartError::Ended)),
        }
    }

    /// Has the monitor do this, which answers where the emulator lives.
    fn asks(&self, command: &str) -> Result<(), io::ErrorKind> {
        // Where it has ended already, reading says so.
        let _ = (&self.monitor).write_all(format!("{{\"execute\":\"{command}\"}}\n").as_bytes());
        // Whatever says more before it, or says it for longer, is no emulator.
        let mut answers = BufReader::new((&self.monitor).take(MOST_SAID));
        let until = Instant::now() + PATIENCE;
        let mut answer = Vec::new();
        loop {
            answer.clear();
            let left = until.saturating_duration_since(Instant::now());
            let limit = self.monitor.set_read_timeout(Some(left));
            match limit.and_then(|()| answers.read_until(b'\n', &mut answer)) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof),
                Ok(_) if String::from_utf8_lossy(&answer).contains("\"return\"") => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(error.kind()),
            }
        }
    }

    /// QEMU has connected before it answered.
    fn accept(&self, socket: &UnixListener) -> Result<OwnedFd, StartError> {
        loop {
            let accepted = socket.accept().map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => StartError::Silent,
                _ => StartError::Io(error),
            });
            let (link, _) = accepted?;
            let peer = socket_peercred(&link).map_err(io::Error::from)?;
            if peer.pid.as_raw_nonzero().get().unsigned_abs() == self.process.id() {
                return Ok(link.into());
            }
        }
    }

    /// How it has ended, where it has, or is about to: it has closed its end of the socket then.
    pub fn ended(&mut self) -> Option<Ended> {
        let since = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().ok()? {
                self.is_told = true;
                let mut said = String::new();
                let _ = self.complaints.rewind();
                let _ = self.complaints.read_to_string(&mut said);
                return Some(Ended {
                    status,
                    said: complaints(&said),
                });
            }
            // One that lives has closed its end because this side did.
            let lives = || self.link.is_some() && self.asks("query-status").is_ok();
            if !self.is_closed() || lives() || since.elapsed() > PATIENCE {
                return None;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// The kernel closes what an ending process has in any order, so where there is a link, that says it.
    fn is_closed(&self) -> bool {
        let fd = match &self.link {
            Some(link) => link.as_fd(),
            None => self.monitor.as_fd(),
        };
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
        let closed = PollFlags::HUP | PollFlags::ERR;
        let [polled] = &mut fds;
        poll(std::slice::from_mut(polled), Some(&Timespec::default())).is_ok()
            && polled.revents().intersects(closed)
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        if self.is_told {
            return;
        }
        match (self.ended(), TELL.get()) {
            (Some(ended), Some(tell)) => tell(&self.endpoint, &ended),
            (Some(_), None) => {}
            (None, _) => {
                let _ = self.process.kill();
                let _ = self.process.wait();
            }
        }
    }
}

/// In one line, without what is only a warning: an image without a network has one each time.
fn complaints(said: &str) -> String {
    let lines = said.lines().map(str::trim);
    let lines: Vec<_> = lines
        .filter(|line| !line.is_empty() && !line.contains(": warning: "))
        .collect();
    lines.join("; ")
}

/// What a thread starts for others, and where the child goes.
type Order = (Command, Sender<io::Result<Child>>);

/// Starts a child in a thread that stays: the kernel ends the child when the thread that has started it
/// ends, also where its process does not.
fn spawn(command: Command) -> io::Result<Child> {
    static STARTER: OnceLock<Option<Sender<Order>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (orders, taken) = channel::<Order>();
        let run = move || {
            for (mut command, reply) in taken {
                let _ = reply.send(command.spawn());
            }
        };
        let thread = thread::Builder::new().name("sinew-qemu".into());
        thread.spawn(run).ok().map(|_| orders)
    });
    let (reply, child) = channel();
    let is_sent = starter
        .as_ref()
        .is_some_and(|starter| starter.send((command, reply)).is_ok());
    match child.recv() {
        Ok(child) if is_sent => child,
        _ => Err(io::Error::other("no thread can be started")),
    }
}
