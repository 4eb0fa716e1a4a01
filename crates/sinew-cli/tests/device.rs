//! `info` and `top`, against servers that tell of themselves, that do not, that lie, and that come and go; on a terminal
//! and elsewhere.

#[path = "support/screen.rs"]
mod screen;
mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use screen::Screen;
use serde_json::Value;
use sinew::heapless::{String as Text, Vec as List};
use sinew::rpc::{Call, Cx, Input, MethodKind, Responder, Service, Status, Stop};
use sinew_demo::{Num, SetValueRequest, cache, kinds};
use sinew_io::serve::Listening;
use sinew_io::{Client, Server};
use sinew_services::device::{About, Device, Observed, Serve as ServeDevice, Show};
use sinew_services::{
    Counter, IndexRequest, Info, InfoRequest, ObservedMethod, Values, ValuesRequest,
};
use support::{Serve, answer, complaint, interrupt, sinew, socket};

/// Before it is sure that nothing comes any more.
const PATIENCE: Duration = Duration::from_secs(60);

fn run(args: &[&str]) -> std::process::Output {
    support::output(&mut sinew(args))
}

fn client(endpoint: &str) -> Client<sinew_io::AnyLink> {
    sinew_io::connect(&endpoint.parse().unwrap()).unwrap()
}

/// So many calls that are answered, and so many that end with an error.
fn double(endpoint: &str, good: u32, bad: u32) {
    let client = client(endpoint);
    let mut kinds = kinds::Client(&client);
    (0..good).for_each(|n| assert_eq!(kinds.double(&Num { n }).unwrap().n, 2 * n));
    (0..bad).for_each(|_| assert!(kinds.double(&Num { n: u32::MAX }).is_err()));
}

fn info(endpoint: &str) -> Value {
    serde_json::from_str(answer(&run(&["info", endpoint, "--json"]))).unwrap()
}

/// The method of this name, of a device or of what `info` says.
fn method<'v>(device: &'v Value, name: &str) -> &'v Value {
    let methods = device["methods"].as_array().unwrap();
    methods
        .iter()
        .find(|method| method["name"] == name)
        .unwrap_or(&Value::Null)
}

/// A running `sinew top`, line by line.
struct Top {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Top {
    fn start(args: &[&str]) -> Top {
        let args = [&["top", "--every", "50ms"], args].concat();
        let mut child = support::start(sinew(&args).stdout(Stdio::piped()).stderr(Stdio::piped()));
        let lines = BufReader::new(child.stdout.take().unwrap());
        Top { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "it has ended");
        line
    }

    /// The first look that is as wanted.
    fn wait(&mut self, what: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let look = serde_json::from_str(&self.line()).unwrap();
            if what(&look) {
                return look;
            }
            assert!(start.elapsed() < PATIENCE, "{look:#}");
        }
    }

    fn wait_line(&mut self, what: &str) -> String {
        let start = Instant::now();
        loop {
            let line = self.line();
            if line.contains(what) {
                return line;
            }
            assert!(start.elapsed() < PATIENCE, "{line}");
        }
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn info_says_who_it_is_and_what_was_counted() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    double(&serve.endpoint, 7, 2);
    let json = info(&serve.endpoint);
    assert_eq!(json["name"], "sinew serve");
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert!(json["uptime_s"].as_f64().unwrap() > 0.0);
    let double = method(&json, "demo.Kinds/Double");
    assert_eq!(
        (&double["calls"], &double["errors"]),
        (&9.into(), &2.into())
    );
    let times = double["times"].as_array().unwrap();
    assert_eq!(
        times
            .iter()
            .map(|count| count.as_u64().unwrap())
            .sum::<u64>(),
        9
    );
    assert_eq!(json["counters"]["server"]["malformed"], 0);
    assert!(json["counters"]["link 0"]["bytes_in"].as_u64().unwrap() > 100);
    let shown = run(&["info", &serve.endpoint]);
    let text = answer(&shown);
    for part in [
        "sinew serve 0",
        "demo.Kinds/Double",
        "bytes_in",
        "server    nothing",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() < 80), "{text}");
}

