//! Every interleaving of small programs over a link between two domains, and the proof that each
//! synchronisation point is needed.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p sinew-shm --release --test loom_domain`
#![cfg(loom)]

#[path = "support/loom.rs"]
mod support;
#[path = "support/two.rs"]
mod two;

use std::sync::Arc;

use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::{Acquire, Release};
use loom::thread;
use sinew_shm::DOMAIN_MUTANTS;
use sinew_shm::domain::observe::NoValue;
use sinew_shm::domain::{Channel, Config, Lost, Pool, Predicate, Refused, Role};
use support::{explore, passes_without};
use two::{crosses, settle, sites, try_receive, up, up_on};

/// Forced switches in the model of a writer and a reader.
const STATE_SWITCHES: usize = 3;

/// One channel, in which the first side alone sends.
const fn one_way(blocks: u16) -> Channel {
    Channel::new(1, "one", Pool::new(0, 0)).pools(Pool::new(blocks, 64), Pool::new(0, 0))
}

const ONE_BLOCK: Config = Config::new(&[one_way(1)]).mutual();
const TWO_BLOCKS: Config = Config::new(&[one_way(2)]).mutual();
const UNTRUSTED: Config = Config::new(&[one_way(1)]);
const BOTH_WAYS: Config = Config::new(&[Channel::new(1, "both", Pool::new(2, 64))]).mutual();
const REPLIES: Config = Config::new(&[one_way(1).with_replies()]).mutual();
/// The first side has a value.
const VALUE: Config = Config::new(&[Channel::of::<u32>(1, "value").only(Role::First)]);
const WIDE_VALUE: Config = Config::new(&[Channel::of::<[u8; 8]>(1, "wide").only(Role::First)]);

#[test]
fn packets_cross_in_order_with_what_is_in_them() {
    explore(4, || {
        let (first, second) = up(TWO_BLOCKS);
        let thread = thread::spawn(move || {
            let sender = first.sender();
            assert_eq!(first.send(&sender, 1), Ok(true));
            assert_eq!(first.send(&sender, 2), Ok(true));
            drop(sender);
            first
        });
        let receiver = second.receiver();
        assert_eq!(second.receive(&receiver), Ok(1));
        assert_eq!(second.receive(&receiver), Ok(2));
        drop(receiver);
        thread.join().unwrap().stop();
        second.stop();
    });
}

#[test]
fn full_channel_goes_on_when_a_block_comes_back() {
    explore(3, || {
        let (first, second) = up(ONE_BLOCK);
        let thread = thread::spawn(move || {
            let sender = first.sender();
            assert_eq!(first.send(&sender, 1), Ok(true));
            assert_eq!(first.send(&sender, 2), Ok(true));
            drop(sender);
            first
        });
        let receiver = second.receiver();
        assert_eq!(second.take(&receiver), Ok(1));
        assert_eq!(second.take(&receiver), Ok(2));
        drop(receiver);
        thread.join().unwrap().stop();
        second.stop();
    });
}

#[test]
fn two_sides_come_up_in_either_order() {
    explore(2, || {
        let (first, second) = sites(BOTH_WAYS);
        let thread = thread::spawn(move || {
            let first = first.open();
            first.end.look(0);
            first
        });
        let second = second.open();
        second.end.look(0);
        let first = thread.join().unwrap();
        settle(&first, &second);
        assert!(crosses(&first, &second) && crosses(&second, &first));
        first.stop();
        second.stop();
    });
}

#[test]
fn side_that_is_up_sends_at_once() {
    explore(3, || {
        let (first, second) = sites(BOTH_WAYS);
        let (first, second) = (first.open(), second.open());
        let thread = thread::spawn(move || {
            first.end.look(0);
            let sent = first.sender().send(&[1]) == Ok(true);
            (first, sent)
        });
        second.end.look(0);
        let received = try_receive(&second.receiver());
        let (first, sent) = thread.join().unwrap();
        settle(&first, &second);
        match received {
            Ok(Some(1)) => assert!(sent),
            Ok(None) if sent => assert_eq!(try_receive(&second.receiver()), Ok(Some(1))),
            other => assert_eq!(other, Ok(None)),
        }
        assert!(crosses(&first, &second) && crosses(&second, &first));
        first.stop();
        second.stop();
    });
}

#[test]
fn both_sleep_until_the_link_is_up() {
    explore(1, || {
        let (first, second) = sites(BOTH_WAYS);
        let thread = thread::spawn(move || {
            let first = first.open();
            first.wait_up(1);
            first
        });
        let second = second.open();
        second.wait_up(1);
        let first = thread.join().unwrap();
        assert!(crosses(&first, &second) && crosses(&second, &first));
        first.stop();
        second.stop();
    });
}

