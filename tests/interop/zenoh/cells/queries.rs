//! Queries and replies.

use super::*;

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

pub fn query_of_nobody(case: &mut Case<'_>) -> Result<String, Failure> {
    let started = Instant::now();
    let replies = case.get(&Get::new(&case.key("q/nobody")))?;
    same(replies.len(), 0)?;
    if started.elapsed() >= NO_TIMEOUT {
        return Err("it ended by time-out".into());
    }
    Ok("ends at once without a reply".into())
}

pub fn reply(case: &mut Case<'_>) -> Result<String, Failure> {
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

pub fn no_reply(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.queryable(&[])?;
    let started = Instant::now();
    same(case.get(&Get::new(&case.key("q/none")))?.len(), 0)?;
    if started.elapsed() >= NO_TIMEOUT {
        return Err("it ended by time-out".into());
    }
    case.query(&id)?;
    case.giver.undeclare(&id)?;
    Ok("a query that gets none ends".into())
}

pub fn many_replies(case: &mut Case<'_>) -> Result<String, Failure> {
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

pub fn large_replies(case: &mut Case<'_>) -> Result<String, Failure> {
    const REPLIES: usize = 20;
    let size = if case.lossy { 2_000 } else { 100_000 };
    let payload = |n: usize| pattern(size, n as u8);
    let answers: Vec<Answer> = (0..REPLIES)
        .map(|n| Answer::put(&payload(n)).at(&case.key(&format!("q/{n:02}"))))
        .collect();
    let id = case.queryable(&answers)?;
    let mut replies = samples(case.get(&Get::new(&case.key("q/*")))?)?;
    replies.sort_by(|one, other| one.key.cmp(&other.key));
    same(replies.len(), REPLIES)?;
    for (n, sample) in replies.iter().enumerate() {
        same(&sample.payload, &Seen::of(&payload(n)))?;
    }
    case.giver.undeclare(&id)?;
    Ok(format!("{REPLIES} replies of {size} bytes"))
}

pub fn reply_options(case: &mut Case<'_>) -> Result<String, Failure> {
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

pub fn reply_delete(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.queryable(&[Answer::new(What::Delete)])?;
    let replies = samples(case.get(&Get::new(&case.key("q/gone")))?)?;
    same(replies.len(), 1)?;
    same(replies.iter().all(|sample| sample.delete), true)?;
    case.giver.undeclare(&id)?;
    Ok("a reply that says deleted".into())
}

pub fn reply_error(case: &mut Case<'_>) -> Result<String, Failure> {
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

pub fn query_parameters(case: &mut Case<'_>) -> Result<String, Failure> {
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

pub fn query_payload(case: &mut Case<'_>) -> Result<String, Failure> {
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

pub fn query_source_info(case: &mut Case<'_>) -> Result<String, Failure> {
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

pub fn query_quality(case: &mut Case<'_>) -> Result<String, Failure> {
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
            timeout: Some(SOON / 5),
            ..Get::new(&case.key("q/x"))
        };
        case.may_drop = !block;
        let replies = samples(case.get(&get)?)?;
        let seen: Vec<&Quality> = replies.iter().map(|sample| &sample.quality).collect();
        same(seen, vec![&quality])?;
    }
    case.giver.undeclare(&id)?;
    Ok("replies travel as their query did".into())
}

pub fn any_key(case: &mut Case<'_>) -> Result<String, Failure> {
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
pub fn target(case: &mut Case<'_>, target: Target) -> Result<Vec<String>, Failure> {
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

pub fn target_all(case: &mut Case<'_>) -> Result<String, Failure> {
    let seen = target(case, Target::All)?;
    same(seen, vec!["complete".to_owned(), "part".to_owned()])?;
    Ok("both of two queryables answer".into())
}

pub fn target_complete(case: &mut Case<'_>) -> Result<String, Failure> {
    let seen = target(case, Target::AllComplete)?;
    same(seen, vec!["complete".to_owned()])?;
    Ok("only the complete one of two answers".into())
}

/// Three samples of one key, the newest of which is in the middle.
pub fn consolidated(case: &mut Case<'_>, how: Consolidation) -> Result<Vec<String>, Failure> {
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

pub fn consolidation_none(case: &mut Case<'_>) -> Result<String, Failure> {
    let seen = consolidated(case, Consolidation::None)?;
    same(seen, vec!["old".to_owned(), "new".into(), "late".into()])?;
    Ok("three samples of one key, all of them".into())
}

pub fn consolidation_monotonic(case: &mut Case<'_>) -> Result<String, Failure> {
    let seen = consolidated(case, Consolidation::Monotonic)?;
    same(seen, vec!["old".to_owned(), "new".into()])?;
    Ok("three samples of one key, none that is older than the one before".into())
}

pub fn consolidation_latest(case: &mut Case<'_>) -> Result<String, Failure> {
    let seen = consolidated(case, Consolidation::Latest)?;
    same(seen, vec!["new".to_owned()])?;
    Ok("three samples of one key, the newest of them".into())
}

pub fn time_out(case: &mut Case<'_>) -> Result<String, Failure> {
    let (id, key) = (case.id("queries"), case.key("q/**"));
    case.giver
        .queryable(&id, &key, true, &[Answer::put(b"first")], true)?;
    case.settle()?;
    let get = Get {
        timeout: Some(Duration::from_secs(1)),
        consolidation: Consolidation::None,
        ..Get::new(&case.key("q/slow"))
    };
    let started = Instant::now();
    let replies = case.get(&get)?;
    let took = started.elapsed();
    if !(Duration::from_millis(950)..NO_TIMEOUT).contains(&took) {
        return Err(format!("it took {took:?} instead of 1 s"));
    }
    let first = |reply: &Reply| matches!(reply, Reply::Sample(sample) if sample.payload == Seen::of(b"first"));
    same(replies.iter().any(first), true)?;
    case.giver.release(&id)?;
    case.giver.undeclare(&id)?;
    Ok("ends when its time is up, with what came before".into())
}

pub fn many_queries(case: &mut Case<'_>) -> Result<String, Failure> {
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

pub fn undeclared_queryable(case: &mut Case<'_>) -> Result<String, Failure> {
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
