//! Lines of JSON from standard input, read beside the call.

use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::task::Waker;

/// The items of a client's stream.
pub struct Lines {
    lines: Receiver<io::Result<String>>,
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
    Failed(io::Error),
}

/// How many lines are read ahead of the link.
const AHEAD: usize = 64;

impl Lines {
    /// Starts to read; `waker` is woken for each line and at the end.
    pub fn of_stdin(waker: Waker) -> Lines {
        let (send, lines) = sync_channel(AHEAD);
        std::thread::spawn(move || {
            for line in io::stdin().lock().lines() {
                let last = line.is_err();
                if send.send(line).is_err() || last {
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
                    if line.trim().is_empty() {
                        continue;
                    }
                    Next::Line(self.number, line)
                }
                Ok(Err(error)) => Next::Failed(error),
                Err(TryRecvError::Empty) => Next::NotYet,
                Err(TryRecvError::Disconnected) => Next::End,
            };
        }
    }
}
