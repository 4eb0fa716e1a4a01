//! `qemu:IMAGE`: the images of `firmware/`, which are built where they are not yet.

mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use support::image::{Board, image, node, serving};
use support::{answer, call, complaint, interrupt, sinew};

/// What takes longer on a loaded machine hangs.
const PATIENCE: Duration = Duration::from_secs(60);

const DOUBLE: [&str; 2] = ["demo.Kinds/Double", r#"{"n": 21}"#];

/// A folder of programs, for PATH.
fn programs(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    folder
}

fn link_setpriv(folder: &Path) {
    let path = std::env::var_os("PATH").unwrap();
    let known = std::env::split_paths(&path).map(|folder| folder.join("setpriv"));
    let setpriv = { known }.find(|setpriv| setpriv.exists()).unwrap();
    symlink(setpriv, folder.join("setpriv")).unwrap();
}

#[test]
fn one_service_is_called_through_the_uart_and_through_memory() {
    let an385 = ["direct", "queued", "shared"].map(serving);
    let others = [
        image("thumbv8m.main-none-eabi/release/relay"),
        image("riscv32imac-unknown-none-elf/release/direct"),
    ];
    for at in an385.into_iter().chain(others) {
        assert_eq!(answer(&call(&at, &DOUBLE, "")), "{\"n\":42}\n", "{at}");
        let counted = call(&at, &["demo.Kinds/Count", r#"{"n": 2}"#], "");
        assert_eq!(answer(&counted), "{\"n\":0}\n{\"n\":1}\n", "{at}");
    }
}

#[test]
fn service_of_the_tutorial_is_called_on_the_board_of_the_book() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = root.join("target/board");
    let core = "thumbv7m-none-eabi";
    let build = Command::new("../../.ci/cross")
        .args(["build", "-q", "--release", "--locked", "--target", core])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(root.join("examples/board"))
        .status();
    assert!(build.unwrap().success(), "the board does not build");
    let at = format!("qemu:{}", target.join(core).join("release/board").display());
    let proto = root.join("examples/tutorial/lamp.proto");
    let set = ["home.Lamp/Set", r#"{"percent": 70, "reason": "guests"}"#];
    let output = call(
        &at,
        &[&set[..], &["--proto", proto.to_str().unwrap()]].concat(),
        "",
    );
    assert_eq!(answer(&output), "{\"percent\":70,\"reason\":\"guests\"}\n");
}

#[test]
fn packet_size_of_the_endpoint_holds_before_that_of_the_image() {
    let at = serving("shared");
    answer(&call(&format!("{at}?mtu=64"), &DOUBLE, ""));
    let output = call(&format!("{at}?mtu=128"), &DOUBLE, "");
    let text = complaint(&output);
    assert!(text.contains("the peer does not fit"), "{text}");
    assert!(text.contains("check mtu="), "{text}");
    assert_eq!(output.status.code(), Some(69));
}

#[test]
fn board_that_was_called_with_another_packet_size_stays_in_service() {
    let board = Board::share("shared", "misfit");
    let at = board.endpoint();
    // The board runs once it answers; it has 64 bytes.
    let assert_called = || {
        let output = call(&format!("{at}&mtu=64"), &DOUBLE, "");
        assert_eq!(answer(&output), "{\"n\":42}\n");
    };
    assert_called();
    for mtu in ["", "&mtu=4096"] {
        let output = call(&format!("{at}{mtu}"), &DOUBLE, "");
        let text = complaint(&output);
        assert!(text.contains("this side would write"), "{text}");
        assert!(text.contains("give mtu=64, or check offset="), "{text}");
        assert_eq!(output.status.code(), Some(69));
        let status = sinew(&["shm", "status", &board.memory()]).output().unwrap();
        let page = String::from_utf8(status.stdout).unwrap();
        assert!(page.contains("\nsecond  ready"), "{page}");
        assert_called();
    }
}

#[test]
fn samples_and_replies_of_a_board_come_on_either_carrier() {
    for (name, option) in [
        ("sensor", "--connect"),
        ("sensor_uart", "--connect"),
        ("sensor_uart", "--listen"),
    ] {
        let sub = ["sub", "sensor/*", "--count", "2", option, &node(name)];
        let output = sinew(&sub).output().unwrap();
        let samples = "sensor/count: 0\nsensor/temperature: 20.0\n";
        assert!(answer(&output).ends_with(samples), "{output:?}");
    }
    let get = ["get", "board/counts", "--connect", &node("zenoh_all")];
    let output = sinew(&get).output().unwrap();
    assert_eq!(answer(&output), "board/counts: 0x0000\n");
    let say = [
        "pub",
        "board/say/x",
        "hello",
        "--connect",
        &node("zenoh_pubsub"),
    ];
    let output = sinew(&say).output().unwrap();
    assert!(answer(&output).contains("1 heard"), "{output:?}");
}

#[test]
fn board_that_lives_is_not_waited_for_when_its_link_ends() {
    let at = node("zenoh_pub");
    let since = Instant::now();
    for _ in 0..12 {
        let say = ["pub", "board/x", "1", "--connect", &at];
        let text = complaint(&sinew(&say).output().unwrap());
        assert!(text.contains("nobody there subscribes"), "{text}");
    }
    // Whoever waits 10 s for the end of each is far above it.
    assert!(since.elapsed() < PATIENCE);
}

#[test]
fn relay_brings_a_board_to_a_node_elsewhere() {
    for name in ["sensor", "sensor_uart"] {
        let socket = support::socket(name);
        let listen = format!("unix:{socket}");
        let sub = ["sub", "sensor/count", "--count", "3", "--listen", &listen];
        let sub = sinew(&sub)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let since = Instant::now();
        while !Path::new(&socket).exists() {
            assert!(since.elapsed() < PATIENCE);
            thread::sleep(Duration::from_millis(5));
        }
        let far = format!("unix:{socket}?frame=zenoh");
        let mut relay = sinew(&["relay", &node(name), &far])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = sub.wait_with_output().unwrap();
        assert_eq!(
            answer(&output),
            "sensor/count: 0\nsensor/count: 1\nsensor/count: 2\n"
        );
        interrupt(&relay);
        assert!(relay.wait().unwrap().success());
    }
}

#[test]
fn status_of_a_board_is_looked_at_when_its_link_is_up() {
    let output = sinew(&["shm", "status", &serving("shared")])
        .output()
        .unwrap();
    let text = answer(&output);
    assert!(text.contains("\nup · 1 channel"), "{text}");
    assert!(text.contains("second  ready"), "{text}");
    assert!(text.contains("16 × 64 B"), "{text}");
    let output = sinew(&["shm", "status", &serving("direct")])
        .output()
        .unwrap();
    assert!(
        complaint(&output).contains("shares no memory"),
        "{output:?}"
    );
}

#[test]
fn what_keeps_an_image_from_starting_is_said() {
    let none = "qemu:no/such/image";
    let tool = format!("qemu:{}", env!("CARGO_BIN_EXE_sinew"));
    let direct = serving("direct");
    for (at, cause, help) in [
        (
            none.into(),
            "there is no such image",
            "make -C firmware images",
        ),
        (
            format!("qemu:{}", file!().replace("crates/sinew-cli/", "")),
            "no ELF file",
            "linker",
        ),
        (
            tool.clone(),
            "does not say on which machine",
            "machine=NAME",
        ),
        (
            format!("{tool}?machine=mps2-an385"),
            "the image is for",
            "built for this machine",
        ),
        (
            format!("{direct}?machine=mps2-an999"),
            "`mps2-an999` is not known",
            "mps2-an385",
        ),
        (
            format!("{direct}?link=shm&mtu=64"),
            "does not open its side",
            "link=",
        ),
    ] {
        let output = call(&at, &DOUBLE, "");
        let text = complaint(&output);
        assert!(text.contains(cause) && text.contains(help), "{at}: {text}");
        assert_eq!(output.status.code(), Some(69), "{at}");
    }
}

#[test]
fn second_core_without_an_image_is_told() {
    let relay = image("thumbv8m.main-none-eabi/release/relay");
    let alone = programs("alone").join("relay");
    std::fs::copy(relay.trim_start_matches("qemu:"), &alone).unwrap();
    let text = complaint(&call(&format!("qemu:{}", alone.display()), &DOUBLE, ""));
    assert!(text.contains("second core's image is missing"), "{text}");
    assert!(text.contains("alone/serve"), "{text}");
}

#[test]
fn image_that_ends_is_told_with_its_exit_code() {
    // It counts instructions, and finds that nothing is exact here.
    for at in [
        image("riscv32imac-unknown-none-elf/release/calls?machine=virt"),
        serving("calls?machine=mps2-an385"),
    ] {
        let output = call(&at, &DOUBLE, "");
        let text = complaint(&output);
        assert!(text.contains("ended, with exit code 4"), "{text}");
        assert_eq!(output.status.code(), Some(69));
    }
}

#[test]
fn emulator_that_is_missing_or_fails_is_told() {
    let direct = serving("direct");
    let with = |folder: &Path| {
        let mut command = sinew(&["call", &direct, "demo.Kinds/Double"]);
        let output = command.env("PATH", folder).output().unwrap();
        assert_eq!(output.status.code(), Some(69));
        complaint(&output)
    };
    let folder = programs("no-setpriv");
    let text = with(&folder);
    assert!(text.contains("apt-get install util-linux"), "{text}");

    let folder = programs("no-qemu");
    link_setpriv(&folder);
    let text = with(&folder);
    assert!(text.contains("qemu-system-arm is missing"), "{text}");
    assert!(text.contains("apt-get install qemu-system-arm"), "{text}");

    let folder = programs("bad-qemu");
    link_setpriv(&folder);
    let program = folder.join("qemu-system-arm");
    std::fs::write(&program, "#!/bin/sh\necho 'no such board' >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let text = with(&folder);
    assert!(text.contains("emulator has ended: no such board"), "{text}");
    // One that never comes to its end, or to the end of a line.
    for talks in ["yes", "cat /dev/zero"] {
        std::fs::write(&program, format!("#!/bin/sh\nexec {talks}\n")).unwrap();
        for name in ["sh", "yes", "cat"] {
            let _ = symlink(Path::new("/usr/bin").join(name), folder.join(name));
        }
        let text = with(&folder);
        assert!(text.contains("emulator does not come up"), "{text}");
    }
}

#[test]
fn emulator_ends_with_a_tool_that_is_killed() {
    let mut tool = sinew(&["sub", "sensor/*", "--connect", &node("sensor")])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(tool.stdout.take().unwrap()).lines();
    let is_sample = |line: &String| line.starts_with("sensor/");
    assert!(lines.map_while(Result::ok).any(|line| is_sample(&line)));
    let tasks = std::fs::read_dir(format!("/proc/{}/task", tool.id())).unwrap();
    let children = tasks.map(|task| task.unwrap().path().join("children"));
    let children: String = children
        .map(|children| std::fs::read_to_string(children).unwrap())
        .collect();
    let emulator = format!("/proc/{}/cmdline", children.trim());
    let is_there = || std::fs::read(&emulator).is_ok_and(|line| line.starts_with(b"qemu-system"));
    assert!(is_there(), "{children}");
    tool.kill().unwrap();
    tool.wait().unwrap();
    let since = Instant::now();
    while is_there() {
        assert!(since.elapsed() < PATIENCE, "{children} outlives its tool");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn calls_recorded_through_the_uart_are_replayed_through_memory() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("qemu.mcap");
    let out = path.to_str().unwrap();
    let from = serving("queued");
    let mut command = sinew(&["record", &from, "--at", "tcp:127.0.0.1:0", "-o", out]);
    // The image does not say what it serves.
    let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto/demo/demo.proto");
    command.args(["--proto", proto]).stdout(Stdio::piped());
    let mut recorder = support::start(&mut command);
    let mut line = String::new();
    let stdout = recorder.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let at = line.split(' ').nth(1).unwrap();
    assert_eq!(answer(&call(at, &DOUBLE, "")), "{\"n\":42}\n");
    let counted = call(at, &["demo.Kinds/Count", r#"{"n": 20}"#], "");
    assert_eq!(answer(&counted).lines().count(), 20);
    interrupt(&recorder);
    assert!(recorder.wait().unwrap().success());
    let to = serving("shared");
    let output = support::output(&mut sinew(&["replay", out, &to, "--json"]));
    assert!(
        answer(&output).contains(r#""same":2"#),
        "{}",
        answer(&output)
    );
}

#[test]
fn boards_are_watched_with_their_memory_and_their_topics() {
    let (uart, memory, node) = (serving("queued"), serving("shared"), node("sensor"));
    let args = [
        "top",
        &uart,
        &memory,
        "--connect",
        &node,
        "--every",
        "100ms",
        "--json",
    ];
    let mut top = support::start(sinew(&args).stdout(Stdio::piped()));
    let start = Instant::now();
    let lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let mut looks =
        lines.map(|line| serde_json::from_str::<serde_json::Value>(&line.unwrap()).unwrap());
    let busy = |all: &serde_json::Value, rate: &str| {
        let all = all.as_array().unwrap();
        all.iter().any(|it| it[rate].as_f64() > Some(0.0))
    };
    let is_whole = looks.any(|look| {
        assert!(start.elapsed() < PATIENCE, "{look:#}");
        let [uart, memory] = [&look["devices"][0], &look["devices"][1]];
        // They are asked, and say that they do not tell.
        let is_asked = [uart, memory]
            .iter()
            .all(|it| it["away"] == "has no sinew.Device");
        is_asked
            && busy(&memory["channels"], "packets_per_s")
            && busy(&look["networks"][0]["topics"], "samples_per_s")
    });
    interrupt(&top);
    assert!(top.wait().unwrap().success() && is_whole);
}
