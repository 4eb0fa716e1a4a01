use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::net::SocketType;
use sinew_shm::domain::Doorbell;
use sinew_shm::linux::Segment;
use sinew_shm::linux::bell::{EventFdBell, SocketBell, Wait, Woken};
use sinew_shm::linux::exchange::{
    Accepted, DoorbellKind, ExchangeError, Field, Joined, MAX_LINKS, Offer, Refusal, Trust, accept,
    greet, join, observe,
};

use super::{KINDS, LONG, SHORT, pair, read, write};

/// What the side that connects offers; [`other`] is what the side that accepts does.
pub const OFFER: Offer = Offer {
    config_hash: 0xC0FF_EE00,
    own_len: 5000,
    peer_len: 9000,
    trust: Trust::None,
    exchange_len: 0,
    doorbell: DoorbellKind::Socket,
};

const MUTUAL: Offer = Offer {
    trust: Trust::Mutual,
    exchange_len: 7000,
    doorbell: DoorbellKind::EventFd,
    ..OFFER
};

pub fn other(offer: Offer) -> Offer {
    Offer {
        own_len: offer.peer_len,
        peer_len: offer.own_len,
        ..offer
    }
}

type Ends = (Result<Joined, ExchangeError>, Result<Joined, ExchangeError>);

/// Both sides at once, each with its own offer.
fn both(kind: SocketType, joining: Offer, serving: Offer) -> Ends {
    let (near, far) = pair(kind);
    std::thread::scope(|scope| {
        let server = scope.spawn(move || greet(far, LONG)?.join(&serving, LONG));
        let joined = join(near, &joining, LONG);
        (joined, server.join().unwrap())
    })
}

#[test]
fn both_get_each_others_segment() {
    for kind in KINDS {
        let (near, far) = both(kind, OFFER, other(OFFER));
        let (near, far) = (near.unwrap(), far.unwrap());
        for (one, two, len) in [(&near, &far, 5000), (&far, &near, 9000)] {
            assert_eq!(one.mine.mapping().len(), len);
            assert_eq!(two.peer.mapping().len(), len);
            assert!(one.mine.mapping().is_writable() && !one.peer.mapping().is_writable());
            write(one.mine.mapping(), len - 1, 0x77);
            assert_eq!(read(two.peer.mapping(), len - 1), 0x77);
            assert!(one.exchange.is_none() && one.eventfds.is_none());
        }
    }
}

#[test]
fn socket_is_a_bell_after_it() {
    for kind in KINDS {
        let (near, far) = both(kind, OFFER, other(OFFER));
        let near = SocketBell::new(near.unwrap().socket);
        let far = SocketBell::new(far.unwrap().socket);
        for bell in [&near, &far] {
            assert_eq!(
                bell.take(),
                Woken::TimedOut,
                "nothing is left of the exchange"
            );
        }
        far.ring();
        assert_eq!(near.wait(near.seen(), None), Woken::Rung);
        drop(near);
        assert_eq!(far.wait(far.seen(), None), Woken::HungUp);
    }
}

#[test]
fn mutual_trust_brings_an_exchange_segment_and_eventfds() {
    for kind in KINDS {
        let (near, far) = both(kind, MUTUAL, other(MUTUAL));
        let (near, far) = (near.unwrap(), far.unwrap());
        let [one, two] = [&near, &far].map(|side| side.exchange.as_ref().unwrap().mapping());
        assert_eq!((one.len(), two.len()), (7000, 7000));
        write(one, 1, 0x11);
        write(two, 2, 0x22);
        assert_eq!((read(two, 1), read(one, 2)), (0x11, 0x22));
        let [near, far] = [near, far].map(|side| {
            let fds = side.eventfds.unwrap();
            EventFdBell::new(fds.mine, fds.peers, side.socket)
        });
        near.ring();
        assert_eq!(far.wait(far.seen(), None), Woken::Rung);
        assert_eq!(near.wait(near.seen(), Some(SHORT)), Woken::TimedOut);
        far.ring();
        assert_eq!(near.wait(near.seen(), None), Woken::Rung);
    }
}

/// The refusal on both sides: (joining, serving).
fn refusals(joining: Offer, serving: Offer) -> (Refusal, Refusal) {
    let (near, far) = both(SocketType::SEQPACKET, joining, serving);
    match (near.unwrap_err(), far.unwrap_err()) {
        (ExchangeError::RefusedByPeer(near), ExchangeError::Refused(far)) => (near, far),
        (near, far) => panic!("{near}; {far}"),
    }
}

#[test]
fn every_difference_is_named_on_both_sides() {
    let serving = other(MUTUAL);
    let cases = [
        (
            Offer {
                config_hash: 1,
                ..MUTUAL
            },
            Field::Configuration,
            1,
            0xC0FF_EE00,
        ),
        (
            Offer {
                own_len: 1,
                ..MUTUAL
            },
            Field::JoiningLength,
            1,
            5000,
        ),
        (
            Offer {
                peer_len: 1,
                ..MUTUAL
            },
            Field::ServingLength,
            1,
            9000,
        ),
        (
            Offer {
                exchange_len: 1,
                ..MUTUAL
            },
            Field::ExchangeLength,
            1,
            7000,
        ),
        (
            Offer {
                doorbell: DoorbellKind::Futex,
                ..MUTUAL
            },
            Field::Doorbell,
            2,
            1,
        ),
        (
            Offer {
                trust: Trust::None,
                doorbell: DoorbellKind::Socket,
                ..MUTUAL
            },
            Field::Trust,
            0,
            1,
        ),
    ];
    for (joining, field, ours, theirs) in cases {
        let (near, far) = refusals(joining, serving);
        assert_eq!(
            near,
            Refusal {
                field,
                ours,
                theirs
            }
        );
        let (ours, theirs) = (theirs, ours);
        assert_eq!(
            far,
            Refusal {
                field,
                ours,
                theirs
            }
        );
    }
}

