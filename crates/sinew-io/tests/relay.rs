//! What passes on a relay, seen by who watches it.

mod support;

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use sinew::frame::Framing;
use sinew_io::Endpoint;
use sinew_io::apart::{self, Apart};
use sinew_io::relay::{Event, Passing, Relay, Way};
use support::fresh_endpoint;

/// Longer than anything takes that comes about at all.
const SOON: Duration = Duration::from_secs(60);

/// What was seen of a packet.
#[derive(Clone, Debug)]
struct Seen {
    link: u64,
    way: Way,
    time: SystemTime,
    packet: Vec<u8>,
}

impl From<Passing<'_>> for Seen {
    fn from(passing: Passing<'_>) -> Seen {
        Seen {
            link: passing.link,
            way: passing.way,
            time: passing.time,
            packet: passing.packet.to_vec(),
        }
    }
}

fn receive(link: &mut Apart) -> Vec<u8> {
    let patience = Instant::now() + SOON;
    loop {
        if let Some(packet) = link.rx.peek().unwrap() {
            let packet = packet.to_vec();
            link.rx.release();
            return packet;
        }
        assert!(Instant::now() < patience, "nothing comes");
        link.rx.wait(Some(Duration::from_secs(1)));
    }
}

fn send(link: &mut Apart, packet: &[u8]) {
    let place = link.tx.place(packet.len()).unwrap();
    place[..packet.len()].copy_from_slice(packet);
    link.tx.commit(packet.len()).unwrap();
    link.tx.flush();
}

/// An endpoint where each packet is answered by itself, backwards.
fn echo(kind: &str) -> Endpoint {
    let mut listener = apart::listen(&fresh_endpoint(kind)).unwrap();
    let endpoint = listener.endpoint().clone();
    std::thread::spawn(move || {
        while let Some(mut link) = listener.accept_within(None) {
            std::thread::spawn(move || {
                while let Ok(packet) = link.rx.peek().map(|packet| packet.map(<[u8]>::to_vec)) {
                    let Some(mut packet) = packet else {
                        link.rx.wait(None);
                        continue;
                    };
                    link.rx.release();
                    packet.reverse();
                    send(&mut link, &packet);
                }
            });
        }
    });
    endpoint
}

/// Ends the relay once both links have gone, so that all has passed.
fn stop(relay: Relay, closed: &Receiver<u64>) {
    let _ = [(); 2].map(|()| closed.recv_timeout(SOON).unwrap());
    relay.stop();
}

#[test]
fn who_watches_sees_each_packet_before_its_answer_with_link_direction_and_time() {
    for kind in ["tcp", "unix", "shm"] {
        let far = echo(kind);
        let seen = Arc::new(Mutex::new(Vec::<Seen>::new()));
        let (close, closed) = channel();
        let sees = seen.clone();
        let began = SystemTime::now();
        let relay = Relay::start_watched(
            &fresh_endpoint("tcp"),
            &far,
            move |event| {
                if let Event::Closed(id, _) = event {
                    close.send(id).unwrap();
                }
            },
            move |passing| sees.lock().unwrap().push(passing.into()),
        )
        .unwrap();
        let mut links = [(); 2].map(|()| apart::open(relay.served()).unwrap());
        for round in 1..=100 {
            for (number, link) in (101..).zip(&mut links) {
                send(link, &[number, round, 7]);
                assert_eq!(receive(link), [7, round, number]);
            }
        }
        drop(links);
        stop(relay, &closed);
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 400);
        for number in [101, 102] {
            let first = seen.iter().find(|seen| seen.packet[0] == number);
            let link = first.unwrap().link;
            let all: Vec<&Seen> = seen.iter().filter(|seen| seen.link == link).collect();
            assert_eq!(all.len(), 200);
            for (pair, round) in all.chunks(2).zip(1..=100) {
                assert_eq!(
                    (pair[0].way, &pair[0].packet[..]),
                    (Way::Forth, &[number, round, 7][..])
                );
                assert_eq!(
                    (pair[1].way, &pair[1].packet[..]),
                    (Way::Back, &[7, round, number][..])
                );
                assert!(began <= pair[0].time && pair[0].time <= pair[1].time);
            }
        }
    }
}

#[test]
fn packet_that_is_dropped_is_not_seen() {
    let mut far = echo("tcp");
    far.mtu = 16;
    far.framing = Framing::HDLC;
    let (see, seen) = channel();
    let see = Mutex::new(see);
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let relay = Relay::start_watched(
        &fresh_endpoint("tcp"),
        &far,
        move |event| {
            if let Event::TooLarge(_, size, _) = event {
                tell.lock().unwrap().send(size).unwrap();
            }
        },
        move |passing| see.lock().unwrap().send(Seen::from(passing)).unwrap(),
    )
    .unwrap();
    let mut link = apart::open(relay.served()).unwrap();
    send(&mut link, &[1; 17]);
    assert_eq!(told.recv_timeout(SOON), Ok(17));
    send(&mut link, &[2; 16]);
    assert_eq!(seen.recv_timeout(SOON).unwrap().packet, [2; 16]);
}

#[test]
fn watcher_that_takes_its_time_holds_up_only_what_it_looks_at() {
    let (go, gone) = channel::<()>();
    let gone = Mutex::new(gone);
    let relay = Relay::start_watched(
        &fresh_endpoint("tcp"),
        &echo("tcp"),
        |_| {},
        move |passing| {
            if passing.packet == b"wait" {
                gone.lock().unwrap().recv_timeout(SOON).unwrap();
            }
        },
    )
    .unwrap();
    let [mut held, mut free] = [(); 2].map(|()| apart::open(relay.served()).unwrap());
    send(&mut held, b"wait");
    for _ in 0..100 {
        send(&mut free, b"pass");
        assert_eq!(receive(&mut free), b"ssap");
    }
    go.send(()).unwrap();
    assert_eq!(receive(&mut held), b"tiaw");
}

#[test]
fn relay_that_is_stopped_as_it_begins_ends() {
    let (end, ended) = channel();
    std::thread::spawn(move || {
        for _ in 0..200 {
            let far = fresh_endpoint("tcp");
            Relay::start(&fresh_endpoint("tcp"), &far, |_| {})
                .unwrap()
                .stop();
        }
        end.send(()).unwrap();
    });
    assert_eq!(ended.recv_timeout(SOON), Ok(()), "it waits for a link");
}
