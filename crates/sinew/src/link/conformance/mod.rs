//! The suite that every implementation of the seam passes.
//!
//! A link brings a [`Harness`] and a test that calls [`run`]. Each rule of the [seam](super) is
//! one check with a name; the first that does not hold ends the run with that name. Every rule is
//! checked in both directions of the link.
//!
//! ```no_run
//! # fn demo(mut harness: impl sinew::link::conformance::Harness) {
//! let report = sinew::link::conformance::run(&mut harness);
//! assert!(report.not_offered.is_empty(), "{report:?}");
//! # }
//! ```

use std::boxed::Box;
use std::string::String;
use std::time::Duration;
use std::vec::Vec;

use super::{Port, Rx, Tx};

mod port_rules;
mod rules;
mod tools;

#[cfg(test)]
mod memory;
#[cfg(test)]
mod tests;

/// Everything that one side of a link has.
pub struct End {
    /// The driver's sending half.
    pub tx: Box<dyn Tx + Send>,
    /// The driver's receiving half.
    pub rx: Box<dyn Rx + Send>,
    /// The ports of this side, where the link offers them.
    pub ports: Option<Ports>,
}

/// What a shared link has beside its two halves.
pub struct Ports {
    /// A port that leaves one place to the driver.
    pub urgent: Box<dyn Port + Send>,
    /// A port that leaves two places or more.
    pub bulk: Box<dyn Port + Send>,
    /// Whether a port has rung the driver of this side since the last look.
    pub rung: Box<dyn FnMut() -> bool + Send>,
}

/// What the suite needs to know of a link.
pub trait Harness {
    /// A fresh link between two ends, on which nothing was sent. The ends before are dropped.
    fn connect(&mut self) -> (End, End);

    /// Makes one end go away, as it does when its program ends.
    fn hang_up(&mut self, end: End) {
        drop(end);
    }

    /// Moves packets on, where nobody else does. Called again and again while the suite waits.
    fn settle(&mut self) {}

    /// The carrier can lose packets between two live ends (UDP).
    fn may_lose(&self) -> bool {
        false
    }

    /// A sender whose peer does not read gets `Full` at some time.
    fn fills(&self) -> bool {
        true
    }

    /// An end sees that the other one has gone.
    fn sees_hang_up(&self) -> bool {
        true
    }

    /// How long something may take that has to happen. Only a broken link ever waits this long.
    fn patience(&self) -> Duration {
        Duration::from_secs(10)
    }
}

/// What was checked.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The rules that hold.
    pub checked: Vec<&'static str>,
    /// The rules that this kind of link has no use for, as its harness says, and why.
    pub not_offered: Vec<(&'static str, &'static str)>,
}

/// A rule that does not hold.
#[derive(Debug)]
pub struct Failure {
    /// Its name.
    pub rule: &'static str,
    /// What was seen.
    pub detail: String,
}

/// How a check ends that found nothing wrong.
enum Checked {
    Holds,
    NotOffered(&'static str),
}

type Outcome = Result<Checked, String>;
type Rule = (&'static str, fn(&mut dyn Harness) -> Outcome);

/// Checks every rule in both directions, and says which were checked.
///
/// # Panics
/// With the rule's name where one does not hold.
pub fn run(harness: &mut dyn Harness) -> Report {
    match check(harness) {
        Ok(report) => report,
        Err(failure) => panic!("{}: {}", failure.rule, failure.detail),
    }
}

/// As [`run`], but returns the first rule that does not hold.
pub fn check(harness: &mut dyn Harness) -> Result<Report, Failure> {
    let mut report = Report::default();
    for (rule, check) in rules::RULES.iter().chain(port_rules::RULES).copied() {
        let forth = check(harness).map_err(|detail| Failure { rule, detail })?;
        let back = check(&mut Turned(harness)).map_err(|detail| Failure {
            rule,
            detail: detail + " (second end to first)",
        })?;
        match (forth, back) {
            (Checked::NotOffered(why), _) | (_, Checked::NotOffered(why)) => {
                report.not_offered.push((rule, why));
            }
            _ => report.checked.push(rule),
        }
    }
    Ok(report)
}

/// The same link, seen from its other end.
struct Turned<'a>(&'a mut dyn Harness);

impl Harness for Turned<'_> {
    fn connect(&mut self) -> (End, End) {
        let (first, second) = self.0.connect();
        (second, first)
    }

    fn hang_up(&mut self, end: End) {
        self.0.hang_up(end);
    }

    fn settle(&mut self) {
        self.0.settle();
    }

    fn may_lose(&self) -> bool {
        self.0.may_lose()
    }

    fn fills(&self) -> bool {
        self.0.fills()
    }

    fn sees_hang_up(&self) -> bool {
        self.0.sees_hang_up()
    }

    fn patience(&self) -> Duration {
        self.0.patience()
    }
}