#[test]
fn restarted_receiver_gets_nothing_of_the_life_before() {
    explore(1, || {
        let (first, site) = sites(ONE_BLOCK);
        let (first, second) = up_on(&first, &site);
        assert!(crosses(&first, &second));
        let thread = thread::spawn(move || {
            let sender = first.sender();
            let sent = sender.send(&[1]);
            assert_ne!(sent, Err(Refused::Lost(Lost::Fault)));
            drop(sender);
            first
        });
        let seen = try_receive(&second.receiver());
        assert!(matches!(seen, Ok(None | Some(1))), "{seen:?}");
        second.stop();
        let second = site.open();
        let seen = try_receive(&second.receiver());
        assert_eq!(seen, Ok(None));
        let first = thread.join().unwrap();
        settle(&first, &second);
        assert!(crosses(&first, &second));
        first.stop();
        second.stop();
    });
}

#[test]
fn ring_is_empty_before_a_new_peer_sees_it() {
    explore(3, || {
        let (first, site) = sites(ONE_BLOCK);
        let (first, second) = up_on(&first, &site);
        assert_eq!(first.sender().send(&[1]), Ok(true));
        second.stop();
        let second = site.open();
        let thread = thread::spawn(move || {
            first.end.look(0);
            // The block of the life before is back.
            let mut sender = first.sender();
            sender.renew();
            let sent = sender.send(&[2]);
            assert!(matches!(sent, Ok(true) | Err(Refused::Full)), "{sent:?}");
            drop(sender);
            (first, sent == Ok(true))
        });
        second.end.look(0);
        let received = try_receive(&second.receiver());
        let (first, sent) = thread.join().unwrap();
        settle(&first, &second);
        match received {
            Ok(Some(2)) => assert!(sent),
            Ok(None) if sent => assert_eq!(try_receive(&second.receiver()), Ok(Some(2))),
            other => assert_eq!(other, Ok(None)),
        }
        assert!(crosses(&first, &second));
        first.stop();
        second.stop();
    });
}

/// A sender that starts again while its peer receives: what the peer finds is whole, or nothing, or
/// the news; never a fault.
fn restart_a_sender(preemptions: usize, config: Config<'static>) {
    explore(preemptions, move || {
        let (site, second) = sites(config);
        let (first, second) = up_on(&site, &second);
        assert!(crosses(&first, &second));
        let thread = thread::spawn(move || {
            let receiver = second.receiver();
            for _ in 0..2 {
                assert_whole(try_receive(&receiver));
            }
            drop(receiver);
            second
        });
        assert_eq!(first.sender().send(&[1]), Ok(true));
        first.stop();
        let first = site.open();
        let second = thread.join().unwrap();
        settle(&first, &second);
        assert!(crosses(&first, &second));
        first.stop();
        second.stop();
    });
}

#[test]
fn restarted_sender_is_told_and_its_old_packets_are_whole() {
    restart_a_sender(2, ONE_BLOCK);
}

#[test]
fn restarted_sender_that_is_not_trusted_is_told_as_well() {
    restart_a_sender(1, UNTRUSTED);
}

#[test]
fn restart_wakes_a_sender_that_sleeps() {
    explore(1, || {
        let (first, site) = sites(ONE_BLOCK);
        let (first, second) = up_on(&first, &site);
        assert_eq!(first.sender().send(&[1]), Ok(true));
        let thread = thread::spawn(move || {
            let sender = first.sender();
            let sent = first.send(&sender, 2);
            assert!(
                matches!(sent, Err(Lost::Closed | Lost::Restarted)),
                "{sent:?}"
            );
            drop(sender);
            first
        });
        second.stop();
        let second = site.open();
        let first = thread.join().unwrap();
        settle(&first, &second);
        assert!(crosses(&first, &second));
        first.stop();
        second.stop();
    });
}

#[test]
fn restart_wakes_a_receiver_that_sleeps() {
    explore(1, || {
        let (site, second) = sites(ONE_BLOCK);
        let (first, second) = up_on(&site, &second);
        let thread = thread::spawn(move || {
            let receiver = second.receiver();
            let seen = second.receive(&receiver);
            assert!(
                matches!(seen, Err(Lost::Closed | Lost::Restarted)),
                "{seen:?}"
            );
            drop(receiver);
            second
        });
        first.stop();
        let first = site.open();
        let second = thread.join().unwrap();
        settle(&first, &second);
        assert!(crosses(&first, &second));
        first.stop();
        second.stop();
    });
}

#[test]
fn side_that_gives_up_takes_its_blocks_back_from_a_peer_that_lives() {
    explore(3, || {
        let (first, second) = up(ONE_BLOCK);
        assert!(crosses(&first, &second));
        assert_eq!(first.sender().send(&[1]), Ok(true));
        let thread = thread::spawn(move || {
            assert_whole(try_receive(&second.receiver()));
            second
        });
        first.end.peer_is_gone();
        let second = thread.join().unwrap();
        settle(&first, &second);
        assert!(crosses(&first, &second));
        first.stop();
        second.stop();
    });
}

