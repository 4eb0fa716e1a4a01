//! A link of one's own: packets over a FIFO of words between two cores, and the suite that every link passes.

// ANCHOR: pump
use core::task::Waker;

use sinew::link::{Rx, SendError, Tx};

/// What the chip has: a FIFO of words to the other core, and one back. Its interrupt comes when a word has
/// arrived, and when there is room again after `put` said no.
pub trait Fifo {
    /// Puts a word in; `false` where there is no room.
    fn put(&mut self, word: u32) -> bool;

    /// The oldest word that has arrived.
    fn take(&mut self) -> Option<u32>;
}

/// Carries packets between a FIFO and the two queues of a link.
///
/// A packet is a header and its bytes, four to a word, the last word filled with zeros.
pub struct Pump<F, T, R> {
    fifo: F,
    /// Into the queue that the application reads.
    arrived: T,
    /// Out of the queue that the application writes.
    leaving: R,
    /// Words of the leaving packet that are in the FIFO already.
    sent: usize,
    /// The packet that arrives: its length, and how many bytes of it are in their place.
    arriving: Option<(usize, usize)>,
    /// Words that stood where a header had to: the other core began again in the middle of a packet.
    pub strays: u32,
}

impl<F: Fifo, T: Tx, R: Rx> Pump<F, T, R> {
    pub fn new(fifo: F, arrived: T, leaving: R) -> Self {
        Pump {
            fifo,
            arrived,
            leaving,
            sent: 0,
            arriving: None,
            strays: 0,
        }
    }

    /// Moves what can be moved now: the whole interrupt handler. `again` makes the interrupt pending.
    pub fn turn(&mut self, again: &Waker) {
        self.send(again);
        self.receive(again);
    }

    fn send(&mut self, again: &Waker) {
        while let Ok(packet) = self.leaving.peek() {
            let Some(packet) = packet else {
                return self.leaving.arm(again); // the next packet
            };
            while self.sent <= packet.len().div_ceil(4) {
                let word = match self.sent.checked_sub(1) {
                    None => header(packet.len()),
                    Some(at) => word(packet.get(4 * at..).unwrap_or_default()),
                };
                if !self.fifo.put(word) {
                    return; // the interrupt comes when there is room
                }
                self.sent += 1;
            }
            self.sent = 0;
            self.leaving.release();
        }
    }

    fn receive(&mut self, again: &Waker) {
        let mtu = self.arrived.mtu();
        loop {
            // No word is taken without a place for it: so the other core is held back, and nothing is lost.
            let place = match self.arrived.place(mtu) {
                Ok(place) => place,
                Err(SendError::Full) => return self.arrived.arm(again),
                Err(_) => return, // the application has gone
            };
            let Some(word) = self.fifo.take() else {
                return;
            };
            self.arriving = match self.arriving {
                None => {
                    let len = length(word).filter(|len| *len <= mtu);
                    self.strays += u32::from(len.is_none());
                    len.map(|len| (len, 0))
                }
                Some((len, at)) => {
                    let to = place.get_mut(at..len).into_iter().flatten();
                    to.zip(word.to_le_bytes()).for_each(|(to, byte)| *to = byte);
                    if at + 4 < len {
                        Some((len, at + 4))
                    } else {
                        // It cannot fail: the place is in hand, and the packet is not longer.
                        let _ = self.arrived.commit(len);
                        self.arrived.flush();
                        None
                    }
                }
            };
        }
    }
}

/// The length, and its complement above it: few other words look like this.
fn header(len: usize) -> u32 {
    let len = len as u32 & 0xffff;
    len | (!len << 16)
}

fn length(word: u32) -> Option<usize> {
    let len = word & 0xffff;
    (len > 0 && word == header(len as usize)).then_some(len as usize)
}

/// The first four bytes, with zeros where there are fewer.
fn word(bytes: &[u8]) -> u32 {
    let mut word = [0; 4];
    word.iter_mut()
        .zip(bytes)
        .for_each(|(to, byte)| *to = *byte);
    u32::from_le_bytes(word)
}
// ANCHOR_END: pump

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Wake;

use sinew::link::conformance::{End, Harness, Ports, run};
use sinew::link::queue::{self, QueueRx, QueueTx};
use sinew_shm::{Bell, Queue, StdLock};

/// The bit by which an interrupt is pending.
#[derive(Default)]
struct Interrupt(AtomicBool);

