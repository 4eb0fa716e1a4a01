//! System files: where links are put, what is said of mistakes, and the Rust module of one, which
//! `system_module.rs` compiles in.
//!
//! `UPDATE=1 cargo test -p sinew-shm --features toml --test system` writes the golden module anew.
#![cfg(all(feature = "toml", not(loom)))]

#[path = "support/random.rs"]
mod random;

use std::path::Path;

use random::Random;
use sinew_shm::domain::file::LinkFile;
use sinew_shm::domain::file::system::SystemFile;
use sinew_shm::domain::{Channel, Config, Pool, Region, Role, Span};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/system.toml");

#[test]
fn the_module_is_what_it_always_was() {
    let file = SystemFile::load(EXAMPLE).unwrap_or_else(|error| panic!("{error}"));
    let made = file.to_rust("system.toml");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/system.rs");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&golden, &made).unwrap();
    }
    assert_eq!(made, std::fs::read_to_string(golden).unwrap());
}

const DOMAINS: &str = "[[domain]]\nname = \"linux\"\nbits = 64\n[[domain]]\nname = \"rtos\"\n";
const REGION: &str =
    "[[region]]\nname = \"ram\"\nlen = 0x10000\nbase = { linux = 0x1000, rtos = 0 }\n";
const LINK: &str =
    "[[link]]\nname = \"one\"\nregion = \"ram\"\nfirst = \"linux\"\nsecond = \"rtos\"\n";
const CHANNEL: &str = "[[link.channel]]\nid = 1\nname = \"c\"\nblocks = 2\nsize = 64\n";

fn whole() -> String {
    [DOMAINS, REGION, LINK, CHANNEL].concat()
}

