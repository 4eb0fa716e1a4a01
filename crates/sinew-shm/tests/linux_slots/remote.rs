//! A remote: claims a slot, and sends back what it receives.

use std::path::Path;
use std::time::Duration;

use sinew_shm::domain::Lost;
use sinew_shm::linux::link::{Link, Receiver, Sender, WaitError};
use sinew_shm::linux::slots::Slots;

use super::child::{begin, ends, say};
use super::traffic::{CHANNELS, LINK, options};

/// How often the wish to end is looked at.
const SLICE: Option<Duration> = Some(Duration::from_millis(50));

/// `PATH SLOTS`. Says which slot it has. Ends when its standard input does.
pub fn run(arguments: &[String]) {
    begin();
    let [path, slots] = arguments else {
        panic!("{arguments:?}");
    };
    let slots = Slots::create(Path::new(path), 0, LINK, slots.parse().unwrap()).unwrap();
    let claimed = slots.claim(options(Duration::ZERO)).unwrap();
    say(&format!("slot {}", claimed.slot));
    while !ends() {
        match claimed.link.up_within(SLICE) {
            Ok(()) => {}
            Err(WaitError::TimedOut) => continue,
            Err(error) => panic!("{error}"),
        }
        let lost = echo(&claimed.link);
        assert!(claimed.link.end().check_books(), "the books, after");
        if let Some(lost) = lost {
            assert_ne!(lost, Lost::Fault);
            say(&format!("lost {lost:?}"));
        }
    }
}

/// Until the pairing is over, or this process is to end.
fn echo(link: &Link) -> Option<Lost> {
    let ids = || CHANNELS.iter().map(|channel| channel.id);
    let senders: Vec<Sender> = ids().map(|id| link.sender(id).unwrap()).collect();
    let receivers: Vec<Receiver> = ids().map(|id| link.receiver(id).unwrap()).collect();
    let mut buffer = vec![0; 4096];
    let mut count = 0u32;
    while !ends() {
        // The sign of life of who never sleeps.
        count = count.wrapping_add(1);
        if count.is_multiple_of(32) {
            link.on_ready();
        }
        let next = match link.next_within(SLICE) {
            Ok(id) => id,
            Err(WaitError::TimedOut) => match receivers[0].has(1) {
                Ok(_) => continue,
                Err(lost) => return Some(lost),
            },
            Err(WaitError::Lost(lost)) => return Some(lost),
            Err(error) => panic!("{error}"),
        };
        let at = ids().position(|id| id == next).unwrap();
        let len = match receivers[at].receive() {
            Ok(Some(packet)) => match packet.copy_to(&mut buffer) {
                Ok(len) => len,
                Err(lost) => return Some(lost),
            },
            Ok(None) => continue,
            Err(lost) => return Some(lost),
        };
        match senders[at].send_within(&buffer[..len], None) {
            Ok(is_wanted) => assert!(is_wanted),
            Err(WaitError::Lost(lost)) => return Some(lost),
            Err(error) => panic!("{error}"),
        }
    }
    None
}
