//! What passes over the links of a server is counted there as it is at the other end, also after a link has closed.

mod support;

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use sinew_demo::{Num, kinds};
use sinew_io::serve::{LinkCounters, LinkEvent};
use sinew_io::{Link as _, connect};
use support::*;

fn value(counters: &LinkCounters, wanted: (&str, &str)) -> Option<u64> {
    let mut found = None;
    counters.each(&mut |group, name, value| {
        if (group, name) == wanted {
            found = Some(value);
        }
    });
    found
}

/// Two clients, one after the other, so that the second has the number of the first where links close.
fn counts_what_passes(kind: &str) {
    let server = server();
    let counters = LinkCounters::default();
    server.count_links(counters.clone());
    let (send, gone) = channel();
    server.on_link(move |event| {
        if matches!(event, LinkEvent::Closed(_)) {
            let _ = send.send(());
        }
    });
    let listening = server.listen(&fresh_endpoint(kind)).unwrap();
    let (mut sent, mut received) = (0, 0);
    for _ in 0..2 {
        let client = connect(listening.endpoint()).unwrap();
        kinds::Client(&client).double(&Num { n: 4 }).unwrap();
        let mut count = kinds::Client(&client).count(&Num { n: 100 }).unwrap();
        while count.next().unwrap().is_some() {}
        let traffic = client.with_link(|link| link.traffic());
        sent += traffic.bytes_out;
        received += traffic.bytes_in;
        drop(count);
        drop(client);
        if kind != "udp" {
            gone.recv_timeout(Duration::from_secs(20)).unwrap();
        }
    }
    let links = if kind == "udp" { 2 } else { 1 };
    let sum = |name| -> u64 {
        let groups = (0..links).map(|link| format!("link {link}"));
        groups
            .filter_map(|group| value(&counters, (&group, name)))
            .sum()
    };
    // Nothing says that a datagram's thread has gone to sleep.
    let start = Instant::now();
    while (sum("bytes_in"), sum("bytes_out")) != (sent, received) {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{} {sent}",
            sum("bytes_in")
        );
        std::thread::yield_now();
    }
    assert!(sum("packets_in") >= 4);
    assert_eq!(sum("bad_crc"), 0);
    let beyond = format!("link {links}");
    assert_eq!(value(&counters, (&beyond, "bytes_in")), None);
}

#[test]
fn link_that_is_told_to_be_closed_has_given_its_number_back() {
    let server = server();
    let within = Duration::from_secs(20);
    let (say, said) = channel();
    let (go_on, gone_on) = channel::<()>();
    let gone_on = Mutex::new(gone_on);
    server.on_link(move |event| {
        let _ = say.send(event);
        if matches!(event, LinkEvent::Closed(_)) {
            // As a thread would that is put to sleep right here.
            let _ = gone_on.lock().unwrap().recv_timeout(within);
        }
    });
    let listening = server.listen(&fresh_endpoint("tcp")).unwrap();
    let first = connect(listening.endpoint()).unwrap();
    assert_eq!(said.recv_timeout(within), Ok(LinkEvent::Opened(0)));
    drop(first);
    assert_eq!(said.recv_timeout(within), Ok(LinkEvent::Closed(0)));
    let _second = connect(listening.endpoint()).unwrap();
    assert_eq!(said.recv_timeout(within), Ok(LinkEvent::Opened(0)));
    drop(go_on);
}

#[test]
fn links_of_tcp() {
    counts_what_passes("tcp");
}

#[test]
fn links_of_unix() {
    counts_what_passes("unix");
}

#[test]
fn links_of_udp() {
    counts_what_passes("udp");
}

#[test]
fn links_of_shared_memory() {
    counts_what_passes("shm");
}
