//! `log`: against servers of this process, of others, over every kind of link, and against none.

mod support;

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::{Value, json};
use sinew_io::Server;
use sinew_io::serve::{ListenError, Listening};
use sinew_services::log::{self, Clock, Logger, Records, Serve};
use sinew_services::record::Said;
use sinew_services::{RecordsRequest, Severity};
use sinew_shm::StdLock;
use support::image::deferred;
use support::{answer, complaint, free_place, interrupt, sinew, socket, start};

/// What takes longer on a loaded machine hangs.
const HANGS: Duration = Duration::from_secs(60);

/// A clock that stands still, at 1.5 s.
struct Stopped;

impl Clock for Stopped {
    fn now() -> sinew::time::Instant {
        sinew::time::Instant::from_micros(1_500_000)
    }
}

type Log = &'static Logger<StdLock, Stopped, 64>;

/// A device with a log, at an endpoint of its own.
struct Device {
    log: Log,
    _server: Server<Serve<Records<StdLock, Stopped, 64>>>,
    listening: Listening,
}

impl Device {
    fn at(endpoint: &str) -> Device {
        let log: Log = Box::leak(Box::default());
        let server = Server::new(Serve(log.records().unwrap()));
        let endpoint = endpoint.parse().unwrap();
        let since = Instant::now();
        let listening = loop {
            match server.listen(&endpoint) {
                // A program that another test is starting holds the old socket until it runs.
                Err(ListenError::InUse(_)) if since.elapsed() < HANGS => thread::yield_now(),
                listening => break listening.unwrap(),
            }
        };
        Device {
            log,
            _server: server,
            listening,
        }
    }

    fn new() -> Device {
        Device::at("tcp:127.0.0.1:0")
    }

    fn endpoint(&self) -> String {
        self.listening.endpoint().to_string()
    }

    fn say(&self, severity: Severity, module: &str, text: &str) {
        self.log.write(severity, module, format_args!("{text}"));
    }
}

/// `sinew log` of what waits at these devices.
fn once(args: &[&str]) -> Output {
    support::output(&mut sinew(&[&["log", "--once"], args].concat()))
}

