//! Link files: what they may say, and what is said of mistakes.
#![cfg(all(feature = "toml", not(loom)))]

mod support;

use sinew_shm::domain::file::LinkFile;
use sinew_shm::domain::{Channel, Config, Pool, Role};

const CALLS: Channel = Channel {
    uuid: 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff,
    type_hash: 0xcafe_f00d,
    ..Channel::new(0x0203, "calls \"\\ ü\t", Pool::new(2, 40)).with_replies()
};

const LINK: Config = Config {
    line_log2: 7,
    ..Config::new(&[
        Channel::new(1, "control", Pool::new(8, 64)).priority(0),
        Channel::new(2, "camera", Pool::new(4, 4)).pools(Pool::new(4, 65536), Pool::new(0, 0)),
        Channel::new(3, "", Pool::new(4, 4)).pools(Pool::new(0, 7), Pool::new(1, 1)),
        Channel::lock(7, "map", 4096),
        CALLS,
    ])
    .mutual()
};

/// The text of the error.
fn refused(text: &str) -> String {
    let error = LinkFile::parse("a/link.toml", text).unwrap_err();
    error.to_string()
}

#[test]
fn a_configuration_comes_back_as_it_was_written() {
    let file = LinkFile::parse("link.toml", &LINK.to_toml()).unwrap();
    assert_eq!(file.config(), LINK);
    assert_eq!(file.config().hash(), LINK.hash());
}

#[test]
fn a_lock_channel_has_a_size_and_perhaps_a_semaphore() {
    const LOCKS: Config = Config::new(&[
        Channel::lock(7, "map", 4096),
        Channel::lock(8, "motor", 12).with_semaphore(31),
    ]);
    let written = LinkFile::parse("x", &LOCKS.to_toml()).unwrap();
    assert_eq!(written.config(), LOCKS);
    let map = "[[channel]]\nid = 7\nname = \"map\"\nkind = \"lock\"\nsize = 4096\n";
    let motor = "[[channel]]\nid = 8\nname = \"motor\"\nkind = \"lock\"\nsize = 12\n";
    let text = format!("{map}{motor}semaphore = 31\n");
    assert_eq!(LinkFile::parse("x", &text).unwrap().config(), LOCKS);
    assert_eq!(
        refused(&format!("{motor}semaphore = 65535\n")),
        "a/link.toml:6: `semaphore` takes a number from 0 to 65534: correct it"
    );
    let one_side = motor.replace("size = 12", "first = { size = 12 }");
    assert_eq!(
        refused(&one_side),
        "a/link.toml:1: channel 8: a lock channel has one block of the same size for each side, and \
         no replies; another channel has no semaphore"
    );
}

#[test]
fn the_example_says_what_the_constant_says() {
    const EXAMPLE: Config = Config::new(&[
        Channel::new(1, "control", Pool::new(8, 64)).priority(0),
        Channel {
            uuid: 0x3f2504e0_4f89_11d3_9a0c_0305e82c3301,
            type_hash: 0x1234_5678,
            ..Channel::new(2, "camera", Pool::new(4, 65536))
                .pools(Pool::new(4, 65536), Pool::new(0, 0))
        },
    ]);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/link.toml");
    let file = LinkFile::load(path).unwrap();
    assert_eq!(file.config(), EXAMPLE);
    assert_eq!(file.config().hash(), EXAMPLE.hash());
}

#[test]
fn an_end_opens_with_a_loaded_configuration() {
    let config = LinkFile::parse("x", &LINK.to_toml()).unwrap().leak();
    let (first, _second) = support::up(config);
    let seen = LinkFile::observed(&first.observe(), Role::First).unwrap();
    assert_eq!(seen.config(), LINK);
    let seen = LinkFile::observed(&first.observe(), Role::Second).unwrap();
    assert_eq!(seen.config(), LINK);
}

