//! Messages that are wrong, or strange.

use super::*;

/// Each row in a session of its own: what is written to it, and what becomes of it.
#[test]
fn what_a_router_does_with_bad_input() {
    let _turn = crate::alone();
    let router = router();
    let at = &router.at()[0];
    let frame = |sn: u8, messages: &[u8]| batch(&joined(&[&[0x25, sn], messages]));
    let rows: Vec<(&str, Vec<u8>, Outcome)> = vec![
        ("nothing", vec![], Stays),
        ("a key said in full", frame(0, &push("a/b")), Stays),
        ("an empty batch", batch(&[]), Stays),
        ("KEEP_ALIVE", batch(&[0x04]), Stays),
        ("two of them in a batch", batch(&[0x04, 0x04]), Stays),
        (
            "a KEEP_ALIVE behind a frame",
            frame(0, &joined(&[&push("a"), &[0x04]])),
            Stays,
        ),
        ("an empty frame", frame(0, &[]), Stays),
        ("an unknown transport message", batch(&[0x0f]), Drops),
        ("an unknown network message id", frame(0, &[0x18]), Drops),
        (
            "INIT in an open session",
            batch(&[0x01, 0x09, 0x02, 0x77]),
            Stays,
        ),
        (
            "OPEN in an open session",
            batch(&[0x02, 0x0a, 0x00, 0x00]),
            Stays,
        ),
        (
            "JOIN",
            batch(&[0x07, 0x09, 0x01, 0x77, 0x0a, 0x00, 0x00]),
            Stays,
        ),
        ("a transport OAM", batch(&[0x00, 0x07]), Stays),
        ("a truncated frame header", batch(&[0x25, 0x80]), Drops),
        (
            "a truncated PUSH",
            frame(0, &[0x7d, 0x00, 0x05, b'a']),
            Drops,
        ),
        (
            "a payload that ends behind the batch",
            frame(0, &[0x7d, 0x00, 0x01, b'a', 0x01, 0x7f, b'x']),
            Drops,
        ),
        (
            "an unknown body",
            frame(0, &[0x7d, 0x00, 0x01, b'a', 0x1f]),
            Drops,
        ),
        (
            "an unknown extension",
            frame(0, &[0xfd, 0x00, 0x01, b'a', 0x2e, 0x00, 0x01, 0x00]),
            Stays,
        ),
        (
            "an unknown mandatory extension",
            frame(0, &[0xfd, 0x00, 0x01, b'a', 0x3e, 0x00, 0x01, 0x00]),
            Drops,
        ),
        (
            "an extension of the reserved kind",
            frame(0, &[0xfd, 0x00, 0x01, b'a', 0x6e, 0x00, 0x01, 0x00]),
            Drops,
        ),
        (
            "a priority that was not agreed",
            batch(&joined(&[&[0xa5, 0x00, 0x31, 0x01], &push("a")])),
            Drops,
        ),
        (
            "the priority that is so anyway",
            batch(&joined(&[&[0xa5, 0x00, 0x31, 0x05], &push("a")])),
            Stays,
        ),
        (
            "an unknown key id",
            frame(0, &[0x5d, 0x63, 0x01, 0x01, b'x']),
            Stays,
        ),
        (
            "an unknown key id of its own",
            frame(0, &[0x1d, 0x63, 0x01, 0x01, b'x']),
            Stays,
        ),
        (
            "a key that is not canonical",
            frame(0, &push("a/**/*")),
            Stays,
        ),
        ("a key that is none", frame(0, &push("/a//")), Stays),
        ("an empty key", frame(0, &push("")), Stays),
        ("a key with a wildcard", frame(0, &push("a/*")), Stays),
        (
            "a key that is not UTF-8",
            frame(0, &[0x7d, 0x00, 0x01, 0xff, 0x01, 0x00]),
            Drops,
        ),
        (
            "a padded number",
            frame(0, &[0x7d, 0x80, 0x00, 0x01, b'a', 0x01, 0x00]),
            Stays,
        ),
        (
            "a key id above 16 bits",
            frame(0, &[0x5d, 0x80, 0x80, 0x04, 0x01, 0x00]),
            Drops,
        ),
        (
            "an SN above what was agreed",
            batch(&joined(&[
                &[0x25, 0x80, 0x80, 0x80, 0x80, 0x01],
                &push("a"),
            ])),
            Drops,
        ),
        (
            "an SN above 32 bits, whose upper bits are lost",
            batch(&joined(&[
                &[0x25, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
                &push("a"),
            ])),
            Stays,
        ),
        (
            "a fragment from the middle",
            batch(&[0x66, 0x00, 0x7d]),
            Stays,
        ),
        (
            "a whole message as fragments that is none",
            joined(&[
                &batch(&[0xe6, 0x00, 0x02, 0x7d]),
                &batch(&[0x26, 0x01, 0x00]),
            ]),
            Stays,
        ),
        (
            "key id 0 declared",
            frame(0, &[0x3e & 0x1e, 0x20, 0x00, 0x00, 0x01, b'a']),
            Stays,
        ),
        (
            "a key id declared twice alike",
            frame(
                0,
                &[
                    0x1e, 0x20, 0x01, 0x00, 0x01, b'a', 0x1e, 0x20, 0x01, 0x00, 0x01, b'a',
                ],
            ),
            Stays,
        ),
        (
            "a key id declared anew",
            frame(
                0,
                &[
                    0x1e, 0x20, 0x01, 0x00, 0x01, b'a', 0x1e, 0x20, 0x01, 0x00, 0x01, b'b',
                ],
            ),
            Stays,
        ),
        (
            "an unknown key id withdrawn",
            frame(0, &[0x1e, 0x01, 0x63]),
            Stays,
        ),
        (
            "a subscriber on an unknown key id",
            frame(0, &[0x1e, 0x42, 0x01, 0x63]),
            Stays,
        ),
        (
            "a subscriber declared twice",
            frame(
                0,
                &[
                    0x1e, 0x62, 0x01, 0x00, 0x01, b'a', 0x1e, 0x62, 0x01, 0x00, 0x01, b'b',
                ],
            ),
            Stays,
        ),
        (
            "an unknown subscriber withdrawn",
            frame(0, &[0x1e, 0x03, 0x63]),
            Stays,
        ),
        (
            "an unknown declaration",
            frame(0, &[0x1e, 0x1f, 0x00]),
            Drops,
        ),
        (
            "an interest that ends without a beginning",
            frame(0, &[0x19, 0x63]),
            Stays,
        ),
        (
            "a reply to no query",
            frame(0, &[0x7b, 0x63, 0x00, 0x01, b'a', 0x04, 0x01, 0x00]),
            Stays,
        ),
        ("the end of no query", frame(0, &[0x1a, 0x63]), Stays),
        ("CLOSE of the link", batch(&[0x03, 0x00]), Drops),
        ("CLOSE of the session", batch(&[0x23, 0x00]), Drops),
    ];
    let mut wrong = 0;
    for (n, (name, bytes, expected)) in rows.into_iter().enumerate() {
        let mut raw = Raw::opened(at, &[0x51, n as u8 + 1]).expect("a session");
        raw.write(&bytes).expect("a socket");
        raw.sn = 10; // a gap is taken
        let mut seen = raw.outcome(SOON).expect("a socket");
        // A router may still answer for a moment after a CLOSE.
        let started = Instant::now();
        while seen == Stays && expected == Drops && started.elapsed() < SOON {
            std::thread::sleep(Duration::from_millis(10));
            seen = raw.outcome(SOON).expect("a socket");
        }
        let mark = if seen == expected { "     " } else { "WRONG" };
        println!("{mark} {name}: {seen:?}");
        wrong += usize::from(seen != expected);
    }
    assert_eq!(wrong, 0);
}
