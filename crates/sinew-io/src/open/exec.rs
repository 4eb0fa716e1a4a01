//! A child process; its standard input and output are the link.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use sinew::frame::Framing;

use crate::bytes::ByteLink;

/// How long a child may take to end by itself after its input has ended, then after SIGTERM.
const GRACE: Duration = Duration::from_millis(200);

/// Starts the command in a shell. What it writes to standard error goes to ours.
pub(super) fn start(command: &str, framing: Framing, mtu: usize) -> io::Result<ByteLink> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // A group of its own: Ctrl-C is for the caller, who may still want to cancel a call.
        .process_group(0)
        .spawn()?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let child = Reaped(child);
    let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    // As for sockets: little between a bulk stream and what is urgent.
    let _ = rustix::pipe::fcntl_setpipe_size(&stdin, super::BUFFER);
    let _ = rustix::pipe::fcntl_setpipe_size(&stdout, super::BUFFER);
    Ok(ByteLink::pipes(stdout.into(), stdin.into(), framing, mtu)?.keeping(child))
}

/// Ends the child and what it has started when the link is dropped.
struct Reaped(Child);

impl Reaped {
    fn has_ended_within(&mut self, span: Duration) -> bool {
        let step = Duration::from_millis(2);
        for _ in 0..span.as_millis() / step.as_millis() {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return true;
            }
            thread::sleep(step);
        }
        false
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        let group = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        for signal in [Signal::TERM, Signal::KILL] {
            if self.has_ended_within(GRACE) {
                return;
            }
            if let Some(group) = group {
                let _ = kill_process_group(group, signal);
            }
        }
        let _ = self.0.wait();
    }
}
