//! How far something has come that takes longer than a second: on standard error, and only where that is a
//! terminal.
//!
//! Every command that may take so long holds a [`Progress`] meanwhile. It shows nothing in the first second, and
//! what it showed is gone when it is dropped. One at a time is shown; a line that is written meanwhile goes
//! above it ([`aside`]).

use std::borrow::Cow;
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What is done sooner is not worth a word.
const AFTER: Duration = Duration::from_secs(1);
/// From one picture to the next.
const TICK: Duration = Duration::from_millis(100);

const WAITING: &str = "{spinner} {msg}, {elapsed}";
const PART: &str = "{prefix} {bar:32.cyan} {percent:>3} % {wide_msg}";
const BYTES: &str = "{msg} {bar:32.cyan} {bytes} of {total_bytes}";

/// The one on the screen.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

fn shown() -> MutexGuard<'static, Option<ProgressBar>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The screen, when it is time and nothing else is there.
fn shown_after(done: &Receiver<()>) -> Option<MutexGuard<'static, Option<ProgressBar>>> {
    match done.recv_timeout(AFTER) {
        Err(RecvTimeoutError::Timeout) => Some(shown()).filter(|shown| shown.is_none()),
        _ => None,
    }
}

/// Writes while nothing of it is on the screen.
pub fn aside<R>(write: impl FnOnce() -> R) -> R {
    match &*shown() {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// Something that goes on until this is dropped.
pub struct Progress {
    bar: ProgressBar,
    /// Whether it came onto the screen.
    timer: Option<(Sender<()>, JoinHandle<Option<()>>)>,
}

impl Progress {
    /// Of unknown length: what is waited for.
    pub fn waiting(what: impl Into<String>) -> Progress {
        Progress::start(ProgressBar::hidden(), WAITING, what.into())
    }

    /// So many steps, shown in percent, and behind them the message of the bar, as far as the line has room.
    pub fn steps(what: impl Into<Cow<'static, str>>, total: u64) -> Progress {
        Progress::start(bar(total).with_prefix(what), PART, String::new())
    }

    /// So many bytes.
    pub fn bytes(what: impl Into<String>, total: u64) -> Progress {
        Progress::start(bar(total), BYTES, what.into())
    }

    fn start(bar: ProgressBar, template: &str, what: String) -> Progress {
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar.set_message(what);
        let timer = std::io::stderr().is_terminal().then(|| {
            let (done, waits) = channel();
            let bar = bar.clone();
            let show = move || {
                let mut shown = shown_after(&waits)?;
                bar.set_draw_target(ProgressDrawTarget::stderr());
                bar.enable_steady_tick(TICK);
                *shown = Some(bar);
                Some(())
            };
            (done, thread::spawn(show))
        });
        Progress { bar, timer }
    }

    /// What is counted and named.
    pub fn bar(&self) -> &ProgressBar {
        &self.bar
    }
}

fn bar(total: u64) -> ProgressBar {
    ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden())
}

impl Drop for Progress {
    fn drop(&mut self) {
        let Some((done, timer)) = self.timer.take() else {
            return;
        };
        drop(done);
        if let Ok(Some(())) = timer.join() {
            *shown() = None;
        }
        self.bar.finish_and_clear();
    }
}
