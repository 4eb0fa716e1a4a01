//! `sinew capture`, and what tools/wireshark/sinew.lua shows of its files and of other bytes.

mod support;

use std::borrow::Cow;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pcap_file::DataLink;
use pcap_file::pcapng::blocks::Block;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
use pcap_file::pcapng::{PcapNgReader, PcapNgWriter};
use prost_reflect::{DescriptorPool, DynamicMessage, prost::Message as _};
use sinew::frame::Framing;
use support::{Serve, answer, call, complaint, interrupt, output, sinew, start};

/// Longer than anything takes that comes about at all.
const SOON: Duration = Duration::from_secs(60);

/// A file that no other test writes.
fn path(name: &str) -> String {
    let folder = env!("CARGO_TARGET_TMPDIR");
    format!("{folder}/capture-{name}")
}

/// A `sinew capture` that runs.
struct Capture {
    child: Child,
    /// What clients call.
    at: String,
}

impl Capture {
    fn start(server: &str, file: &str) -> Capture {
        let mut command = sinew(&["capture", server, "-o", file, "--at", "tcp:127.0.0.1:0"]);
        let mut child = start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let at = line
            .strip_prefix("capturing ")
            .and_then(|it| it.split_once(" to "));
        let at = at.expect("the ready line").0.to_owned();
        Capture { child, at }
    }

