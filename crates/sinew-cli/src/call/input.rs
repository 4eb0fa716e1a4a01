//! Lines of JSON from standard input, read beside the call.

use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::task::Waker;

/// The items of a client's stream.
pub struct Lines {
    lines: Receiver<io::Result<Vec<u8>>>,
    number: usize,
}

/// What standard input has now.
pub enum Next {
    /// A line that is not blank, and its number from 1.
    Line(usize, String),
    /// Nothing yet; the waker says when.
    NotYet,
    /// The end.
    End,
    /// The line of this number is no text, or too long: which of them.
    NoText(usize, &'static str),
    Failed(io::Error),
}

/// Bytes of the longest line: far more than JSON needs for what fits into a packet.
const LONGEST: usize = 256 * 1024;

/// How many lines are read ahead of the link.
const AHEAD: usize = 64;

impl Lines {
    /// Starts to read; `waker` is woken for each line and at the end.
    pub fn of_stdin(waker: Waker) -> Lines {
        let (send, lines) = sync_channel(AHEAD);
        std::thread::spawn(move || {
            let mut stdin = io::stdin().lock();
            loop {
                let mut line = Vec::new();
                // One byte more, so that a longer line shows.
                let mut limited = (&mut stdin).take(LONGEST as u64 + 1);
                let read = limited.read_until(b'\n', &mut line);
                let last = !matches!(read, Ok(1..)) || line.len() > LONGEST;
                if matches!(read, Ok(0)) || send.send(read.map(|_| line)).is_err() || last {
                    break;
                }
                waker.wake_by_ref();
            }
            drop(send);
            waker.wake();
        });
        Lines { lines, number: 0 }
    }

    /// The next line, if it is there.
    pub fn next(&mut self) -> Next {
        loop {
            return match self.lines.try_recv() {
                Ok(Ok(line)) => {
                    self.number += 1;
                    if line.len() > LONGEST {
                        return Next::NoText(self.number, "longer than 256 KiB");
                    }
                    match String::from_utf8(line) {
                        Ok(text) if text.trim().is_empty() => continue,
                        Ok(text) => Next::Line(self.number, text),
                        Err(_) => Next::NoText(self.number, "not UTF-8"),
                    }
                }
                Ok(Err(error)) => Next::Failed(error),
                Err(TryRecvError::Empty) => Next::NotYet,
                Err(TryRecvError::Disconnected) => Next::End,
            };
        }
    }
}
