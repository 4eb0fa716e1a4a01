//! Two threads on a link between domains: what the loom models show in the small, in the large, and
//! by Miri.
#![cfg(not(loom))]

#[path = "support/two.rs"]
mod two;

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use sinew_shm::domain::observe::NoValue;
use sinew_shm::domain::{Channel, Config, Lost, Pool, Receiver, Refused, Role, Sender};
use two::{Ended, Side, sites};

const TRUSTED: Config = Config::new(&[Channel::new(1, "both", Pool::new(3, 64))]).mutual();
const UNTRUSTED: Config = Config::new(&[Channel::new(1, "both", Pool::new(3, 64))]);

const PACKETS: u32 = if cfg!(miri) { 25 } else { 50_000 };
const LIVES: u32 = if cfg!(miri) { 3 } else { 500 };
const PACKETS_OF_A_LIFE: u32 = if cfg!(miri) { 5 } else { 40 };

/// Sends the packet with this number, 16 times the number; `false` where there is no place.
fn put(sender: &Sender<Ended>, number: u32) -> Result<bool, Lost> {
    let mut place = match sender.place(64) {
        Ok(place) => place,
        Err(Refused::Lost(lost)) => return Err(lost),
        Err(refused) => {
            assert_eq!(refused, Refused::Full);
            return Ok(false);
        }
    };
    for word in place.chunks_exact_mut(4) {
        word.copy_from_slice(&number.to_le_bytes());
    }
    match place.send(64) {
        Ok(sent) => Ok(sent),
        Err(Refused::Lost(lost)) => Err(lost),
        Err(refused) => panic!("{refused:?} with a place in hand"),
    }
}

/// The number of the packet that is there, which is whole.
fn take(receiver: &Receiver<Ended>) -> Result<Option<u32>, Lost> {
    let Some(packet) = receiver.receive()? else {
        return Ok(None);
    };
    let mut bytes = [0; 64];
    match packet.trusted() {
        Some(packet) => bytes.copy_from_slice(packet),
        None => assert_eq!(packet.copy_to(&mut bytes)?, 64),
    }
    let number = *bytes.first_chunk().unwrap();
    assert!(bytes.chunks_exact(4).all(|word| word == number));
    Ok(Some(u32::from_le_bytes(number)))
}

/// Sends so many packets, and receives as many, at the same time.
fn talk(side: &Side) {
    let (sender, receiver) = (side.sender(), side.receiver());
    let (sent, received) = (Cell::new(0), Cell::new(0));
    let step = || {
        loop {
            let mut goes_on = false;
            if sent.get() < PACKETS && put(&sender, sent.get()).unwrap() {
                sent.set(sent.get() + 1);
                goes_on = true;
            }
            if received.get() < PACKETS
                && let Some(number) = take(&receiver).unwrap()
            {
                assert_eq!(number, received.get());
                received.set(received.get() + 1);
                goes_on = true;
            }
            if sent.get() == PACKETS && received.get() == PACKETS {
                return Some(());
            }
            if !goes_on {
                return None;
            }
        }
    };
    side.until(step, |waker| {
        if sent.get() < PACKETS {
            sender.arm(waker);
        }
        if received.get() < PACKETS {
            receiver.arm(waker);
        }
    });
}

fn packets_cross(config: Config<'static>) {
    let (first, second) = sites(config);
    let live = |site: &two::Site| {
        let side = site.open();
        talk(&side);
        side
    };
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| live(&first));
        (live(&second), first.join().unwrap())
    });
    first.stop();
    second.stop();
}

#[test]
fn packets_cross_both_ways_at_once() {
    packets_cross(TRUSTED);
}

#[test]
fn packets_cross_both_ways_between_sides_without_trust() {
    packets_cross(UNTRUSTED);
}

/// Calls `step` until it says that it is done, and begins again with `renew` whenever a pairing ends
/// before `is_over`.
fn through_restarts<T>(
    side: &Side,
    is_over: &AtomicBool,
    (handle, renew): (&mut T, fn(&mut T)),
    mut pairing: impl FnMut(&Side, &T) -> Lost,
) {
    loop {
        let lost = pairing(side, handle);
        assert_ne!(lost, Lost::Fault);
        if is_over.load(Ordering::Acquire) {
            return;
        }
        renew(handle);
    }
}