#[test]
fn defaults_are_no_trust_and_lines_of_64_bytes_and_priority_128() {
    const ONE: Config = Config::new(&[Channel::new(1, "one", Pool::new(4, 100))]);
    let text = "[[channel]]\nid = 1\nname = \"one\"\nblocks = 4\nsize = 100\n";
    assert_eq!(LinkFile::parse("x", text).unwrap().config(), ONE);
}

#[test]
fn mistakes_are_named_with_file_line_and_remedy() {
    let channel = "trust = \"none\"\n[[channel]]\nid = 1\nname = \"one\"\n";
    let good = format!("{channel}blocks = 4\nsize = 100\n");
    assert!(LinkFile::parse("x", &good).is_ok());
    for (text, expected) in [
        (
            format!("{good}prio = 3\n"),
            "a/link.toml:7: there is no key `prio`: known here are id, kind, name, priority, \
             blocks, size, first, second, requests, calls, semaphore, \
             replies, uuid, type",
        ),
        (
            format!("{channel}blocks = 70000\nsize = 1\n"),
            "a/link.toml:5: `blocks` takes a number from 0 to 32768: correct it",
        ),
        (
            format!("{channel}blocks = -1\nsize = 1\n"),
            "a/link.toml:5: `blocks` takes a number from 0 to 32768: correct it",
        ),
        (
            format!("{channel}blocks = 1\n"),
            "a/link.toml:2: `size` is missing: add it",
        ),
        (
            channel.to_string(),
            "a/link.toml:2: `blocks` is missing: add it",
        ),
        (
            format!("{good}first = {{ blocks = 1, size = 1 }}\n"),
            "a/link.toml:2: `blocks` and `size` are for both directions: leave them out, or \
             `first` and `second`",
        ),
        (
            format!("{channel}first = {{ blocks = 1, size = 1, count = 2 }}\n"),
            "a/link.toml:5: there is no key `count`: known here are blocks, size",
        ),
        (
            format!("{channel}second = 7\n"),
            "a/link.toml:5: `second` takes a table, as in { blocks = 8, size = 64 }: correct it",
        ),
        (
            format!("{good}uuid = \"3f2504e0-4f89-11d3-9a0c-0305e82c330\"\n"),
            "a/link.toml:7: `uuid` takes a text like \"3f2504e0-4f89-11d3-9a0c-0305e82c3301\": \
             correct it",
        ),
        (
            format!("{good}replies = true\n"),
            "a/link.toml:2: channel 1: replies in the lent block need trust = mutual: set it, or \
             leave replies out",
        ),
        (
            format!("{good}[[channel]]\nid = 1\nname = \"two\"\nblocks = 1\nsize = 1\n"),
            "a/link.toml:7: two channels have the id 1: give one of them another",
        ),
        (
            format!("trust = \"much\"\n{}", &good[15..]),
            "a/link.toml:1: `trust` takes \"none\" or \"mutual\": correct it",
        ),
        (
            format!("line = 48\n{good}"),
            "a/link.toml:1: `line` takes 32, 64, 128 or 256: correct it",
        ),
        (
            good.replace("\"one\"", "\"a name of 17 byte\""),
            "a/link.toml:4: `name` takes a text of at most 16 bytes: correct it",
        ),
        (
            "channel = 1\n".into(),
            "a/link.toml:1: `channel` takes tables: write each as [[channel]]: correct it",
        ),
        (
            "line = 64\n".into(),
            "a/link.toml: a link has 1 to 64 channels: add one, or split the link",
        ),
        (
            "links = 1\n".into(),
            "a/link.toml:1: there is no key `links`: known here are trust, line, channel",
        ),
    ] {
        assert_eq!(refused(&text), expected, "{text}");
    }
    assert!(refused("\n= 3").starts_with("a/link.toml:2: no TOML: "));
    let missing = LinkFile::load("no/such/link.toml").unwrap_err();
    let text = "no/such/link.toml: cannot be read (entity not found): check path and permissions";
    assert_eq!(missing.to_string(), text);
}