#[test]
fn what_says_most_is_named_where_several_differ() {
    let joining = Offer {
        own_len: 1,
        config_hash: 1,
        ..OFFER
    };
    assert_eq!(
        refusals(joining, other(OFFER)).0.field,
        Field::JoiningLength
    );
}

#[test]
fn refusals_read_well() {
    let joining = Offer {
        config_hash: 0x12,
        ..OFFER
    };
    let (near, far) = both(SocketType::STREAM, joining, other(OFFER));
    assert_eq!(
        near.unwrap_err().to_string(),
        "refused by the other side: configuration hash: 0x00000012 here, 0xc0ffee00 there"
    );
    assert_eq!(
        far.unwrap_err().to_string(),
        "refused: configuration hash: 0xc0ffee00 here, 0x00000012 there"
    );
}

#[test]
fn server_without_a_free_link_says_so() {
    let (near, far) = pair(SocketType::SEQPACKET);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let greeting = greet(far, LONG).unwrap();
            assert_eq!(greeting.config_hash(), OFFER.config_hash);
            greeting.refuse(Refusal::of(Field::Busy));
        });
        let error = join(near, &OFFER, LONG).unwrap_err();
        assert_eq!(
            error.to_string(),
            "refused by the other side: every link is taken"
        );
    });
}

#[test]
fn eventfd_without_trust_is_refused_before_anything_is_made() {
    let offer = Offer {
        doorbell: DoorbellKind::EventFd,
        ..OFFER
    };
    let (near, _far) = pair(SocketType::STREAM);
    let error = join(near, &offer, LONG).unwrap_err();
    assert!(
        matches!(error, ExchangeError::EventFdWithoutTrust),
        "{error}"
    );
}

fn segments(count: usize) -> Vec<(Segment, Segment)> {
    let make = |_| {
        (
            Segment::create(4096).unwrap(),
            Segment::create(8192).unwrap(),
        )
    };
    (0..count).map(make).collect()
}

fn borrowed(links: &[(Segment, Segment)]) -> Vec<(BorrowedFd<'_>, BorrowedFd<'_>)> {
    links.iter().map(|(a, b)| (a.as_fd(), b.as_fd())).collect()
}

#[test]
fn observer_sees_every_link_and_can_write_none() {
    for kind in KINDS {
        for count in [0, 1, 3, MAX_LINKS, MAX_LINKS + 1] {
            let (near, far) = pair(kind);
            let links = segments(count);
            let fds = borrowed(&links);
            std::thread::scope(|scope| {
                let server = scope.spawn(|| accept(far, &other(OFFER), &fds, LONG).unwrap());
                let seen = observe(near, LONG).unwrap();
                assert!(matches!(server.join().unwrap(), Accepted::Observer(_)));
                assert_eq!(seen.total as usize, count);
                assert_eq!(seen.links.len(), count.min(MAX_LINKS));
                for ((own, peers), (see_own, see_peers)) in links.iter().zip(&seen.links) {
                    for (real, seen) in [(own, see_own), (peers, see_peers)] {
                        write(real.mapping(), 9, 0x99);
                        assert_eq!(read(seen.mapping(), 9), 0x99);
                        assert_eq!(seen.mapping().len(), real.mapping().len());
                        assert!(!seen.mapping().is_writable());
                        let access = fcntl_getfl(seen).unwrap() & OFlags::RWMODE;
                        assert_eq!(access, OFlags::RDONLY);
                    }
                }
            });
        }
    }
}

#[test]
fn exchange_segment_is_shown_to_nobody() {
    let (near, far) = pair(SocketType::STREAM);
    let exchange = Segment::create_exchange(4096).unwrap();
    let links = [(exchange.as_fd(), exchange.as_fd())];
    std::thread::scope(|scope| {
        let server = scope.spawn(|| greet(far, LONG)?.show(&links, LONG));
        let error = observe(near, LONG).unwrap_err();
        assert!(matches!(error, ExchangeError::HungUp), "{error}");
        let error = server.join().unwrap().unwrap_err();
        assert!(
            matches!(
                error,
                ExchangeError::Refused(Refusal {
                    field: Field::Seals,
                    ..
                })
            ),
            "{error}"
        );
    });
}

#[test]
fn observer_cannot_join_nor_a_side_observe() {
    let serve = |far: OwnedFd, show: bool| match show {
        true => greet(far, LONG)?.show(&[], LONG).map(drop),
        false => greet(far, LONG)?.join(&other(OFFER), LONG).map(drop),
    };
    let field = |error: ExchangeError| match error {
        ExchangeError::Refused(refusal) | ExchangeError::RefusedByPeer(refusal) => refusal.field,
        error => panic!("{error}"),
    };
    for show in [true, false] {
        let (near, far) = pair(SocketType::STREAM);
        std::thread::scope(|scope| {
            let server = scope.spawn(move || serve(far, show));
            let error = match show {
                true => join(near, &OFFER, LONG).map(drop).unwrap_err(),
                false => observe(near, LONG).map(drop).unwrap_err(),
            };
            assert_eq!(field(error), Field::Kind);
            assert_eq!(field(server.join().unwrap().unwrap_err()), Field::Kind);
        });
    }
}