fn values(output: &Output) -> Vec<Value> {
    let lines = answer(output).lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A running `sinew log`, and what it writes.
struct Reading {
    child: Child,
    lines: Receiver<String>,
}

impl Reading {
    fn start(args: &[&str]) -> Reading {
        let mut command = sinew(&[&["log"], args].concat());
        let mut child = start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let out = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in out.lines() {
                let _ = send.send(line.unwrap());
            }
        });
        Reading { child, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(HANGS).expect("a line")
    }

    /// Passes lines over until there is one with this.
    fn until(&self, text: &str) -> String {
        loop {
            let line = self.line();
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Ctrl-C.
    fn stop(self) -> Output {
        interrupt(&self.child);
        self.end()
    }

    /// What it says at its own end.
    fn end(self) -> Output {
        self.child.wait_with_output().unwrap()
    }
}

#[test]
fn records_come_over_every_kind_of_link() {
    let kinds = [
        "tcp:127.0.0.1:0",
        "udp:127.0.0.1:0",
        &format!("unix:{}", socket("log-unix")),
        &format!("shm:{}", socket("log-shm")),
    ];
    for kind in kinds {
        let device = Device::at(kind);
        device.say(Severity::Info, "boot", "started");
        let reading = Reading::start(&[&device.endpoint()]);
        assert_eq!(reading.line(), "    1.500000  INFO  boot: started");
        device.say(Severity::Error, "motor", "hot");
        assert_eq!(reading.line(), "    1.500000  ERROR motor: hot");
        assert!(reading.stop().status.success());
    }
}

#[test]
fn records_come_over_a_serial_line() {
    let cable = support::Cable::new();
    let [near, far] = cable.ends.each_ref().map(|end| format!("serial:{end}"));
    let device = Device::at(&far);
    device.say(Severity::Info, "boot", "started");
    let reading = Reading::start(&[&near]);
    assert_eq!(reading.line(), "    1.500000  INFO  boot: started");
    device.say(Severity::Error, "motor", "hot");
    assert_eq!(reading.line(), "    1.500000  ERROR motor: hot");
    assert!(reading.stop().status.success());
}

/// What `sinew log --once` writes to a terminal.
fn on_a_terminal(device: &Device, no_colour: bool) -> String {
    use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
    let (master, path) = support::pty();
    let terminal = fs::OpenOptions::new()
        .write(true)
        .read(true)
        .open(path)
        .unwrap();
    let mut plain = tcgetattr(&terminal).unwrap();
    plain.make_raw();
    tcsetattr(&terminal, OptionalActions::Now, &plain).unwrap();
    let mut command = sinew(&["log", "--once", "--time", "none", &device.endpoint()]);
    if !no_colour {
        command.env_remove("NO_COLOR");
    }
    let mut child = start(command.stdout(terminal).stderr(Stdio::null()));
    let mut line = String::new();
    BufReader::new(fs::File::from(master))
        .read_line(&mut line)
        .unwrap();
    assert!(child.wait().unwrap().success());
    line
}

#[test]
fn terminal_has_colours_unless_it_wants_none() {
    let device = Device::new();
    let say = || device.say(Severity::Warn, "", "hot");
    say();
    assert_eq!(
        on_a_terminal(&device, false),
        "\u{1b}[33mWARN \u{1b}[0m hot\n"
    );
    say();
    assert_eq!(on_a_terminal(&device, true), "WARN  hot\n");
}

#[test]
fn filters_are_those_of_severity_module_and_text() {
    let device = Device::new();
    let say = || {
        device.say(Severity::Debug, "motor::left", "slow");
        device.say(Severity::Warn, "motor::right", "warm");
        device.say(Severity::Error, "pump", "dry");
    };
    let at = device.endpoint();
    for (args, expected) in [
        (&["--least", "warn"][..], "warm dry"),
        (&["--module", "motor"], "slow warm"),
        (&["--grep", "r"], "warm dry"),
        (&["-l", "warn", "-m", "motor", "-g", "w"], "warm"),
        (&[], "slow warm dry"),
    ] {
        say();
        let output = once(&[&[&at, "--time", "none"], args].concat());
        let texts = answer(&output).lines();
        let texts: Vec<_> = texts.map(|line| line.rsplit(' ').next().unwrap()).collect();
        assert_eq!(texts.join(" "), expected, "{args:?}");
    }
}

#[test]
fn records_are_objects_where_they_are_wanted_so() {
    let device = Device::new();
    device.say(Severity::Warn, "motor", "a \"quote\"\nand \u{1b}[2J");
    for _ in 0..64 {
        device.say(Severity::Trace, "", "many");
    }
    let at = device.endpoint();
    let all = values(&once(&[&at, "--json"]));
    assert_eq!(all.len(), 64);
    let mut first = all[0].clone();
    let time = first.as_object_mut().unwrap().remove("time").unwrap();
    assert!(time.as_str().unwrap().ends_with('Z'), "{time}");
    assert_eq!(
        first,
        json!({
            "endpoint": at, "severity": "warn", "module": "motor",
            "text": "a \"quote\"\nand \u{1b}[2J", "uptime_us": 1_500_000, "number": 1,
        })
    );
    // One more than there was room for.
    device.say(Severity::Info, "", "next");
    let next = values(&once(&[&at, "--json"]));
    assert_eq!(
        next[0],
        json!({ "endpoint": at, "event": "dropped", "count": 1 })
    );
    assert_eq!(next[1]["number"], 65);
    device.say(Severity::Warn, "motor", "a\u{1b}[2J");
    let text = once(&[&at, "--time", "none"]);
    assert_eq!(answer(&text), "WARN  motor: a\\u{1b}[2J\n");
}

#[test]
fn several_devices_are_told_apart() {
    let (one, other) = (Device::new(), Device::new());
    one.say(Severity::Info, "", "of one");
    other.say(Severity::Info, "", "of the other");
    let output = once(&[&one.endpoint(), &other.endpoint(), "--time", "none"]);
    let lines: HashSet<&str> = answer(&output).lines().collect();
    let width = one.endpoint().len().max(other.endpoint().len());
    let [first, second] = [(&one, "of one"), (&other, "of the other")]
        .map(|(device, text)| format!("{:width$} INFO  {text}", device.endpoint()));
    assert_eq!(lines, HashSet::from([&*first, &*second]));
}

#[test]
fn server_that_is_killed_and_started_again_is_read_on() {
    let at = format!("tcp:{}", free_place());
    let server = support::Serve::start(&at);
    let reading = Reading::start(&[&at, "--time", "none"]);
    reading.until("INFO  sinew::serve: serving on ");
    server.kill();
    reading.until("-- gone (the connection was lost); trying again");
    let server = support::Serve::start(&at);
    reading.until("-- there now");
    reading.until("-- the device has started again");
    reading.until("INFO  sinew::serve: serving on ");
    assert!(reading.stop().status.success());
    drop(server);
}

#[test]
fn device_that_begins_again_without_a_connection_is_asked_again() {
    let at = format!("udp:{}", free_place());
    let device = Device::at(&at);
    device.say(Severity::Info, "", "first");
    let reading = Reading::start(&[&at, "--wait"]);
    reading.until("INFO  first");
    drop(device);
    let device = Device::at(&at);
    device.say(Severity::Info, "", "second");
    reading.until("-- the device has started again");
    reading.until("INFO  second");
    assert!(reading.stop().status.success());
}

#[test]
fn device_that_is_not_there_yet_is_waited_for_where_that_is_wanted() {
    let at = format!("tcp:{}", free_place());
    let output = once(&[&at]);
    assert_eq!(output.status.code(), Some(69));
    let text = complaint(&output);
    assert!(text.contains("no server listens there"), "{text}");
    let reading = Reading::start(&[&at, "--wait"]);
    assert_eq!(
        reading.line(),
        "-- not there yet (no server listens there); trying again"
    );
    let device = Device::at(&at);
    device.say(Severity::Info, "", "here");
    reading.until("-- there now");
    reading.until("INFO  here");
    assert!(reading.stop().status.success());
}

#[test]
fn new_reader_takes_the_place_of_the_first_which_says_so() {
    let device = Device::new();
    let at = device.endpoint();
    device.say(Severity::Info, "", "for the first");
    let first = Reading::start(&[&at]);
    first.until("for the first");
    let second = Reading::start(&[&at]);
    let ended = first.end();
    assert_eq!(ended.status.code(), Some(10));
    let text = complaint(&ended);
    assert!(text.contains("another reader has taken the log"), "{text}");
    assert!(text.contains("end the other one"), "{text}");
    device.say(Severity::Info, "", "for the second");
    second.until("for the second");
    assert!(second.stop().status.success());
}

#[test]
fn server_without_a_log_is_named_with_the_remedy() {
    let server = Server::new(sinew_demo::cache::Serve(sinew_demo::CacheService::new()));
    let listening = server.listen(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
    let at = listening.endpoint().to_string();
    let output = once(&[&at]);
    assert_eq!(output.status.code(), Some(5));
    let text = complaint(&output);
    assert!(text.contains("keeps no log: it has no sinew.Log"), "{text}");
    assert!(text.contains("serve sinew_services::log beside"), "{text}");
    // Beside one that has a log, it is said, and the other goes on.
    let device = Device::new();
    device.say(Severity::Info, "", "here");
    let output = once(&[&at, &device.endpoint()]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("INFO  here"));
    assert_eq!(output.status.code(), Some(5));
}

#[test]
fn it_ends_when_its_time_is_up() {
    let device = Device::new();
    let before = Instant::now();
    let output = support::output(&mut sinew(&["log", &device.endpoint(), "--for", "2s"]));
    assert_eq!(answer(&output), "");
    assert!(before.elapsed() >= Duration::from_secs(2));
}

#[test]
fn device_of_which_nothing_was_heard_is_said_at_the_end_with_the_likely_cause() {
    let device = Device::new();
    device.say(Severity::Info, "", "here");
    let at = device.endpoint();
    let reads =
        |args: &[&str]| support::output(&mut sinew(&[&["log", "--for", "300ms"], args].concat()));
    let silent = reads(&[&at, "--channel", "7"]);
    assert_eq!(silent.status.code(), Some(4));
    let text = complaint(&silent);
    assert!(
        text.contains(&format!("no answer from {at} within ")),
        "{text}"
    );
    assert!(text.contains("does not serve channel 7"), "{text}");
    assert!(text.contains("another framing (give --frame)"), "{text}");
}

#[test]
fn line_tells_of_silence_with_the_likely_cause() {
    let device = Device::new();
    let reading = Reading::start(&[&device.endpoint(), "--frame", "len"]);
    let line = reading.until("-- no answer: ");
    assert!(line.contains("another framing (give --frame)"), "{line}");
    assert!(reading.stop().status.success());
}

#[test]
fn port_without_a_server_is_an_error_unless_it_is_waited_for() {
    let at = format!("udp:{}", free_place());
    let output = support::output(&mut sinew(&["log", &at]));
    assert_eq!(output.status.code(), Some(69));
    let text = complaint(&output);
    assert!(text.contains("nobody listens on that port"), "{text}");
    let reading = Reading::start(&[&at, "--wait"]);
    reading.until("-- not there yet (nobody listens on that port); trying again");
    let device = Device::at(&at);
    device.say(Severity::Info, "", "here");
    reading.until("-- there now");
    reading.until("INFO  here");
    assert!(reading.stop().status.success());
}

#[test]
fn what_serve_does_is_in_its_log() {
    let server = support::Serve::start("tcp:127.0.0.1:0");
    let at = server.endpoint.clone();
    let reading = Reading::start(&[&at, "--time", "none", "--least", "info"]);
    assert_eq!(
        reading.line(),
        format!("INFO  sinew::serve: serving on {at}")
    );
    reading.until("INFO  sinew::serve: client 0 is there");
    // A call that it does not have.
    let proto = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/tutorial/lamp.proto"
    );
    let call = support::call(&at, &["home.Lamp/Set", "{}", "--proto", proto], "");
    assert_eq!(call.status.code(), Some(5));
    reading.until("WARN  sinew::serve: refused or ended early: unknown_method 1");
    assert!(reading.stop().status.success());
    drop(server);
}

/// Frames as the image writes them: that of its start, and that of a value.
fn frames(at: &str) -> [Vec<u8>; 2] {
    let mut client = sinew_io::connect(&at.parse().unwrap()).unwrap();
    client.set_timeout(HANGS);
    let set = sinew_demo::SetValueRequest { value: 7 };
    sinew_demo::cache::Client(&client).set_value(&set).unwrap();
    let mut stream = log::Client(&client)
        .records(&RecordsRequest::default())
        .unwrap();
    let mut next = || loop {
        let record = stream.next().unwrap().unwrap();
        let Some(Said::Deferred(frame)) = record.said else {
            panic!("{record:?}");
        };
        // One of SysTick is shorter, and may come between.
        if frame.len() > 6 || record.number == 1 {
            return frame.to_vec();
        }
    };
    [next(), next()]
}

#[test]
fn texts_that_are_not_in_the_image_are_shown() {
    let image = deferred();
    let at = format!("qemu:{}", image.display());
    let reading = Reading::start(&[&at, "--time", "none"]);
    assert_eq!(
        reading.line(),
        "INFO  deferred::main: started, with 256 bytes a packet"
    );
    // From an interrupt handler.
    assert_eq!(reading.line(), "TRACE deferred::time_passed: period 1");
    assert!(reading.stop().status.success());
    // What is loaded has none of it.
    let elf = fs::read(&image).unwrap();
    let holds = |bytes: &[u8]| bytes.windows(7).any(|it| it == b"started");
    assert!(holds(&elf));
    assert!(!holds(&loaded_of(&elf)));
}

/// The bytes of a 32-bit ELF file that are loaded.
fn loaded_of(elf: &[u8]) -> Vec<u8> {
    let half = |at: usize| usize::from(u16::from_le_bytes([elf[at], elf[at + 1]]));
    let word = |at: usize| half(at) | half(at + 2) << 16;
    let (table, size, count) = (word(28), half(42), half(44));
    let mut loaded = Vec::new();
    for header in (0..count).map(|at| table + at * size) {
        if word(header) == 1 {
            let (offset, len) = (word(header + 4), word(header + 16));
            loaded.extend_from_slice(&elf[offset..offset + len]);
        }
    }
    assert!(loaded.len() > 1000);
    loaded
}

#[test]
fn frames_that_are_none_are_said_and_the_next_is_shown() {
    let image = deferred();
    let [started, value] = frames(&format!("qemu:{}", image.display()));
    let mut bad: Vec<Vec<u8>> = (0..value.len()).map(|len| value[..len].to_vec()).collect();
    bad.push([&value[..], &[0]].concat());
    // Wherever there is a count, it is the largest.
    bad.extend((0..value.len() - 4).map(|at| {
        let mut frame = value.clone();
        frame[at..at + 4].fill(0xff);
        frame
    }));
    bad.push(vec![0xff; 128]);
    bad.push(Vec::new());
    let image = image.to_str().unwrap();
    for bad in bad.chunks(20) {
        let device = Device::new();
        for frame in bad {
            device.log.write_deferred(frame);
            device.log.write_deferred(&started);
        }
        let all = values(&once(&[&device.endpoint(), "--elf", image, "--json"]));
        assert_eq!(all.len(), 2 * bad.len());
        for (pair, frame) in all.chunks(2).zip(bad) {
            let is_text = pair[0]["text"].is_string();
            let why = pair[0]["problem"].as_str().unwrap_or_default();
            assert!(is_text || why.contains("of another build"), "{}", pair[0]);
            let is_cut = frame.len() < value.len();
            assert!(!(is_text && is_cut), "{}", pair[0]);
            assert_eq!(pair[1]["text"], "started, with 256 bytes a packet");
            assert_eq!(pair[1]["severity"], "info");
        }
    }
}

#[test]
fn frame_without_an_image_is_shown_as_it_is() {
    let device = Device::new();
    device.log.write_deferred(&[1, 0xab]);
    let output = once(&[&device.endpoint(), "--time", "none", "--grep", "anything"]);
    let line = "-     <the text is in the image: give --elf IMAGE> 01ab\n";
    assert_eq!(answer(&output), line);
}

#[test]
fn own_output_is_no_link_here() {
    let output = once(&["stdio:"]);
    assert_eq!(output.status.code(), Some(64));
    let text = complaint(&output);
    assert!(
        text.contains("exec:COMMAND starts a server of its own"),
        "{text}"
    );
}

#[test]
fn image_without_texts_is_refused_before_anything_is_read() {
    let here = env!("CARGO_BIN_EXE_sinew");
    for (image, why) in [
        (here, "it was built without defmt"),
        ("/nowhere", "No such file"),
        (
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
            "has no texts of records",
        ),
    ] {
        let output = once(&["tcp:127.0.0.1:1", "--elf", image]);
        assert_eq!(output.status.code(), Some(64), "{image}");
        let text = complaint(&output);
        assert!(text.contains(why), "{text}");
        assert!(
            text.contains("give --elf the ELF file that the device runs"),
            "{text}"
        );
    }
}
