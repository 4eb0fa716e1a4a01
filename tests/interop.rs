//! Pigweed's own Python client against a Sinew server: `interop/matrix.py` has the cells.
//!
//! Needs what `./setup test` installs: build/venv with PyPI pigweed, and protoc.

use std::path::{Path, PathBuf};
use std::process::Command;

use sinew::frame::Framing;
use sinew_demo::{CacheService, cache, kinds};
use sinew_io::{Endpoint, Server};
use sinew_tests::Trapdoors;

const CALLS: usize = 10_000;

type Services = (cache::Serve<CacheService>, kinds::Serve<Trapdoors>);

fn server() -> Server<Services> {
    Server::new((
        cache::Serve(CacheService::new()),
        kinds::Serve(Trapdoors::default()),
    ))
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The Python module of demo.proto, made by protoc.
fn python_module() -> PathBuf {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    std::fs::create_dir_all(&out).expect("a folder for the Python module");
    let status = Command::new("protoc")
        .arg("--python_out")
        .arg(&out)
        .args(["-I", "proto/demo", "demo.proto"])
        .current_dir(root())
        .status()
        .expect("missing capability: protoc (./setup test installs it)");
    assert!(status.success(), "protoc failed");
    out
}

/// Runs the matrix against a server at this address; the script prints a line per cell.
fn matrix(link: &str, address: &str, calls: usize) {
    let python = root().join("build/venv/bin/python");
    assert!(
        python.exists(),
        "missing capability: Pigweed's Python client (./setup test installs it)"
    );
    let output = Command::new(python)
        .arg(root().join("tests/interop/matrix.py"))
        .arg(python_module())
        .args([link, address, "--calls", &calls.to_string()])
        .output()
        .expect("Python starts");
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(
        output.status.success(),
        "the matrix failed:\n{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let cells = text
        .lines()
        .filter(|line| line.contains("cancelled by"))
        .count();
    assert_eq!(cells, 12, "four kinds, cancelled by three");
}

#[test]
fn pigweed_calls_every_kind_over_tcp_and_loses_none_of_10000_calls() {
    let server = server();
    let endpoint: Endpoint = "tcp:127.0.0.1:0".parse().expect("an endpoint");
    let listening = server.listen(&endpoint).expect("a free port");
    let at = listening.endpoint().to_string();
    let address = at.strip_prefix("tcp:").and_then(|at| at.split('?').next());
    matrix("tcp", address.expect("a tcp endpoint"), CALLS);
}

#[test]
fn pigweed_calls_every_kind_over_a_pseudo_terminal_and_loses_none_of_10000_calls() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
    use sinew_io::bytes::ByteLink;

    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let near = openpt(flags).expect("a pseudo-terminal");
    grantpt(&near)
        .and_then(|()| unlockpt(&near))
        .expect("its other end");
    let path = ptsname(&near, Vec::new()).expect("its name");
    let path = path.to_str().expect("an ASCII path").to_owned();
    // Raw before the client opens it: a line discipline would change bytes.
    let far = std::fs::File::open(&path).expect("the other end");
    let mut settings = tcgetattr(&far).expect("its settings");
    settings.make_raw();
    tcsetattr(&far, OptionalActions::Now, &settings).expect("raw");

    let server = server();
    let mut link = ByteLink::duplex(near, Framing::HDLC, 1024).expect("a link");
    let thread = std::thread::spawn(move || server.serve(&mut link, 1));
    matrix("pty", &path, CALLS);
    drop(far); // the last user of the far end: the link closes
    assert!(thread.join().expect("the server ends"));
}