#[test]
fn block_in_a_users_hands_is_not_written_by_a_peer_that_gave_up() {
    explore(3, || {
        let (first, second) = up(ONE_BLOCK);
        assert_eq!(first.sender().send(&[1]), Ok(true));
        let receiver = second.receiver();
        let packet = receiver.receive().unwrap().unwrap();
        first.end.peer_is_gone();
        let thread = thread::spawn(move || {
            first.end.look(0);
            let mut sender = first.sender();
            sender.renew();
            let sent = sender.send(&[2]);
            assert!(matches!(sent, Ok(true) | Err(Refused::Full)), "{sent:?}");
            drop(sender);
            first
        });
        second.end.look(0);
        assert_eq!(packet.trusted(), Some(&[1][..]));
        drop(packet);
        drop(receiver);
        second.end.look(0);
        let first = thread.join().unwrap();
        settle(&first, &second);
        first.stop();
        second.stop();
    });
}

#[test]
fn changed_filter_loses_no_packet_that_both_want() {
    explore(3, || {
        let (first, second) = up(TWO_BLOCKS);
        let receiver = second.receiver();
        let wants = |offset, mask, value| {
            receiver.set_filter(Predicate::Matches {
                offset,
                mask,
                value,
            });
        };
        wants(0, 0xFF, 1);
        // What the one and the other want, and no mixture of them.
        const BOTH: [u8; 8] = [1, 0, 0, 0, 0, 2, 0, 0];
        const NEITHER: [u8; 8] = [0; 8];
        let sender = first.sender();
        assert_eq!(sender.send(&BOTH), Ok(true));
        assert_eq!(sender.send(&NEITHER), Ok(false));
        assert!(receiver.receive().unwrap().is_some());
        drop(sender);
        let thread = thread::spawn(move || {
            let sender = first.sender();
            assert_eq!(sender.send(&BOTH), Ok(true));
            assert_eq!(sender.send(&BOTH), Ok(true));
            drop(sender);
            first
        });
        wants(4, 0xFF00, 0x200);
        let first = thread.join().unwrap();
        for _ in 0..2 {
            let packet = receiver.receive().unwrap().unwrap();
            assert_eq!(packet.trusted(), Some(&BOTH[..]));
        }
        assert!(receiver.receive().unwrap().is_none());
        drop(receiver);
        first.stop();
        second.stop();
    });
}

#[test]
fn answers_come_back_in_the_lent_block() {
    explore(3, || {
        let (first, second) = up(REPLIES);
        let thread = thread::spawn(move || {
            let sender = first.sender();
            for value in [1, 2] {
                assert_eq!(sender.send(&[value]), Ok(true));
                let answer = first.until(
                    || sender.reply().unwrap().map(|answer| answer[0]),
                    |waker| sender.arm_reply(waker),
                );
                assert_eq!(answer, value + 10);
            }
            drop(sender);
            first
        });
        let receiver = second.receiver();
        for _ in [1, 2] {
            let mut packet =
                second.until(|| receiver.receive().unwrap(), |waker| receiver.arm(waker));
            packet.place().unwrap()[0] += 10;
            assert!(packet.reply(1));
        }
        drop(receiver);
        thread.join().unwrap().stop();
        second.stop();
    });
}

#[test]
fn doorbell_that_looks_in_the_ringers_context_wakes_who_waits() {
    explore(3, || {
        let (first, second) = sites(ONE_BLOCK);
        let (first, second) = up_on(&first.rung_directly(), &second.rung_directly());
        let thread = thread::spawn(move || {
            let sender = first.sender();
            assert_eq!(first.send(&sender, 1), Ok(true));
            assert_eq!(first.send(&sender, 2), Ok(true));
            drop(sender);
            first
        });
        let receiver = second.receiver();
        assert_eq!(second.receive(&receiver), Ok(1));
        assert_eq!(second.receive(&receiver), Ok(2));
        drop(receiver);
        thread.join().unwrap().stop();
        second.stop();
    });
}

/// Whoever reads a copy that is being written, or the other way round, is found by loom.
#[test]
fn values_are_whole_and_the_latest_and_never_go_back() {
    explore(STATE_SWITCHES, || {
        let (first, second) = up(VALUE);
        let value = first.state::<u32>();
        assert_eq!(value.set(&1), Ok(true));
        let set = Arc::new(AtomicU32::new(1));
        let thread = {
            let set = set.clone();
            thread::spawn(move || {
                for number in 2..=4 {
                    assert_eq!(value.set(&number), Ok(true));
                    set.store(number, Release);
                }
                drop(value);
                first
            })
        };
        let value = second.state::<u32>();
        let mut last = 0;
        for _ in 0..3 {
            let least = set.load(Acquire).max(last);
            let (seen, version) = value.get_with_version().unwrap().unwrap();
            assert!(seen >= least && seen == version, "{seen}, not {least}");
            last = seen;
        }
        drop(value);
        thread.join().unwrap().stop();
        second.stop();
    });
}