#[test]
fn info_of_small_packets_is_the_same() {
    let serve = Serve::start(&format!("unix:{}?mtu=64", socket("small")));
    double(&serve.endpoint, 3, 0);
    let json = info(&serve.endpoint);
    assert_eq!(json["name"], "sinew serve");
    assert_eq!(method(&json, "demo.Kinds/Double")["calls"], 3);
}

#[test]
fn info_of_a_server_that_does_not_tell_says_what_to_do() {
    let server = Server::new(kinds::Serve(sinew_demo::KindsService::<64>::new()));
    let listening = server.listen(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
    let asked = run(&["info", &listening.endpoint().to_string()]);
    assert_eq!(asked.status.code(), Some(5));
    let text = complaint(&asked);
    assert!(
        text.contains("has no sinew.Device") && text.contains("sinew list"),
        "{text}"
    );
}

#[test]
fn top_counts_each_call_that_is_made() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let mut top = Top::start(&[&serve.endpoint, "--json"]);
    top.wait(|look| look["devices"][0]["away"].is_null());
    let mut made = 0;
    for calls in [1, 50, 500] {
        double(&serve.endpoint, calls, 1);
        made += calls + 1;
        let look =
            top.wait(|look| method(&look["devices"][0], "demo.Kinds/Double")["calls"] == made);
        assert_eq!(look["devices"][0]["name"], "sinew serve");
    }
    let look =
        top.wait(|look| method(&look["devices"][0], "demo.Kinds/Double")["calls_per_s"] == 0.0);
    let double = method(&look["devices"][0], "demo.Kinds/Double");
    assert_eq!(
        (&double["calls"], &double["errors"]),
        (&made.into(), &3.into())
    );
    assert_eq!(look["devices"][0]["drops"], 0);
}

#[test]
fn counters_that_move_keep_their_names() {
    static HAS_GROWN: AtomicBool = AtomicBool::new(false);
    let about = About::default();
    let services = kinds::Serve(sinew_demo::KindsService::<64>::new());
    let observed = Observed::<_, 4>::new(about, || sinew::time::Instant::START, services);
    let server: Server<_> = Server::new(observed.with_counters(|show: &mut Show<'_>| {
        show("link 0", "bytes_in", 7);
        if HAS_GROWN.load(Ordering::Relaxed) {
            show("link 1", "bytes_in", 1_000);
        }
        show("log", "dropped", 0);
    }));
    let listening = server.listen(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
    let mut top = Top::start(&[&listening.endpoint().to_string(), "--json"]);
    top.wait(|look| look["devices"][0]["links"] == 1);
    HAS_GROWN.store(true, Ordering::Relaxed);
    let look = top.wait(|look| look["devices"][0]["links"] != 1);
    assert_eq!(look["devices"][0]["links"], 2, "{look}");
    assert_eq!(look["devices"][0]["drops"], 0, "{look}");
    HAS_GROWN.store(false, Ordering::Relaxed);
    let look = top.wait(|look| look["devices"][0]["links"] != 2);
    assert_eq!(look["devices"][0]["links"], 1, "{look}");
    assert_eq!(look["devices"][0]["drops"], 0, "{look}");
}