fn receiver_restarts(config: Config<'static>) {
    let (first, site) = sites(config);
    let is_over = AtomicBool::new(false);
    let first = first.open();
    thread::scope(|scope| {
        scope.spawn(|| {
            for life in 1..=LIVES {
                let second = site.open();
                let receiver = second.receiver();
                for number in 0..PACKETS_OF_A_LIFE {
                    let step = || take(&receiver).unwrap();
                    let got = second.until(step, |waker| receiver.arm(waker));
                    assert_eq!(got, number, "of life {life}");
                }
                drop(receiver);
                is_over.store(life == LIVES, Ordering::Release);
                second.stop();
            }
        });
        let sender = &mut first.sender();
        through_restarts(
            &first,
            &is_over,
            (sender, Sender::renew),
            |first, sender| {
                let mut number = 0;
                let step = || loop {
                    match put(sender, number) {
                        Ok(true) => number += 1,
                        Ok(false) => return None,
                        Err(lost) => return Some(lost),
                    }
                };
                first.until(step, |waker| sender.arm(waker))
            },
        );
    });
    first.stop();
}

#[test]
fn each_life_of_a_receiver_begins_with_a_packet_of_its_own() {
    receiver_restarts(TRUSTED);
}

#[test]
fn each_life_of_a_receiver_without_trust_begins_with_a_packet_of_its_own() {
    receiver_restarts(UNTRUSTED);
}

fn sender_restarts(config: Config<'static>) {
    let (site, second) = sites(config);
    let is_over = AtomicBool::new(false);
    let second = second.open();
    thread::scope(|scope| {
        scope.spawn(|| {
            for life in 1..=LIVES {
                let first = site.open();
                let sender = first.sender();
                for number in 0..PACKETS_OF_A_LIFE {
                    let step = || put(&sender, number).unwrap().then_some(());
                    first.until(step, |waker| sender.arm(waker));
                }
                drop(sender);
                is_over.store(life == LIVES, Ordering::Release);
                first.stop();
            }
        });
        let receiver = &mut second.receiver();
        through_restarts(
            &second,
            &is_over,
            (receiver, Receiver::renew),
            |second, receiver| {
                let mut number = 0;
                let step = || loop {
                    match take(receiver) {
                        Ok(Some(got)) => assert_eq!(got, number),
                        Ok(None) => return None,
                        Err(lost) => return Some(lost),
                    }
                    number += 1;
                };
                second.until(step, |waker| receiver.arm(waker))
            },
        );
    });
    second.stop();
}

#[test]
fn packets_of_each_life_of_a_sender_arrive_from_the_first_on() {
    sender_restarts(TRUSTED);
}

#[test]
fn packets_of_each_life_of_a_sender_without_trust_arrive_from_the_first_on() {
    sender_restarts(UNTRUSTED);
}

/// Longer than what a processor writes at once.
const WIDE: usize = if cfg!(miri) { 32 } else { 512 };
type Wide = [u8; WIDE];
const VALUES: Config = Config::new(&[Channel::of::<Wide>(1, "values")]);
const SETS: u32 = if cfg!(miri) { 8 } else { 20_000 };

fn wide(number: u32) -> Wide {
    let mut wide = [0; WIDE];
    for word in wide.chunks_exact_mut(4) {
        word.copy_from_slice(&number.to_le_bytes());
    }
    wide
}

fn narrow(wide: &Wide) -> u32 {
    let number = *wide.first_chunk().unwrap();
    assert!(wide.chunks_exact(4).all(|word| word == number), "torn");
    u32::from_le_bytes(number)
}

/// Sets values, and reads the peer's, which are whole and never go back, to the last one.
fn exchange(side: &Side) {
    let values = side.state::<Wide>();
    let (mut set, mut seen) = (0, 0);
    while set < SETS || seen < SETS {
        if set < SETS {
            set += 1;
            assert_eq!(values.set(&wide(set)), Ok(true));
        }
        if let Some((value, version)) = values.get_with_version().unwrap() {
            let number = narrow(&value);
            assert!(number == version && number >= seen, "{number} after {seen}");
            seen = number;
        }
        thread::yield_now();
    }
}

#[test]
fn values_are_whole_and_never_go_back_also_for_an_observer() {
    let (first, second) = two::up(VALUES);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| exchange(&second));
        let observer = scope.spawn(|| {
            let link = first.end.observe();
            let mut last = [0; 2];
            while !is_over.load(Ordering::Relaxed) {
                for (role, last) in [Role::First, Role::Second].into_iter().zip(&mut last) {
                    match link.state::<Wide>(role, 1) {
                        Ok((value, version)) => {
                            let number = narrow(&value);
                            assert!(number == version && number >= *last);
                            *last = number;
                        }
                        Err(error) => {
                            assert!(matches!(error, NoValue::Busy | NoValue::Unset), "{error}");
                        }
                    }
                }
                thread::yield_now();
            }
            for role in [Role::First, Role::Second] {
                let (value, version) = link.state::<Wide>(role, 1).unwrap();
                assert_eq!((narrow(&value), version), (SETS, SETS));
            }
        });
        exchange(&first);
        other.join().unwrap();
        is_over.store(true, Ordering::Relaxed);
        observer.join().unwrap();
    });
    first.stop();
    second.stop();
}
