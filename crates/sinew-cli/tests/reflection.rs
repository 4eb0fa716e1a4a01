//! What a server says of itself: `list`, `describe`, and `call` without a .proto file.

mod support;

use support::{answer, call, complaint, sinew};

/// Serves the demo, and with it what it serves.
fn serves() -> String {
    format!("exec:{} serve stdio:", env!("CARGO_BIN_EXE_sinew"))
}

fn run(args: &[&str]) -> std::process::Output {
    support::output(&mut sinew(args))
}

#[test]
fn server_lists_its_services_for_people_and_for_programs() {
    let listed = run(&["list", &serves()]);
    let text = answer(&listed);
    assert!(
        text.contains("demo.Kinds\n  Double   Num -> Num\n"),
        "{text}"
    );
    assert!(text.contains("  Sum      stream Num -> Num\n"), "{text}");
    assert!(
        text.ends_with("  Read      ReadRequest -> Piece\n"),
        "{text}"
    );
    let listed = run(&["list", &serves(), "--json"]);
    let json: serde_json::Value = serde_json::from_str(answer(&listed)).unwrap();
    let names = json["services"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|it| it["name"].as_str().unwrap()).collect();
    let all = [
        "demo.Cache",
        "demo.Kinds",
        "pw.rpc.Benchmark",
        "sinew.Device",
        "sinew.Log",
        "sinew.Reflection",
    ];
    assert_eq!(names, all);
}

#[test]
fn described_service_is_a_proto_file_that_compiles_and_calls() {
    let described = run(&["describe", &serves(), "Kinds"]);
    let text = answer(&described);
    assert!(
        text.contains("// One method of each kind.\nservice Kinds {\n"),
        "{text}"
    );
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("described.proto");
    std::fs::write(&path, text).unwrap();
    let proto = path.to_str().unwrap();
    let called = call(
        &serves(),
        &["demo.Kinds/Double", r#"{"n": 4}"#, "--proto", proto],
        "",
    );
    assert_eq!(answer(&called), "{\"n\":8}\n");
}

#[test]
fn method_that_nobody_here_knows_is_called_by_what_the_server_says() {
    let called = call(&serves(), &["sinew.Reflection/Describe"], "");
    assert!(answer(&called).starts_with("{\"schemas\":4,"));
    let called = call(&serves(), &["Reflection/Describe", r#"{"schema": 9}"#], "");
    assert_eq!(called.status.code(), Some(11));
}

#[test]
fn names_that_are_not_there_are_met_with_those_that_are() {
    let output = call(&serves(), &["demo.Kinds/Duble"], "");
    let text = complaint(&output);
    assert!(
        text.contains("no method demo.Kinds/Duble at the server"),
        "{text}"
    );
    assert!(text.contains("did you mean demo.Kinds/Double?"), "{text}");
    let text = complaint(&run(&["describe", &serves(), "demo.Kindz"]));
    assert!(text.contains("did you mean demo.Kinds?"), "{text}");
}

#[test]
fn server_that_says_nothing_of_itself_is_called_with_a_proto_file() {
    let server = sinew_io::Server::new(sinew_demo::cache::Serve(sinew_demo::CacheService::new()));
    let listening = server.listen(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
    let at = listening.endpoint().to_string();
    for args in [&["list", &at] as &[&str], &["call", &at, "home.Lamp/Get"]] {
        let output = run(args);
        let text = complaint(&output);
        assert!(text.contains("does not say what it serves"), "{text}");
        assert!(text.contains("--proto FILE"), "{text}");
        assert_eq!(output.status.code(), Some(5), "{args:?}");
    }
}

#[test]
fn descriptors_take_the_place_of_earlier_ones_and_go_into_a_pipe() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("set.binpb");
    std::fs::write(&path, "").unwrap();
    let describe = |to: &str| run(&["describe", &serves(), "--descriptor-set", to]);
    // The second is the same, and the third would be shorter than what is there.
    for longer in [0, 0, 1] {
        let mut set = std::fs::read(&path).unwrap();
        set.extend_from_within(..set.len() * longer);
        std::fs::write(&path, set).unwrap();
        assert_eq!(answer(&describe(path.to_str().unwrap())), "");
    }
    let set = std::fs::read(&path).unwrap();
    assert!(set.starts_with(b"\x0a") && set.windows(10).any(|part| part == b"demo.proto"));
    assert_eq!(describe("/dev/stdout").stdout, set);
}
