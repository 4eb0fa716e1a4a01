//! Sequence numbers and fragments.

use super::*;

/// Each row: batches as they are written, and which keys a subscriber of the router then sees.
#[test]
fn what_a_router_takes_of_sequence_numbers_and_fragments() {
    let _turn = crate::alone();
    let router = router();
    let at = &router.at()[0];
    let mut taker = Real.client(at).expect("a client");
    taker.subscribe("all", "t/**").expect("a subscriber");
    let mut first = Raw::opened(at, &[0x53, 0xff]).expect("a session");
    while taker
        .event(Duration::from_millis(50))
        .expect("events")
        .is_none()
    {
        first.frame(&push("t/first")).expect("a socket");
    }
    // Those that were on their way when the first one arrived.
    while taker
        .event(Duration::from_millis(50))
        .expect("events")
        .is_some()
    {}
    let frame = |header: u8, sn: u32, messages: &[u8]| {
        let mut message = vec![header];
        vle(&mut message, sn);
        message.extend(messages);
        batch(&message)
    };
    let reliable = |sn: u32, key: &str| frame(0x25, sn, &push(&format!("t/{key}")));
    let best_effort = |sn: u32, key: &str| frame(0x05, sn, &push(&format!("t/{key}")));
    // Parts of the PUSH of key "t/f": `First` in front where it is said.
    let whole = push("t/f");
    let (one, rest) = whole.split_at(4);
    let (two, three) = rest.split_at(3);
    let first = |sn: u32, part: &[u8]| {
        let mut message = vec![0xe6];
        vle(&mut message, sn);
        message.push(0x02);
        message.extend(part);
        batch(&message)
    };
    let more = |sn: u32, part: &[u8]| frame(0x66, sn, part);
    let last = |sn: u32, part: &[u8]| frame(0x26, sn, part);
    const HALF: u32 = 1 << 27;
    let rows: Vec<(&str, u8, Vec<Vec<u8>>, &str)> = vec![
        (
            "in order",
            0,
            vec![reliable(0, "a"), reliable(1, "b")],
            "a b",
        ),
        (
            "one twice",
            0,
            vec![reliable(0, "a"), reliable(0, "b"), reliable(1, "c")],
            "a c",
        ),
        (
            "a gap, and what is before it",
            0,
            vec![reliable(100, "a"), reliable(50, "b"), reliable(101, "c")],
            "a c",
        ),
        (
            "a gap of best effort",
            0,
            vec![
                best_effort(100, "a"),
                best_effort(50, "b"),
                best_effort(101, "c"),
            ],
            "a c",
        ),
        (
            "two channels of their own",
            0,
            vec![
                reliable(0, "a"),
                best_effort(0, "b"),
                best_effort(7, "c"),
                reliable(1, "d"),
            ],
            "a b c d",
        ),
        (
            "the largest gap",
            0,
            vec![reliable(0, "a"), reliable(HALF - 1, "b")],
            "a b",
        ),
        (
            "one more",
            0,
            vec![reliable(0, "a"), reliable(HALF, "b"), reliable(1, "c")],
            "a c",
        ),
        (
            "the one before the initial one",
            0,
            vec![reliable(2 * HALF - 1, "a"), reliable(0, "b")],
            "a b",
        ),
        (
            "two before",
            0,
            vec![reliable(2 * HALF - 2, "a"), reliable(0, "b")],
            "b",
        ),
        (
            "not the initial one first",
            0,
            vec![reliable(3, "a"), reliable(0, "b")],
            "a",
        ),
        (
            "a wrap",
            0,
            vec![
                reliable(HALF - 3, "a"),
                reliable(2 * HALF - 4, "b"),
                reliable(2 * HALF - 1, "c"),
                reliable(0, "d"),
            ],
            "a b c d",
        ),
        (
            "two frames in a batch",
            0,
            vec![batch(
                &[&reliable(0, "a")[2..], &best_effort(0, "b")[2..]].concat(),
            )],
            "a b",
        ),
        (
            "two messages in a frame",
            0,
            vec![frame(0x25, 0, &[push("t/a"), push("t/b")].concat())],
            "a b",
        ),
        (
            "a key that is not canonical",
            0,
            vec![reliable(0, "a/**/*"), reliable(1, "b")],
            "b",
        ),
        (
            "a key that is none",
            0,
            vec![reliable(0, "/"), reliable(1, "b")],
            "b",
        ),
        (
            "a key with a wildcard",
            0,
            vec![reliable(0, "*"), reliable(1, "b")],
            "* b",
        ),
        (
            "what is before a mistake",
            0,
            vec![frame(
                0x25,
                0,
                &[push("t/a"), push("t/b"), vec![0x18]].concat(),
            )],
            "a b",
        ),
        (
            "fragments, no marks agreed",
            0,
            vec![more(0, one), more(1, two), last(2, three)],
            "f",
        ),
        (
            "fragments with marks",
            1,
            vec![first(0, one), more(1, two), last(2, three)],
            "f",
        ),
        (
            "fragments without the agreed mark",
            1,
            vec![more(0, one), more(1, two), last(2, three)],
            "",
        ),
        (
            "a mark that was not agreed",
            0,
            vec![first(0, one), more(1, two), last(2, three)],
            "f",
        ),
        (
            "one of three fragments lost",
            1,
            vec![first(0, one), last(2, three), reliable(3, "b")],
            "b",
        ),
        (
            "one lost, with no marks",
            0,
            vec![more(0, one), last(2, three), reliable(3, "b")],
            "b",
        ),
        (
            "the first one lost",
            1,
            vec![more(1, two), last(2, three), reliable(3, "b")],
            "b",
        ),
        (
            "a frame between fragments",
            1,
            vec![
                first(0, one),
                reliable(1, "b"),
                more(2, two),
                last(3, three),
            ],
            "b",
        ),
        (
            "a frame of the other channel between",
            1,
            vec![
                first(0, one),
                best_effort(0, "b"),
                more(1, two),
                last(2, three),
            ],
            "b f",
        ),
        (
            "a new first one",
            1,
            vec![first(0, one), first(1, one), more(2, two), last(3, three)],
            "f",
        ),
        (
            "a drop mark",
            1,
            vec![first(0, one), batch(&[0xe6, 0x01, 0x03]), reliable(2, "b")],
            "b",
        ),
        (
            "one fragment that is all",
            1,
            vec![batch(&[&[0xa6, 0x00, 0x02], whole.as_slice()].concat())],
            "f",
        ),
        (
            "a fragment behind a frame",
            1,
            vec![batch(
                &[
                    &reliable(0, "a")[2..],
                    &[0xa6, 0x01, 0x02],
                    whole.as_slice(),
                ]
                .concat(),
            )],
            "a f",
        ),
    ];
    let mut wrong = 0;
    for (n, (name, patch, batches, expected)) in rows.into_iter().enumerate() {
        let mut raw = Raw::connect(at).expect("a socket");
        raw.handshake(&[0x52, n as u8 + 1], patch)
            .expect("a session");
        for batch in &batches {
            raw.write(batch).expect("a socket");
        }
        // The end is said in a session of its own, to which nothing of this row matters; it must
        // not overtake.
        std::thread::sleep(Duration::from_millis(100));
        let mut after = Raw::opened(at, &[0x53, n as u8 + 1]).expect("a session");
        after.frame(&push("t/end")).expect("a socket");
        let mut seen = Vec::new();
        while let Some(Event {
            what: Happened::Sample(sample),
            ..
        }) = taker.event(SOON).expect("events")
        {
            match sample.key.strip_prefix("t/") {
                None | Some("end") => break,
                Some(key) => seen.push(key.to_owned()),
            }
        }
        let seen = seen.join(" ");
        let mark = if seen == expected { "     " } else { "WRONG" };
        println!("{mark} {name}: {seen:?}, expected {expected:?}");
        wrong += usize::from(seen != expected);
    }
    assert_eq!(wrong, 0);
}