    /// Ctrl-C: what it says at the end.
    fn stop(mut self) -> String {
        interrupt(&self.child);
        let mut said = String::new();
        let stderr = self.child.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success(), "{said}");
        said
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// tshark with the dissector, and without settings of whoever runs the test.
fn dissector() -> Command {
    let lua = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/wireshark/sinew.lua");
    let mut command = Command::new("tshark");
    // No settings of whoever runs the test, nor names of the network.
    command
        .env("HOME", env!("CARGO_TARGET_TMPDIR"))
        .env_remove("XDG_CONFIG_HOME");
    command
        .arg("-X")
        .arg(format!("lua_script:{}", lua.display()));
    command.arg("-n");
    command
}

/// What tshark shows of a file. It must not come upon an error of the dissector.
fn tshark(file: &str, args: &[&str]) -> String {
    let mut command = dissector();
    command.args(["-2", "-r", file]).args(args);
    let shown = command.stdin(Stdio::null()).output();
    let shown = shown.unwrap_or_else(|error| panic!("tshark: {error}; ./setup test installs it"));
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let said = String::from_utf8_lossy(&shown.stderr).to_lowercase();
    for text in [&text.to_lowercase(), &said] {
        for wrong in ["lua error", "lua:", "dissector bug", "exception occurred"] {
            assert!(!text.contains(wrong), "{wrong} at {file}: {said}");
        }
    }
    assert!(shown.status.success(), "{said}");
    text
}

/// The option by which tshark has names.
fn named(descriptors: &str) -> String {
    format!("pw_rpc.descriptors:{descriptors}")
}

/// Fields of each packet, one line each, with `|` between them.
fn fields(file: &str, descriptors: &str, fields: &[&str]) -> Vec<String> {
    let names = named(descriptors);
    let mut args = vec![
        "-o",
        &names,
        "-T",
        "fields",
        "-E",
        "separator=|",
        "-E",
        "aggregator=,",
    ];
    args.extend(fields.iter().flat_map(|field| ["-e", field]));
    tshark(file, &args).lines().map(str::to_owned).collect()
}

/// The names of the demo, as the server says them.
fn demo_names() -> String {
    let file = path("demo.binpb");
    let server = format!("exec:{} serve stdio:", env!("CARGO_BIN_EXE_sinew"));
    // Tests of this process ask at the same time.
    let part = format!("{file}-{:?}", std::thread::current().id());
    let described = output(&mut sinew(&[
        "describe",
        &server,
        "--descriptor-set",
        &part,
    ]));
    assert_eq!(answer(&described), "");
    fs::rename(part, &file).unwrap();
    file
}

#[test]
fn calls_of_all_kinds_are_shown_with_names_statuses_fields_and_who_answers_whom() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let file = path("kinds.pcapng");
    let capture = Capture::start(&serve.endpoint, &file);
    let calls = [
        ("Double", r#"{"n": 21}"#, "", true),
        ("Double", r#"{"n": 4294967295}"#, "", false),
        ("Count", r#"{"n": 2}"#, "", true),
        ("Sum", "", "{\"n\": 3}\n{\"n\": 4}\n", true),
        ("EchoAll", "", "{\"n\": 5}\n", true),
    ];
    for (method, request, input, is_ok) in calls {
        let method = format!("demo.Kinds/{method}");
        let args = [method.as_str(), request];
        let args = if request.is_empty() {
            &args[..1]
        } else {
            &args[..]
        };
        assert_eq!(call(&capture.at, args, input).status.success(), is_ok);
    }
    let said = capture.stop();
    assert!(
        said.contains("captured 18 packets: forth 10 packets, "),
        "{said}"
    );
    let columns = [
        "frame.interface_id",
        "frame.packet_flags_direction",
        "pw_rpc.name",
        "pw_rpc.type",
        "pw_rpc.status",
        "pw_rpc.payload.field",
        "pw_rpc.request_in",
        "pw_rpc.response_in",
    ];
    let shown = fields(&file, &demo_names(), &columns);
    let (before, last) = shown.split_at(13);
    assert_eq!(
        before,
        [
            "0|0x00000002|demo.Kinds/Double|0||n: 21||2",
            "0|0x00000001|demo.Kinds/Double|1|0|n: 42|1|",
            "1|0x00000002|demo.Kinds/Double|0||n: 4294967295||4",
            "1|0x00000001|demo.Kinds/Double|1|11||3|",
            "2|0x00000002|demo.Kinds/Count|0||n: 2||8",
            "2|0x00000001|demo.Kinds/Count|7|||5|",
            "2|0x00000001|demo.Kinds/Count|7||n: 1|5|",
            "2|0x00000001|demo.Kinds/Count|1|0||5|",
            "3|0x00000002|demo.Kinds/Sum|0||||13",
            "3|0x00000002|demo.Kinds/Sum|2||n: 3|9|",
            "3|0x00000002|demo.Kinds/Sum|2||n: 4|9|",
            "3|0x00000002|demo.Kinds/Sum|8|||9|",
            "3|0x00000001|demo.Kinds/Sum|1|0|n: 7|9|",
        ]
    );
    // Of these the server may answer the first before the client sends the second.
    let mut last = last.to_vec();
    last.sort();
    assert_eq!(
        last,
        [
            "4|0x00000001|demo.Kinds/EchoAll|1|0||14|",
            "4|0x00000001|demo.Kinds/EchoAll|7||n: 5|14|",
            "4|0x00000002|demo.Kinds/EchoAll|0||||18",
            "4|0x00000002|demo.Kinds/EchoAll|2||n: 5|14|",
            "4|0x00000002|demo.Kinds/EchoAll|8|||14|",
        ]
    );
    let info = tshark(&file, &["-o", &named(&demo_names())]);
    assert!(info.contains("client → server"), "{info}");
    assert!(
        info.contains("RESPONSE demo.Kinds/Double OUT_OF_RANGE"),
        "{info}"
    );
    let bare = tshark(&file, &[]);
    assert!(
        bare.contains("REQUEST 236b5fbe/54afaed7 {#1: 21}"),
        "{bare}"
    );
}

/// The packets of a file, up to where it is cut off.
fn packets(file: &str) -> Vec<Vec<u8>> {
    let Ok(bytes) = fs::read(file) else {
        return Vec::new();
    };
    let Ok(mut reader) = PcapNgReader::new(&bytes[..]) else {
        return Vec::new();
    };
    let mut packets = Vec::new();
    while let Some(Ok(block)) = reader.next_block() {
        if let Block::EnhancedPacket(it) = block {
            packets.push(it.data.into_owned());
        }
    }
    packets
}

#[test]
fn file_of_a_capture_that_was_killed_has_all_that_passed() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let file = path("killed.pcapng");
    let mut capture = Capture::start(&serve.endpoint, &file);
    answer(&call(
        &capture.at,
        &["demo.Kinds/Count", r#"{"n": 300}"#],
        "",
    ));
    let patience = Instant::now() + SOON;
    while packets(&file).len() < 302 {
        assert!(Instant::now() < patience, "the packets are not written");
        std::thread::yield_now();
    }
    capture.child.kill().unwrap();
    capture.child.wait().unwrap();
    let shown = fields(&file, &demo_names(), &["pw_rpc.name"]);
    assert_eq!(shown.len(), 302);
    assert!(shown.iter().all(|name| name == "demo.Kinds/Count"));
}

#[test]
fn command_is_run_with_the_endpoint_and_ends_the_capture_with_its_exit_code() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let file = path("command.pcapng");
    let tool = env!("CARGO_BIN_EXE_sinew");
    let run = |options: &[&str], request: &str| {
        let mut args = vec!["capture", &serve.endpoint, "-o", &file];
        args.extend(options);
        args.extend(["--", tool, "call", "{}", "demo.Kinds/Double", request]);
        output(&mut sinew(&args))
    };
    assert_eq!(answer(&run(&[], r#"{"n": 21}"#)), "{\"n\":42}\n");
    assert_eq!(packets(&file).len(), 2);
    let failed = run(&[], r#"{"n": 4294967295}"#);
    assert_eq!(failed.status.code(), Some(11));
    assert_eq!(packets(&file).len(), 2);
    let both = run(&["--json"], r#"{"n": 1}"#);
    let json = answer(&both).lines().last().unwrap();
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(json["captured"], 2);
    assert_eq!(json["forth"]["packets"], 1);
    assert_eq!(json["uncaptured"], 0);
}

#[test]
fn every_carrier_is_captured_with_packets_as_large_as_it_takes() {
    let tool = env!("CARGO_BIN_EXE_sinew");
    let sockets = ["served", "at"].map(|name| support::socket(&format!("capture-{name}")));
    let [served, at] = sockets.map(|path| format!("shm:{path}"));
    let exec = format!("exec:{tool} serve stdio:");
    for (server, options) in [
        ("udp:127.0.0.1:0", vec![]),
        ("tcp:127.0.0.1:0?mtu=4096", vec![]),
        (served.as_str(), vec!["--at", at.as_str()]),
        (exec.as_str(), vec![]),
    ] {
        let serve = (server != exec).then(|| Serve::start(server));
        let server = serve
            .as_ref()
            .map_or(exec.as_str(), |it| it.endpoint.as_str());
        let file = path("carrier.pcapng");
        let mut args = vec!["capture", server, "-o", &file];
        args.extend(options);
        args.extend([
            "--",
            tool,
            "call",
            "{}",
            "demo.Kinds/Double",
            r#"{"n": 21}"#,
        ]);
        assert_eq!(
            answer(&output(&mut sinew(&args))),
            "{\"n\":42}\n",
            "{server}"
        );
        assert_eq!(packets(&file).len(), 2, "{server}");
    }
}

#[test]
fn standard_output_is_the_file_and_nothing_else() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let tool = env!("CARGO_BIN_EXE_sinew");
    let args = ["capture", &serve.endpoint, "-o", "-", "--"];
    let mut command = sinew(&args);
    command.args([tool, "call", "{}", "demo.Kinds/Double", r#"{"n": 21}"#]);
    let ran = output(&mut command);
    assert!(
        complaint(&ran).contains(r#"{"n":42}"#),
        "{}",
        complaint(&ran)
    );
    // As `| wireshark -k -i -` has it.
    let names = named(&demo_names());
    let mut command = dissector();
    command.args([
        "-i",
        "-",
        "-o",
        &names,
        "-T",
        "fields",
        "-e",
        "pw_rpc.payload.field",
    ]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = start(&mut command);
    child.stdin.take().unwrap().write_all(&ran.stdout).unwrap();
    let shown = child.wait_with_output().unwrap();
    assert_eq!(answer(&shown), "n: 21\nn: 42\n");
}

#[test]
fn what_cannot_be_written_is_said_with_its_remedy() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let tool = env!("CARGO_BIN_EXE_sinew");
    let run = |file: &str, command: &[&str]| {
        let mut args = vec!["capture", &serve.endpoint, "-o", file, "--"];
        args.extend(command);
        output(&mut sinew(&args))
    };
    let full = run("/dev/full", &[tool, "call", "{}", "demo.Kinds/Double"]);
    assert_eq!(full.status.code(), Some(8));
    let said = complaint(&full);
    assert!(
        said.contains("cannot write /dev/full: No space left"),
        "{said}"
    );
    assert!(said.contains("make room there"), "{said}");
    let nowhere = run("/nowhere/x.pcapng", &["true", "{}"]);
    assert_eq!(nowhere.status.code(), Some(64));
    assert!(complaint(&nowhere).contains("check the path"));
    let deaf = run(&path("deaf.pcapng"), &["true"]);
    assert_eq!(deaf.status.code(), Some(64));
    assert!(complaint(&deaf).contains("write {} where it has its endpoint"));
}

#[test]
fn capture_that_does_not_begin_leaves_the_file_as_it_is() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let file = path("earlier.pcapng");
    fs::write(&file, "earlier").unwrap();
    let args = [
        "capture",
        "tcp:127.0.0.1:1",
        "--at",
        &serve.endpoint,
        "-o",
        &file,
    ];
    let refused = output(&mut sinew(&args));
    assert_eq!(refused.status.code(), Some(69));
    assert!(complaint(&refused).contains("already in use"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "earlier");
}

#[test]
fn file_that_is_no_capture_is_not_replaced() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let file = path("demo.proto");
    let tool = env!("CARGO_BIN_EXE_sinew");
    let run = || {
        let args = ["capture", &serve.endpoint, "-o", &file, "--"];
        let call = [tool, "call", "{}", "demo.Kinds/Double"];
        output(&mut sinew(&[&args[..], &call].concat()))
    };
    fs::write(&file, "syntax = \"proto3\";").unwrap();
    let refused = run();
    assert_eq!(refused.status.code(), Some(64));
    let said = complaint(&refused);
    assert!(said.contains("and is no file of pcapng"), "{said}");
    assert!(said.contains("give another name, or remove it"), "{said}");
    assert_eq!(fs::read(&file).unwrap(), b"syntax = \"proto3\";");
    // An empty one is, and so is a capture.
    fs::write(&file, "").unwrap();
    for _ in 0..2 {
        answer(&run());
        assert_eq!(packets(&file).len(), 2);
    }
}

#[test]
fn command_is_not_started_where_there_is_no_server() {
    let file = path("dead.pcapng");
    let marker = path("dead.started");
    let _ = fs::remove_file(&marker);
    let server = format!("tcp:{}", support::free_place());
    let script = format!("touch '{marker}' # {{}}");
    let args = ["capture", &server, "-o", &file, "--", "sh", "-c", &script];
    let refused = output(&mut sinew(&args));
    assert_eq!(refused.status.code(), Some(69), "{}", complaint(&refused));
    let said = complaint(&refused);
    assert!(said.contains("no server listens there"), "{said}");
    assert!(!Path::new(&marker).exists());
}

// Bytes that others have recorded.

/// A capture file with records of these link types.
fn write_file(name: &str, records: &[(DataLink, Vec<u8>)]) -> String {
    let file = path(name);
    let mut out = PcapNgWriter::new(Vec::new()).unwrap();
    let links = [DataLink::USER0, DataLink::USER1, DataLink::ETHERNET];
    for link in links {
        out.write_pcapng_block(InterfaceDescriptionBlock::new(link, 0))
            .unwrap();
    }
    for (at, (link, record)) in records.iter().enumerate() {
        let interface = links.iter().position(|it| it == link).unwrap();
        let block = EnhancedPacketBlock {
            interface_id: interface as u32,
            timestamp: Duration::from_millis(at as u64),
            original_len: record.len() as u32,
            data: Cow::Borrowed(record),
            options: Vec::new(),
        };
        out.write_pcapng_block(block).unwrap();
    }
    fs::write(&file, out.into_inner()).unwrap();
    file
}

/// Ethernet and IPv4 around TCP (6) or UDP (17) to this port; checksums are not looked at.
fn internet(protocol: u8, port: u16, inner: &[&[u8]]) -> Vec<u8> {
    let length = 24 + inner.concat().len() as u16;
    let mut packet = vec![2; 12];
    packet.extend([8, 0, 0x45, 0]);
    packet.extend(length.to_be_bytes());
    packet.extend([0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(50_000u16.to_be_bytes());
    packet.extend(port.to_be_bytes());
    packet.extend(inner.concat());
    packet
}

/// The next bytes of a stream.
fn segment(port: u16, seq: &mut u32, bytes: &[u8]) -> Vec<u8> {
    let rest = [0, 0, 0, 1, 0x50, 0x18, 0x20, 0, 0, 0, 0, 0];
    let packet = internet(6, port, &[&seq.to_be_bytes(), &rest, bytes]);
    *seq = seq.wrapping_add(bytes.len() as u32);
    packet
}

fn datagram(port: u16, bytes: &[u8]) -> Vec<u8> {
    let length = 8 + bytes.len() as u16;
    internet(17, port, &[&length.to_be_bytes(), &[0, 0], bytes])
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Frames made by Pigweed's own Python package, and what they say.
const PIGWEED: [(&str, &str); 9] = [
    (
        "7ea503 10011dbe5f6b2325d7aeaf542a0208153801 770a9489 7e",
        "REQUEST demo.Kinds/Double {n: 21}",
    ),
    (
        "7ea503 080110011dbe5f6b2325d7aeaf542a02082a3801 e3345245 7e",
        "RESPONSE demo.Kinds/Double OK {n: 42}",
    ),
    (
        "7ea503 10011dbe5f6b2325b80b57093802 b5f6b5b5 7e",
        "REQUEST demo.Kinds/Sum",
    ),
    (
        "7ea503 080210011dbe5f6b2325b80b57092a0208073802 9529cbaf 7e",
        "CLIENT_STREAM demo.Kinds/Sum {n: 7}",
    ),
    (
        "7ea503 080810011dbe5f6b2325b80b57093802 516424e6 7e",
        "CLIENT_REQUEST_COMPLETION demo.Kinds/Sum (no more messages)",
    ),
    (
        "7ea503 080410011dbe5f6b2325eb5a1f52300138ac02 0421ab94 7e",
        "CLIENT_ERROR demo.Kinds/EchoAll CANCELLED",
    ),
    (
        "7ea503 080510011dbe5f6b2325785634123005 3809 8fb054b5 7e",
        "SERVER_ERROR demo.Kinds/12345678 NOT_FOUND",
    ),
    (
        "7ea503 080110011dbe5f6b2325b61336b638ffffffff0f b4e6e66b 7e",
        "RESPONSE demo.Kinds/Count OK",
    ),
    (
        "7ea503 10011d1d0cd7d725558b4e022a050a037d5e7d5d7d5e3801 7c3c59f9 7e",
        "REQUEST pw.rpc.Benchmark/UnaryEcho {payload: 7e7d7e}",
    ),
];

/// What the packets of a file say, each by itself.
fn infos(file: &str) -> Vec<String> {
    let shown = fields(file, &demo_names(), &["_ws.col.Info"]);
    let all = shown.iter().flat_map(|line| line.split("; "));
    all.filter(|info| info.contains("demo.") || info.contains("pw.rpc."))
        .map(str::to_owned)
        .collect()
}

#[test]
fn frames_of_pigweed_are_shown_from_a_line_and_from_a_stream_wherever_they_are_cut() {
    let frames: Vec<Vec<u8>> = PIGWEED.iter().map(|(frame, _)| hex(frame)).collect();
    let said = PIGWEED.map(|(_, said)| said);
    let apart: Vec<u8> = frames.concat();
    // One flag between two frames.
    let mut shared = vec![0x7e];
    shared.extend(frames.iter().flat_map(|frame| &frame[1..]));
    for (name, bytes) in [("apart", &apart), ("shared", &shared)] {
        for size in [1, 7, 29, 1000] {
            let line: Vec<_> = bytes
                .chunks(size)
                .map(|part| (DataLink::USER1, part.to_vec()))
                .collect();
            let file = write_file(&format!("line-{name}-{size}"), &line);
            assert_eq!(infos(&file), said, "{name}, {size} at once on a line");
            let mut seq = 1;
            let stream: Vec<_> = bytes
                .chunks(size)
                .map(|part| (DataLink::ETHERNET, segment(33_000, &mut seq, part)))
                .collect();
            let file = write_file(&format!("stream-{name}-{size}"), &stream);
            assert_eq!(infos(&file), said, "{name}, {size} at once in a stream");
        }
    }
}

#[test]
fn streams_and_datagrams_are_found_at_their_ports_which_preferences_change() {
    let frame = hex(PIGWEED[0].0);
    let packet = hex("10011dbe5f6b2325d7aeaf542a0208153801");
    let mut seq = 1;
    let records = [33_000, 4000].map(|port| {
        [
            (DataLink::ETHERNET, segment(port, &mut seq, &frame)),
            (DataLink::ETHERNET, datagram(port, &packet)),
        ]
    });
    let file = write_file("ports", &records.concat());
    let found = |options: &[&str]| {
        let args = [
            options,
            &[
                "-Y",
                "pw_rpc.call == 1",
                "-T",
                "fields",
                "-e",
                "frame.number",
            ],
        ];
        tshark(&file, &args.concat())
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(found(&[]), ["1", "2"]);
    assert_eq!(
        found(&["-o", "pigweed_hdlc.tcp_ports:4000,5000-5010"]),
        ["2", "3"]
    );
    assert_eq!(
        found(&["-o", "pw_rpc.udp_ports:33000,4000"]),
        ["1", "2", "4"]
    );
    assert_eq!(
        found(&["-d", "tcp.port==4000,pigweed_hdlc"]),
        ["1", "2", "3"]
    );
}

#[test]
fn broken_frames_are_told_apart_and_the_next_one_is_shown() {
    let good = hex(PIGWEED[0].0);
    let broken = [
        (
            "7ea503 10011dbe5f6b2325d7aeaf542a0208163801 770a9489 7e",
            "pigweed_hdlc.fcs_bad",
        ),
        ("7ea503 1001 7d7d 1dbe 7e", "pigweed_hdlc.bad_escape"),
        ("7ea503 1001 7d 7e", "pigweed_hdlc.bad_escape"),
        ("7ea503 7e", "pigweed_hdlc.too_short"),
        (
            "7e0000000000000000000000000000 7e",
            "pigweed_hdlc.bad_address",
        ),
        ("112233", "pigweed_hdlc.noise"),
        // An escaped U, which needs none: some peers take it, some do not.
        (
            "7e7d8503 10011dbe5f6b2325d7aeaf542a0208153801 770a9489 7e",
            "pigweed_hdlc.needless_escape",
        ),
    ];
    for (bytes, expert) in broken {
        let mut record = hex(bytes);
        record.extend(&good);
        let file = write_file(expert, &[(DataLink::USER1, record)]);
        let shown = fields(&file, &demo_names(), &[expert, "pw_rpc.payload.field"]);
        let shown = shown.join("");
        let (found, payload) = shown.split_once('|').unwrap();
        assert!(!found.is_empty(), "{expert} is not shown");
        assert!(payload.ends_with("n: 21"), "{expert}: {payload}");
    }
}

#[test]
fn broken_packets_are_told_with_what_is_wrong() {
    let broken = [
        (
            "08ffffffffffffffffff8101",
            "a varint has more than 10 bytes",
        ),
        ("08ffffffffffffffffff7f", "a varint is larger than 64 bits"),
        ("10ffffffff7f", "channel is larger than 32 bits"),
        ("1001 1dbe5f", "a field is cut off"),
        ("1d be5f6b23 2aff01", "a field is cut off"),
        ("2affffffffffffffffff01", "a field is cut off"),
        ("1801", "service has the wire type 0"),
        ("0b", "there is no wire type 3"),
        ("00", "there is no such field number"),
        ("88", "a varint is cut off"),
        ("1dbe5f6b23 25d7aeaf54", "channel is 0"),
        ("1001 1dbe5f6b23 25d7aeaf54 0863", "there is no type 99"),
        ("1001 1dbe5f6b23 25d7aeaf54 2a0308ff", "a field is cut off"),
        ("1001 1dbe5f6b23 25d7aeaf54 2a0208ff", "a varint is cut off"),
    ];
    let records = broken.map(|(bytes, _)| (DataLink::USER0, hex(bytes)));
    let file = write_file("broken", &records);
    let shown = fields(&file, &demo_names(), &["_ws.expert.message"]);
    assert_eq!(shown.len(), broken.len());
    for ((bytes, wrong), shown) in broken.iter().zip(shown) {
        assert!(shown.contains(wrong), "{bytes}: {wrong} is not in {shown}");
    }
}

const ALL: &str = r#"
syntax = "proto3";
package t;
enum Colour { RED = 0; GREEN = 1; NONE = -1; }
message Inner { string text = 1; Inner inner = 2; repeated Inner many = 3; }
message All {
  double d = 1; float f = 2; int64 i64 = 3; uint64 u64 = 4; int32 i32 = 5; fixed64 f64 = 6; fixed32 f32 = 7;
  bool b = 8; string s = 9; Inner m = 11; bytes y = 12; uint32 u32 = 13; Colour c = 14; sfixed32 sf32 = 15;
  sfixed64 sf64 = 16; sint32 s32 = 17; sint64 s64 = 18; repeated int32 list = 19; map<string, uint32> map = 20;
  repeated fixed32 fixed = 21; repeated string words = 22; Colour other = 23;
}
service S { rpc Call(All) returns (All); }
"#;

/// A message of each type, its packet, and the file with their names.
fn all_types() -> (Vec<u8>, String) {
    let folder = PathBuf::from(path("protos"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("all.proto"), ALL).unwrap();
    let set = protox::compile(["all.proto"], [&folder]).unwrap();
    let names = path("all.binpb");
    fs::write(&names, set.encode_to_vec()).unwrap();
    let pool = DescriptorPool::from_file_descriptor_set(set).unwrap();
    let json = r#"{
        "d": "1.5", "f": "-0.25", "i64": "-9223372036854775808", "u64": "18446744073709551615", "i32": -2,
        "f64": "18446744073709551614", "f32": 4294967295, "b": true, "s": "grün\n", "y": "AP8=",
        "m": {"text": "in", "inner": {"many": [{}, {"text": "deep"}]}}, "u32": 7, "c": "GREEN", "sf32": -3,
        "sf64": "-4", "s32": -5, "s64": "-6", "list": [1, -1, 300], "map": {"key": 9}, "fixed": [1, 2],
        "words": ["a", "b"], "other": "NONE"
    }"#;
    let message = pool.get_message_by_name("t.All").unwrap();
    let mut json = serde_json::Deserializer::from_str(json);
    let message = DynamicMessage::deserialize(message, &mut json).unwrap();
    let payload = message.encode_to_vec();
    let mut packet = vec![0x10, 1, 0x1d];
    packet.extend(sinew::rpc::id("t.S").to_le_bytes());
    packet.push(0x25);
    packet.extend(sinew::rpc::id("Call").to_le_bytes());
    packet.push(0x2a);
    packet.extend([payload.len() as u8 | 0x80, (payload.len() >> 7) as u8]);
    packet.extend(payload);
    (packet, names)
}

#[test]
fn fields_of_every_type_are_shown_as_they_are() {
    let (packet, names) = all_types();
    let file = write_file("all", &[(DataLink::USER0, packet)]);
    let shown = tshark(&file, &["-O", "pw_rpc", "-o", &named(&names)]);
    let lines: Vec<&str> = shown.lines().map(str::trim).collect();
    for line in [
        "d: 1.5",
        "f: -0.25",
        "i64: -9223372036854775808",
        "u64: 18446744073709551615",
        "i32: -2",
        "f64: 18446744073709551614",
        "f32: 4294967295",
        "b: true",
        "s: \"grün\\x0a\"",
        "m: {text: \"in\", inner: {many: {}, many: {text: \"deep\"}}}",
        "text: \"deep\"",
        "y: 00ff",
        "u32: 7",
        "c: GREEN",
        "sf32: -3",
        "sf64: -4",
        "s32: -5",
        "s64: -6",
        "list: [1, -1, 300]",
        "map: {key: \"key\", value: 9}",
        "fixed: [1, 2]",
        "words: \"a\"",
        "words: \"b\"",
        "other: NONE",
    ] {
        assert!(lines.contains(&line), "{line} is not in {shown}");
    }
}

#[test]
fn message_inside_messages_without_end_is_shown_as_far_as_it_goes() {
    let (_, names) = all_types();
    // Each is all of the one around it: tag 2 and a length.
    let mut payload = Vec::new();
    while payload.len() < 200 {
        let head = match payload.len() {
            len @ 0..128 => vec![0x12, len as u8],
            len => vec![0x12, len as u8 | 0x80, 1],
        };
        payload = [head, payload].concat();
    }
    let length = payload.len();
    let mut packet = vec![0x10, 1, 0x1d];
    packet.extend(sinew::rpc::id("t.S").to_le_bytes());
    packet.push(0x25);
    packet.extend(sinew::rpc::id("Call").to_le_bytes());
    // Field 11 of All.
    packet.extend([
        0x2a,
        (length + 3) as u8 | 0x80,
        1,
        0x5a,
        length as u8 | 0x80,
        1,
    ]);
    packet.extend(payload);
    let file = write_file("deep", &[(DataLink::USER0, packet)]);
    let shown = tshark(&file, &["-O", "pw_rpc", "-o", &named(&names)]);
    assert!(shown.contains("inner: {…}"), "{shown}");
}

#[test]
fn descriptor_set_that_is_none_is_told_at_each_packet_which_is_shown_without() {
    let frame = hex(PIGWEED[0].0);
    let file = write_file("nameless", &[(DataLink::USER1, frame)]);
    let garbage = path("garbage.binpb");
    fs::write(&garbage, "no descriptors").unwrap();
    for (names, wrong) in [
        ("/nowhere.binpb", "No such file"),
        (&garbage, "is no descriptor set"),
    ] {
        let shown = tshark(&file, &["-V", "-o", &named(names)]);
        assert!(shown.contains(wrong), "{shown}");
        assert!(
            shown.contains("REQUEST 236b5fbe/54afaed7 {#1: 21}"),
            "{shown}"
        );
    }
}

/// Numbers that look random, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        // Knuth's MMIX generator; its high bits are the better ones.
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below.max(1)
    }

    fn bytes(&mut self, below: usize) -> Vec<u8> {
        (0..self.roll(below))
            .map(|_| self.roll(256) as u8)
            .collect()
    }

    /// Changes, cuts, doubles and puts in.
    fn breaks(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.roll(4) {
            let at = self.roll(bytes.len());
            match self.roll(5) {
                0 if at < bytes.len() => bytes[at] = self.roll(256) as u8,
                1 => bytes.truncate(at),
                2 => bytes.insert(at, [0x7e, 0x7d, 0xff, 0x80, 0x00][self.roll(5)]),
                3 if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.extend_from_within(at..),
            }
        }
        bytes
    }
}

/// A frame of HDLC around a packet.
fn framed(packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 2 * packet.len() + 32];
    let length = Framing::HDLC.encode(packet, &mut frame).unwrap();
    frame.truncate(length);
    frame
}

#[test]
fn whatever_comes_is_no_error_of_the_dissector() {
    let (all, names) = all_types();
    let frames: Vec<Vec<u8>> = PIGWEED.iter().map(|(frame, _)| hex(frame)).collect();
    for seed in 1..=12 {
        let mut dice = Dice(seed);
        let mut records = Vec::new();
        let (mut seq, mut stream) = (1, Vec::new());
        for _ in 0..150 {
            let recorded = &frames[dice.roll(frames.len())];
            let packet = match dice.roll(3) {
                0 => dice.bytes(80),
                _ => dice.breaks(&all),
            };
            let frame = match dice.roll(4) {
                0 => dice.bytes(80),
                1 => framed(&packet),
                2 => dice.breaks(&framed(&all)),
                _ => dice.breaks(recorded),
            };
            records.push((DataLink::USER0, packet));
            stream.extend_from_slice(&frame);
            records.push((DataLink::USER1, frame));
            let part: Vec<u8> = stream.drain(..dice.roll(stream.len() + 1)).collect();
            records.push((DataLink::ETHERNET, segment(33_000, &mut seq, &part)));
        }
        let file = write_file(&format!("seed-{seed}"), &records);
        let shown = tshark(&file, &["-V", "-o", &named(&names)]);
        assert!(shown.contains("t.S/Call"), "seed {seed}");
    }
}
