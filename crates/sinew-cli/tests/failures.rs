//! What a user is told when a call fails: the likely cause, the remedy, the exit code.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Output;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use sinew::rpc::packet::{OPEN_CALL_ID, PacketType, Route, encode};
use sinew::rpc::{Method, Status};
use sinew_demo::{Num, kinds};
use support::{Cable, Serve, answer, call, complaint, free_place, interrupt, socket, spawn_call};

/// A call that nobody answers.
const UNANSWERED: [&str; 4] = ["demo.Kinds/Double", r#"{"n": 1}"#, "--timeout", "300ms"];
/// One that somebody does, however late.
const DOUBLE: [&str; 4] = ["demo.Kinds/Double", r#"{"n": 1}"#, "--timeout", "60s"];

/// A TCP peer that sends these bytes and reads whatever comes; and who is told when they have left.
fn peer_that_says(bytes: &'static [u8]) -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (send, said) = channel();
    thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(bytes).unwrap();
        let _ = send.send(());
        let _ = socket.read_to_end(&mut Vec::new());
    });
    (format!("tcp:127.0.0.1:{port}"), said)
}

/// A call that ends by silence, after what came before. Its time does not run while its input is open.
fn silence_after(endpoint: &str, args: &[&str], has_come: impl FnOnce()) -> Output {
    let echo = ["demo.Kinds/EchoAll", "--timeout", "300ms"];
    let mut child = spawn_call(endpoint, &[&echo, args].concat());
    has_come();
    drop(child.stdin.take());
    child.wait_with_output().unwrap()
}

#[test]
fn no_server_is_no_connection() {
    let free = free_place();
    let cases = [
        (format!("tcp:{free}"), "no server listens there"),
        (format!("udp:{free}"), "nobody listens on that port"),
        (
            format!("unix:{}", socket("none")),
            "no server listens there",
        ),
        (format!("shm:{}", socket("none")), "no server listens there"),
        ("serial:/dev/no-such-line".into(), "there is no such device"),
        ("serial:/dev/null".into(), "this is no serial device"),
        ("unix:/etc/passwd".into(), "it is a file, not a socket"),
        ("shm:/etc/passwd".into(), "it is a file, not a socket"),
        (
            "tcp:no-such-host.invalid:1".into(),
            "the host name has no address",
        ),
        ("exec:exit 3".into(), "run it alone to see why"),
    ];
    for (endpoint, text) in cases {
        let output = call(&endpoint, &DOUBLE, "");
        assert!(
            complaint(&output).contains(text),
            "{endpoint}: {}",
            complaint(&output)
        );
        assert_eq!(output.status.code(), Some(69), "{endpoint}");
    }
}

#[test]
fn an_endpoint_in_use_cannot_be_served() {
    for endpoint in [
        "tcp:127.0.0.1:0".into(),
        format!("shm:{}", socket("in-use")),
    ] {
        is_served_once(&endpoint);
    }
}

fn is_served_once(endpoint: &str) {
    let server = Serve::start(endpoint);
    let second = support::sinew(&["serve", &server.endpoint])
        .output()
        .unwrap();
    assert!(
        complaint(&second).contains("cannot serve")
            && complaint(&second).contains("already in use"),
        "{}",
        complaint(&second)
    );
    assert_eq!(second.status.code(), Some(69));
}