impl Wake for Interrupt {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// One direction of the FIFO: eight words, and who is to hear of it.
struct Words {
    words: Mutex<(VecDeque<u32>, bool)>,
    sender: Arc<Interrupt>,
    receiver: Arc<Interrupt>,
}

/// One core's view.
struct Mailbox {
    out: Arc<Words>,
    back: Arc<Words>,
}

impl Fifo for Mailbox {
    fn put(&mut self, word: u32) -> bool {
        let (words, is_awaited) = &mut *self.out.words.lock().unwrap();
        if words.len() == 8 {
            *is_awaited = true;
            return false;
        }
        words.push_back(word);
        self.out.receiver.clone().wake();
        true
    }

    fn take(&mut self) -> Option<u32> {
        let (words, is_awaited) = &mut *self.back.words.lock().unwrap();
        let word = words.pop_front()?;
        if std::mem::take(is_awaited) {
            self.back.sender.clone().wake();
        }
        Some(word)
    }
}

// ANCHOR: queues
const BLOCKS: usize = 4;
const MTU: usize = 64;

/// From the application, and to it.
type Queues = [Queue<StdLock, BLOCKS, MTU>; 2];
type QueuePump<F> = Pump<F, QueueTx<StdLock, BLOCKS, MTU>, QueueRx<StdLock, BLOCKS, MTU>>;

/// The two halves for the application's driver, and the pump for the interrupt handler.
#[allow(clippy::type_complexity)]
fn open<F: Fifo>(
    queues: &'static Queues,
    fifo: F,
) -> Option<(queue::End<StdLock, BLOCKS, MTU>, QueuePump<F>)> {
    let [down, up] = queues;
    let (application, (arrived, leaving)) = queue::pair(down, up)?;
    Some((application, Pump::new(fifo, arrived, leaving)))
}
// ANCHOR_END: queues
static BELLS: [Bell<StdLock>; 2] = [const { Bell::new() }; 2];

/// A chip with two cores that are joined by a FIFO and nothing else.
struct Chip {
    queues: &'static [Queues; 2],
    cores: Vec<(Arc<Interrupt>, QueuePump<Mailbox>)>,
}

impl Chip {
    fn new() -> Chip {
        let queues = [(); 2].map(|()| [(); 2].map(|()| Queue::new()));
        Chip {
            queues: Box::leak(Box::new(queues)), // what is static in an image
            cores: Vec::new(),
        }
    }
}

// ANCHOR: conformance
impl Harness for Chip {
    fn connect(&mut self) -> (End, End) {
        self.cores.clear();
        let interrupts = [(); 2].map(|()| Arc::<Interrupt>::default());
        let words = |from: usize, to: usize| {
            Arc::new(Words {
                words: Mutex::default(),
                sender: interrupts[from].clone(),
                receiver: interrupts[to].clone(),
            })
        };
        let (there, back) = (words(0, 1), words(1, 0));
        let mailboxes = [(&there, &back), (&back, &there)];
        let ends = [0, 1].map(|core| {
            let (out, back) = (mailboxes[core].0.clone(), mailboxes[core].1.clone());
            let opened = open(&self.queues[core], Mailbox { out, back });
            let ((tx, rx), pump) = opened.expect("all ends were dropped");
            interrupts[core].clone().wake(); // the handler's first turn arms it
            self.cores.push((interrupts[core].clone(), pump));
            let bell = &BELLS[core];
            let ports = Ports {
                urgent: Box::new(tx.port(1, bell)),
                bulk: Box::new(tx.port(2, bell)),
                rung: Box::new(|| bell.take()),
            };
            End {
                tx: Box::new(tx),
                rx: Box::new(rx),
                ports: Some(ports),
            }
        });
        ends.into()
    }

    /// The interrupts that are pending.
    fn settle(&mut self) {
        for (interrupt, pump) in &mut self.cores {
            if interrupt.0.swap(false, Ordering::SeqCst) {
                pump.turn(&interrupt.clone().into());
            }
        }
    }

    /// A FIFO has no end.
    fn sees_hang_up(&self) -> bool {
        false
    }
}

#[test]
fn a_link_of_ones_own_passes_the_suite() {
    let report = run(&mut Chip::new());
    assert!(report.checked.contains(&"threads_lose_no_wake_up"));
}
// ANCHOR_END: conformance

#[test]
fn words_that_are_no_header_are_counted_and_the_next_packet_comes() {
    let mut chip = Chip::new();
    let (mut a, mut b) = chip.connect();
    let stray = &chip.cores[0].1.fifo.out.clone();
    stray.words.lock().unwrap().0.extend([0, 77, u32::MAX]);
    a.tx.place(1).unwrap()[0] = 9;
    a.tx.commit(1).unwrap();
    a.tx.flush();
    while b.rx.peek().unwrap().is_none() {
        chip.settle();
    }
    assert_eq!(b.rx.peek().unwrap(), Some(&[9][..]));
    assert_eq!(chip.cores[1].1.strays, 3);
}
