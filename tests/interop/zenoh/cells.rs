//! What is tried on every link and in both directions: a cell per feature.
//!
//! The giver publishes, or answers queries; the taker subscribes, or asks. A cell says what it saw.

use std::time::{Duration, Instant};

use sinew::pubsub::keyexpr::KeyExpr;

use crate::node::*;

/// How long anything may take that should come at once.
const SOON: Duration = Duration::from_secs(10);
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
}

pub type Cell = fn(&mut Case<'_>) -> Result<String, Failure>;

/// Every feature; a name without a cell is an empty cell, which fails.
pub const FEATURES: &[&str] = &[
    "put",
    "delete",
    "payload sizes",
    "key expressions",
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
        "put" => put,
        "delete" => delete,
        "payload sizes" => payload_sizes,
        "key expressions" => key_expressions,
        "many keys" => many_keys,
        "encodings" => encodings,
        "attachment" => attachment,
        "timestamp" => timestamp,
        "source info" => source_info,
        "priorities" => priorities,
        "express" => express,
        "congestion control" => congestion_control,
        "best effort" => best_effort,
        "mixed reliability" => mixed_reliability,
        "burst" => burst,
        "slow subscriber" => slow_subscriber,
        "write filter" => write_filter,
        "undeclared subscriber" => undeclared_subscriber,
        "query of nobody" => query_of_nobody,
        "reply" => reply,
        "no reply" => no_reply,
        "many replies" => many_replies,
        "reply options" => reply_options,
        "reply delete" => reply_delete,
        "reply error" => reply_error,
        "query parameters" => query_parameters,
        "query payload" => query_payload,
        "query source info" => query_source_info,
        "query quality" => query_quality,
        "any key" => any_key,
        "target all" => target_all,
        "target complete" => target_complete,
        "consolidation none" => consolidation_none,
        "consolidation monotonic" => consolidation_monotonic,
        "consolidation latest" => consolidation_latest,
        "time-out" => time_out,
        "many queries" => many_queries,
        "undeclared queryable" => undeclared_queryable,
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

/// The next event of this name; those of others are of cells that are over.
fn next(node: &mut dyn Node, id: &str) -> Result<Happened, Failure> {
    let end = Instant::now() + SOON;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match node.event(left)? {
            Some(event) if event.id == id => return Ok(event.what),
            Some(_) => {}
            None => return Err(format!("nothing seen by {id} in {SOON:?}")),
        }
    }
}

fn nothing(node: &mut dyn Node, id: &str) -> Result<(), Failure> {
    let end = Instant::now() + QUIET;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match node.event(left)? {
            Some(event) if event.id == id => {
                return Err(format!("{id} saw {:?}, expected nothing", event.what));
            }
            Some(_) => {}
            None => return Ok(()),
        }
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

    /// Puts, and returns what arrives, whose payload and key are right.
    fn put(&mut self, id: &str, payload: &[u8], with: &With) -> Result<Sample, Failure> {
        self.giver.put(id, payload, with)?;
        let sample = self.sample(id)?;
        same(&sample.payload, &Seen::of(payload))?;
        same(&sample.key, &self.key("k"))?;
        same(sample.delete, false)?;
        Ok(sample)
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

/// The samples of replies, none of which may be an error.
fn samples(replies: Vec<Reply>) -> Result<Vec<Sample>, Failure> {
    replies
        .into_iter()
        .map(|reply| match reply {
            Reply::Sample(sample) => Ok(sample),
            error => Err(format!("found {error:?}, expected a sample")),
        })
        .collect()
}

fn payloads(replies: Vec<Reply>) -> Result<Vec<String>, Failure> {
    let samples = samples(replies)?;
    Ok(samples
        .iter()
        .map(|sample| sample.payload.whole.as_deref().unwrap_or_default())
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .collect())
}

fn put(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.joined(&Quality::default(), true)?;
    for n in 0..10 {
        let sample = case.put(&id, format!("sample {n}").as_bytes(), &With::default())?;
        same(sample.encoding.as_str(), "zenoh/bytes")?;
        same((sample.attachment, sample.source), (None, None))?;
        same(sample.quality, Quality::default())?;
    }
    case.part(&id)?;
    Ok("10 samples in order, with what is so where nothing is said".into())
}

fn delete(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.joined(&Quality::default(), true)?;
    let with = With {
        attachment: Some(b"why".to_vec()),
        ..With::default()
    };
    case.giver.delete(&id, &with)?;
    let sample = case.sample(&id)?;
    same((sample.delete, sample.payload.len), (true, 0))?;
    same(sample.attachment, with.attachment)?;
    case.part(&id)?;
    Ok("a delete with its attachment".into())
}

fn payload_sizes(case: &mut Case<'_>) -> Result<String, Failure> {
    let quality = Quality {
        block: true,
        ..Quality::default()
    };
    let id = case.joined(&quality, true)?;
    let most = if case.lossy { 60_000 } else { 1 << 20 };
    let sizes = [
        0,
        1,
        127,
        128,
        1_400,
        2_040,
        2_048,
        16_383,
        16_384,
        49_120,
        49_150,
        60_000,
        65_500,
        65_535,
        65_536,
        200_000,
        1 << 20,
    ];
    let sizes: Vec<usize> = sizes.into_iter().filter(|size| *size <= most).collect();
    for size in &sizes {
        case.put(&id, &pattern(*size, *size as u8), &With::default())
            .map_err(|error| format!("{size} bytes: {error}"))?;
    }
    case.part(&id)?;
    Ok(format!("{} sizes up to {most} bytes", sizes.len()))
}

fn key_expressions(case: &mut Case<'_>) -> Result<String, Failure> {
    let expressions = [
        "a", "*", "**", "a/*", "a/**", "*/b", "**/b", "a/*/c", "$*a", "b$*", "a/@v/**", "@v",
        "**/@v", "*/**",
    ];
    let keys = [
        "a", "b", "ba", "a/b", "a/b/c", "a/@v", "a/@v/b", "@v", "c/b",
    ];
    for (n, expression) in expressions.iter().enumerate() {
        case.taker
            .subscribe(&case.id(&n.to_string()), &case.key(expression))?;
    }
    let mut deliveries = 0;
    for key in keys {
        let (id, key) = (case.id(key), case.key(key));
        case.giver.publisher(&id, &key, &Quality::default(), true)?;
        case.matched(&id)?;
        let matching: Vec<String> = (0..expressions.len())
            .filter(|n| {
                let expression = case.key(expressions[*n]);
                KeyExpr::unchecked(&expression).intersects(KeyExpr::unchecked(&key))
            })
            .map(|n| case.id(&n.to_string()))
            .collect();
        case.giver.put(&id, key.as_bytes(), &With::default())?;
        let mut seen = Vec::new();
        let end = Instant::now() + SOON;
        // All that should come, and then a moment for what should not.
        while Instant::now() < end {
            let patience = if seen.len() < matching.len() {
                SOON
            } else {
                QUIET
            };
            match case.taker.event(patience)? {
                Some(Event {
                    id,
                    what: Happened::Sample(sample),
                }) if sample.key == key => seen.push(id),
                Some(_) => {}
                None => break,
            }
        }
        seen.sort();
        let mut matching = matching;
        matching.sort();
        same(&seen, &matching).map_err(|error| format!("{key}: {error}"))?;
        deliveries += seen.len();
        case.giver.undeclare(&id)?;
    }
    for n in 0..expressions.len() {
        case.taker.undeclare(&case.id(&n.to_string()))?;
    }
    Ok(format!(
        "{} keys, {} expressions, {deliveries} deliveries",
        keys.len(),
        expressions.len()
    ))
}

fn many_keys(case: &mut Case<'_>) -> Result<String, Failure> {
    const KEYS: usize = 100;
    let all = case.id("all");
    case.taker.subscribe(&all, &case.key("many/*"))?;
    for n in 0..KEYS {
        let id = case.id(&n.to_string());
        case.giver.publisher(
            &id,
            &case.key(&format!("many/{n}")),
            &Quality::default(),
            true,
        )?;
        case.matched(&id)?;
    }
    for round in 0..3 {
        for n in 0..KEYS {
            let payload = format!("{round} {n}");
            case.giver.put(
                &case.id(&n.to_string()),
                payload.as_bytes(),
                &With::default(),
            )?;
            let sample = case.sample(&all)?;
            same(sample.payload, Seen::of(payload.as_bytes()))?;
            same(sample.key, case.key(&format!("many/{n}")))?;
        }
    }
    for n in 0..KEYS {
        case.giver.undeclare(&case.id(&n.to_string()))?;
    }
    case.taker.undeclare(&all)?;
    Ok(format!("{KEYS} keys at a time"))
}

fn encodings(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.joined(&Quality::default(), true)?;
    let all = [
        "zenoh/bytes",
        "zenoh/string",
        "zenoh/serialized",
        "text/plain",
        "application/json",
        "application/cbor",
        "application/protobuf",
        "text/json5",
        "image/png",
        "video/vp9",
        "text/plain;utf8",
        "application/protobuf;demo.Lamp",
        "zenoh/bytes;x/own",
    ];
    for encoding in all {
        let with = With {
            encoding: encoding.into(),
            ..With::default()
        };
        same(case.put(&id, b"?", &with)?.encoding.as_str(), encoding)?;
    }
    case.part(&id)?;
    Ok(format!("{} encodings, three with a schema", all.len()))
}

fn attachment(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.joined(&Quality::default(), true)?;
    for attachment in [&b"\0"[..], b"meta", &[0xff; 200]] {
        let with = With {
            attachment: Some(attachment.to_vec()),
            ..With::default()
        };
        let sample = case.put(&id, b"payload", &with)?;
        same(sample.attachment, with.attachment)?;
    }
    case.part(&id)?;
    Ok("of 1, 4 and 200 bytes".into())
}

fn timestamp(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.joined(&Quality::default(), true)?;
    // A router replaces what lies too far in the future: these lie in the past.
    for (time, clock) in [(1_u64 << 62, vec![1]), ((1 << 60) | (1 << 31), vec![7; 16])] {
        let with = With {
            timestamp: Some((time, clock)),
            ..With::default()
        };
        let sample = case.put(&id, b"then", &with)?;
        let stamp = sample.timestamp.ok_or("no timestamp")?;
        let (expected_time, clock) = with.timestamp.ok_or("no timestamp")?;
        same(stamp.0, expected_time)?;
        same(stamp.1.get(..clock.len()), Some(clock.as_slice()))?;
    }
    case.part(&id)?;
    Ok("time and clock as they were given".into())
}

fn source_info(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.joined(&Quality::default(), true)?;
    for number in [0, 1, 300, u32::MAX] {
        let with = With {
            source: Some(number),
            ..With::default()
        };
        let source = case.put(&id, b"who", &with)?.source;
        let source = source.ok_or("no source info")?;
        same((source.zid, source.number), (case.giver.zid(), number))?;
    }
    case.part(&id)?;
    Ok("the giver's id and numbers".into())
}

fn with_quality(case: &mut Case<'_>, quality: &Quality) -> Result<(), Failure> {
    let id = case.joined(quality, true)?;
    same(&case.put(&id, b"x", &With::default())?.quality, quality)?;
    case.part(&id)
}

fn priorities(case: &mut Case<'_>) -> Result<String, Failure> {
    for priority in 1..=7 {
        let quality = Quality {
            priority,
            ..Quality::default()
        };
        with_quality(case, &quality)?;
    }
    Ok("all seven arrive as they were given".into())
}

fn express(case: &mut Case<'_>) -> Result<String, Failure> {
    for express in [true, false] {
        let quality = Quality {
            express,
            ..Quality::default()
        };
        with_quality(case, &quality)?;
    }
    Ok("said and not said".into())
}

fn congestion_control(case: &mut Case<'_>) -> Result<String, Failure> {
    for block in [true, false] {
        let quality = Quality {
            block,
            ..Quality::default()
        };
        with_quality(case, &quality)?;
    }
    Ok("block and drop".into())
}

fn best_effort(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.joined(&Quality::default(), false)?;
    for n in 0..100_u32 {
        case.put(&id, &n.to_le_bytes(), &With::default())?;
    }
    case.part(&id)?;
    Ok("100 samples in order".into())
}

/// Publishes numbered payloads, counts them, and says what came.
fn counted(
    case: &mut Case<'_>,
    publishers: &[(&str, bool)],
    count: u32,
    size: usize,
    pause: Duration,
) -> Result<String, Failure> {
    let all = case.id("counted");
    case.taker.count(&all, &case.key("n/*"), pause)?;
    // What waits is not lost.
    let quality = Quality {
        block: true,
        ..Quality::default()
    };
    let mut ids = Vec::new();
    for (name, reliable) in publishers {
        let id = case.id(name);
        case.giver
            .publisher(&id, &case.key(&format!("n/{name}")), &quality, *reliable)?;
        case.matched(&id)?;
        ids.push(id);
    }
    let names: Vec<&str> = ids.iter().map(String::as_str).collect();
    case.giver.burst(&names, count, size)?;
    let sent = u64::from(count) * publishers.len() as u64;
    // Until all are there, or no more come.
    let (mut seen, mut since) = (Counted::default(), Instant::now());
    loop {
        let now = case.taker.counted(&all)?;
        if now.received > seen.received {
            since = Instant::now();
        }
        seen = now;
        let patience = if case.lossy {
            Duration::from_secs(1)
        } else {
            SOON
        };
        if seen.received >= sent || since.elapsed() > patience {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    for id in &ids {
        case.giver.undeclare(id)?;
    }
    case.taker.undeclare(&all)?;
    same(seen.backwards, 0)?;
    if !case.lossy || seen.received + seen.missing > sent {
        same((seen.received, seen.missing), (sent, 0))?;
    }
    if seen.received == 0 {
        return Err("none arrived".into());
    }
    let lost = sent - seen.received;
    Ok(format!(
        "{sent} samples of {size} bytes in order, {lost} lost"
    ))
}

fn mixed_reliability(case: &mut Case<'_>) -> Result<String, Failure> {
    let publishers = [("reliable", true), ("best-effort", false)];
    counted(case, &publishers, 3_000, 8, Duration::ZERO)
}

fn burst(case: &mut Case<'_>) -> Result<String, Failure> {
    counted(case, &[("one", true)], 20_000, 8, Duration::ZERO)
}

fn slow_subscriber(case: &mut Case<'_>) -> Result<String, Failure> {
    let pause = Duration::from_micros(200);
    counted(case, &[("one", true)], 2_000, 1_024, pause)
}

fn write_filter(case: &mut Case<'_>) -> Result<String, Failure> {
    let (id, key) = (case.id("samples"), case.key("k"));
    case.giver.publisher(&id, &key, &Quality::default(), true)?;
    same(case.giver.matching(&id)?, false)?;
    case.giver.put(&id, b"unheard", &With::default())?;
    for _ in 0..3 {
        case.taker.subscribe(&id, &key)?;
        case.matched(&id)?;
        case.put(&id, b"heard", &With::default())?;
        case.taker.undeclare(&id)?;
        until("nobody subscribes", || Ok(!case.giver.matching(&id)?))?;
    }
    case.giver.undeclare(&id)?;
    Ok("opened and closed three times; nothing old arrives".into())
}

fn undeclared_subscriber(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.joined(&Quality::default(), true)?;
    let other = case.id("other");
    case.taker.subscribe(&other, &case.key("*"))?;
    case.put(&id, b"for both", &With::default())?;
    case.taker.undeclare(&id)?;
    case.giver.put(&id, b"for the other", &With::default())?;
    // The first one's copy of "for both" may stand before it.
    loop {
        if case.sample(&other)?.payload == Seen::of(b"for the other") {
            break;
        }
    }
    nothing(case.taker, &id)?;
    case.giver.undeclare(&id)?;
    case.taker.undeclare(&other)?;
    Ok("hears no more, while another one still does".into())
}

fn query_of_nobody(case: &mut Case<'_>) -> Result<String, Failure> {
    let started = Instant::now();
    let replies = case.get(&Get::new(&case.key("q/nobody")))?;
    same(replies.len(), 0)?;
    if started.elapsed() > Duration::from_secs(5) {
        return Err("it ended by time-out".into());
    }
    Ok("ends at once without a reply".into())
}

fn reply(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.queryable(&[Answer::put(b"answer")])?;
    let get = Get::new(&case.key("q/one"));
    let replies = samples(case.get(&get)?)?;
    same(replies.len(), 1)?;
    for sample in replies {
        same(
            (sample.key, sample.payload),
            (get.key.clone(), Seen::of(b"answer")),
        )?;
    }
    let query = case.query(&id)?;
    same((query.key, query.parameters.as_str()), (get.key, ""))?;
    same((query.payload, query.attachment), (None, None))?;
    case.giver.undeclare(&id)?;
    Ok("one answer, on the key of the query".into())
}

fn no_reply(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.queryable(&[])?;
    let started = Instant::now();
    same(case.get(&Get::new(&case.key("q/none")))?.len(), 0)?;
    if started.elapsed() > Duration::from_secs(5) {
        return Err("it ended by time-out".into());
    }
    case.query(&id)?;
    case.giver.undeclare(&id)?;
    Ok("a query that gets none ends".into())
}

fn many_replies(case: &mut Case<'_>) -> Result<String, Failure> {
    const REPLIES: usize = 200;
    let keys: Vec<String> = (0..REPLIES)
        .map(|n| case.key(&format!("q/{n:03}")))
        .collect();
    let answers: Vec<Answer> = keys
        .iter()
        .map(|key| Answer::put(key.as_bytes()).at(key))
        .collect();
    let id = case.queryable(&answers)?;
    let replies = samples(case.get(&Get::new(&case.key("q/*")))?)?;
    let mut seen: Vec<String> = replies.iter().map(|sample| sample.key.clone()).collect();
    seen.sort();
    same(seen, keys)?;
    for sample in replies {
        same(sample.payload, Seen::of(sample.key.as_bytes()))?;
    }
    case.giver.undeclare(&id)?;
    Ok(format!(
        "{REPLIES} replies on keys of their own, then the end"
    ))
}

fn reply_options(case: &mut Case<'_>) -> Result<String, Failure> {
    let mut answer = Answer::put(b"{}");
    answer.with = With {
        encoding: "application/json;v1".into(),
        attachment: Some(b"at".to_vec()),
        timestamp: Some((1 << 62, vec![9; 16])),
        source: None,
    };
    let id = case.queryable(&[answer.clone()])?;
    let replies = samples(case.get(&Get::new(&case.key("q/one")))?)?;
    same(replies.len(), 1)?;
    for sample in replies {
        same(sample.encoding, answer.with.encoding.clone())?;
        same(sample.attachment, answer.with.attachment.clone())?;
        same(sample.timestamp, answer.with.timestamp.clone())?;
    }
    case.giver.undeclare(&id)?;
    Ok("encoding with schema, attachment and timestamp of a reply".into())
}

fn reply_delete(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.queryable(&[Answer::new(What::Delete)])?;
    let replies = samples(case.get(&Get::new(&case.key("q/gone")))?)?;
    same(replies.len(), 1)?;
    same(replies.iter().all(|sample| sample.delete), true)?;
    case.giver.undeclare(&id)?;
    Ok("a reply that says deleted".into())
}

fn reply_error(case: &mut Case<'_>) -> Result<String, Failure> {
    let mut answer = Answer::new(What::Error(b"bad".to_vec()));
    answer.with.encoding = "text/plain".into();
    let id = case.queryable(&[answer, Answer::put(b"good")])?;
    let replies = case.get(&Get::new(&case.key("q/error")))?;
    same(replies.len(), 2)?;
    let error = Reply::Error {
        payload: Seen::of(b"bad"),
        encoding: "text/plain".into(),
    };
    same(replies.contains(&error), true)?;
    case.giver.undeclare(&id)?;
    Ok("an error with its encoding, beside a sample".into())
}

fn query_parameters(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.queryable(&[Answer::put(b"")])?;
    for parameters in ["a=1", "a=1;b=é;c", "_time=[now(-1h)..now()]"] {
        let get = Get {
            parameters: parameters.into(),
            ..Get::new(&case.key("q/p"))
        };
        same(case.get(&get)?.len(), 1)?;
        same(case.query(&id)?.parameters.as_str(), parameters)?;
    }
    case.giver.undeclare(&id)?;
    Ok("three strings of parameters".into())
}

fn query_payload(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.queryable(&[Answer::new(What::Echo)])?;
    let most = if case.lossy { 60_000 } else { 100_000 };
    for size in [0, 1, 4_096, most] {
        let payload = pattern(size, 3);
        let get = Get {
            payload: Some(payload.clone()),
            with: With {
                encoding: "application/cbor".into(),
                attachment: Some(b"qa".to_vec()),
                ..With::default()
            },
            ..Get::new(&case.key("q/echo"))
        };
        let replies = samples(case.get(&get)?)?;
        let seen: Vec<&Seen> = replies.iter().map(|sample| &sample.payload).collect();
        same(seen, vec![&Seen::of(&payload)])?;
        let query = case.query(&id)?;
        same(query.payload, Some(Seen::of(&payload)))?;
        same(query.encoding.as_deref(), Some("application/cbor"))?;
        same(query.attachment.as_deref(), Some(&b"qa"[..]))?;
    }
    case.giver.undeclare(&id)?;
    Ok(format!(
        "up to {most} bytes and back, with encoding and attachment"
    ))
}

fn query_source_info(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.queryable(&[Answer::put(b"")])?;
    let get = Get {
        with: With {
            source: Some(77),
            ..With::default()
        },
        ..Get::new(&case.key("q/s"))
    };
    case.get(&get)?;
    let source = case.query(&id)?.source.ok_or("no source info")?;
    same((source.zid, source.number), (case.taker.zid(), 77))?;
    case.giver.undeclare(&id)?;
    Ok("the asker's id and number".into())
}

fn query_quality(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.queryable(&[Answer::put(b"as you like")])?;
    for quality in [
        (1, true, true),
        (7, false, false),
        (3, true, false),
        (5, false, true),
    ] {
        let (priority, block, express) = quality;
        let quality = Quality {
            priority,
            block,
            express,
        };
        let get = Get {
            quality: Some(quality.clone()),
            ..Get::new(&case.key("q/x"))
        };
        let replies = samples(case.get(&get)?)?;
        let seen: Vec<&Quality> = replies.iter().map(|sample| &sample.quality).collect();
        same(seen, vec![&quality])?;
    }
    case.giver.undeclare(&id)?;
    Ok("replies travel as their query did".into())
}

fn any_key(case: &mut Case<'_>) -> Result<String, Failure> {
    let elsewhere = case.key("elsewhere");
    let (id, key) = (case.id("queries"), case.key("q/**"));
    let get = Get {
        any_key: true,
        ..Get::new(&case.key("q/x"))
    };
    let answers = [Answer::put(b"far").at(&elsewhere)];
    case.giver.queryable(&id, &key, true, &answers, false)?;
    case.settle()?;
    let replies = samples(case.get(&get)?)?;
    let keys: Vec<&str> = replies.iter().map(|sample| sample.key.as_str()).collect();
    same(keys, vec![elsewhere.as_str()])?;
    same(case.query(&id)?.any_key, true)?;
    case.giver.undeclare(&id)?;
    Ok("a reply on another key than the query's, where that is allowed".into())
}

/// A queryable that is complete and one that is not, and what answers to a target.
fn target(case: &mut Case<'_>, target: Target) -> Result<Vec<String>, Failure> {
    let (complete, part) = (case.id("complete"), case.id("part"));
    let (all, few) = (case.key("q/**"), case.key("q/few"));
    let answer = |text: &str| {
        let key = format!("{}/{text}", few.trim_end_matches("/few"));
        [Answer::put(text.as_bytes()).at(&key)]
    };
    case.giver
        .queryable(&complete, &all, true, &answer("complete"), false)?;
    case.giver
        .queryable(&part, &few, false, &answer("part"), false)?;
    case.settle()?;
    let get = Get {
        target,
        ..Get::new(&case.key("q/*"))
    };
    let mut seen = payloads(case.get(&get)?)?;
    seen.sort();
    case.giver.undeclare(&complete)?;
    case.giver.undeclare(&part)?;
    Ok(seen)
}

fn target_all(case: &mut Case<'_>) -> Result<String, Failure> {
    let seen = target(case, Target::All)?;
    same(seen, vec!["complete".to_owned(), "part".to_owned()])?;
    Ok("both of two queryables answer".into())
}

fn target_complete(case: &mut Case<'_>) -> Result<String, Failure> {
    let seen = target(case, Target::AllComplete)?;
    same(seen, vec!["complete".to_owned()])?;
    Ok("only the complete one of two answers".into())
}

/// Three samples of one key, the newest of which is in the middle.
fn consolidated(case: &mut Case<'_>, how: Consolidation) -> Result<Vec<String>, Failure> {
    let stamped = |text: &str, seconds: u64| {
        let mut answer = Answer::put(text.as_bytes());
        answer.with.timestamp = Some((seconds << 32, vec![1]));
        answer
    };
    let id = case.queryable(&[
        stamped("old", 1000),
        stamped("new", 3000),
        stamped("late", 2000),
    ])?;
    let get = Get {
        consolidation: how,
        ..Get::new(&case.key("q/one"))
    };
    let seen = payloads(case.get(&get)?)?;
    case.giver.undeclare(&id)?;
    Ok(seen)
}

fn consolidation_none(case: &mut Case<'_>) -> Result<String, Failure> {
    let seen = consolidated(case, Consolidation::None)?;
    same(seen, vec!["old".to_owned(), "new".into(), "late".into()])?;
    Ok("three samples of one key, all of them".into())
}

fn consolidation_monotonic(case: &mut Case<'_>) -> Result<String, Failure> {
    let seen = consolidated(case, Consolidation::Monotonic)?;
    same(seen, vec!["old".to_owned(), "new".into()])?;
    Ok("three samples of one key, none that is older than the one before".into())
}

fn consolidation_latest(case: &mut Case<'_>) -> Result<String, Failure> {
    let seen = consolidated(case, Consolidation::Latest)?;
    same(seen, vec!["new".to_owned()])?;
    Ok("three samples of one key, the newest of them".into())
}

fn time_out(case: &mut Case<'_>) -> Result<String, Failure> {
    let (id, key) = (case.id("queries"), case.key("q/**"));
    case.giver
        .queryable(&id, &key, true, &[Answer::put(b"first")], true)?;
    case.settle()?;
    let get = Get {
        timeout: Some(Duration::from_millis(300)),
        consolidation: Consolidation::None,
        ..Get::new(&case.key("q/slow"))
    };
    let started = Instant::now();
    let replies = case.get(&get)?;
    let took = started.elapsed();
    if !(Duration::from_millis(250)..Duration::from_secs(3)).contains(&took) {
        return Err(format!("it took {took:?} instead of 0.3 s"));
    }
    let first = |reply: &Reply| matches!(reply, Reply::Sample(sample) if sample.payload == Seen::of(b"first"));
    same(replies.iter().any(first), true)?;
    case.giver.release(&id)?;
    case.giver.undeclare(&id)?;
    Ok("ends when its time is up, with what came before".into())
}

fn many_queries(case: &mut Case<'_>) -> Result<String, Failure> {
    const QUERIES: usize = 50;
    let (id, key) = (case.id("queries"), case.key("q/**"));
    case.giver
        .queryable(&id, &key, true, &[Answer::new(What::Echo)], true)?;
    case.settle()?;
    let name = |n: usize| format!("get {n} of many");
    for n in 0..QUERIES {
        let get = Get {
            payload: Some(name(n).into_bytes()),
            ..Get::new(&case.key("q/many"))
        };
        case.taker.get(&name(n), &get)?;
    }
    for _ in 0..QUERIES {
        case.query(&id)?;
    }
    case.giver.release(&id)?;
    let mut open = [false; QUERIES];
    let mut ended = 0;
    while ended < QUERIES {
        let event = case.taker.event(SOON)?.ok_or("a query does not end")?;
        let Some(n) = (0..QUERIES).find(|n| event.id == name(*n)) else {
            continue;
        };
        match event.what {
            Happened::Reply(Reply::Sample(sample)) => {
                same(sample.payload, Seen::of(name(n).as_bytes()))?;
                same(std::mem::replace(&mut open[n], true), false)?;
            }
            Happened::End => {
                same(open[n], true)?;
                ended += 1;
            }
            other => return Err(format!("found {other:?}, expected a reply")),
        }
    }
    case.giver.undeclare(&id)?;
    Ok(format!("{QUERIES} open at a time, each with its own reply"))
}

fn undeclared_queryable(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.queryable(&[Answer::put(b"here")])?;
    let get = Get::new(&case.key("q/x"));
    same(case.get(&get)?.len(), 1)?;
    case.query(&id)?;
    case.giver.undeclare(&id)?;
    case.settle()?;
    same(case.get(&get)?.len(), 0)?;
    nothing(case.giver, &id)?;
    Ok("answers no more".into())
}
