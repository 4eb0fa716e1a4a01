//! After the start, calls allocate nothing on either side, whatever carries them.

mod support;

use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use sinew::frame::Framing;
use sinew_demo::{Num, cache, exercise, kinds};
use sinew_io::bytes::ByteLink;
use sinew_io::shm::process::ProcessLink;
use sinew_io::{Client, Link, shm, threads};
use sinew_shm::linux::link;
use support::*;

/// Allocations of the client's and of the server's thread, with this many rounds of two unary
/// calls and a bidirectional stream after the start.
fn allocations(near: impl Link, far: impl Link + Send, rounds: i32) -> (u64, u64) {
    let server = server();
    thread::scope(|scope| {
        let serving = scope.spawn(move || {
            let mut far = far;
            allocation_counter::measure(|| assert!(server.serve(&mut far, 1))).count_total
        });
        let client = Client::new(near, 1);
        let round = |value| {
            assert_eq!(exercise(&mut cache::Client(&client), value), Ok(value));
            let mut echo = kinds::Client(&client).echo_all().unwrap();
            echo.send(&Num { n: 7 }).unwrap();
            assert_eq!(echo.next(), Ok(Some(Num { n: 7 })));
            echo.complete().unwrap();
            assert_eq!(echo.next(), Ok(None));
        };
        // Until every way to sleep has been gone.
        (0..100).for_each(round);
        let near = allocation_counter::measure(|| (0..rounds).for_each(round)).count_total;
        drop(client); // the link closes, and the server's thread ends
        (near, serving.join().unwrap())
    })
}

/// The server's start allocates, so its whole life is compared with a longer one.
fn allocates_nothing<N: Link, F: Link + Send>(link: impl Fn() -> (N, F)) {
    let run = |rounds| {
        let (near, far) = link();
        allocations(near, far, rounds)
    };
    let (short, long) = (run(1), run(500));
    assert_eq!((short.0, long.0), (0, 0));
    assert!(short.1 > 0, "allocations are counted");
    assert_eq!(short.1, long.1);
}

// One after the other: what all links of the program share grows in the first that needs it.
#[test]
fn calls_over_thread_links_allocate_nothing() {
    allocates_nothing(threads::link);
    allocates_nothing(|| shm::threads::link().unwrap());
}

#[test]
fn calls_over_memory_shared_by_processes_allocate_nothing() {
    for spin in [0, 50] {
        allocates_nothing(|| {
            let ends = link::Link::pair(shm::config::calls(1024), link::Options::default());
            let (near, far) = ends.unwrap();
            let spin = Duration::from_micros(spin);
            let end = |link| ProcessLink::new(link, shm::config::CHANNEL, spin).unwrap();
            (end(near), end(far))
        });
    }
}

#[test]
fn calls_over_tcp_allocate_nothing() {
    allocates_nothing(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        let link = |socket: TcpStream| {
            socket.set_nodelay(true).unwrap();
            ByteLink::duplex(socket.into(), Framing::HDLC, 1024)
        };
        (link(near).unwrap(), link(far).unwrap())
    });
}
