//! What becomes of a call and its server when one of them fails. What a user is told is in `mistakes.rs`.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Output;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use sinew::rpc::packet::{OPEN_CALL_ID, PacketType, Route, encode};
use sinew::rpc::{Method, Status};
use sinew_demo::{Num, kinds};
use support::{Serve, answer, call, complaint, interrupt, socket, spawn_call};

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
fn a_file_is_neither_served_nor_replaced() {
    let path = socket("file");
    std::fs::write(&path, "precious").unwrap();
    for kind in ["unix", "shm"] {
        let output = support::sinew(&["serve", &format!("{kind}:{path}")])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(69));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn server_counts_a_client_that_does_not_fit() {
    let server = Serve::start(&format!("shm:{}", socket("fit")));
    let small = [&DOUBLE[..], &["--mtu", "512"]].concat();
    let output = call(&server.endpoint, &small, "");
    assert_eq!(output.status.code(), Some(69));
    let report = server.stop_when("client refused", 1);
    assert!(
        report.contains("client refused: it does not fit (length of"),
        "{report}"
    );
    assert!(report.contains("clients 1"), "{report}");
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
fn server_counts_packets_of_a_channel_that_it_does_not_serve() {
    let server = Serve::start("tcp:127.0.0.1:0");
    let other = [&UNANSWERED[..], &["--channel", "3"]].concat();
    let output = call(&server.endpoint, &other, "");
    assert_eq!(output.status.code(), Some(4));
    // The request, and that it was given up.
    let report = server.stop_when("is gone", 1);
    assert!(report.contains("unknown_channel 2"), "{report}");
}

fn frame_by_length(packet: &[u8]) -> Vec<u8> {
    let framing = sinew::frame::Framing::from_name("len").unwrap();
    let mut frame = vec![0; framing.max_encoded_len(packet.len())];
    let len = framing.encode(packet, &mut frame).unwrap();
    frame.truncate(len);
    frame
}

#[test]
fn a_malformed_line_ends_the_call_on_the_wire() {
    let server = Serve::start("tcp:127.0.0.1:0");
    let output = call(
        &server.endpoint,
        &["Kinds/Sum"],
        "{\"n\": 1}\n\n{\"n\": }\n{\"n\": 2}\n",
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
