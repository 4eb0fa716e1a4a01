//! Samples: what is published, and who hears it.

use sinew::pubsub::keyexpr::KeyExpr;

use super::*;

pub fn put(case: &mut Case<'_>) -> Result<String, Failure> {
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

pub fn delete(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.joined(&Quality::BLOCKING, true)?;
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

pub fn payload_sizes(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.joined(&Quality::BLOCKING, true)?;
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

pub fn key_expressions(case: &mut Case<'_>) -> Result<String, Failure> {
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
        case.giver.publisher(&id, &key, &Quality::BLOCKING, true)?;
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

pub fn long_keys(case: &mut Case<'_>) -> Result<String, Failure> {
    let lengths: &[usize] = match case.lossy {
        true => &[300, 1_000],
        false => &[300, 5_000, 65_000],
    };
    for length in lengths {
        let (id, key) = (case.id(&length.to_string()), case.key(&"k".repeat(*length)));
        case.taker.subscribe(&id, &key)?;
        let quality = Quality::default();
        case.giver.publisher(&id, &key, &quality, true)?;
        case.matched(&id)?;
        let mut seen = None;
        until("a sample", || {
            case.giver.put(&id, b"on", &With::default())?;
            seen = next_within(case.taker, &id, SOON / 5)?;
            Ok(seen.is_some())
        })?;
        match seen {
            Some(Happened::Sample(sample)) => same(sample.key == key, true)?,
            other => return Err(format!("found {other:?}, expected a sample")),
        }
        case.part(&id)?;
    }
    Ok(format!("{lengths:?} bytes"))
}

pub fn many_keys(case: &mut Case<'_>) -> Result<String, Failure> {
    const KEYS: usize = 100;
    let all = case.id("all");
    case.taker.subscribe(&all, &case.key("many/*"))?;
    for n in 0..KEYS {
        let id = case.id(&n.to_string());
        case.giver.publisher(
            &id,
            &case.key(&format!("many/{n}")),
            &Quality::BLOCKING,
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

pub fn encodings(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.joined(&Quality::BLOCKING, true)?;
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

pub fn attachment(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.joined(&Quality::BLOCKING, true)?;
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

pub fn timestamp(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.joined(&Quality::BLOCKING, true)?;
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

pub fn source_info(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.joined(&Quality::BLOCKING, true)?;
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

pub fn with_quality(case: &mut Case<'_>, quality: &Quality) -> Result<(), Failure> {
    let id = case.joined(quality, true)?;
    same(&case.put(&id, b"x", &With::default())?.quality, quality)?;
    case.part(&id)
}

pub fn priorities(case: &mut Case<'_>) -> Result<String, Failure> {
    for priority in 1..=7 {
        let quality = Quality {
            priority,
            ..Quality::BLOCKING
        };
        with_quality(case, &quality)?;
    }
    Ok("all seven arrive as they were given".into())
}

pub fn express(case: &mut Case<'_>) -> Result<String, Failure> {
    for express in [true, false] {
        let quality = Quality {
            express,
            ..Quality::BLOCKING
        };
        with_quality(case, &quality)?;
    }
    Ok("said and not said".into())
}

pub fn congestion_control(case: &mut Case<'_>) -> Result<String, Failure> {
    for block in [true, false] {
        let quality = Quality {
            block,
            ..Quality::default()
        };
        with_quality(case, &quality)?;
    }
    Ok("block and drop".into())
}

pub fn best_effort(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.joined(&Quality::default(), false)?;
    for n in 0..100_u32 {
        case.put(&id, &n.to_le_bytes(), &With::default())?;
    }
    case.part(&id)?;
    Ok("100 samples in order".into())
}

/// Publishes numbered payloads, counts them, and says what came: all that is reliable, and of the
/// rest as much as it was, in order. (Zenoh may drop what is best-effort, also where it says block.)
fn counted(
    case: &mut Case<'_>,
    publishers: &[(&str, bool)],
    count: u32,
    size: usize,
    pause: Duration,
) -> Result<String, Failure> {
    let mut ids = Vec::new();
    for (name, reliable) in publishers {
        let (id, key) = (case.id(name), case.key(name));
        case.taker.count(&id, &key, pause)?;
        case.giver
            .publisher(&id, &key, &Quality::BLOCKING, *reliable)?;
        case.matched(&id)?;
        ids.push(id);
    }
    let names: Vec<&str> = ids.iter().map(String::as_str).collect();
    case.giver.burst(&names, count, size)?;
    let mut said = Vec::new();
    for (id, (name, reliable)) in ids.iter().zip(publishers) {
        let all = *reliable && !case.lossy;
        // Until all are there, or no more come.
        let (mut seen, mut since) = (Counted::default(), Instant::now());
        let patience = |seen: &Counted| match all || seen.received == 0 {
            true => SOON,
            false => Duration::from_secs(1),
        };
        while seen.received < count.into() && since.elapsed() < patience(&seen) {
            std::thread::sleep(Duration::from_millis(5));
            let now = case.taker.counted(id)?;
            if now.received > seen.received {
                since = Instant::now();
            }
            seen = now;
        }
        case.part(id)?;
        same(seen.backwards, 0)?;
        if all {
            same((seen.received, seen.missing), (count.into(), 0))?;
        }
        if seen.received == 0 {
            return Err(format!("none of {name} arrived"));
        }
        let lost = u64::from(count) - seen.received;
        said.push(format!("{count} {name} in order, {lost} lost"));
    }
    Ok(format!("{size} B: {}", said.join("; ")))
}

pub fn mixed_reliability(case: &mut Case<'_>) -> Result<String, Failure> {
    let publishers = [("reliable", true), ("best-effort", false)];
    counted(case, &publishers, 3_000, 8, Duration::ZERO)
}

pub fn burst(case: &mut Case<'_>) -> Result<String, Failure> {
    counted(case, &[("reliable", true)], 20_000, 8, Duration::ZERO)
}

pub fn slow_subscriber(case: &mut Case<'_>) -> Result<String, Failure> {
    let pause = Duration::from_micros(200);
    counted(case, &[("reliable", true)], 2_000, 1_024, pause)
}

pub fn write_filter(case: &mut Case<'_>) -> Result<String, Failure> {
    let (id, key) = (case.id("samples"), case.key("k"));
    case.giver.publisher(&id, &key, &Quality::BLOCKING, true)?;
    same(case.giver.matching(&id)?, false)?;
    case.giver.put(&id, b"unheard", &With::default())?;
    // It has gone by when what the giver says after it has arrived.
    case.settle()?;
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

pub fn undeclared_subscriber(case: &mut Case<'_>) -> Result<String, Failure> {
    let id = case.joined(&Quality::BLOCKING, true)?;
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
