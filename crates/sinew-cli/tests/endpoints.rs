//! `serve` and `call` as processes, on every kind of endpoint.

mod support;

use support::{Cable, Serve, answer, call, socket};

/// All four kinds of methods, and what one client leaves to the next.
fn all_kinds(endpoint: &str) {
    let double = call(endpoint, &["demo.Kinds/Double", r#"{"n": 21}"#], "");
    assert_eq!(answer(&double), "{\"n\":42}\n");
    let count = call(endpoint, &["demo.Kinds.Count", r#"{"n": 3}"#], "");
    assert_eq!(answer(&count), "{\"n\":0}\n{\"n\":1}\n{\"n\":2}\n");
    let sum = call(endpoint, &["Kinds/Sum"], "{\"n\": 1}\n\n{\"n\": 41}\n");
    assert_eq!(answer(&sum), "{\"n\":42}\n");
    let echo = call(endpoint, &["Kinds/EchoAll"], "{\"n\": 7}\n{}\n");
    assert_eq!(answer(&echo), "{\"n\":7}\n{\"n\":0}\n");
    let empty = call(endpoint, &["Kinds/EchoAll"], "");
    assert_eq!(answer(&empty), "");
    let error = call(endpoint, &["Kinds/Double", r#"{"n": 4294967295}"#], "");
    assert_eq!(error.status.code(), Some(11));
}

fn served(endpoint: &str) -> String {
    let server = Serve::start(endpoint);
    all_kinds(&server.endpoint);
    call(
        &server.endpoint,
        &["Cache/SetValue", r#"{"value": -5}"#],
        "",
    );
    let value = call(&server.endpoint, &["Cache/GetValue"], "");
    assert_eq!(answer(&value), "{\"value\":-5}\n");
    server.stop()
}

#[test]
fn tcp_carries_every_kind() {
    let report = served("tcp:127.0.0.1:0");
    assert!(report.contains("refused nothing"), "{report}");
}

#[test]
fn other_framings_carry_every_kind() {
    served("tcp:127.0.0.1:0?frame=len");
    served("tcp:127.0.0.1:0?frame=cobs&channel=9&mtu=256");
}

#[test]
fn udp_carries_every_kind() {
    served("udp:127.0.0.1:0");
}

#[test]
fn unix_carries_every_kind_and_leaves_no_file() {
    let path = socket("kinds");
    served(&format!("unix:{path}"));
    assert!(!std::path::Path::new(&path).exists());
}

#[test]
fn shared_memory_carries_every_kind_and_leaves_no_file() {
    let path = socket("shm-kinds");
    let report = served(&format!("shm:{path}"));
    assert!(report.contains("refused nothing"), "{report}");
    assert!(!std::path::Path::new(&path).exists());
    served(&format!("shm:{path}?mtu=256&channel=9&spin=0"));
}

#[test]
fn serial_carries_every_kind() {
    let cable = Cable::new();
    let server = Serve::start(&format!("serial:{}?baud=921600", cable.ends[0]));
    all_kinds(&format!("serial:{}?baud=921600", cable.ends[1]));
    server.stop();
}

#[test]
fn a_command_carries_every_kind() {
    all_kinds(&format!(
        "exec:{} serve stdio:",
        env!("CARGO_BIN_EXE_sinew")
    ));
}

#[test]
fn several_clients_are_served_at_once() {
    for endpoint in [
        "tcp:127.0.0.1:0".into(),
        format!("shm:{}", socket("shm-several")),
    ] {
        several_clients(&endpoint);
    }
}

fn several_clients(endpoint: &str) {
    let server = Serve::start(endpoint);
    let held: Vec<_> = (0..8)
        .map(|_| {
            let mut child = support::spawn_call(&server.endpoint, &["Kinds/EchoAll"]);
            let input = child.stdin.as_mut().unwrap();
            std::io::Write::write_all(input, b"{\"n\": 1}\n").unwrap();
            // The answer shows that this call is open, while the others are, too.
            let mut first = [0; 8];
            std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
            assert_eq!(&first, b"{\"n\":1}\n");
            child
        })
        .collect();
    let double = call(&server.endpoint, &["Kinds/Double", r#"{"n": 2}"#], "");
    assert_eq!(answer(&double), "{\"n\":4}\n");
    for child in held {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    server.stop();
}

#[test]
fn any_server_is_called_by_its_proto_file() {
    let server = Serve::start("tcp:127.0.0.1:0");
    let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto/demo/demo.proto");
    let args = [
        "demo.Kinds/Double",
        r#"{"n": 4}"#,
        "--proto",
        proto,
        "--pretty",
    ];
    assert_eq!(
        answer(&call(&server.endpoint, &args, "")),
        "{\n  \"n\": 8\n}\n"
    );
}
