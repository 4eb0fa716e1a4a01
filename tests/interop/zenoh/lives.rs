//! Sessions whose other side ends, comes back, or stops reading; and a million samples.
//!
//! Each takes the subject's maker, so that it is proved by Zenoh with itself too.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::node::*;
use crate::peer::{Peer, Real};

/// Reconnecting takes time: Zenoh tries again after a second, then two, then four.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a test says of itself, or why it failed.
pub type Life = fn(&dyn Maker, u32) -> Result<String, Failure>;

/// Every one of these, with its name.
pub const LIVES: &[(&str, Life)] = &[
    ("a router that is killed and started again", router_restarts),
    ("a peer that is killed and started again", peer_restarts),
    ("a subscriber that stops reading for a while", reader_stops),
    ("many samples through a router, given", |subject, count| {
        million(subject, count, true, true, false)
    }),
    ("many samples through a router, taken", |subject, count| {
        million(subject, count, true, false, false)
    }),
    ("many samples to a peer", |subject, count| {
        million(subject, count, false, true, false)
    }),
    ("many samples from a peer", |subject, count| {
        million(subject, count, false, false, false)
    }),
    ("many samples to a peer that is slow", |subject, count| {
        million(subject, count, false, true, true)
    }),
    (
        "many samples from a peer, taken slowly",
        |subject, count| million(subject, count, false, false, true),
    ),
];

fn any_tcp() -> At {
    At::any(Kind::Tcp, Path::new(""))
}

fn at(peer: &Peer) -> Result<At, Failure> {
    peer.at()
        .first()
        .cloned()
        .ok_or("it does not listen".into())
}

/// Puts until one of the samples arrives; those of before may be lost.
fn flows(giver: &mut dyn Node, taker: &mut dyn Node, id: &str, text: &str) -> Result<(), Failure> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        // A session that is down may refuse.
        let _ = giver.put(id, text.as_bytes(), &With::default());
        let seen = taker.event(Duration::from_millis(100))?;
        if let Some(Happened::Sample(sample)) = seen.map(|event| event.what)
            && sample.payload == Seen::of(text.as_bytes())
        {
            return Ok(());
        }
    }
    Err(format!("no {text:?} in {PATIENCE:?}"))
}

/// What one side declares: a publisher, a subscriber and a queryable.
fn declare_one(node: &mut dyn Node, own: &str, other: &str) -> Result<(), Failure> {
    let quality = Quality::default();
    node.publisher("out", &format!("lives/{own}"), &quality, true)?;
    node.subscribe("in", &format!("lives/{other}"))?;
    let answers = [Answer::put(own.as_bytes())];
    node.queryable("asked", &format!("lives/of/{own}"), true, &answers, false)
}

/// Of everything something on each side.
pub fn declare(a: &mut dyn Node, b: &mut dyn Node) -> Result<(), Failure> {
    declare_one(a, "a", "b")?;
    declare_one(b, "b", "a")
}

/// Samples, queries and what is known of subscribers, both ways.
pub fn both_ways(a: &mut dyn Node, b: &mut dyn Node, text: &str) -> Result<(), Failure> {
    flows(a, b, "out", &format!("{text}, one way"))?;
    flows(b, a, "out", &format!("{text}, the other"))?;
    answers(a, "b")?;
    answers(b, "a")?;
    match a.matching("out")? && b.matching("out")? {
        true => Ok(()),
        false => Err(format!("{text}: a subscriber is not known")),
    }
}

/// Asks until there is an answer.
fn answers(node: &mut dyn Node, of: &str) -> Result<(), Failure> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let get = Get {
            timeout: Some(Duration::from_secs(2)),
            ..Get::new(&format!("lives/of/{of}"))
        };
        // A session that is down may refuse.
        if node.get("get", &get).is_err() {
            std::thread::sleep(Duration::from_millis(50));
            continue;
        }
        let mut answered = false;
        loop {
            let event = node.event(PATIENCE)?.ok_or("a query that does not end")?;
            match event.what {
                Happened::Reply(Reply::Sample(sample)) => {
                    answered |= sample.payload == Seen::of(of.as_bytes());
                }
                Happened::End if event.id == "get" => break,
                _ => {}
            }
        }
        if answered {
            return Ok(());
        }
    }
    Err(format!("no answer of {of} in {PATIENCE:?}"))
}

