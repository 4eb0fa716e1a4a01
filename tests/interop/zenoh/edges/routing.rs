//! What a router tells a session of the others.

use super::*;

/// The declarations of a frame's messages: `sub`, `queryable` and `final`; keys are left out.
fn declarations(mut bytes: &[u8]) -> Option<Vec<&'static str>> {
    fn byte(bytes: &mut &[u8]) -> Option<u8> {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        Some(*first)
    }
    // All numbers of these tests have a byte or two.
    fn number(bytes: &mut &[u8]) -> Option<usize> {
        let low = byte(bytes)?;
        let high = if low & 0x80 == 0 { 0 } else { byte(bytes)? };
        Some(usize::from(low & 0x7f) | usize::from(high) << 7)
    }
    fn extensions(header: u8, bytes: &mut &[u8]) -> Option<()> {
        let mut more = header & 0x80 != 0;
        while more {
            more = byte(bytes)? & 0x80 != 0;
            number(bytes)?;
        }
        Some(())
    }
    let mut seen = Vec::new();
    while !bytes.is_empty() {
        let header = byte(&mut bytes)?;
        if header & 0x1f != 0x1e {
            return None;
        }
        if header & 0x20 != 0 {
            number(&mut bytes)?;
        }
        extensions(header, &mut bytes)?;
        let kind = byte(&mut bytes)?;
        match kind & 0x1f {
            0x00 => {}
            0x02 => seen.push("sub"),
            0x04 => seen.push("queryable"),
            0x1a => {
                seen.push("final");
                continue;
            }
            _ => return None,
        }
        number(&mut bytes)?;
        number(&mut bytes)?;
        if kind & 0x20 != 0 {
            let len = number(&mut bytes)?;
            bytes = bytes.get(len..)?;
        }
        extensions(kind, &mut bytes)?;
    }
    Some(seen)
}

/// Each row in a session of its own: an INTEREST, and what is declared for it.
#[test]
fn what_a_router_declares_for_an_interest() {
    let _turn = crate::alone();
    let router = router();
    let at = &router.at()[0];
    let mut other = Real.client(at).expect("a client");
    for key in ["i/a", "i/b", "i/*"] {
        other.subscribe(key, key).expect("a subscriber");
    }
    other
        .queryable("q", "q/**", true, &[], false)
        .expect("a queryable");
    std::thread::sleep(Duration::from_millis(100));
    // Options: A 0x80, M 0x40, N 0x20, R 0x10, Q 0x04, S 0x02, K 0x01.
    let interest = |mode: u8, options: u8, key: &str| {
        let mut message = vec![0x19 | mode, 0x02, options];
        if options & 0x10 != 0 {
            message.extend([0x00, key.len() as u8]);
            message.extend(key.as_bytes());
        }
        message
    };
    const CURRENT: u8 = 0x20;
    const FUTURE: u8 = 0x40;
    const BOTH: u8 = 0x60;
    let rows: [(&str, Vec<u8>, &str); 10] = [
        (
            "subscribers",
            interest(BOTH, 0x33, "i/**"),
            "sub sub sub final",
        ),
        ("aggregated", interest(BOTH, 0xb3, "i/**"), "sub final"),
        (
            "aggregated, on a key",
            interest(BOTH, 0xb3, "i/a"),
            "sub final",
        ),
        (
            "subscribers of a key",
            interest(BOTH, 0x33, "i/a"),
            "sub sub final",
        ),
        ("nobody", interest(BOTH, 0xb3, "z/z"), "final"),
        ("queryables", interest(BOTH, 0x35, "q/x"), "queryable final"),
        (
            "all subscribers",
            interest(BOTH, 0x03, ""),
            "sub sub sub final",
        ),
        // Not as one would think: these two have no answer at all.
        (
            "current subscribers only",
            interest(CURRENT, 0x33, "i/**"),
            "",
        ),
        (
            "current queryables only",
            interest(CURRENT, 0x35, "q/x"),
            "",
        ),
        ("future ones only", interest(FUTURE, 0x33, "i/**"), "final"),
    ];
    let mut wrong = 0;
    for (n, (name, message, expected)) in rows.into_iter().enumerate() {
        let mut raw = Raw::opened(at, &[0x54, n as u8 + 1]).expect("a session");
        raw.frame(&message).expect("a socket");
        let mut seen = Vec::new();
        // What is expected, however late, and then nothing.
        let patience = |seen: &[&str]| match seen.len() < expected.split_whitespace().count() {
            true => SOON,
            false => Duration::from_millis(150),
        };
        while let Some(batch) = raw.receive(patience(&seen)).expect("a socket") {
            // Header and an SN of four bytes or fewer.
            let sn = batch
                .iter()
                .skip(1)
                .take_while(|byte| **byte >= 0x80)
                .count();
            if batch.first() == Some(&0x25) {
                let messages = batch.get(sn + 2..).expect("a frame");
                seen.extend(declarations(messages).expect("declarations"));
            }
        }
        let seen = seen.join(" ");
        let mark = if seen == expected { "     " } else { "WRONG" };
        println!("{mark} {name}: {seen:?}, expected {expected:?}");
        wrong += usize::from(seen != expected);
    }
    assert_eq!(wrong, 0);
}

