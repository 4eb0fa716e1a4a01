//! The tool as a child process, and a serial cable made of two pseudo-terminals.
#![allow(dead_code)] // each test uses its part

pub mod image;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::Winsize;

/// The tool with these arguments, and of what decides about colours nothing but what a test sets: a terminal of a
/// CI has them even where it is dumb.
pub fn sinew(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sinew"));
    for name in ["CI", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
        .args(args)
        .env("NO_COLOR", "1")
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Starts a process, one at a time in this one: on its way it has all that is open here, and with that the
/// locks and listeners that another test has closed just now.
pub fn start(command: &mut Command) -> Child {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    command.spawn().unwrap()
}

/// Runs it to its end, started as by [`start`].
pub fn output(command: &mut Command) -> Output {
    let child = start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    child.wait_with_output().unwrap()
}

/// Runs `sinew call` with this text as standard input.
pub fn call(endpoint: &str, args: &[&str], input: &str) -> Output {
    let mut child = spawn_call(endpoint, args);
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

/// Starts `sinew call`; standard input stays open.
pub fn spawn_call(endpoint: &str, args: &[&str]) -> Child {
    let mut command = sinew(&["call", endpoint]);
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    start(&mut command)
}

/// Its standard output, where it ended well.
pub fn answer(output: &Output) -> &str {
    assert!(output.status.success(), "{}", complaint(output));
    std::str::from_utf8(&output.stdout).unwrap()
}

/// What it wrote to standard error, the line breaks of the report made spaces.
pub fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.replace('│', " ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Ctrl-C.
pub fn interrupt(child: &Child) {
    let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
}

/// SIGTERM.
pub fn terminate(child: &Child) {
    let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
}

/// A running `sinew serve`.
pub struct Serve {
    child: Option<Child>,
    notes: BufReader<ChildStderr>,
    pub endpoint: String,
}

impl Serve {
    /// Starts the server and waits until it is ready.
    pub fn start(endpoint: &str) -> Serve {
        let mut command = sinew(&["serve", endpoint, "--verbose"]);
        let mut child = start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let endpoint = line
            .trim()
            .strip_prefix("serving demo.Cache, demo.Kinds on ");
        let endpoint = endpoint.expect("the ready line").to_string();
        Serve {
            notes: BufReader::new(child.stderr.take().unwrap()),
            child: Some(child),
            endpoint,
        }
    }

    /// Ctrl-C: what the server reports.
    pub fn stop(self) -> String {
        self.stop_when("", 0)
    }

    /// As [`Serve::stop`], once it has said this so many times. A client that has ended may have sent
    /// what the server has not seen yet.
    pub fn stop_when(mut self, said: &str, times: usize) -> String {
        let mut report = String::new();
        while report.lines().filter(|line| line.contains(said)).count() < times {
            let read = self.notes.read_line(&mut report).unwrap();
            assert!(read > 0, "it has ended: {report}");
        }
        let mut child = self.child.take().unwrap();
        interrupt(&child);
        self.notes.read_to_string(&mut report).unwrap();
        assert!(child.wait().unwrap().success());
        report
    }
}

impl Serve {
    /// SIGKILL.
    pub fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A path for a socket that no other test uses.
pub fn socket(name: &str) -> String {
    let folder = env!("CARGO_TARGET_TMPDIR");
    format!("{folder}/{name}-{}.sock", std::process::id())
}

/// A host and a port where nobody listens, and that nobody else takes: the host is this machine by a
/// name of its own.
pub fn free_place() -> String {
    static COUNT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("127.{count}.{high}.{low}:7447")
}

/// Two serial devices with a cable between them: what is written to one is read from the other.
pub struct Cable {
    pub ends: [String; 2],
}

impl Cable {
    pub fn new() -> Cable {
        let [a, b] = [pty(), pty()];
        let ends = [a.1, b.1];
        for (from, to) in [(&a.0, &b.0), (&b.0, &a.0)] {
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            thread::spawn(move || carry(&from, &to));
        }
        Cable { ends }
    }
}

/// A pseudo-terminal: its master, and the path of its other side.
pub fn pty() -> (OwnedFd, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let path = ptsname(&master, Vec::new()).unwrap();
    (master, path.to_str().unwrap().to_string())
}

/// A child process in a terminal: what it reads, writes and complains of.
pub struct Terminal {
    master: OwnedFd,
    child: Child,
}

impl Terminal {
    /// Starts it with all three streams at the terminal.
    pub fn start(command: &mut Command) -> Terminal {
        Terminal::begin(command, None)
    }

    /// Starts it with its standard output elsewhere.
    pub fn start_with(command: &mut Command, stdout: Stdio) -> Terminal {
        Terminal::begin(command, Some(stdout))
    }

    fn begin(command: &mut Command, stdout: Option<Stdio>) -> Terminal {
        let (master, path) = pty();
        let size = Winsize {
            ws_row: 40,
            ws_col: 200,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&master, size).unwrap();
        // Without becoming this process's own.
        let open = || {
            let flags = OFlags::RDWR | OFlags::NOCTTY;
            let opened = rustix::fs::open(path.as_str(), flags, Mode::empty());
            Stdio::from(opened.unwrap())
        };
        command.stdin(open()).stderr(open());
        let child = start(command.stdout(stdout.unwrap_or_else(open)));
        // Copies kept here would keep the terminal open.
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Terminal { master, child }
    }

    /// All that came on its standard output, where that is a pipe.
    pub fn piped(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut out = self.child.stdout.take().unwrap();
        out.read_to_end(&mut all).unwrap();
        all
    }

    /// Presses keys.
    pub fn write(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let written = rustix::io::write(&self.master, rest).unwrap();
            rest = &rest[written..];
        }
    }

    /// Ctrl-C, as it comes to a program whose own terminal it is.
    pub fn interrupt(&self) {
        interrupt(&self.child);
    }

    /// Until there is more to read, or its end; what takes longer hangs.
    fn wait(&self, shown: &[u8]) {
        let patience = rustix::event::Timespec {
            tv_sec: 60,
            tv_nsec: 0,
        };
        let mut master = [PollFd::new(&self.master, PollFlags::IN)];
        let ready = rustix::event::poll(&mut master, Some(&patience)).unwrap();
        assert_ne!(ready, 0, "it hangs: {}", String::from_utf8_lossy(shown));
    }

    /// What is shown up to this text and with it.
    pub fn read_until(&mut self, text: &str) -> String {
        let mut shown = Vec::new();
        let mut byte = [0];
        loop {
            self.wait(&shown);
            match rustix::io::read(&self.master, &mut byte) {
                Ok(1) => shown.push(byte[0]),
                ended => {
                    let shown = String::from_utf8_lossy(&shown);
                    panic!("{ended:?} before {text:?}: {shown}");
                }
            }
            if shown.ends_with(text.as_bytes()) {
                return String::from_utf8_lossy(&shown).into();
            }
        }
    }

    /// All that is shown up to its end, and the exit code.
    pub fn end(mut self) -> (String, Option<i32>) {
        let mut shown = Vec::new();
        let mut part = [0; 1024];
        loop {
            self.wait(&shown);
            match rustix::io::read(&self.master, &mut part) {
                Ok(read @ 1..) => shown.extend_from_slice(&part[..read]),
                _ => break,
            }
        }
        let code = self.child.wait().unwrap().code();
        (String::from_utf8_lossy(&shown).into(), code)
    }
}

/// While nobody has the device open, a read fails; the cable waits for the next who opens it.
fn carry(from: &OwnedFd, to: &OwnedFd) {
    let mut buffer = [0; 1024];
    loop {
        match rustix::io::read(from, &mut buffer) {
            Ok(count) => {
                let mut rest = &buffer[..count];
                while let Ok(written @ 1..) = rustix::io::write(to, rest) {
                    rest = &rest[written..];
                }
            }
            Err(_) => thread::sleep(Duration::from_millis(2)),
        }
    }
}
