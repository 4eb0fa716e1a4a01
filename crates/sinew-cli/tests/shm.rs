//! `sinew shm status` against links that run in this process. After a change of the page,
//! `UPDATE=1 cargo test -p sinew-cli --test shm` writes the expected ones anew.

mod support;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use sinew_shm::StdLock;
use sinew_shm::domain::{
    Area, Channel, Config, End, Lost, Messages, Options, Pool, Receiver, Region, Role, Sender,
    Silent, State,
};
use sinew_shm::linux::exchange::{self, DoorbellKind};
use sinew_shm::linux::process::{Mapped, Process, offer};
use sinew_shm::linux::{self, Slots};
use support::{complaint, output, start};

const LINK: Config = Config::new(&[
    Channel::new(1, "control", Pool::new(8, 64)).priority(0),
    Channel::new(40000, "camera, one way!", Pool::new(4, 65536))
        .pools(Pool::new(4, 65536), Pool::new(0, 0))
        .priority(200),
    Channel::new(3, "evil \x1b[2J", Pool::new(2, 1500)),
]);

const OFFSET: u64 = 0x2000;

type Side = Arc<End<Process>>;

const VALUES: Config = Config::new(&[
    Channel::new(1, "control", Pool::new(8, 64)),
    Channel::of::<u32>(2, "never set").only(Role::Second),
    Channel::of::<Pose>(3, "pose"),
]);

const MESSAGES: Config = Config::new(&[
    Channel::messages(40000, "files", 8, 4)
        .pools(Pool::new(2, 65536), Pool::new(4000, 1500))
        .priority(1),
    Channel::messages(2, "words", 4096, 0),
]);

sinew_shm::value! {
    struct Pose {
        at: [f32; 3],
        time: u64,
    }
}

