//! Urgent packets and a bulk stream on one link: how many bulk packets an urgent one waits for.
//!
//! Counted in packets, not in time: each channel has blocks and rings of its own, so an urgent packet
//! waits for what its receiver has in hand, and for nothing else.
#![cfg(not(loom))]

mod support;

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use sinew_shm::domain::{Channel, Config, End, Pool, Receiver, Refused, Sender};
use support::{Solo, up};

const BULK: u16 = 7;
const URGENT: u16 = 9;
/// Packets of the bulk stream that can be under way.
const BLOCKS: u16 = 64;

/// Bulk comes first in the configuration, so that the order of the channels is not what counts.
const LINK: Config = Config::new(&[
    Channel::new(BULK, "bulk", Pool::new(BLOCKS, 64)).priority(200),
    Channel::new(3, "other", Pool::new(2, 64)),
    Channel::new(URGENT, "urgent", Pool::new(2, 16)).priority(0),
]);

type Ends = (Rc<End<Solo>>, Rc<End<Solo>>);

fn sender(end: &Rc<End<Solo>>, channel: u16) -> Sender<Rc<End<Solo>>> {
    Sender::new(end, channel).unwrap()
}

fn receiver(end: &Rc<End<Solo>>, channel: u16) -> Receiver<Rc<End<Solo>>> {
    Receiver::new(end, channel).unwrap()
}

/// Sends bulk packets until there is no place, and says how many.
fn fill(end: &Rc<End<Solo>>) -> u16 {
    let bulk = sender(end, BULK);
    let mut sent = 0;
    while bulk.send(&[0; 64]) == Ok(true) {
        sent += 1;
    }
    assert_eq!(bulk.send(&[0; 64]), Err(Refused::Full));
    sent
}

/// Takes the next packet, of the most urgent channel that has one: its channel.
fn take((_, here): &Ends) -> Option<u16> {
    let channel = here.next()?;
    let receiver = receiver(here, channel);
    let packet = receiver.receive().unwrap();
    packet.map(|_| channel)
}

#[test]
fn an_urgent_packet_overtakes_every_bulk_packet_that_waits() {
    for taken in 0..BLOCKS {
        let link = up(LINK);
        assert_eq!(fill(&link.0), BLOCKS);
        for _ in 0..taken {
            assert_eq!(take(&link), Some(BULK));
        }
        sender(&link.0, URGENT).send(b"stop").unwrap();
        assert_eq!(take(&link), Some(URGENT), "it overtakes {}", BLOCKS - taken);
        let rest = std::iter::from_fn(|| take(&link)).count();
        assert_eq!(rest, usize::from(BLOCKS - taken));
    }
}

#[test]
fn an_urgent_packet_waits_for_the_one_bulk_packet_in_hand() {
    let link = up(LINK);
    fill(&link.0);
    let bulk = receiver(&link.1, BULK);
    let in_hand = bulk.receive().unwrap().unwrap();
    sender(&link.0, URGENT).send(b"stop").unwrap();
    drop(in_hand);
    assert_eq!(take(&link), Some(URGENT));
}

#[test]
fn a_bulk_stream_that_is_full_leaves_the_urgent_channel_its_places() {
    let (there, here) = up(LINK);
    fill(&there);
    let urgent = sender(&there, URGENT);
    urgent.send(b"one").unwrap();
    urgent.send(b"two").unwrap();
    assert_eq!(urgent.send(b"three"), Err(Refused::Full));
    let urgent = receiver(&here, URGENT);
    for packet in [b"one", b"two"] {
        let got = urgent.receive().unwrap().unwrap();
        assert_eq!(got.trusted().unwrap(), packet);
    }
}

/// The tasks that were woken, in that order.
type Ready = Arc<Mutex<VecDeque<u16>>>;

/// A task that receives on one channel.
struct Task {
    channel: u16,
    ready: Ready,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.ready.lock().unwrap().push_back(self.channel);
    }
}

fn waker(channel: u16, ready: &Ready) -> Waker {
    let ready = ready.clone();
    Arc::new(Task { channel, ready }).into()
}

#[test]
fn tasks_are_woken_the_most_urgent_first() {
    let (there, here) = up(LINK);
    let ready = Ready::default();
    for channel in [BULK, 3, URGENT] {
        receiver(&here, channel).arm(&waker(channel, &ready));
        assert!(sender(&there, channel).send(&[0]).unwrap());
    }
    here.look(0);
    assert_eq!(*ready.lock().unwrap(), [URGENT, 3, BULK]);
}

#[test]
fn among_tasks_an_urgent_packet_waits_for_at_most_one_bulk_packet() {
    // The tasks of one executor, each of which takes one packet and lets the others go on.
    let (there, here) = up(LINK);
    let ready = Ready::default();
    let wakers = [BULK, URGENT].map(|channel| (channel, waker(channel, &ready)));
    for (channel, waker) in &wakers {
        receiver(&here, *channel).arm(waker);
    }
    // The bulk packets that were taken since the urgent one was sent, for each of those.
    let mut waits: Vec<u32> = Vec::new();
    let mut waiting: Option<u32> = None;
    for step in 0..2000 {
        fill(&there);
        if step % 17 == 5 && waiting.is_none() {
            sender(&there, URGENT).send(b"stop").unwrap();
            waiting = Some(0);
        }
        // The doorbell: the most urgent goes to the front of those that it wakes.
        here.look(step);
        let next = ready.lock().unwrap().pop_front();
        let Some(channel) = next else { continue };
        let receiver = receiver(&here, channel);
        let got = receiver.receive().unwrap();
        match (channel, waiting) {
            (URGENT, Some(waited)) if got.is_some() => {
                waits.push(waited);
                waiting = None;
            }
            (_, Some(waited)) => waiting = Some(waited + 1),
            _ => {}
        }
        drop(got);
        let (_, waker) = wakers.iter().find(|(id, _)| *id == channel).unwrap();
        receiver.arm(waker);
    }
    assert!(waits.len() > 100, "{} urgent packets", waits.len());
    assert!(waits.iter().all(|&waited| waited <= 1), "{waits:?}");
}