/// Everything that is said of a text, a line each.
fn refused(text: &str) -> String {
    let load = |name: &str| LinkFile::load(Path::new("no").join(name));
    match SystemFile::parse_with("system.toml", text, load) {
        Ok(_) => panic!("this is a system:\n{text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn links_lie_one_behind_the_other_around_those_that_say_where() {
    let another = |name: &str, more: &str| LINK.replace("one", name) + more + CHANNEL;
    let text = [
        DOMAINS,
        REGION,
        &another("one", ""),
        &another("two", "offset = 0x3000\n"),
        &another("three", ""),
        &another("four", ""),
    ]
    .concat();
    let file = SystemFile::parse("system.toml", &text).unwrap();
    let starts = ["one", "two", "three", "four"].map(|name| {
        let link = file.link(name).unwrap();
        let region = Region::of(&link.config());
        assert_eq!(region.len, 0x2000);
        let [first, second] = [Role::First, Role::Second].map(|role| link.segment(role));
        assert_eq!(second.offset, first.offset + 0x1000);
        let (offset, len) = (first.offset, region.len);
        let at = |base| {
            Some(Span {
                offset: base + offset,
                len,
            })
        };
        assert_eq!(link.whole(Role::First), at(0x1000));
        assert_eq!(link.whole(Role::Second), at(0));
        first.offset
    });
    // The third does not fit between the first and the second.
    assert_eq!(starts, [0, 0x3000, 0x5000, 0x7000]);
    const ONE: Config = Config::new(&[Channel::new(1, "c", Pool::new(2, 64))]);
    assert_eq!(file.link("three").unwrap().config(), ONE);
}

#[test]
fn every_mistake_is_named_with_its_line_cause_and_remedy() {
    let with = |old: &str, new: &str| {
        let text = whole();
        assert!(text.contains(old), "{old}");
        text.replace(old, new)
    };
    let second = |more: &str| {
        let one = LINK.to_owned() + "offset = 0\n" + CHANNEL;
        let two = LINK.replace("one", "two") + more + CHANNEL;
        [DOMAINS, REGION, &one, &two].concat()
    };
    for (text, expected) in [
        ("domain = 3\n= 3".to_string(), "system.toml:2: no TOML: "),
        (
            whole() + "[[links]]\n",
            "system.toml:20: there is no key `links`: known here are domain, region, link",
        ),
        (
            with("len = 0x10000\n", "len = 0x10000\nsize = 3\n"),
            "system.toml:9: there is no key `size`: known here are name, len, align, base",
        ),
        (
            with("len = 0x10000\n", "len = 0\n"),
            "system.toml:8: `len` takes a number of bytes from 1 to 0x1_0000_0000: correct it",
        ),
        (
            with("len = 0x10000\n", "len = 0x1_0000_0001\n"),
            "system.toml:8: `len` takes a number of bytes from 1 to 0x1_0000_0000: correct it",
        ),
        (
            with("len = 0x10000\n", "len = 0x10000\nalign = 96\n"),
            "system.toml:9: `align` takes a power of two from 64 to 0x4000_0000: correct it",
        ),
        (
            with("\"ram\"\nlen", "\"move\"\nlen"),
            "system.toml:7: `name` takes a name of small letters, digits and _, which begins with a \
             letter and is no word of Rust's: correct it\n\
             system.toml:12: there is no region `ram`: add it, as a table [[region]]",
        ),
        (
            with("bits = 64", "bits = 48"),
            "system.toml:3: `bits` takes 32 or 64: correct it",
        ),
        (
            with("base = { linux = 0x1000, rtos = 0 }\n", ""),
            "system.toml:6: `base` is missing: add it\n\
             system.toml:6: region `ram` does not say where `linux` sees it: add `linux` to its `base`\n\
             system.toml:6: region `ram` does not say where `rtos` sees it: add `rtos` to its `base`",
        ),
        (
            with("rtos = 0 }", "rtos = 0, dsp = 0 }"),
            "system.toml:9: there is no domain `dsp`: there is `linux`, `rtos`; add it, or correct the \
             name",
        ),
        (
            with("rtos = 0 }", "rtos = \"0\" }"),
            "system.toml:6: region `ram` does not say where `rtos` sees it: add `rtos` to its `base`\n\
             system.toml:9: `base` takes a table of addresses, as in { linux = 0x3000_0000, rtos = \
             0x2000_0000 }: correct it",
        ),
        (
            with("rtos = 0 }", "rtos = 0x800 }"),
            "system.toml:9: region `ram`, as `rtos` sees it, begins at 0x800, and every part of the \
             region at a multiple of its `align`, 4096: move it to 0x1000",
        ),
        (
            with("rtos = 0 }", "rtos = 0xFFFF_8000 }"),
            "system.toml:9: region `ram` ends at 0x100008000 for `rtos`, whose addresses have 32 bits: \
             correct `base` or `len`, or the `bits` of the domain",
        ),
        (
            whole() + &REGION.replace("ram", "rom").replace("0 }", "0x10000 }"),
            "system.toml:23: region `rom` at 0x1000 to 0x11000 and region `ram` at 0x1000 to 0x11000 \
             (line 9) overlap in what `linux` sees: move one of them",
        ),
        (
            with("name = \"rtos\"", "name = \"linux\""),
            "system.toml:4: there is a domain `linux` already, in line 1: give one of them another \
             name\n\
             system.toml:9: there is no domain `rtos`: there is `linux`, `linux`; add it, or correct \
             the name\n\
             system.toml:14: there is no domain `rtos`: there is `linux`, `linux`; add it, or correct \
             the name",
        ),
        (
            second("").replace("two", "one"),
            "system.toml:21: there is a link `one` already, in line 10: give one of them another name",
        ),
        (
            with("second = \"rtos\"", "second = \"linux\""),
            "system.toml:14: both sides are `linux`: a link joins two domains, name the other one",
        ),
        (
            with("region = \"ram\"", "region = \"rom\""),
            "system.toml:12: there is no region `rom`: there is `ram`; add it, or correct the name",
        ),
        (
            with("region = \"ram\"\n", ""),
            "system.toml:10: `region` is missing: add it",
        ),
        (
            with(LINK, &(LINK.to_owned() + "line = 256\n")).replace("len =", "align = 64\nlen ="),
            "system.toml:11: the link is for cache lines of 256 bytes, and region `ram` aligns to 64: \
             set its `align` to 256, or the `line` of the link to what the sides have",
        ),
        (
            second("offset = 0x1000\n"),
            "system.toml:26: the first segment of link `two` at 0x1000 to 0x1300 and the second segment \
             of link `one` at 0x1000 to 0x1300 (line 15) overlap in region `ram`: move one of them",
        ),
        (
            second("offset = { first = 0x2040, second = 0x3000 }\n"),
            "system.toml:26: link `two`: its first segment begins at 0x2040, and every part of the \
             region at a multiple of its `align`, 4096: move it to 0x3000",
        ),
        (
            second("offset = 0x4100\n"),
            "system.toml:26: link `two` begins at 0x4100, and every part of the region at a multiple of \
             its `align`, 4096: move it to 0x5000",
        ),
        (
            second("offset = { first = 0x2000 }\n"),
            "system.toml:26: `offset` takes a number of bytes, or { first = 0, second = 0x1000, \
             exchange = 0x2000 }: correct it",
        ),
        (
            second("offset = 0xF000\n"),
            "system.toml:26: the second segment of link `two` at 0x10000 to 0x10300 does not fit into \
             region `ram` of 65536 bytes: move it, make the region longer, or have fewer or smaller \
             blocks",
        ),
        (
            second("offset = 0x7FFF_FFFF_FFFF_F000\n"),
            "system.toml:26: the first segment of link `two` at 0x7ffffffffffff000 to \
             0x7ffffffffffff300 does not fit into region `ram` of 65536 bytes: move it, make the \
             region longer, or have fewer or smaller blocks\n\
             system.toml:26: the second segment of link `two` at 0x8000000000000000 to \
             0x8000000000000300 does not fit into region `ram` of 65536 bytes: move it, make the \
             region longer, or have fewer or smaller blocks",
        ),
        (
            with("blocks = 2", "blocks = 2000"),
            "system.toml:10: link `one` needs 390656 bytes, and there is no such place in region `ram` \
             of 65536 bytes: make the region longer, or have fewer or smaller blocks",
        ),
        (
            with("blocks = 2", "blocks = 0"),
            "system.toml:15: channel 1: a pool has 1 to 32768 blocks of 1 to 268435456 bytes, and one \
             side at least sends",
        ),
        (
            with("size = 64", "size = 0"),
            "system.toml:19: `size` takes a number of bytes from 1 to 268435456: correct it",
        ),
        (
            with(
                "blocks = 2\nsize = 64",
                "blocks = 32768\nsize = 0x1000_0000",
            ),
            "system.toml:10: a segment would be above 2 GiB: have fewer or smaller blocks",
        ),
        (
            whole() + CHANNEL,
            "system.toml:20: two channels have the id 1: give one of them another",
        ),
        (
            whole().replace(CHANNEL, ""),
            "system.toml:10: a link has 1 to 64 channels: add one, or split the link",
        ),
        (
            with(LINK, &(LINK.to_owned() + "config = \"link.toml\"\n")),
            "system.toml:15: a link has a link file, `config`, or its keys: leave one of them out\n\
             no/link.toml: cannot be read (entity not found): check path and permissions",
        ),
        (
            "link = [3]\n".to_string(),
            "system.toml:1: `link` takes tables: write each in double brackets, as [[link]]: correct \
             it",
        ),
    ] {
        let said = refused(&text);
        let is_whole = !expected.ends_with(": ");
        assert!(
            said == expected || !is_whole && said.starts_with(expected),
            "{text}\nsays\n{said}\nand not\n{expected}"
        );
    }
    let missing = SystemFile::load("no/such/system.toml").unwrap_err();
    let text = "no/such/system.toml: cannot be read (entity not found): check path and permissions";
    assert_eq!(missing.to_string(), text);
}

#[test]
fn mistakes_of_the_whole_file_are_shown_at_once() {
    let text = whole()
        .replace("bits = 64", "bits = 16")
        .replace("len = 0x10000", "len = 0")
        .replace("second = \"rtos\"", "second = \"dsp\"")
        .replace("size = 64", "bytes = 64");
    let said = refused(&text);
    let lines: Vec<&str> = said
        .lines()
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        lines,
        [
            "system.toml:3",
            "system.toml:8",
            "system.toml:14",
            "system.toml:19"
        ]
    );
}

#[test]
fn no_text_makes_the_reader_panic() {
    let example = std::fs::read_to_string(EXAMPLE).unwrap();
    let words: Vec<String> = example
        .split_inclusive(|letter: char| !letter.is_alphanumeric())
        .map(str::to_string)
        .collect();
    let odd = [
        "0",
        "-1",
        "0x7FFF_FFFF_FFFF_FFFF",
        "0x1_0000_0000",
        "64",
        "[",
        "]",
        "{",
        "}",
        "\"",
        "=",
        "\n",
        "first",
        "second",
        "exchange",
        "offset = ",
        "linux",
        "\u{1F980}",
        "4096",
        "true",
    ];
    let rounds = if cfg!(miri) { 20 } else { 5_000 };
    let mut random = Random(0x5EED);
    let mut good = 0;
    for _ in 0..rounds {
        let mut words = words.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(words.len() as u64) as usize;
            match random.below(4) {
                0 => drop(words.remove(at)),
                1 => words.insert(at, odd[random.below(odd.len() as u64) as usize].into()),
                2 => words[at] = odd[random.below(odd.len() as u64) as usize].into(),
                _ => {
                    let other = random.below(words.len() as u64) as usize;
                    words.swap(at, other);
                }
            }
        }
        let text = words.concat();
        // Link files are not read here: what they are, `file.rs` says.
        let link = LinkFile::parse(
            "link.toml",
            "[[channel]]\nid = 1\nname = \"c\"\nblocks = 1\nsize = 1",
        );
        match SystemFile::parse_with("system.toml", &text, |_| link.clone()) {
            Ok(file) => {
                good += 1;
                lies_well(&file);
            }
            Err(error) => assert!(!error.mistakes.is_empty() && !error.to_string().is_empty()),
        }
    }
    assert!(good > rounds / 100, "{good} of {rounds} were files");
}

/// What holds for every file that was taken.
fn lies_well(file: &SystemFile) {
    let mut parts: Vec<(&str, Span)> = Vec::new();
    for link in file.links() {
        let mut regions = file.regions().iter();
        let region = regions.find(|region| region.name == link.region()).unwrap();
        assert_eq!(link.config().check(), Ok(()));
        let [first, second] = [Role::First, Role::Second].map(|role| link.segment(role));
        assert_eq!(first.len, link.config().segment_len(Role::First) as u64);
        assert_eq!(second.len, link.config().segment_len(Role::Second) as u64);
        for part in [first, second, link.exchange()] {
            if part.len == 0 {
                continue;
            }
            assert!(part.end() <= region.len && part.offset.is_multiple_of(region.align));
            for (other, span) in &parts {
                let is_apart = part.end() <= span.offset || span.end() <= part.offset;
                assert!(is_apart || *other != region.name);
            }
            parts.push((&region.name, part));
        }
        for role in [Role::First, Role::Second] {
            assert_eq!(link.role(link.domain(role)), Some(role));
            assert!(region.base(link.domain(role)).is_some());
        }
    }
    assert!(!file.to_rust("system.toml").is_empty());
}