#[test]
fn a_file_is_neither_served_nor_replaced() {
    let path = socket("file");
    std::fs::write(&path, "precious").unwrap();
    for kind in ["unix", "shm"] {
        let output = support::sinew(&["serve", &format!("{kind}:{path}")])
            .output()
            .unwrap();
        let text = complaint(&output);
        assert!(text.contains("it is a file, not a socket"), "{text}");
        assert_eq!(output.status.code(), Some(69));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_link_to_nothing_is_not_taken_for_another_server() {
    let path = socket("dangling");
    std::os::unix::fs::symlink("nowhere", &path).unwrap();
    for kind in ["unix", "shm"] {
        let endpoint = format!("{kind}:{path}");
        let output = support::sinew(&["serve", &endpoint]).output().unwrap();
        let text = complaint(&output);
        assert!(text.contains("it is a symbolic link to nothing"), "{text}");
        assert_eq!(output.status.code(), Some(69));
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_is_missing_of_memory_that_a_core_shares_is_named() {
    let (memory, bell) = (socket("memory"), socket("bell"));
    let endpoint = format!("shm:{memory}?doorbell={bell}");
    let why = || {
        let output = call(&endpoint, &DOUBLE, "");
        assert_eq!(output.status.code(), Some(69));
        let text = complaint(&output);
        assert!(!text.contains("sinew serve"), "{text}");
        text
    };
    assert!(why().contains("there is no such file"));
    std::fs::write(&memory, "").unwrap();
    assert!(why().contains("nobody listens at the doorbell"));
    std::fs::write(&bell, "").unwrap();
    assert!(why().contains("is a file, not a socket"));
    std::fs::remove_file(&bell).unwrap();
    let _bell = std::os::unix::net::UnixListener::bind(&bell).unwrap();
    let text = why();
    assert!(text.contains("the file is too short"), "{text}");
    assert!(text.contains("check the file, offset="), "{text}");
    for path in [memory, bell] {
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn sides_of_shared_memory_that_do_not_fit_say_in_what() {
    let server = Serve::start(&format!("shm:{}", socket("fit")));
    let output = call(
        &server.endpoint,
        &[&DOUBLE[..], &["--mtu", "512"]].concat(),
        "",
    );
    let text = complaint(&output);
    assert!(
        text.contains("the two sides do not fit (length of"),
        "{text}"
    );
    assert!(text.contains("give both the same mtu"), "{text}");
    assert_eq!(output.status.code(), Some(69));
    // One of them takes the other for a server of another kind.
    let socket = server.endpoint.replace("shm:", "unix:");
    let text = complaint(&call(&socket, &DOUBLE, ""));
    assert!(text.contains("the socket is of another kind"), "{text}");
    let report = server.stop_when("client refused", 1);
    assert!(
        report.contains("client refused: it does not fit (length of"),
        "{report}"
    );
    assert!(report.contains("clients 1"), "{report}");
}

#[test]
fn a_packet_size_beside_a_link_file_is_refused() {
    for args in [
        &["call", "shm:/x?config=y", "--mtu", "64", "Kinds/Double"][..],
        &["call", "shm:/x?config=y&mtu=64", "Kinds/Double"],
    ] {
        let output = support::sinew(args).output().unwrap();
        let text = complaint(&output);
        assert_eq!(output.status.code(), Some(64), "{text}");
        assert!(text.contains("does not apply beside"), "{text}");
    }
}

#[test]
fn silence_after_items_is_not_taken_for_no_answer() {
    let mut packet = [0; 64];
    let route = Route::new(1, kinds::method::EchoAll::ID, OPEN_CALL_ID);
    let (item, five) = (PacketType::SERVER_STREAM, Num { n: 5 });
    let len = encode(&mut packet, item, &route, &five, Status::OK).unwrap();
    let frames = frame_by_length(&packet[..len]).repeat(3);
    let (peer, _) = peer_that_says(Box::leak(frames.into_boxed_slice()));
    let endpoint = peer + "?frame=len";
    let mut child = spawn_call(&endpoint, &["Kinds/EchoAll", "--timeout", "300ms"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        assert_eq!(lines.next().unwrap().unwrap(), "{\"n\":5}");
    }
    // From now on the time runs.
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    let text = complaint(&output);
    assert!(text.contains("3 items came from tcp:"), "{text}");
    assert!(text.contains("then nothing for 300ms"), "{text}");
    assert!(text.contains("--timeout 1h"), "{text}");
    assert!(lines.next().is_none());
    assert_eq!(output.status.code(), Some(4));
}

#[test]
fn a_wrong_channel_is_named_as_a_cause_of_silence() {
    let server = Serve::start("tcp:127.0.0.1:0");
    let output = call(
        &server.endpoint,
        &[&UNANSWERED[..], &["--channel", "3"]].concat(),
        "",
    );
    let text = complaint(&output);
    assert!(
        text.contains("does not serve channel 3 (give --channel"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(4));
    let report = server.stop_when("is gone", 1);
    assert!(report.contains("unknown_channel 2"), "{report}");
}

#[test]
fn answers_for_another_channel_name_it() {
    // A RESPONSE for channel 7, without address and CRC: the framing by length prefix has none.
    let packet =
        b"\x15\x00\x08\x01\x10\x07\x1d\xbe\x5f\x6b\x23\x25\xd7\xae\xaf\x54\x2a\x02\x08\x2a\x38\x01";
    let frame = frame_by_length(&packet[2..]);
    let (endpoint, said) = peer_that_says(Box::leak(frame.into_boxed_slice()));
    let output = silence_after(&endpoint, &["--frame", "len"], || said.recv().unwrap());
    let text = complaint(&output);
    assert!(text.contains("give --channel 7"), "{text}");
}

fn frame_by_length(packet: &[u8]) -> Vec<u8> {
    let framing = sinew::frame::Framing::from_name("len").unwrap();
    let mut frame = vec![0; framing.max_encoded_len(packet.len())];
    let len = framing.encode(packet, &mut frame).unwrap();
    frame.truncate(len);
    frame
}

#[test]
fn bytes_without_a_frame_point_at_framing_and_log() {
    let (endpoint, said) = peer_that_says(b"[INF] boot ok\r\n[INF] idle\r\n");
    let text = complaint(&silence_after(&endpoint, &[], || said.recv().unwrap()));
    assert!(
        text.contains("27 bytes arrived, but no valid hdlc frame"),
        "{text}"
    );
    assert!(text.contains("writes its log on the same line"), "{text}");
}

#[test]
fn a_wrong_baud_rate_is_named_on_a_serial_line() {
    let cable = Cable::new();
    let noise = std::fs::OpenOptions::new().write(true).open(&cable.ends[0]);
    let mut noise = noise.unwrap();
    let noisy = thread::spawn(move || {
        while noise.write_all(b"\xf8\x00\x1f\x80").is_ok() {
            thread::sleep(std::time::Duration::from_millis(10));
        }
    });
    // Nobody sees the noise arrive, but there is enough of it.
    let silent = ["demo.Kinds/Double", "--timeout", "2s"];
    let output = call(&format!("serial:{}", cable.ends[1]), &silent, "");
    let text = complaint(&output);
    assert!(
        text.contains("the baud rate is wrong (here 115200"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(4));
    drop(noisy);
}

#[test]
fn an_echo_is_recognised() {
    let copy = socket("echo");
    let _ = std::fs::remove_file(&copy);
    // It writes to its standard output first.
    let output = silence_after(&format!("exec:tee '{copy}'"), &[], || {
        while std::fs::metadata(&copy).map_or(0, |file| file.len()) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    });
    let text = complaint(&output);
    assert!(text.contains("our own packets come back"), "{text}");
    std::fs::remove_file(copy).unwrap();
}

#[test]
fn a_message_too_large_names_the_limit_and_the_option() {
    let folder = env!("CARGO_TARGET_TMPDIR");
    let proto = format!("{folder}/large.proto");
    std::fs::write(
        &proto,
        "syntax = \"proto3\"; package t; message Text { string s = 1; } \
         service Texts { rpc Put(Text) returns (Text); rpc All(stream Text) returns (Text); }",
    )
    .unwrap();
    let request = format!("{{\"s\": \"{}\"}}", "x".repeat(2000));
    let server = Serve::start("tcp:127.0.0.1:0");
    let put = call(
        &server.endpoint,
        &["t.Texts/Put", &request, "--proto", &proto],
        "",
    );
    let text = complaint(&put);
    assert!(
        text.contains("the message of 2003 bytes is too large"),
        "{text}"
    );
    assert!(
        text.contains("at most 1024 bytes") && text.contains("--mtu"),
        "{text}"
    );
    assert_eq!(put.status.code(), Some(11));
}

#[test]
fn a_server_without_the_method_says_not_found() {
    let folder = env!("CARGO_TARGET_TMPDIR");
    let proto = format!("{folder}/other.proto");
    std::fs::write(
        &proto,
        "syntax = \"proto3\"; package t; message M {} service Other { rpc Get(M) returns (M); }",
    )
    .unwrap();
    let server = Serve::start("tcp:127.0.0.1:0");
    let output = call(&server.endpoint, &["t.Other/Get", "--proto", &proto], "");
    let text = complaint(&output);
    assert!(
        text.contains("NOT_FOUND") && text.contains("has no such service"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(5));
}

#[test]
fn a_malformed_line_ends_the_call_and_names_the_line() {
    let server = Serve::start("tcp:127.0.0.1:0");
    let output = call(
        &server.endpoint,
        &["Kinds/Sum"],
        "{\"n\": 1}\n\n{\"n\": }\n{\"n\": 2}\n",
    );
    let text = complaint(&output);
    assert!(
        text.contains("line 3 of standard input is no demo.Num"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(64));
    assert!(output.stdout.is_empty());
    assert!(server.stop_when("is gone", 1).contains("cancelled 1"));
}

#[test]
fn ctrl_c_cancels_every_kind_of_stream_on_the_wire() {
    for endpoint in [
        "tcp:127.0.0.1:0".into(),
        format!("shm:{}", socket("ctrl-c")),
    ] {
        ctrl_c_cancels(&endpoint);
    }
}

fn ctrl_c_cancels(endpoint: &str) {
    let server = Serve::start(endpoint);
    let endless: [&[&str]; 3] = [
        &["Kinds/Count", r#"{"n": 4000000000}"#],
        &["Kinds/Sum", "--timeout", "1h"],
        &["Kinds/EchoAll", "--timeout", "1h"],
    ];
    for args in endless {
        let mut child = spawn_call(&server.endpoint, args);
        let mut input = child.stdin.take().unwrap();
        if args[0] == "Kinds/Sum" {
            // Nothing comes back from which to see that the call is open. This is more than is read
            // before it is.
            input.write_all(&b"{\"n\": 1}\n".repeat(20_000)).unwrap();
        } else {
            input.write_all(b"{\"n\": 0}\n").unwrap();
            child
                .stdout
                .as_mut()
                .unwrap()
                .read_exact(&mut [0; 8])
                .unwrap();
        }
        interrupt(&child);
        let mut rest = child.stdout.take().unwrap();
        let reader = thread::spawn(move || rest.read_to_end(&mut Vec::new()));
        let output = child.wait_with_output().unwrap();
        drop(input);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{args:?}: {}",
            complaint(&output)
        );
        reader.join().unwrap().unwrap();
    }
    assert!(server.stop_when("is gone", 3).contains("cancelled 3"));
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_call() {
    let server = Serve::start("tcp:127.0.0.1:0");
    let mut child = spawn_call(&server.endpoint, &["Kinds/Count", r#"{"n": 4000000000}"#]);
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0; 8]).unwrap();
    drop(output);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(server.stop_when("is gone", 1).contains("cancelled 1"));
}

#[test]
fn a_server_that_vanishes_ends_the_call() {
    let shm = format!("shm:{}", socket("vanishes"));
    for endpoint in ["tcp:127.0.0.1:0", &shm] {
        for is_killed in [false, true] {
            call_ends(endpoint, is_killed);
        }
    }
    // What the killed server has left behind does not stop the next one.
    let next = Serve::start(&shm);
    assert_eq!(answer(&call(&shm, &DOUBLE, "")), "{\"n\":2}\n");
    next.stop();
}

fn call_ends(endpoint: &str, is_killed: bool) {
    let server = Serve::start(endpoint);
    let mut child = spawn_call(&server.endpoint, &["Kinds/EchoAll"]);
    child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"{\"n\": 1}\n")
        .unwrap();
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut [0; 8])
        .unwrap();
    match is_killed {
        false => drop(server.stop()),
        true => server.kill(),
    }
    let _input = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(69), "{}", complaint(&output));
}

#[test]
fn garbage_does_not_keep_the_next_call_from_being_served() {
    let server = Serve::start("tcp:127.0.0.1:0");
    let address = server.endpoint.strip_prefix("tcp:").unwrap();
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    socket
        .write_all(&[0x7e, 0xa5, 0x03, 0xff, 0xff, 0x7d, 0x7e].repeat(500))
        .unwrap();
    let double = call(&server.endpoint, &DOUBLE, "");
    assert_eq!(answer(&double), "{\"n\":2}\n");
}

#[test]
fn a_flood_for_others_does_not_hold_up_the_time_out() {
    // A SERVER_STREAM packet of channel 7, again and again.
    let packet =
        b"\x08\x07\x10\x07\x1d\xbe\x5f\x6b\x23\x25\xb6\x13\x36\xb6\x2a\x02\x08\x03\x38\x05";
    let flood = frame_by_length(packet).repeat(1000);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (send, said) = channel();
    thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        while socket.write_all(&flood).is_ok() {
            let _ = send.send(());
        }
    });
    let endpoint = format!("tcp:127.0.0.1:{port}?frame=len");
    let output = silence_after(&endpoint, &[], || said.recv().unwrap());
    assert_eq!(output.status.code(), Some(4), "{}", complaint(&output));
    assert!(complaint(&output).contains("give --channel 7"));
}

#[test]
fn an_error_that_says_ok_is_no_success() {
    // SERVER_ERROR with status OK, for the open call id.
    let (peer, _) = peer_that_says(b"\x7e\xa5\x03\x08\x05\x10\x01\x1d\xbe\x5f\x6b\x23\x25\xd7\xae\xaf\x54\x38\xff\xff\xff\xff\x0f\x36\xbb\x70\xa1\x7e");
    let output = call(&peer, &DOUBLE, "");
    assert_eq!(output.status.code(), Some(2), "{}", complaint(&output));
}

#[test]
fn input_that_is_no_text_is_named_with_its_line() {
    let server = Serve::start("tcp:127.0.0.1:0");
    let mut child = spawn_call(&server.endpoint, &["demo.Kinds/Sum"]);
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"{\"n\": 1}\n\xff\n").unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let text = complaint(&output);
    assert!(
        text.contains("line 2 of standard input is not UTF-8"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(64));
}

#[test]
fn a_line_without_end_is_refused_before_it_fills_the_memory() {
    let server = Serve::start("tcp:127.0.0.1:0");
    let mut child = spawn_call(&server.endpoint, &["demo.Kinds/Sum"]);
    let mut input = child.stdin.take().unwrap();
    // Ends, because the tool does not read to the end of it.
    while input.write_all(&[b' '; 4096]).is_ok() {}
    let output = child.wait_with_output().unwrap();
    let text = complaint(&output);
    assert!(
        text.contains("line 1 of standard input is longer"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(64));
}

#[test]
fn a_server_whose_notes_nobody_reads_goes_on() {
    let mut child = support::sinew(&["serve", "-v", "tcp:127.0.0.1:0"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    let mut ready = String::new();
    let stdout = child.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut ready).unwrap();
    let endpoint = ready.trim().rsplit(' ').next().unwrap();
    for _ in 0..2 {
        assert_eq!(answer(&call(endpoint, &DOUBLE, "")), "{\"n\":2}\n");
    }
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
