//! The demo services called with the blocking client over every carrier.

mod support;

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sinew::rpc::{CallError, Status};
use sinew_demo::{Num, cache, exercise, kinds};
use sinew_io::{AnyLink, Client, Endpoint, connect};
use support::*;

/// Two devices that are joined by a line: what one sends, the other receives.
fn serial_line() -> (PathBuf, PathBuf) {
    let ((near, near_path), (far, far_path)) = (pty(), pty());
    let (near, far) = (File::from(near), File::from(far));
    for (mut from, mut to) in [
        (near.try_clone().unwrap(), far.try_clone().unwrap()),
        (far, near),
    ] {
        std::thread::spawn(move || {
            let mut bytes = [0; 256];
            loop {
                match from.read(&mut bytes) {
                    Ok(count) => to.write_all(&bytes[..count]).unwrap(),
                    // Nobody has opened the device, or everybody has closed it.
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        });
    }
    (near_path, far_path)
}

fn serial(path: &Path) -> Endpoint {
    format!("serial:{}", path.display()).parse().unwrap()
}

/// Every kind of call, one after another and interleaved.
fn all_kinds(client: &Client<AnyLink>) {
    assert_eq!(exercise(&mut cache::Client(client), -7), Ok(-7));

    let mut kinds = kinds::Client(client);
    assert_eq!(kinds.double(&Num { n: 21 }), Ok(Num { n: 42 }));
    assert_eq!(
        kinds.double(&Num { n: 1 << 31 }),
        Err(CallError::Status(Status::OUT_OF_RANGE))
    );

    let mut count = kinds.count(&Num { n: 5 }).unwrap();
    let mut sum = kinds.sum().unwrap();
    let mut echo = kinds.echo_all().unwrap();
    for n in 0..5 {
        sum.send(&Num { n }).unwrap();
        echo.send(&Num { n }).unwrap();
    }
    echo.complete().unwrap();
    for n in 0..5 {
        assert_eq!(count.next(), Ok(Some(Num { n })));
        assert_eq!(echo.next(), Ok(Some(Num { n })));
    }
    assert_eq!(count.next(), Ok(None));
    assert_eq!(echo.next(), Ok(None));
    assert_eq!(sum.finish_and_wait(), Ok(Num { n: 10 }));
}

fn serves_all_kinds(kind: &str) {
    let (_server, listening) = listen(kind);
    let client = connect(listening.endpoint()).unwrap();
    all_kinds(&client);
}

#[test]
fn all_kinds_over_tcp() {
    serves_all_kinds("tcp");
}

#[test]
fn all_kinds_over_unix() {
    serves_all_kinds("unix");
}

#[test]
fn all_kinds_over_udp() {
    serves_all_kinds("udp");
}

#[test]
fn all_kinds_over_a_serial_line() {
    let (near, far) = serial_line();
    let server = server();
    let _listening = server.listen(&serial(&far)).unwrap();
    all_kinds(&connect(&serial(&near)).unwrap());
}

#[test]
fn several_clients_at_once_and_one_after_another() {
    for kind in ["tcp", "unix", "udp"] {
        let (_server, listening) = listen(kind);
        for _ in 0..3 {
            let clients: Vec<_> = (0..4)
                .map(|_| connect(listening.endpoint()).unwrap())
                .collect();
            for client in &clients {
                all_kinds(client);
            }
        }
    }
}

#[test]
fn framings_of_the_endpoint_are_used() {
    for option in ["frame=len", "frame=cobs", "frame=hdlc&mtu=4096&channel=9"] {
        let server = server();
        let path = fresh_path("sock");
        let endpoint: Endpoint = format!("unix:{}?{option}", path.display()).parse().unwrap();
        let _listening = server.listen(&endpoint).unwrap();
        all_kinds(&connect(&endpoint).unwrap());
    }
}