/// A session that agreed on small batches: none is longer, lengths included, and a sample comes
/// whole.
#[test]
fn a_router_cuts_samples_to_the_batches_agreed() {
    let _turn = crate::alone();
    let router = router();
    let at = &router.at()[0];
    let mut giver = Real.client(at).expect("a client");
    let payload = crate::node::pattern(300, 5);
    for size in [16_u8, 32, 64, 128, 255] {
        let mut raw = Raw::connect(at).expect("a socket");
        let init = raw.init(9, &[0x55, size], &[0x0a, size, 0x00]);
        let init = init.expect("a socket").expect("INIT");
        raw.open(10_000, &init).expect("a socket").expect("OPEN");
        let id = format!("{size}");
        let key = format!("c/{size}");
        let mut declare = vec![0x1e, 0x62, 0x01, 0x00, key.len() as u8];
        declare.extend(key.as_bytes());
        raw.frame(&declare).expect("a socket");
        giver
            .publisher(&id, &key, &Default::default(), true)
            .expect("a publisher");
        while !giver.matching(&id).expect("a publisher") {
            std::thread::sleep(Duration::from_millis(2));
        }
        giver
            .put(&id, &payload, &Default::default())
            .expect("a put");
        let (mut whole, mut pieces) = (Vec::new(), 0);
        while let Some(batch) = raw.receive(SOON).expect("a socket") {
            assert!(
                batch.len() + 2 <= usize::from(size),
                "{} bytes",
                batch.len()
            );
            let Some(header) = batch.first().filter(|header| **header & 0x1f == 6) else {
                continue; // KEEP_ALIVE
            };
            let sn = batch
                .iter()
                .skip(1)
                .take_while(|byte| **byte >= 0x80)
                .count();
            // The mark of the first piece is there though it was not agreed.
            let mark = usize::from(header & 0x80 != 0);
            assert_eq!(mark, usize::from(pieces == 0));
            whole.extend(batch.get(sn + 2 + mark..).expect("a piece"));
            pieces += 1;
            if header & 0x40 == 0 {
                break;
            }
        }
        assert!(whole.ends_with(&payload), "batches of {size}");
        println!("      batches of {size}: {pieces} pieces");
    }
}

/// A queryable whose session ends, one way or the other, ends the queries it has.
#[test]
fn a_router_ends_the_queries_of_a_queryable_that_is_gone() {
    let _turn = crate::alone();
    let router = router();
    let at = &router.at()[0];
    let mut taker = Real.client(at).expect("a client");
    for (n, close) in [false, true].into_iter().enumerate() {
        let mut raw = Raw::opened(at, &[0x56, n as u8 + 1]).expect("a session");
        raw.frame(&[0x1e, 0x64, 0x01, 0x00, 0x03, b'g', b'/', b'x'])
            .expect("a socket");
        std::thread::sleep(Duration::from_millis(100));
        let id = format!("get {n}");
        let started = Instant::now();
        taker
            .get(&id, &crate::node::Get::new("g/x"))
            .expect("a query");
        let request = loop {
            let batch = raw.receive(SOON).expect("a socket").expect("a request");
            if batch.first() == Some(&0x25) {
                break batch;
            }
        };
        assert!(request.windows(3).any(|key| key == b"g/x"));
        if close {
            raw.send(&[0x23, 0x00]).expect("a socket");
        }
        drop(raw);
        let event = taker.event(SOON).expect("events").expect("an end");
        assert_eq!((event.id, event.what), (id, Happened::End));
        println!("      ended after {:?}", started.elapsed());
    }
}