#[test]
fn top_has_rates_and_times_while_calls_are_made() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let mut top = Top::start(&[&serve.endpoint, "--json"]);
    let endpoint = serve.endpoint.clone();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let caller = std::thread::spawn(move || {
        let client = client(&endpoint);
        let mut kinds = kinds::Client(&client);
        while stopped
            .try_recv()
            .is_err_and(|error| error == std::sync::mpsc::TryRecvError::Empty)
        {
            kinds.double(&Num { n: 1 }).unwrap();
        }
    });
    let is_busy = |look: &Value| {
        let double = method(&look["devices"][0], "demo.Kinds/Double");
        double["calls_per_s"].as_f64() > Some(0.0)
            && look["devices"][0]["bytes_in_per_s"].as_f64() > Some(0.0)
    };
    let look = top.wait(is_busy);
    drop(stop);
    caller.join().unwrap();
    let double = method(&look["devices"][0], "demo.Kinds/Double");
    let [p50, p99] = ["p50_below_us", "p99_below_us"].map(|it| double[it].as_u64());
    assert!(
        p50.is_some() && p99.is_none_or(|p99| Some(p99) >= p50),
        "{double}"
    );
    // 2 bytes go there and back in each.
    let rate = |name: &str| double[name].as_f64().unwrap();
    assert!(
        (rate("bytes_in_per_s") - 2.0 * rate("calls_per_s")).abs() < 0.001 * rate("bytes_in_per_s")
    );
    assert_eq!(double["bytes_in_per_s"], double["bytes_out_per_s"]);
}

#[test]
fn top_writes_plain_lines_where_there_is_no_terminal() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    double(&serve.endpoint, 4, 0);
    let mut top = Top::start(&[&serve.endpoint]);
    let device = top.wait_line(&format!("device {}: sinew serve, up ", serve.endpoint));
    assert!(device.contains(" 0 drops"), "{device}");
    let method = top.wait_line("demo.Kinds/Double: 0 calls/s");
    assert!(
        method.starts_with(&format!("method {} demo", serve.endpoint)),
        "{method}"
    );
    assert!(method.trim_end().ends_with("4 calls, 0 errors"), "{method}");
    interrupt(&top.child);
    assert!(top.child.wait().unwrap().success());
}

#[test]
fn top_ends_after_the_time_it_is_given() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let topped = run(&[
        "top",
        &serve.endpoint,
        "--every",
        "20ms",
        "--for",
        "200ms",
        "--json",
    ]);
    let looks = answer(&topped).lines().count();
    assert!((2..=11).contains(&looks), "{looks}");
}

#[test]
fn device_that_goes_away_is_shown_in_its_place_and_comes_back() {
    let at = format!("unix:{}", socket("away"));
    let stays = Serve::start("tcp:127.0.0.1:0");
    let mut top = Top::start(&[&at, &stays.endpoint, "--json"]);
    let is_away = |look: &Value| look["devices"][0]["away"].is_string();
    let is_here = |look: &Value| {
        look["devices"]
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["away"].is_null())
    };
    let look = top.wait(|look| is_away(look) && look["devices"][1]["away"].is_null());
    assert_eq!(look["devices"][0]["away"], "no server listens there");
    let serve = Serve::start(&at);
    double(&at, 5, 0);
    top.wait(|look| {
        is_here(look) && method(&look["devices"][0], "demo.Kinds/Double")["calls"] == 5
    });
    serve.kill();
    let look = top.wait(is_away);
    assert_eq!(
        method(&look["devices"][0], "demo.Kinds/Double")["calls_per_s"],
        Value::Null
    );
    let _again = Serve::start(&at);
    double(&at, 1, 0);
    let look = top.wait(|look| {
        is_here(look) && method(&look["devices"][0], "demo.Kinds/Double")["calls"] == 1
    });
    assert_eq!(look["devices"][0]["returns"], 1);
}

#[test]
fn channels_of_shared_memory_are_in_the_same_view() {
    let serve = Serve::start(&format!("shm:{}", socket("fill")));
    let mut top = Top::start(&[&serve.endpoint, "--json"]);
    let look = top.wait(|look| {
        let channels = look["devices"][0]["channels"].as_array().unwrap();
        // What asks the device passes over the link as well.
        look["devices"][0]["away"].is_null()
            && channels
                .iter()
                .any(|it| it["packets_per_s"].as_u64() > Some(0))
    });
    let channels = look["devices"][0]["channels"].as_array().unwrap();
    assert!(channels.len() == 2, "{channels:?}");
    for channel in channels {
        let [blocks, queued, held] =
            ["blocks", "queued", "held"].map(|it| channel[it].as_u64().unwrap());
        assert!(blocks > 0 && queued + held <= blocks, "{channel}");
    }
}

