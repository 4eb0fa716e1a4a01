//! What is tried on every link and in both directions: a cell per feature.
//!
//! The giver publishes, or answers queries; the taker subscribes, or asks. A cell says what it saw.

mod queries;
mod samples;

use std::time::{Duration, Instant};

use crate::node::*;

/// Longer than anything takes that comes about at all.
const SOON: Duration = Duration::from_secs(60);
/// How long nothing must come, where nothing should.
const QUIET: Duration = Duration::from_millis(50);

/// Two nodes with a session between them, and the name of the cell.
pub struct Case<'c> {
    pub giver: &'c mut dyn Node,
    pub taker: &'c mut dyn Node,
    /// What is declared for a cell begins with its name, so that no cell sees another's.
    pub name: &'static str,
    /// Samples may be lost: no payload far above a datagram, no count that must be full.
    pub lossy: bool,
    /// What the giver sends may be dropped by it.
    pub may_drop: bool,
}

pub type Cell = fn(&mut Case<'_>) -> Result<String, Failure>;

/// Every feature; a name without a cell is an empty cell, which fails.
pub const FEATURES: &[&str] = &[
    "put",
    "delete",
    "payload sizes",
    "key expressions",
    "long keys",
    "many keys",
    "encodings",
    "attachment",
    "timestamp",
    "source info",
    "priorities",
    "express",
    "congestion control",
    "best effort",
    "mixed reliability",
    "burst",
    "slow subscriber",
    "write filter",
    "undeclared subscriber",
    "query of nobody",
    "reply",
    "no reply",
    "many replies",
    "large replies",
    "reply options",
    "reply delete",
    "reply error",
    "query parameters",
    "query payload",
    "query source info",
    "query quality",
    "any key",
    "target all",
    "target complete",
    "consolidation none",
    "consolidation monotonic",
    "consolidation latest",
    "time-out",
    "many queries",
    "undeclared queryable",
];

pub fn cell(feature: &str) -> Option<Cell> {
    Some(match feature {
        "put" => samples::put,
        "delete" => samples::delete,
        "payload sizes" => samples::payload_sizes,
        "key expressions" => samples::key_expressions,
        "long keys" => samples::long_keys,
        "many keys" => samples::many_keys,
        "encodings" => samples::encodings,
        "attachment" => samples::attachment,
        "timestamp" => samples::timestamp,
        "source info" => samples::source_info,
        "priorities" => samples::priorities,
        "express" => samples::express,
        "congestion control" => samples::congestion_control,
        "best effort" => samples::best_effort,
        "mixed reliability" => samples::mixed_reliability,
        "burst" => samples::burst,
        "slow subscriber" => samples::slow_subscriber,
        "write filter" => samples::write_filter,
        "undeclared subscriber" => samples::undeclared_subscriber,
        "query of nobody" => queries::query_of_nobody,
        "reply" => queries::reply,
        "no reply" => queries::no_reply,
        "many replies" => queries::many_replies,
        "large replies" => queries::large_replies,
        "reply options" => queries::reply_options,
        "reply delete" => queries::reply_delete,
        "reply error" => queries::reply_error,
        "query parameters" => queries::query_parameters,
        "query payload" => queries::query_payload,
        "query source info" => queries::query_source_info,
        "query quality" => queries::query_quality,
        "any key" => queries::any_key,
        "target all" => queries::target_all,
        "target complete" => queries::target_complete,
        "consolidation none" => queries::consolidation_none,
        "consolidation monotonic" => queries::consolidation_monotonic,
        "consolidation latest" => queries::consolidation_latest,
        "time-out" => queries::time_out,
        "many queries" => queries::many_queries,
        "undeclared queryable" => queries::undeclared_queryable,
        _ => return None,
    })
}

/// Waits for something that the other side does by itself.
fn until(what: &str, mut seen: impl FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
    let end = Instant::now() + SOON;
    while !seen()? {
        if Instant::now() > end {
            return Err(format!("not seen in {SOON:?}: {what}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Result<(), Failure> {
    if found == expected {
        return Ok(());
    }
    Err(format!("found {found:?}, expected {expected:?}"))
}

/// The next event of this name, if it comes in this time; those of others are of cells that are
/// over.
fn next_within(
    node: &mut dyn Node,
    id: &str,
    patience: Duration,
) -> Result<Option<Happened>, Failure> {
    let end = Instant::now() + patience;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match node.event(left)? {
            Some(event) if event.id == id => return Ok(Some(event.what)),
            Some(_) => {}
            None => return Ok(None),
        }
    }
}

fn next(node: &mut dyn Node, id: &str) -> Result<Happened, Failure> {
    let seen = next_within(node, id, SOON)?;
    seen.ok_or(format!("nothing seen by {id} in {SOON:?}"))
}

fn nothing(node: &mut dyn Node, id: &str) -> Result<(), Failure> {
    match next_within(node, id, QUIET)? {
        Some(seen) => Err(format!("{id} saw {seen:?}, expected nothing")),
        None => Ok(()),
    }
}

impl Case<'_> {
    fn key(&self, rest: &str) -> String {
        format!("{}/{rest}", self.name.replace(' ', "-"))
    }

    fn id(&self, rest: &str) -> String {
        format!("{}: {rest}", self.name)
    }

    /// Declares a subscriber and a publisher of the same key, and waits until they know of each
    /// other. Returns their name.
    fn joined(&mut self, quality: &Quality, reliable: bool) -> Result<String, Failure> {
        let (id, key) = (self.id("samples"), self.key("k"));
        self.may_drop = !quality.block || !reliable;
        self.taker.subscribe(&id, &key)?;
        self.giver.publisher(&id, &key, quality, reliable)?;
        self.matched(&id)?;
        Ok(id)
    }

    fn matched(&mut self, id: &str) -> Result<(), Failure> {
        until("a match", || self.giver.matching(id))
    }

    /// Undeclares a publisher and a subscriber of this name.
    fn part(&mut self, id: &str) -> Result<(), Failure> {
        self.giver.undeclare(id)?;
        self.taker.undeclare(id)
    }

    /// Waits until all that the giver has declared is known to the taker: what is declared later
    /// arrives later.
    fn settle(&mut self) -> Result<(), Failure> {
        let (id, key) = (self.id("settled"), self.key("settled"));
        self.giver.subscribe(&id, &key)?;
        self.taker.publisher(&id, &key, &Quality::default(), true)?;
        until("what was declared", || self.taker.matching(&id))?;
        self.part(&id)
    }

    fn sample(&mut self, id: &str) -> Result<Sample, Failure> {
        match next(self.taker, id)? {
            Happened::Sample(sample) => Ok(sample),
            other => Err(format!("found {other:?}, expected a sample")),
        }
    }

    /// Puts, and returns what arrives, whose payload and key are right. Where samples may be lost,
    /// it tries again.
    fn put(&mut self, id: &str, payload: &[u8], with: &With) -> Result<Sample, Failure> {
        let (tries, patience) = if self.lossy { (5, SOON / 5) } else { (1, SOON) };
        for _ in 0..tries {
            self.giver.put(id, payload, with)?;
            let sample = match next_within(self.taker, id, patience)? {
                Some(Happened::Sample(sample)) => sample,
                Some(other) => return Err(format!("found {other:?}, expected a sample")),
                None => continue,
            };
            same(&sample.payload, &Seen::of(payload))?;
            same(&sample.key, &self.key("k"))?;
            same(sample.delete, false)?;
            return Ok(sample);
        }
        Err(format!("nothing seen by {id}, put {tries} times"))
    }

    fn queryable(&mut self, answers: &[Answer]) -> Result<String, Failure> {
        let (id, key) = (self.id("queries"), self.key("q/**"));
        self.giver.queryable(&id, &key, true, answers, false)?;
        self.settle()?;
        Ok(id)
    }

    /// Asks, and returns all replies.
    fn get(&mut self, get: &Get) -> Result<Vec<Reply>, Failure> {
        let id = self.id("get");
        self.taker.get(&id, get)?;
        let mut replies = Vec::new();
        loop {
            match next(self.taker, &id)? {
                Happened::Reply(reply) => replies.push(reply),
                Happened::End => return Ok(replies),
                other => return Err(format!("found {other:?}, expected a reply")),
            }
        }
    }

    fn query(&mut self, id: &str) -> Result<Query, Failure> {
        match next(self.giver, id)? {
            Happened::Query(query) => Ok(query),
            other => Err(format!("found {other:?}, expected a query")),
        }
    }
}
