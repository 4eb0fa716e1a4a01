//! The demo services called with the blocking client over every carrier.

mod support;

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sinew::rpc::{CallError, Status};
use sinew_demo::{KindsAnswers, Num, cache, exercise, exercise_kinds, kinds};
use sinew_io::{Client, Endpoint, connect, loopback, shm, threads};
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

/// Every kind of call, by code that knows nothing of the placement.
fn all_kinds<R: cache::Reach + kinds::Reach + Copy>(reach: R, items: u32) {
    assert_eq!(exercise(&mut cache::Client(reach), -7), Ok(-7));

    let mut kinds = kinds::Client(reach);
    let answers = KindsAnswers {
        doubled: 2 * items,
        summed: items * (items - 1) / 2,
    };
    assert_eq!(exercise_kinds(&mut kinds, items), Ok(answers));
    assert_eq!(
        kinds.double(&Num { n: 1 << 31 }),
        Err(CallError::Status(Status::OUT_OF_RANGE))
    );
}

#[test]
fn all_kinds_between_two_threads() {
    let (near, mut far) = threads::link();
    let server = server();
    let thread = std::thread::spawn(move || server.serve(&mut far, 1));
    let client = Client::new(near, 1);
    all_kinds(&client, 1000);
    drop(client);
    assert!(thread.join().unwrap());
}

#[test]
fn all_kinds_between_two_threads_over_shared_memory() {
    let (near, mut far) = shm::threads::link().unwrap();
    let server = server();
    let thread = std::thread::spawn(move || server.serve(&mut far, 1));
    let client = Client::new(near, 1);
    all_kinds(&client, 1000);
    drop(client);
    assert!(thread.join().unwrap());
}

#[test]
fn all_kinds_in_one_thread() {
    all_kinds(&loopback::connect(&server()).unwrap(), 1000);
}

fn serves_all_kinds(kind: &str) {
    let (_server, listening) = listen(kind);
    let client = connect(listening.endpoint()).unwrap();
    all_kinds(&client, 5);
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
fn all_kinds_over_shared_memory() {
    serves_all_kinds("shm");
}

#[test]
fn threads_that_look_before_they_sleep_and_such_that_do_not_serve_each_other() {
    for (server_spins, client_spins) in [(0, 1000), (1000, 0), (1000, 1000)] {
        let path = fresh_path("sock");
        let at = |spin| -> Endpoint {
            let at = format!("shm:{}?spin={spin}&mtu=256&channel=7", path.display());
            at.parse().unwrap()
        };
        let server = server();
        let _listening = server.listen(&at(server_spins)).unwrap();
        all_kinds(&connect(&at(client_spins)).unwrap(), 200);
    }
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
    all_kinds(&connect(&serial(&near)).unwrap(), 5);
}

#[test]
fn several_clients_at_once_and_one_after_another() {
    for kind in ["tcp", "unix", "udp", "shm"] {
        let (_server, listening) = listen(kind);
        for _ in 0..3 {
            let clients: Vec<_> = (0..8)
                .map(|_| connect(listening.endpoint()).unwrap())
                .collect();
            for client in &clients {
                all_kinds(client, 5);
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
        all_kinds(&connect(&endpoint).unwrap(), 5);
    }
}