#[test]
fn topics_are_in_the_same_view() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let at = format!("unix:{}", socket("topics"));
    let publish = [
        "pub",
        "demo/load",
        "12345678",
        "--rate",
        "200",
        "--count",
        "1000000",
        "--listen",
        &at,
    ];
    let mut publisher = support::start(sinew(&publish).stdout(Stdio::null()).stderr(Stdio::null()));
    let mut top = Top::start(&[
        &serve.endpoint,
        "--connect",
        &at,
        "--key",
        "demo/**",
        "--key",
        "**",
        "--json",
    ]);
    let look = top.wait(|look| {
        let topics = look["networks"][0]["topics"].as_array().unwrap();
        topics
            .iter()
            .any(|it| it["samples_per_s"].as_f64() > Some(0.0))
    });
    assert_eq!(look["devices"][0]["name"], "sinew serve");
    let topics = look["networks"][0]["topics"].as_array().unwrap();
    assert_eq!(topics.len(), 1);
    assert_eq!(topics[0]["key"], "demo/load");
    // Counted once, though both keys have it.
    let [samples, bytes] = ["samples", "bytes"].map(|it| topics[0][it].as_u64().unwrap());
    assert_eq!(bytes, 8 * samples);
    publisher.kill().unwrap();
    publisher.wait().unwrap();
    top.wait(|look| look["networks"][0]["away"].is_string());
}

#[test]
fn network_among_the_devices_is_sent_to_its_place() {
    let topped = run(&["top", "tcp:127.0.0.1:7447?frame=zenoh"]);
    assert_eq!(topped.status.code(), Some(64));
    assert!(complaint(&topped).contains("--connect tcp:127.0.0.1:7447?frame=zenoh"));
}

// A device that lies.

/// What a device of ours says that does not mean well.
#[derive(Clone, Copy, PartialEq)]
enum Lie {
    /// Values without end.
    Endless,
    /// A count, and no values.
    Empty,
    /// More values than there are.
    TooMany,
    /// Texts that a terminal would act upon.
    Escapes,
    /// It never stays the same, and starts again and again.
    Restless,
    /// Texts that are none, in whatever comes.
    Garbage,
}

struct Liar(Lie, AtomicU32);

fn text<const N: usize>(text: &str) -> Text<N> {
    text.try_into().unwrap()
}

impl Liar {
    fn page(&self, from: u32) -> Values {
        let asked = self.1.fetch_add(1, Ordering::Relaxed);
        let values = |count: usize| List::from_slice(&vec![u64::MAX; count]).unwrap();
        let (values, count) = match self.0 {
            Lie::Endless => (values(24), u32::MAX),
            Lie::Empty => (values(0), 24),
            Lie::TooMany => (values(24), 1),
            Lie::Escapes | Lie::Garbage => (values(24.min(48 - from as usize)), 48),
            Lie::Restless => (values(1 + asked as usize % 24), 1 + asked % 4096),
        };
        Values { values, count }
    }
}

impl Device for Liar {
    fn info(&mut self, _: &InfoRequest, _: Cx<'_, Responder<Info>>) -> Result<Info, Stop> {
        let nasty = "\x1b]0;owned\x07\x1b[2J\u{9b}31m\u{202e}";
        Ok(Info {
            name: text(nasty),
            version: text("\r\n\x1b[H"),
            build: text("\x7f\0"),
            uptime: match self.0 {
                Lie::Restless => u64::MAX - u64::from(self.1.load(Ordering::Relaxed)),
                _ => 1,
            },
        })
    }

