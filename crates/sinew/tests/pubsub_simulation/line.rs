//! One direction between two sides.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;

use sinew::link::{SendError, Tx};
use sinew::time::Instant;

/// Packets on their way, and when each has arrived.
#[derive(Default)]
pub struct Line {
    pub packets: VecDeque<(Instant, Vec<u8>)>,
    pub closed: bool,
}

pub type Way = Rc<RefCell<Line>>;

/// How long a packet takes.
pub const DELAY: u64 = 200;

/// The sending half.
pub struct Sender {
    pub way: Way,
    pub places: usize,
    pub now: Instant,
    place: Vec<u8>,
    /// A place is in hand.
    taken: bool,
}

impl Sender {
    pub fn new(mtu: usize, places: usize) -> Sender {
        Sender {
            way: Way::default(),
            places,
            now: Instant::START,
            place: vec![0xaa; mtu],
            taken: false,
        }
    }

    pub fn renew(&mut self, way: Way) {
        self.way = way;
        self.taken = false;
    }

    pub fn is_full(&self) -> bool {
        self.way.borrow().packets.len() >= self.places
    }
}

impl Tx for Sender {
    fn mtu(&self) -> usize {
        self.place.len()
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        if min > self.place.len() {
            return Err(SendError::TooLarge);
        }
        if self.way.borrow().closed {
            return Err(SendError::Closed);
        }
        if !self.taken && self.is_full() {
            return Err(SendError::Full);
        }
        self.taken = true;
        Ok(&mut self.place)
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        assert!(self.taken, "a commit without a place");
        self.taken = false;
        let packet = self.place.get(..len).ok_or(SendError::TooLarge)?.to_vec();
        self.place.fill(0xaa);
        if len > 0 {
            let at = Instant::from_micros(self.now.as_micros() + DELAY);
            self.way.borrow_mut().packets.push_back((at, packet));
        }
        Ok(())
    }

    fn flush(&mut self) {}

    fn arm(&mut self, waker: &Waker) {
        waker.wake_by_ref();
    }
}
