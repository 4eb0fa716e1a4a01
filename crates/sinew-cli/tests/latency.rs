//! `ping` and `bench`, against a server that echoes, one that does not, and none.

mod support;

use serde_json::Value;
use support::{answer, complaint, sinew};

fn serves() -> String {
    format!("exec:{} serve stdio:", env!("CARGO_BIN_EXE_sinew"))
}

fn run(args: &[&str]) -> std::process::Output {
    support::output(&mut sinew(args))
}

/// What a command that failed has written before.
fn answer_of(output: &std::process::Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

/// The last line, which is the whole.
fn whole(output: &std::process::Output) -> Value {
    serde_json::from_str(answer(output).lines().last().unwrap()).unwrap()
}

#[test]
fn ping_tells_each_call_and_the_whole() {
    let args = ["ping", &serves(), "--count", "5", "--interval", "1ms"];
    let pinged = run(&args);
    let text = answer(&pinged);
    assert!(text.starts_with("1: ") && text.contains("\n5: "), "{text}");
    assert!(
        text.contains("\n5 sent, 5 answered, 0 lost\nmin "),
        "{text}"
    );
    let json = whole(&run(&[&args[..], &["--json"]].concat()));
    assert_eq!(json["answered"], 5);
    assert_eq!(json["echoed"], true);
    let [min, median, max] = ["min_ns", "median_ns", "max_ns"].map(|it| &json["times"][it]);
    let [min, median, max] = [min, median, max].map(|it| it.as_u64().unwrap());
    assert!(1_000 < min && min <= median && median <= max, "{json}");
}

#[test]
fn server_without_an_echo_is_timed_by_its_word() {
    let server = sinew_io::Server::new(sinew_demo::cache::Serve(sinew_demo::CacheService::new()));
    let listening = server.listen(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
    let at = listening.endpoint().to_string();
    let pinged = run(&["ping", &at, "-c", "2", "-i", "1ms", "--json"]);
    assert_eq!(whole(&pinged)["echoed"], false);
    assert!(complaint(&pinged).contains("has no pw.rpc.Benchmark"));
}

#[test]
fn answers_that_do_not_come_are_lost_and_said() {
    let silent = [
        "ping",
        "exec:sleep 60",
        "-c",
        "2",
        "-i",
        "1ms",
        "--timeout",
        "50ms",
    ];
    let pinged = run(&silent);
    let text = String::from_utf8_lossy(&pinged.stdout);
    assert!(text.contains("2 sent, 0 answered, 2 lost"), "{text}");
    assert!(complaint(&pinged).contains("no answer from exec:sleep 60"));
    assert_eq!(pinged.status.code(), Some(4));
}

#[test]
fn bench_has_as_many_calls_on_their_way_as_it_is_told() {
    for flying in ["1", "64"] {
        let args = ["bench", &serves(), "-n", flying, "--for", "100ms"];
        let json = whole(&run(&[&args[..], &["--json"]].concat()));
        assert_eq!(json["in_flight"], flying.parse::<u64>().unwrap());
        assert_eq!(json["lost"], 0);
        let (calls, bytes) = (json["calls"].as_u64(), json["bytes"].as_u64());
        assert!(calls.unwrap() >= 64, "{json}");
        assert!(bytes.unwrap() >= calls.unwrap() * 2 * 16, "{json}");
        assert!(answer(&run(&args)).contains(&format!("{flying} in flight")));
    }
}

#[test]
fn bench_of_nobody_is_no_success() {
    let silent = [
        "bench",
        "exec:sleep 60",
        "--for",
        "50ms",
        "--timeout",
        "50ms",
    ];
    let benched = run(&silent);
    assert_eq!(answer_of(&benched), "");
    assert!(complaint(&benched).contains("no answer from exec:sleep 60 within 50ms"));
    assert_eq!(benched.status.code(), Some(4));
}

#[test]
fn times_of_nothing_are_null() {
    let silent = [
        "ping",
        "exec:sleep 60",
        "-c",
        "1",
        "--timeout",
        "50ms",
        "--json",
    ];
    let pinged = run(&silent);
    let json: Value = serde_json::from_str(answer_of(&pinged).lines().last().unwrap()).unwrap();
    assert_eq!(
        (&json["times"], &json["echoed"]),
        (&Value::Null, &Value::Null)
    );
}