    fn counter(
        &mut self,
        _: &IndexRequest,
        _: Cx<'_, Responder<Counter>>,
    ) -> Result<Counter, Stop> {
        Ok(Counter {
            group: text("link \x1b[5m\n"),
            name: text("\x1b[31mbytes_in\u{9d}"),
        })
    }

    fn counters(
        &mut self,
        it: &ValuesRequest,
        _: Cx<'_, Responder<Values>>,
    ) -> Result<Values, Stop> {
        Ok(self.page(it.from))
    }

    fn method(
        &mut self,
        _: &IndexRequest,
        _: Cx<'_, Responder<ObservedMethod>>,
    ) -> Result<ObservedMethod, Stop> {
        Ok(ObservedMethod {
            service: 0,
            method: u32::MAX,
        })
    }

    fn methods(
        &mut self,
        it: &ValuesRequest,
        _: Cx<'_, Responder<Values>>,
    ) -> Result<Values, Stop> {
        Ok(self.page(it.from))
    }
}

/// Answers everything with bytes that are no message.
struct Garbage;

impl Service for Garbage {
    fn kind(&self, _: u32, _: u32) -> Option<MethodKind> {
        Some(MethodKind::Unary)
    }

    fn handle(&mut self, call: &mut Call<'_>, input: Input<'_>) -> bool {
        use sinew::rpc::Raw;
        // Field 1, text, of 3 bytes that are no UTF-8.
        call.unary(input, |_: &Raw<64>, _| {
            Ok::<Raw<64>, Stop>(Raw::new(b"\x0a\x03\xff\x1b[").ok_or(Status::INTERNAL)?)
        })
    }
}

fn lying(lie: Lie) -> (String, Box<dyn std::any::Any>) {
    fn listen<S: Service + Send + 'static>(service: S) -> (String, Box<dyn std::any::Any>) {
        let server: Server<S> = Server::new(service);
        let listening: Listening = server.listen(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
        (
            listening.endpoint().to_string(),
            Box::new((server, listening)),
        )
    }
    match lie {
        Lie::Garbage => listen(Garbage),
        lie => listen(ServeDevice(Liar(lie, AtomicU32::new(0)))),
    }
}

#[test]
fn what_a_device_says_never_reaches_the_terminal_as_it_is() {
    for lie in [
        Lie::Endless,
        Lie::Empty,
        Lie::TooMany,
        Lie::Escapes,
        Lie::Restless,
        Lie::Garbage,
    ] {
        let (at, _server) = lying(lie);
        let outputs = [
            run(&["info", &at]),
            run(&["info", &at, "--json"]),
            run(&["top", &at, "--every", "20ms", "--for", "300ms"]),
            run(&["top", &at, "--every", "20ms", "--for", "300ms", "--json"]),
        ];
        for output in &outputs {
            let all = [&output.stdout[..], &output.stderr].concat();
            let text = String::from_utf8(all).unwrap();
            let acts = |letter: char| letter != '\n' && letter.is_control();
            assert!(
                !text.contains(acts) && !text.contains('\u{202e}'),
                "{text:?}"
            );
            assert!(text.len() < 1 << 20);
        }
        let [info, .., top] = &outputs;
        match lie {
            Lie::Escapes => {
                let name = r"\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}";
                assert!(answer(info).contains(name), "{}", answer(info));
            }
            Lie::Restless => {}
            _ => {
                assert_eq!(info.status.code(), Some(15), "{}", complaint(info));
                let look: Value =
                    serde_json::from_str(answer(top).lines().last().unwrap()).unwrap();
                assert!(look["devices"][0]["away"].is_string(), "{look}");
            }
        }
    }
}

// On a terminal.

fn screen(args: &[&str], rows: u16, columns: u16) -> Screen {
    let mut command = sinew(&[&["top", "--every", "50ms"], args].concat());
    command.env_remove("NO_COLOR");
    Screen::start(&command, rows, columns)
}