/// A reader sees the value, or that the writer begins anew; never an earlier value, or none.
#[test]
fn restarted_writer_is_told_and_its_last_value_is_whole() {
    explore(2, || {
        let (site, second) = sites(VALUE);
        let (first, second) = up_on(&site, &second);
        for number in 1..=3 {
            assert_eq!(first.state::<u32>().set(&number), Ok(true));
        }
        let thread = thread::spawn(move || {
            let value = second.state::<u32>();
            for _ in 0..2 {
                let seen = value.get();
                let known = matches!(seen, Ok(Some(3)) | Err(Lost::Closed | Lost::Restarted));
                assert!(known, "{seen:?}");
            }
            drop(value);
            second
        });
        first.stop();
        let first = site.open();
        let second = thread.join().unwrap();
        settle(&first, &second);
        assert_eq!(second.state::<u32>().get(), Ok(None));
        assert_eq!(first.state::<u32>().set(&4), Ok(true));
        assert_eq!(second.state::<u32>().get_with_version(), Ok(Some((4, 1))));
        first.stop();
        second.stop();
    });
}

#[test]
fn observer_sees_whole_values_or_that_it_saw_none() {
    explore(2, || {
        let (first, second) = up(WIDE_VALUE);
        let value = first.state::<[u8; 8]>();
        assert_eq!(value.set(&[1; 8]), Ok(true));
        let link = second.end.observe();
        let thread = thread::spawn(move || {
            for number in 2..=3 {
                assert_eq!(value.set(&[number; 8]), Ok(true));
            }
            drop(value);
            first
        });
        match link.state::<[u8; 8]>(Role::First, 1) {
            Ok((seen, version)) => assert_eq!(seen, [version as u8; 8]),
            Err(error) => assert_eq!(error, NoValue::Busy),
        }
        drop(link);
        thread.join().unwrap().stop();
        second.stop();
    });
}

/// What a peer may find that is restarted at this moment: the whole packet, or nothing, or the news;
/// never a fault.
fn assert_whole(seen: Result<Option<u8>, Lost>) {
    let known = matches!(
        seen,
        Ok(None | Some(1)) | Err(Lost::Closed | Lost::Restarted)
    );
    assert!(known, "{seen:?}");
}

/// The point, and the test that does not pass without it.
const FOUND_BY: [(&str, &str); 17] = [
    ("entry_store", "packets_cross_in_order_with_what_is_in_them"),
    ("entry_load", "full_channel_goes_on_when_a_block_comes_back"),
    (
        "sleep_fence",
        "full_channel_goes_on_when_a_block_comes_back",
    ),
    (
        "publish_fence",
        "packets_cross_in_order_with_what_is_in_them",
    ),
    (
        "return_look_fence",
        "full_channel_goes_on_when_a_block_comes_back",
    ),
    (
        "reset_store",
        "restarted_sender_is_told_and_its_old_packets_are_whole",
    ),
    (
        "judge_fence",
        "restarted_receiver_gets_nothing_of_the_life_before",
    ),
    ("session_store", "ring_is_empty_before_a_new_peer_sees_it"),
    ("session_load", "ring_is_empty_before_a_new_peer_sees_it"),
    (
        "filter_store",
        "changed_filter_loses_no_packet_that_both_want",
    ),
    (
        "filter_load",
        "changed_filter_loses_no_packet_that_both_want",
    ),
    (
        "state_store",
        "values_are_whole_and_the_latest_and_never_go_back",
    ),
    (
        "state_load",
        "values_are_whole_and_the_latest_and_never_go_back",
    ),
    (
        "state_write_fence",
        "values_are_whole_and_the_latest_and_never_go_back",
    ),
    (
        "state_read_fence",
        "values_are_whole_and_the_latest_and_never_go_back",
    ),
    (
        "clear_fence",
        "restarted_sender_that_is_not_trusted_is_told_as_well",
    ),
    (
        "clear_look",
        "restarted_sender_that_is_not_trusted_is_told_as_well",
    ),
];

/// Runs one test for each synchronisation point, weakened: it must fail.
#[test]
fn each_weakened_point_is_found() {
    assert_eq!(FOUND_BY.map(|(point, _)| point), DOMAIN_MUTANTS);
    let unfound: Vec<_> = FOUND_BY
        .into_iter()
        .filter(|(point, test)| passes_without(point, &["--exact", test]))
        .collect();
    assert!(unfound.is_empty(), "not needed: {unfound:?}");
}
