//! A process of this program: what it does with its standard streams, and what its parent does.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::traffic::HANGS;

static ENDS: AtomicBool = AtomicBool::new(false);

pub fn ends() -> bool {
    ENDS.load(Ordering::Relaxed)
}

pub fn say(line: &str) {
    // The parent may be gone.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// In the child: it ends with its standard input, with its parent, and by any panic.
pub fn begin() {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    std::panic::set_hook(Box::new(|panic| {
        say(&format!("bad {panic}").replace('\n', " "));
        std::process::exit(1);
    }));
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        ENDS.store(true, Ordering::Relaxed);
    });
}

/// In the parent.
pub struct Child {
    child: std::process::Child,
    said: Receiver<String>,
}

impl Child {
    pub fn start(role: &str, path: &Path, slots: u32) -> Child {
        let program = match (role, std::env::var_os("SINEW_PEER")) {
            ("remote", Some(program)) => program.into(),
            _ => std::env::current_exe().unwrap(),
        };
        let mut child = Command::new(program)
            .arg(role)
            .arg(path)
            .arg(slots.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, said) = channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Child { child, said }
    }

    /// The next line that it says, within so long.
    pub fn hear(&self, limit: Duration) -> Option<String> {
        match self.said.recv_timeout(limit) {
            Ok(line) => {
                assert!(!line.starts_with("bad"), "{line}");
                Some(line)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    /// The slot that it has claimed.
    pub fn slot(&self) -> u32 {
        let line = self.hear(HANGS).expect("a slot");
        let slot = line.strip_prefix("slot ");
        slot.expect("a slot").parse().unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// When this returns the kernel has closed all of its files.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }

    /// In order.
    pub fn end(&mut self) {
        drop(self.child.stdin.take());
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                while self.hear(Duration::from_millis(1)).is_some() {}
                assert!(status.success(), "it ended with {status}");
                return;
            }
            assert!(begin.elapsed() < HANGS, "it does not end");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