#[test]
fn screen_shows_devices_and_methods_in_80_columns() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    double(&serve.endpoint, 6, 1);
    let screen = screen(&[&serve.endpoint], 24, 80);
    let text = screen.wait(|text| text.contains("demo.Kinds/Double") && !text.contains("opening"));
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("sinew top · 1 device · every 50ms"),
        "{text}"
    );
    assert!(lines[0].ends_with("q ends"), "{text}");
    let titles = lines
        .iter()
        .find(|line| line.starts_with("method"))
        .unwrap();
    let words: Vec<&str> = titles.split_whitespace().collect();
    assert_eq!(
        words,
        ["method", "calls/s", "err/s", "p50", "p90", "p99", "B/s"]
    );
    let device = lines
        .iter()
        .find(|line| line.starts_with("sinew serve "))
        .unwrap();
    // The port tells it from others.
    let port = serve.endpoint.rsplit(':').next().unwrap();
    assert!(device.contains(&format!(":{port} ")), "{text}");
    assert!(screen.cells_when(|_| true)[0][0].bold());
    assert_eq!(screen.is_taken(), (true, true));
}

#[test]
fn screen_of_any_size_shows_what_has_room() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    double(&serve.endpoint, 6, 1);
    let screen = screen(&[&serve.endpoint], 24, 120);
    screen.wait(|text| text.contains("demo.Kinds/Double") && text.contains("p99"));
    screen.resize(24, 80);
    screen.wait(|text| text.contains("demo.Kinds/Double") && text.contains("p99"));
    screen.resize(10, 40);
    let text = screen.wait(|text| text.contains("demo.Kinds/Do") && !text.contains("p99"));
    assert!(text.contains("calls/s"), "{text}");
    for (rows, columns) in [(3, 12), (1, 1), (2, 300), (100, 3)] {
        screen.resize(rows, columns);
    }
    screen.resize(24, 80);
    screen.wait(|text| {
        text.contains("demo.Kinds/Double") && text.contains("p99") && text.contains("q ends")
    });
}

#[test]
fn terminal_is_as_it_was_after_q_and_after_ctrl_c_and_after_a_signal() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    for end in ["q", "\x1b", "\x03", "signal"] {
        let mut screen = screen(&[&serve.endpoint], 24, 80);
        let text = screen.wait(|text| text.contains("sinew serve"));
        assert!(text.contains("no calls yet"), "{text}");
        let flags = |screen: &Screen| {
            let settings = screen.settings();
            (
                settings.input_modes,
                settings.output_modes,
                settings.local_modes,
            )
        };
        let raw = flags(&screen);
        assert!(!raw.2.contains(rustix::termios::LocalModes::ECHO));
        match end {
            "signal" => screen.signal(),
            keys => screen.keys(keys),
        }
        assert!(screen.end().success(), "{end:?}");
        let after = flags(&screen);
        assert!(
            after
                .2
                .contains(rustix::termios::LocalModes::ECHO | rustix::termios::LocalModes::ICANON)
        );
        assert_ne!(raw, after);
        screen.wait_free();
    }
}

#[test]
fn screen_shows_who_is_away_and_who_comes() {
    let at = format!("unix:{}", socket("screen"));
    let stays = Serve::start("tcp:127.0.0.1:0");
    let screen = screen(&[&at, &stays.endpoint], 24, 80);
    let text = screen
        .wait(|text| text.contains("no server listens there") && text.contains("2 sinew serve"));
    assert!(text.contains("1 of 2 devices"), "{text}");
    let _serve = Serve::start(&at);
    screen.wait(|text| text.contains("1 sinew serve") && text.contains("· 2 devices"));
}

#[test]
fn lies_of_a_device_do_not_break_the_screen() {
    let (at, _server) = lying(Lie::Escapes);
    let screen = screen(&[&at], 24, 80);
    let text = screen.wait(|text| text.contains(r"\u{1b}]0;ow"));
    assert!(text.starts_with("sinew top · 1 device"), "{text}");
    assert!(text.contains("00000000/ffffffff"), "{text}");
}

