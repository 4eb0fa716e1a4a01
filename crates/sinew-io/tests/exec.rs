//! A child process as a peer. This program is both sides: with an argument it is the child.

mod support;

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use sinew::frame::Framing;
use sinew::link::conformance::{End, Harness, run};
use sinew_demo::{cache, exercise};
use sinew_io::bytes::ByteLink;
use sinew_io::{Address, Endpoint, connect, open};
use support::*;

fn main() {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("serve"), _) => serve(),
        (Some("bridge"), Some(path)) => bridge(&path),
        _ => {
            child_serves_on_its_standard_streams();
            command_that_ends_is_a_closed_link();
            passes_the_suite_of_the_seam();
            println!("exec: 3 tests passed");
        }
    }
}

/// The child: serves until its input ends.
fn serve() {
    server()
        .listen(&Endpoint::from(Address::Stdio))
        .unwrap()
        .wait();
}

/// The child: joins its standard streams to a socket, so that the suite has the other end.
fn bridge(path: &str) {
    let socket = UnixStream::connect(path).unwrap();
    let (stdin, stdout) = (
        unbuffered(rustix::stdio::stdin()),
        unbuffered(rustix::stdio::stdout()),
    );
    let there = socket.try_clone().unwrap();
    thread::spawn(move || {
        copy(stdin, &there);
        let _ = there.shutdown(std::net::Shutdown::Write);
    });
    // Ends the child when the other end goes, and with it the link.
    copy(&socket, stdout);
}

fn unbuffered(stream: impl std::os::fd::AsFd) -> std::fs::File {
    std::fs::File::from(rustix::io::dup(stream).unwrap())
}

/// Not std's: that splices, and so keeps the pipe locked while it waits for the socket.
fn copy(mut from: impl Read, mut to: impl Write) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

fn me(arguments: &str) -> Endpoint {
    let me = std::env::current_exe().unwrap();
    Endpoint::from(Address::Exec(format!(
        "exec '{}' {arguments}",
        me.display()
    )))
}

fn child_serves_on_its_standard_streams() {
    for _ in 0..3 {
        let client = connect(&me("serve")).unwrap();
        assert_eq!(exercise(&mut cache::Client(&client), -7), Ok(-7));
    }
}

fn command_that_ends_is_a_closed_link() {
    let mut link = open(&"exec:true".parse().unwrap()).unwrap();
    while link.halves().1.peek() == Ok(None) {
        thread::yield_now();
    }
    assert!(link.halves().1.peek().is_err());
}

fn passes_the_suite_of_the_seam() {
    struct Exec(UnixListener, std::path::PathBuf);

    impl Harness for Exec {
        fn connect(&mut self) -> (End, End) {
            let near = sinew_io::open::open_halves(&me(&format!("bridge '{}'", self.1.display())))
                .unwrap();
            let far = self.0.accept().unwrap().0;
            let (tx, rx, _) = ByteLink::duplex(far.into(), Framing::HDLC, 1024)
                .unwrap()
                .split();
            // The child ends by itself when its streams do.
            std::mem::forget(near.keep);
            (
                End {
                    tx: near.tx,
                    rx: near.rx,
                    ports: None,
                },
                End {
                    tx: Box::new(tx),
                    rx: Box::new(rx),
                    ports: None,
                },
            )
        }
    }

    let path = fresh_path("bridge");
    let report = run(&mut Exec(UnixListener::bind(&path).unwrap(), path.clone()));
    assert!(
        report
            .checked
            .contains(&"rest_is_readable_after_the_peer_is_gone"),
        "{report:?}"
    );
    std::fs::remove_file(path).unwrap();
}