/// A folder of this test, empty.
fn folder(name: &str) -> PathBuf {
    let folder = format!("{}/shm-{name}", env!("CARGO_TARGET_TMPDIR"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder.into()
}

/// The file `link` in a folder, and a side that has opened in it.
fn side(folder: &Path, role: Role) -> Side {
    side_of(folder, role, LINK)
}

fn side_of(folder: &Path, role: Role, config: Config<'static>) -> Side {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join("link"))
        .unwrap();
    let len = Region::of(&config).len;
    file.set_len(OFFSET + len).unwrap();
    let region = sinew_shm::linux::Region::open(folder.join("link"), OFFSET, len as usize).unwrap();
    let mapped = Mapped::in_region(&region, &config, role).unwrap();
    let end = mapped.open(config, role, Box::new(Silent), Options::default());
    Arc::new(end.unwrap())
}

fn up(ends: [&Side; 3]) {
    for end in ends {
        end.look(0);
    }
}

fn sender(end: &Side, channel: u16) -> Sender<Side> {
    Sender::new(end, channel).unwrap()
}

/// `sinew shm status` in a folder.
fn status(folder: &Path, args: &[&str]) -> Command {
    let mut command = support::sinew(&["shm", "status"]);
    command.args(args).current_dir(folder);
    command
}

fn page(folder: &Path, args: &[&str]) -> String {
    let output = output(&mut status(folder, args));
    assert!(output.status.success(), "{}", complaint(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn check(name: &str, found: &str) {
    let path = format!("{}/tests/shm/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    for line in found.lines() {
        assert!(line.chars().count() <= 79, "{line}");
    }
    if std::env::var_os("UPDATE").is_some() {
        return fs::write(path, found).unwrap();
    }
    let expected = fs::read_to_string(path).unwrap();
    assert_eq!(found, expected, "found:\n{found}");
}

#[test]
fn a_running_link_is_shown_block_by_block() {
    let folder = folder("running");
    let (first, second) = (side(&folder, Role::First), side(&folder, Role::Second));
    up([&first, &second, &first]);
    let commands = Receiver::new(&second, 1).unwrap();
    let control = sender(&first, 1);
    for _ in 0..1000 {
        control.send(b"command").unwrap();
        drop(commands.receive().unwrap().unwrap());
    }
    for _ in 0..5 {
        control.send(b"command").unwrap();
    }
    let _held = commands.receive().unwrap().unwrap();
    let camera = sender(&first, 40000);
    for _ in 0..4 {
        camera.send(b"frame").unwrap();
    }
    camera.send(b"frame").unwrap_err();
    sender(&second, 3).send(&[0; 1501]).unwrap_err();
    check("running", &page(&folder, &["shm:link?offset=0x2000"]));
}

#[test]
fn a_side_that_stopped_says_why() {
    let folder = folder("fault");
    let (first, second) = (side(&folder, Role::First), side(&folder, Role::Second));
    up([&first, &second, &first]);
    // Over the first entry of the second side's first ring, whose offset its directory says.
    let file = File::options()
        .read(true)
        .write(true)
        .open(folder.join("link"))
        .unwrap();
    let segment = OFFSET + Region::of(&LINK).second.offset;
    let mut ring = [0; 4];
    file.read_exact_at(&mut ring, segment + 0x118).unwrap();
    let ring = u64::from(u32::from_le_bytes(ring));
    file.write_all_at(&[0x55; 16], segment + ring).unwrap();
    let lost = Receiver::new(&first, 1).unwrap().receive().map(drop);
    assert_eq!(lost, Err(Lost::Fault));
    check("fault", &page(&folder, &["shm:link?offset=8192"]));
}

#[test]
fn sides_with_different_configurations_are_told_apart() {
    const OTHER: Config = Config::new(&[Channel::new(1, "other", Pool::new(2, 64))]);
    let folder = folder("refused");
    let _first = side(&folder, Role::First);
    let len = Region::of(&LINK).len;
    let offset = Region::of(&LINK).second.offset;
    // Where the second side of the first one's configuration is to be.
    let fits = Region::of(&OTHER).second.offset;
    let region = sinew_shm::linux::Region::open(
        folder.join("link"),
        OFFSET + offset - fits,
        (len - offset + fits) as usize,
    );
    let mapped = Mapped::in_region(&region.unwrap(), &OTHER, Role::Second).unwrap();
    let end = mapped.open::<StdLock>(OTHER, Role::Second, Box::new(Silent), Options::default());
    let _second = end.unwrap();
    check("refused", &page(&folder, &["shm:link?offset=8192"]));
}

#[test]
fn json_says_the_same_for_machines() {
    let folder = folder("json");
    let (first, second) = (side(&folder, Role::First), side(&folder, Role::Second));
    up([&first, &second, &first]);
    sender(&first, 1).send(b"command").unwrap();
    check("json", &page(&folder, &["shm:link?offset=8192", "--json"]));
}

/// Three slots in a folder: one that is used, one whose remote has gone, one that nobody had.
fn slots(folder: &Path) -> (Slots, Vec<linux::Link>) {
    let slots = Slots::create(folder.join("link"), OFFSET, LINK, 3).unwrap();
    // No sign of life after the first, so that their count is the same in every run.
    let mut options = linux::link::Options::default();
    options.end.heartbeat = 3_600_000;
    let mut links: Vec<linux::Link> = (0..3)
        .map(|slot| slots.master(slot, options).unwrap())
        .collect();
    let remotes = [0, 1].map(|_| slots.claim(options).unwrap());
    for remote in &remotes {
        let master = links[remote.slot as usize].end();
        up([master, remote.link.end(), master]);
    }
    let [used, gone] = remotes;
    for _ in 0..3 {
        links[0].sender(1).unwrap().send(b"command").unwrap();
    }
    drop(gone);
    links[1].end().look(0);
    links.push(used.link);
    (slots, links)
}

#[test]
fn every_slot_is_shown_with_who_has_it() {
    let folder = folder("slots");
    let (slots, mut links) = slots(&folder);
    check("slots", &page(&folder, &["shm:link?offset=0x2000"]));
    // What is left where a process was killed: memory that says up, and no lock.
    fs::copy(folder.join("link"), folder.join("killed")).unwrap();
    let text = page(&folder, &["shm:killed?offset=0x2000"]);
    let title = "slot 0 · first side: no process · second side: no process\nup · 3 channels";
    let why = "\nno process of this machine has the second side: it is gone, or elsewhere\n";
    assert!(text.contains(title) && text.contains(why), "{text}");
    // The master of the one that is used goes; its memory says that it closed.
    drop(links.remove(0));
    let text = page(&folder, &["shm:link?offset=0x2000"]);
    let title = "slot 0 · first side: no process · second side: a process\ndown";
    assert!(text.contains(title), "{text}");
    drop((slots, links));
    let text = page(&folder, &["shm:link?offset=0x2000"]);
    assert!(text.contains("3 slots, 0 taken\n"), "{text}");
}

#[test]
fn json_and_link_file_of_slots_are_written() {
    let folder = folder("slots-json");
    let _links = slots(&folder);
    let json = page(&folder, &["shm:link?offset=0x2000", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let links = json["links"].as_array().unwrap();
    let shown: Vec<_> = links
        .iter()
        .map(|link| {
            let taken = &link["taken_by_process"];
            let side = |name: &str| taken[name].as_bool().unwrap();
            let number = link["slot"].as_u64().unwrap();
            let state = link["state"].as_str().unwrap();
            (number, state, side("first"), side("second"))
        })
        .collect();
    let expected = [
        (0, "up", true, true),
        (1, "free", true, false),
        (2, "free", true, false),
    ];
    assert_eq!(shown, expected);
    assert_eq!(links[0]["channels"][0]["first_to_second"]["queued"], 3);
    let toml = page(&folder, &["shm:link?offset=0x2000", "--toml"]);
    assert_eq!(toml.trim_end(), LINK.to_toml().trim_end());
}

#[test]
fn state_channels_are_shown_by_their_values() {
    let folder = folder("state");
    let open = |role| side_of(&folder, role, VALUES);
    let (first, second) = (open(Role::First), open(Role::Second));
    up([&first, &second, &first]);
    let pose = |end| State::<Side, Pose>::new(end, 3).unwrap();
    for time in 0..1234 {
        let at = [1.0; 3];
        assert_eq!(pose(&first).set(&Pose { at, time }), Ok(true));
    }
    check("state", &page(&folder, &["shm:link?offset=0x2000"]));
    let json = page(&folder, &["shm:link?offset=8192", "--json"]);
    check("state_json", &json);
    let toml = page(&folder, &["shm:link?offset=8192", "--toml"]);
    assert_eq!(toml.trim_end(), VALUES.to_toml().trim_end());
}

#[test]
fn lock_channels_are_shown_by_their_owners() {
    const LOCKS: Config = Config::new(&[
        Channel::lock(1, "free", 8),
        Channel::lock(2, "held", 4096),
        Channel::lock(3, "poisoned", 100),
    ]);
    let folder = folder("lock");
    let open = |role| side_of(&folder, role, LOCKS);
    let (first, second) = (open(Role::First), open(Role::Second));
    let area = |end, id| Area::<Side>::new(end, id).unwrap();
    up([&first, &second, &first]);
    let lost = area(&first, 3);
    std::mem::forget(lost.try_lock().unwrap());
    first.peer_is_gone();
    up([&second, &first, &second]);
    for _ in 0..1234 {
        let area = area(&first, 1);
        area.try_lock().unwrap().write(0, b"x").unwrap();
    }
    let held = area(&second, 2);
    let _guard = held.try_lock().unwrap();
    check("lock", &page(&folder, &["shm:link?offset=0x2000"]));
    let json = page(&folder, &["shm:link?offset=8192", "--json"]);
    check("lock_json", &json);
    let toml = page(&folder, &["shm:link?offset=8192", "--toml"]);
    assert_eq!(toml.trim_end(), LOCKS.to_toml().trim_end());
}

#[test]
fn message_channels_are_shown_with_their_memory_and_what_waits() {
    let folder = folder("messages");
    let open = |role| side_of(&folder, role, MESSAGES);
    let (first, second) = (open(Role::First), open(Role::Second));
    up([&first, &second, &first]);
    let files = |end| Messages::<Side>::new(end, 40000).unwrap();
    let (near, far) = (files(&first), files(&second));
    for _ in 0..1000 {
        let mut loan = near.memory(9).unwrap().lend(1, 0..9, [0; 3]).unwrap();
        let given = far.receive().unwrap().unwrap().memory.unwrap();
        assert!(given.answer([1]));
        assert!(loan.poll().unwrap().is_some());
    }
    for _ in 0..3 {
        near.send(2, [0; 5]).unwrap();
    }
    check("messages", &page(&folder, &["shm:link?offset=0x2000"]));
    let json = page(&folder, &["shm:link?offset=8192", "--json"]);
    check("messages_json", &json);
    let toml = page(&folder, &["shm:link?offset=8192", "--toml"]);
    assert_eq!(toml.trim_end(), MESSAGES.to_toml().trim_end());
}

#[test]
fn looking_changes_no_byte() {
    let folder = folder("unchanged");
    let (first, second) = (side(&folder, Role::First), side(&folder, Role::Second));
    up([&first, &second, &first]);
    let before = fs::read(folder.join("link")).unwrap();
    page(&folder, &["shm:link?offset=8192"]);
    assert!(before == fs::read(folder.join("link")).unwrap());
}

#[test]
fn who_is_missing_is_named() {
    let folder = folder("missing");
    let first = side(&folder, Role::First);
    check("alone", &page(&folder, &["shm:link?offset=8192"]));
    drop(first);
    let _second = side(&folder, Role::Second);
    check("closed", &page(&folder, &["shm:link?offset=8192"]));
}

#[test]
fn the_second_side_alone_is_found_without_the_link_file_and_with_it() {
    let folder = folder("config");
    let _second = side(&folder, Role::Second);
    let place = "shm:link?offset=8192";
    let without = page(&folder, &[place]);
    assert!(without.contains("nobody has opened this side"), "{without}");
    assert!(without.contains("control"), "{without}");
    let toml = page(&folder, &[place, "--toml"]);
    assert_eq!(toml.trim_end(), LINK.to_toml().trim_end());
    fs::write(folder.join("link.toml"), LINK.to_toml()).unwrap();
    assert_eq!(page(&folder, &[place, "--config", "link.toml"]), without);
}

#[test]
fn a_second_side_that_lies_where_the_first_one_does_not_expect_it_is_found() {
    const SMALL: Config = Config::new(&[Channel::new(1, "small", Pool::new(2, 64))]);
    let folder = folder("elsewhere");
    let _first = side_of(&folder, Role::First, SMALL);
    let _second = side(&folder, Role::Second);
    let text = page(&folder, &["shm:link?offset=8192"]);
    assert!(text.contains("refused · 1 channel"), "{text}");
    assert!(text.contains("\nthe configurations differ"), "{text}");
    assert!(text.contains("\nsecond  ready"), "{text}");
}

#[test]
fn the_link_file_of_a_running_link_is_written() {
    let folder = folder("toml");
    let _first = side(&folder, Role::First);
    let text = page(&folder, &["shm:link?offset=8192", "--toml"]);
    assert_eq!(text.trim_end(), LINK.to_toml().trim_end());
}

#[test]
fn no_link_file_is_written_of_a_process_without_links() {
    let server = support::Serve::start(&format!("shm:{}", support::socket("no-links")));
    let output = output(&mut support::sinew(&[
        "shm",
        "status",
        &server.endpoint,
        "--toml",
    ]));
    let text = complaint(&output);
    assert_eq!(output.status.code(), Some(69), "{text}");
    assert!(text.contains("has no link now"), "{text}");
    assert!(output.stdout.is_empty());
}

#[test]
fn watching_shows_rates_and_who_is_silent() {
    let folder = folder("watch");
    let (first, second) = (side(&folder, Role::First), side(&folder, Role::Second));
    up([&first, &second, &first]);
    let mut child = start(
        status(&folder, &["shm:link?offset=8192", "--watch", "--json"]).stdout(Stdio::piped()),
    );
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> serde_json::Value {
        let line = lines.next().unwrap().unwrap();
        let all: serde_json::Value = serde_json::from_str(&line).unwrap();
        all["links"][0].clone()
    };
    let one = next();
    assert!(one["first"]["silent_ms"].is_null());
    let sent = &one["channels"][0]["first_to_second"];
    assert!(sent["per_second"].is_null() && sent["sent"] == 0);
    sender(&first, 1).send(b"command").unwrap();
    first.look(1000);
    // However long this process was kept from it, some look is the first one after the packet.
    let is_seen = (0..60).any(|_| {
        let look = next();
        let rate = &look["channels"][0]["first_to_second"]["per_second"];
        rate.as_f64().unwrap() > 0.0
    });
    assert!(is_seen);
    let look = next();
    let silent = |side: &str| look[side]["silent_ms"].as_u64().unwrap();
    assert!(silent("second") > silent("first"), "{look}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn pages_follow_each_other_where_there_is_no_terminal() {
    let folder = folder("pages");
    let _first = side(&folder, Role::First);
    let mut child =
        start(status(&folder, &["shm:link?offset=8192", "--watch"]).stdout(Stdio::piped()));
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let heads = lines.map(Result::unwrap).inspect(|line| {
        assert!(!line.contains('\x1b'), "{line}");
    });
    let heads = heads.filter(|line| line == "shm:link?offset=0x2000");
    assert_eq!(heads.take(2).count(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_links_of_a_process_are_shown_at_its_socket() {
    let folder = folder("socket");
    let (one, other) = UnixStream::pair().unwrap();
    let joining = thread::spawn(move || {
        let offer = offer(&LINK, Role::Second, DoorbellKind::Socket);
        exchange::join(OwnedFd::from(other), &offer, exchange::TIMEOUT).unwrap()
    });
    let greeting = exchange::greet(OwnedFd::from(one), exchange::TIMEOUT).unwrap();
    let offer = offer(&LINK, Role::First, DoorbellKind::Socket);
    let here = greeting.join(&offer, exchange::TIMEOUT).unwrap();
    let there = joining.join().unwrap();
    let fds = [&here.mine, &here.peer].map(|segment| segment.as_fd().try_clone_to_owned().unwrap());
    let open = |mine, peer, role| -> Side {
        let mapped = Mapped::joined(mine, peer, None).unwrap();
        let end = mapped.open(LINK, role, Box::new(Silent), Options::default());
        Arc::new(end.unwrap())
    };
    let first = open(here.mine, here.peer, Role::First);
    let second = open(there.mine, there.peer, Role::Second);
    up([&first, &second, &first]);
    sender(&second, 1).send(b"status").unwrap();

    let listener = UnixListener::bind(folder.join("link")).unwrap();
    let serving = thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        let greeting = exchange::greet(socket.into(), exchange::TIMEOUT).unwrap();
        assert!(greeting.is_observer());
        let [mine, peer] = &fds;
        // As the side that joined sees it: the page puts the first side first all the same.
        let links = [(mine.as_fd(), peer.as_fd()), (peer.as_fd(), mine.as_fd())];
        greeting.show(&links, exchange::TIMEOUT).unwrap();
    });
    check("socket", &page(&folder, &["shm:link"]));
    serving.join().unwrap();
}

#[test]
fn what_is_no_link_is_refused_with_cause_and_remedy() {
    let folder = folder("wrong");
    let fails = |args: &[&str], code: i32| {
        let output = output(&mut status(&folder, args));
        assert_eq!(output.status.code(), Some(code), "{}", complaint(&output));
        complaint(&output)
    };
    assert!(fails(&["shm:no"], 69).contains("there is no such file or socket"));
    assert!(fails(&["shm:."], 69).contains("it is a folder"));
    let bad_file = fails(&["shm:.", "--config", "no.toml"], 64);
    assert!(
        bad_file.contains("no.toml: there is no such file"),
        "{bad_file}"
    );
    fs::write(folder.join("text"), [b'x'; 9000]).unwrap();
    let text = page(&folder, &["shm:text"]);
    assert!(text.contains("this is no segment"), "{text}");
    fs::write(folder.join("short"), "x").unwrap();
    let text = page(&folder, &["shm:short"]);
    assert!(text.contains("the memory ends before"), "{text}");
    drop(UnixListener::bind(folder.join("stale")).unwrap());
    assert!(fails(&["shm:stale"], 69).contains("no process shows its links there"));
    let _other = UnixDatagram::bind(folder.join("other")).unwrap();
    assert!(fails(&["shm:other"], 69).contains("the socket is of another kind"));
    // Somebody who never answers.
    let silent = UnixListener::bind(folder.join("silent")).unwrap();
    let text = fails(&["shm:silent"], 69);
    assert!(text.contains("the process there does not answer"), "{text}");
    assert!(text.contains("it accepts nobody just now"), "{text}");
    drop(silent);
}

#[test]
fn no_link_file_is_written_of_memory_that_was_overwritten() {
    let folder = folder("overwritten");
    let _first = side(&folder, Role::First);
    let file = File::options()
        .write(true)
        .open(folder.join("link"))
        .unwrap();
    // The block size of the first channel.
    file.write_all_at(&65_u32.to_le_bytes(), OFFSET + 0x108)
        .unwrap();
    let output = output(&mut status(&folder, &["shm:link?offset=8192", "--toml"]));
    let text = complaint(&output);
    assert_eq!(output.status.code(), Some(69), "{text}");
    assert!(text.contains("something wrote over the memory"), "{text}");
    assert!(output.stdout.is_empty());
}

#[test]
fn watching_ends_when_nobody_reads_it_any_more() {
    let folder = folder("unread");
    let _first = side(&folder, Role::First);
    let mut child =
        start(status(&folder, &["shm:link?offset=8192", "--watch"]).stdout(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let ended = (0..60).find_map(|_| {
        thread::sleep(std::time::Duration::from_secs(1));
        child.try_wait().unwrap()
    });
    let _ = child.kill();
    assert_eq!(ended.and_then(|status| status.code()), Some(0));
}