/// By which anybody makes the picture of the docs again.
const MADE_BY: &str = "SINEW_SCREENSHOT=1 cargo test -p sinew-cli --test device screenshot";

/// Calls of several kinds until it is dropped.
struct Caller(Option<std::thread::JoinHandle<()>>, Arc<AtomicBool>);

impl Caller {
    fn start(endpoint: String) -> Caller {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let thread = std::thread::spawn(move || {
            let client = client(&endpoint);
            let (mut kinds, mut cache) = (kinds::Client(&client), cache::Client(&client));
            for turn in 0u32.. {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                kinds.double(&Num { n: turn }).unwrap();
                if turn.is_multiple_of(16) {
                    cache.set_value(&SetValueRequest { value: 1 }).unwrap();
                }
                if turn.is_multiple_of(64) {
                    kinds.double(&Num { n: u32::MAX }).unwrap_err();
                    std::thread::sleep(Duration::from_millis(3)); // a load, not an order
                }
            }
        });
        Caller(Some(thread), is_over)
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Relaxed);
        let _ = self.0.take().unwrap().join();
    }
}

/// A process that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn screenshot_of_the_docs_is_what_its_command_makes() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshot");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    let at = |kind: &str, name: &str| format!("{kind}:{}", folder.join(name).display());
    let _lamp = Serve::start(&at("unix", "lamp.sock"));
    let _arm = Serve::start(&at("shm", "arm.sock"));
    let _caller = Caller::start(at("unix", "lamp.sock"));
    let ended = |args: &[&str]| {
        let mut command = sinew(args);
        Ended(support::start(
            command.stdout(Stdio::null()).stderr(Stdio::null()),
        ))
    };
    let _bench = ended(&["bench", &at("shm", "arm.sock"), "-n", "8", "--for", "120s"]);
    let net = at("unix", "net.sock");
    let _publisher = ended(&[
        "pub",
        "arm/joint/1",
        "--size",
        "24",
        "--rate",
        "500",
        "--count",
        "1000000",
        "--listen",
        &net,
    ]);
    let mut command = sinew(&[
        "top",
        "unix:lamp.sock",
        "shm:arm.sock",
        "--connect",
        "unix:net.sock",
        "--every",
        "500ms",
    ]);
    command.env_remove("NO_COLOR").current_dir(&folder);
    let screen = Screen::start(&command, 24, 80);
    let busy = [
        "1 demo.Kinds/Double",
        "1 demo.Cache/SetValue",
        "2 pw.rpc.Benchmark/UnaryEcho",
        "arm/joint/1",
        "2 rpc (1) 2→1",
    ];
    let is_busy = |line: Option<&str>| {
        let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
        words.len() >= 4 && !words.contains(&"-")
    };
    let cells = screen.cells_when(|text| {
        let line = |name| text.lines().find(|line| line.starts_with(name));
        busy.iter().all(|name| is_busy(line(name)))
    });
    let made = screen::svg(&cells, MADE_BY);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/top.svg");
    if std::env::var_os("SINEW_SCREENSHOT").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    // What is the same whatever the load: the command, the title and the columns.
    let skeleton = |svg: &str| -> Vec<String> {
        let stays = |line: &&str| {
            line.contains("made by") || line.contains("bold") || line.starts_with("<svg")
        };
        // Nor in which line: that goes by how many methods have been called.
        let place = |line: &str| {
            let (before, rest) = line.split_once(" y=").unwrap_or((line, " "));
            let rest = rest.split_once(' ').map_or("", |(_, rest)| rest);
            format!("{before} {rest}")
        };
        svg.lines().filter(stays).map(place).collect()
    };
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(skeleton(&kept), skeleton(&made), "make it again: {MADE_BY}");
    assert!(!kept.contains(env!("CARGO_MANIFEST_DIR")));
}