fn router_restarts(subject: &dyn Maker, _samples: u32) -> Result<String, Failure> {
    let mut router = Peer::router(&any_tcp())?;
    let at = at(&router)?;
    let (mut a, mut b) = (subject.client(&at)?, Real.client(&at)?);
    declare(a.as_mut(), b.as_mut())?;
    both_ways(a.as_mut(), b.as_mut(), "before")?;
    let mut took = Vec::new();
    for round in 0..2 {
        let started = Instant::now();
        router.kill();
        router = Peer::router(&at)?;
        both_ways(a.as_mut(), b.as_mut(), &format!("after {round}"))?;
        took.push(format!("{:.1} s", started.elapsed().as_secs_f32()));
    }
    a.close()?;
    b.close()?;
    Ok(format!("samples both ways after {}", took.join(" and ")))
}

fn peer_restarts(subject: &dyn Maker, _samples: u32) -> Result<String, Failure> {
    let listens = |at: &At| Peer::start("peer", std::slice::from_ref(at), &[], &[]);
    let mut real = listens(&any_tcp())?;
    let at = at(&real)?;
    let mut a = subject.opens(&at)?;
    declare(a.as_mut(), &mut real)?;
    both_ways(a.as_mut(), &mut real, "before")?;
    real.kill();
    let started = Instant::now();
    let mut real = listens(&at)?;
    declare_one(&mut real, "b", "a")?;
    both_ways(a.as_mut(), &mut real, "after")?;
    let took = started.elapsed();
    a.close()?;
    Ok(format!(
        "samples both ways after {:.1} s",
        took.as_secs_f32()
    ))
}

fn reader_stops(subject: &dyn Maker, _samples: u32) -> Result<String, Failure> {
    const COUNT: u32 = 20_000;
    let mut real = Peer::start("peer", &[any_tcp()], &[], &[])?;
    let mut a = subject.opens(&at(&real)?)?;
    declare(a.as_mut(), &mut real)?;
    both_ways(a.as_mut(), &mut real, "before")?;
    real.count("counted", "stops/*", Duration::ZERO)?;
    a.publisher("drop", "stops/drop", &Quality::default(), true)?;
    while !a.matching("drop")? {
        std::thread::sleep(Duration::from_millis(5));
    }
    real.suspend();
    let started = Instant::now();
    // 20 MB, far more than sockets hold: what is allowed to drop must not wait for ever.
    a.burst(&["drop"], COUNT, 1_024)?;
    let took = started.elapsed();
    real.resume();
    both_ways(a.as_mut(), &mut real, "after")?;
    let counted = real.counted("counted")?;
    a.close()?;
    if counted.backwards > 0 || counted.received >= COUNT.into() {
        return Err(format!("{counted:?} of {COUNT}"));
    }
    if took > Duration::from_secs(60) {
        return Err(format!("{COUNT} samples that may drop took {took:?}"));
    }
    Ok(format!(
        "{} of {COUNT} arrived, in order, and sending took {:.1} s",
        counted.received,
        took.as_secs_f32()
    ))
}

/// One who is slow gets a fiftieth.
fn million(
    subject: &dyn Maker,
    count: u32,
    through: bool,
    gives: bool,
    slow: bool,
) -> Result<String, Failure> {
    let (count, size, pause) = match slow {
        false => (count, 8, Duration::ZERO),
        // More than sockets hold, so that the giver has to wait.
        true => (count / 50, 1_024, Duration::from_micros(50)),
    };
    let (router, mut a, mut b);
    if through {
        router = Peer::router(&any_tcp())?;
        let at = at(&router)?;
        (a, b) = (subject.client(&at)?, Real.client(&at)?);
    } else {
        let at;
        (b, at) = Real.listens(&any_tcp())?;
        a = subject.opens(&at)?;
    }
    let (giver, taker) = if gives {
        (&mut a, &mut b)
    } else {
        (&mut b, &mut a)
    };
    let quality = Quality {
        block: true,
        ..Quality::default()
    };
    taker.count("all", "million/*", pause)?;
    giver.publisher("one", "million/one", &quality, true)?;
    while !giver.matching("one")? {
        std::thread::sleep(Duration::from_millis(5));
    }
    let started = Instant::now();
    giver.burst(&["one"], count, size)?;
    let (mut seen, mut since) = (Counted::default(), Instant::now());
    while seen.received < count.into() && since.elapsed() < PATIENCE {
        let now = taker.counted("all")?;
        if now.received > seen.received {
            since = Instant::now();
        }
        seen = now;
        std::thread::sleep(Duration::from_millis(20));
    }
    let took = started.elapsed();
    a.close()?;
    b.close()?;
    let expected = Counted {
        received: count.into(),
        ..Counted::default()
    };
    if seen != expected {
        return Err(format!("{seen:?} of {count}"));
    }
    Ok(format!(
        "{count} in order, none lost, in {:.1} s",
        took.as_secs_f32()
    ))
}
