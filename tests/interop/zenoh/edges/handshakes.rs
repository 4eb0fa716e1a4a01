//! How sessions begin and end.

use super::*;

/// How sessions begin, or do not: what is sent, and what comes back first.
#[test]
fn what_a_router_does_with_handshakes() {
    let _turn = crate::alone();
    let router = router();
    let at = &router.at()[0];
    let mut wrong = 0;
    let mut row = |name: &str, seen: String, expected: &str| {
        let mark = if seen == expected { "     " } else { "WRONG" };
        println!("{mark} {name}: {seen}");
        wrong += usize::from(seen != expected);
    };
    let answer = |raw: &mut Raw| -> String {
        match raw.receive(SOON).expect("a socket").as_deref() {
            None => "silence".into(),
            Some([]) => "dropped".into(),
            Some([header, reason, ..]) if header & 0x1f == 3 => {
                let what = if header & 0x20 == 0 {
                    "link"
                } else {
                    "session"
                };
                format!("CLOSE of the {what}, reason {reason}")
            }
            Some([0x21 | 0x61 | 0xa1 | 0xe1, rest @ ..]) => {
                let zid = usize::from(rest.get(1).copied().unwrap_or_default() >> 4) + 1;
                format!(
                    "INIT {:02x?}",
                    rest.get(2 + zid..5 + zid).unwrap_or_default()
                )
            }
            Some([header, ..]) if header & 0x1f == 2 => "OPEN".into(),
            Some(other) => format!("{other:02x?}"),
        }
    };
    let starts: [(&str, &[u8], &str); 17] = [
        (
            "INIT",
            &[0x41, 9, 0x02, 0x61, 0x0a, 0, 8],
            "INIT [0a, 00, 08]",
        ),
        (
            "INIT without sizes",
            &[0x01, 9, 0x02, 0x62],
            "INIT [0a, 00, c0]",
        ),
        (
            "sizes of 8 bits",
            &[0x41, 9, 0x02, 0x63, 0x00, 0, 8],
            "INIT [00, 00, 08]",
        ),
        (
            "sizes of 64 bits",
            &[0x41, 9, 0x02, 0x64, 0x0f, 0, 8],
            "INIT [0a, 00, 08]",
        ),
        (
            "batches of 16 bytes",
            &[0x41, 9, 0x02, 0x65, 0x0a, 16, 0],
            "INIT [0a, 10, 00]",
        ),
        (
            "batches of no byte",
            &[0x41, 9, 0x02, 0x66, 0x0a, 0, 0],
            "INIT [0a, 00, 00]",
        ),
        (
            "version 8",
            &[0x41, 8, 0x02, 0x67, 0x0a, 0, 8],
            "CLOSE of the link, reason 2",
        ),
        (
            "version 10",
            &[0x41, 10, 0x02, 0x68, 0x0a, 0, 8],
            "CLOSE of the link, reason 2",
        ),
        (
            "a zid of nothing but zeros",
            &[0x41, 9, 0x02, 0x00, 0x0a, 0, 8],
            "CLOSE of the link, reason 2",
        ),
        (
            "a zid that ends with a zero",
            &[0x41, 9, 0x12, 0x69, 0x00, 0x0a, 0, 8],
            "INIT [0a, 00, 08]",
        ),
        (
            "what it is not",
            &[0x41, 9, 0x03, 0x6a, 0x0a, 0, 8],
            "CLOSE of the link, reason 2",
        ),
        (
            "an unknown extension",
            &[0xc1, 9, 0x02, 0x6b, 0x0a, 0, 8, 0x2e, 1],
            "INIT [0a, 00, 08]",
        ),
        (
            "an unknown mandatory extension",
            &[0xc1, 9, 0x02, 0x6c, 0x0a, 0, 8, 0x3e, 1],
            "CLOSE of the link, reason 2",
        ),
        (
            "a truncated INIT",
            &[0x41, 9, 0x12, 0x6d],
            "CLOSE of the link, reason 2",
        ),
        (
            "OPEN without INIT",
            &[0x02, 10, 0, 0],
            "CLOSE of the link, reason 2",
        ),
        (
            "a frame without INIT",
            &[0x25, 0],
            "CLOSE of the link, reason 2",
        ),
        (
            "KEEP_ALIVE without INIT",
            &[0x04],
            "CLOSE of the link, reason 2",
        ),
    ];
    for (name, message, expected) in starts {
        let mut raw = Raw::connect(at).expect("a socket");
        raw.send(message).expect("a socket");
        row(name, answer(&mut raw), expected);
    }

    let mut raw = Raw::connect(at).expect("a socket");
    raw.init(9, &[0x71], &[0x0a, 0, 8]).expect("INIT");
    raw.send(&[0x02, 0x0a, 0x00, 0x03, 1, 2, 3])
        .expect("a socket");
    row(
        "OPEN with another cookie",
        answer(&mut raw),
        "CLOSE of the link, reason 2",
    );

    let live = Raw::opened(at, &[0x72]).expect("a session");
    let mut second = Raw::connect(at).expect("a socket");
    let init = second
        .init(9, &[0x72], &[0x0a, 0, 8])
        .expect("INIT")
        .unwrap_or_default();
    let open = second
        .open(10_000, &init)
        .expect("OPEN")
        .unwrap_or_default();
    row(
        "a second session of a zid that lives",
        format!("{open:02x?}"),
        "[03, 04]",
    );
    drop(live);
    std::thread::sleep(Duration::from_millis(50));
    let again = Raw::opened(at, &[0x72]).map(|_| "OPEN".to_owned());
    row(
        "again, when the first connection is gone",
        again.unwrap_or_else(|error| error),
        "OPEN",
    );

    // Nothing is said for longer than the lease.
    let mut raw = Raw::connect(at).expect("a socket");
    let init = raw
        .init(9, &[0x73], &[0x0a, 0, 8])
        .expect("INIT")
        .unwrap_or_default();
    raw.open(1_000, &init).expect("OPEN");
    let started = Instant::now();
    let end = loop {
        match raw.receive(SOON).expect("a socket") {
            Some(batch) if batch.first() == Some(&0x04) => {}
            other => break other,
        }
    };
    let took = started.elapsed();
    row(
        "silence beyond a lease of a second",
        format!("{end:02x?}"),
        "Some([])",
    );
    assert!(took > Duration::from_millis(900), "too early: {took:?}");
    println!("      after {took:?}");
    assert_eq!(wrong, 0);
}
