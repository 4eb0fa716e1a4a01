//! Two sides of a link between domains in one program, for threads and for loom: each is driven by
//! one thread, which sleeps on a bell that the other side rings.
#![allow(dead_code)]

#[cfg(not(loom))]
use std::ptr::NonNull;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

#[cfg(loom)]
use loom::sync::{Condvar, Mutex};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex};

use sinew_shm::domain::{
    Block, Coherent, Config, Doorbell, End, Lost, Memory, Options, Parts, Platform, Receiver,
    Refused, Role, Sender, Slot, State, Status, Value,
};
use sinew_shm::{Line, Segment};

#[cfg(loom)]
use crate::support::LoomLock as SideLock;
#[cfg(not(loom))]
use sinew_shm::StdLock as SideLock;

/// What one side sleeps on: sticky, rung by the peer's doorbell and by its own wakers.
pub struct Bell {
    is_rung: Mutex<bool>,
    sleeper: Condvar,
}

impl Bell {
    fn sleep(&self) {
        let mut is_rung = self.is_rung.lock().unwrap();
        while !*is_rung {
            is_rung = self.sleeper.wait(is_rung).unwrap();
        }
        *is_rung = false;
    }

    fn clear(&self) {
        *self.is_rung.lock().unwrap() = false;
    }
}

impl Doorbell for Bell {
    fn ring(&self) {
        *self.is_rung.lock().unwrap() = true;
        self.sleeper.notify_one();
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }
}

/// How a side is rung: its sleeper, or, as an interrupt does, a look in the ringer's own context.
#[derive(Clone)]
pub struct Ring {
    bell: Arc<Bell>,
    end: Arc<std::sync::Mutex<Weak<End<Model>>>>,
    looks: bool,
}

impl Ring {
    fn new() -> Ring {
        let bell = Arc::new(Bell {
            is_rung: Mutex::new(false),
            sleeper: Condvar::new(),
        });
        Ring {
            bell,
            end: Arc::default(),
            looks: false,
        }
    }
}

impl Doorbell for Ring {
    fn ring(&self) {
        if !self.looks {
            return self.bell.ring();
        }
        let end = self.end.lock().unwrap().upgrade();
        if let Some(end) = end {
            end.look(0);
        }
    }
}

/// What an end is made of here.
pub struct Model;

impl Platform for Model {
    type Lock = SideLock;
    type Doorbell = Ring;
    type Cache = Coherent;
    type Slots = Vec<Slot>;
    type Blocks = Vec<Block>;
}

pub type Ended = Arc<End<Model>>;

/// The memory of both sides, freed with the last who uses it.
struct Map {
    first: Segment,
    second: Segment,
    exchange: Option<Segment>,
}

impl Drop for Map {
    fn drop(&mut self) {
        for segment in [self.first, self.second].into_iter().chain(self.exchange) {
            // SAFETY: it was made by `sites`; the ends that use it keep this alive.
            #[cfg(loom)]
            unsafe {
                segment.free();
            }
            #[cfg(not(loom))]
            {
                let first = segment.base().cast::<Line>();
                let lines = NonNull::slice_from_raw_parts(first, segment.len() / Line::SIZE);
                // SAFETY: as above, by `lines`.
                drop(unsafe { Box::from_raw(lines.as_ptr()) });
            }
        }
    }
}

/// One side's memory and bells, on which it can be opened again and again.
#[derive(Clone)]
pub struct Site {
    config: Config<'static>,
    role: Role,
    memory: Arc<Map>,
    own: Ring,
    other: Ring,
}

fn lines(bytes: usize) -> &'static mut [Line] {
    Box::leak(vec![Line::ZERO; Line::count(bytes)].into_boxed_slice())
}

/// Both sides' memory.
pub fn sites(config: Config<'static>) -> (Site, Site) {
    let segment = |bytes| Segment::from_lines(lines(bytes));
    let memory = Arc::new(Map {
        first: segment(config.segment_len(Role::First)),
        second: segment(config.segment_len(Role::Second)),
        exchange: (config.exchange_len() > 0).then(|| segment(config.exchange_len())),
    });
    let (ring, other) = (Ring::new(), Ring::new());
    let site = |role, own: &Ring, other: &Ring| Site {
        config,
        role,
        memory: memory.clone(),
        own: own.clone(),
        other: other.clone(),
    };
    (
        site(Role::First, &ring, &other),
        site(Role::Second, &other, &ring),
    )
}

impl Site {
    /// As this one, with each side looking where it is rung.
    pub fn rung_directly(&self) -> Site {
        let mut site = self.clone();
        (site.own.looks, site.other.looks) = (true, true);
        site
    }

    /// Opens this side in a new life. The one before was dropped.
    pub fn open(&self) -> Side {
        let Map {
            first,
            second,
            exchange,
        } = *self.memory;
        let (mine, peer) = match self.role {
            Role::First => (first, second),
            Role::Second => (second, first),
        };
        // SAFETY: the side keeps the memory, which is reached by the two ends only.
        let memory = unsafe { Memory::new(mine, peer, exchange) };
        let parts = Parts {
            doorbell: self.other.clone(),
            cache: Coherent,
            platform: Model,
            slots: self.config.channels.iter().map(|_| Slot::EMPTY).collect(),
            blocks: vec![Block::NEW; self.config.blocks()],
        };
        let end = End::open(memory, self.config, self.role, parts, Options::default());
        let end = Arc::new(end.unwrap());
        *self.own.end.lock().unwrap() = Arc::downgrade(&end);
        Side {
            end,
            own: self.own.clone(),
            _memory: self.memory.clone(),
        }
    }
}

/// Both sides, up, with nothing rung.
pub fn up(config: Config<'static>) -> (Side, Side) {
    let (first, second) = sites(config);
    up_on(&first, &second)
}

/// As [`up`], on this memory.
pub fn up_on(first: &Site, second: &Site) -> (Side, Side) {
    let (first, second) = (first.open(), second.open());
    first.end.look(0);
    assert_eq!(second.end.look(0), Status::Up);
    assert_eq!(first.end.look(0), Status::Up);
    first.own.bell.clear();
    second.own.bell.clear();
    (first, second)
}

/// Looks from both sides in turn, until the link is up again: in a bounded number of looks.
pub fn settle(first: &Side, second: &Side) {
    for _ in 0..5 {
        let up = [first, second].map(|side| side.end.look(0));
        if up == [Status::Up; 2] {
            return;
        }
    }
    panic!("{:?} and {:?}", first.end.status(), second.end.status());
}

/// Whether one packet crosses.
pub fn crosses(from: &Side, to: &Side) -> bool {
    from.sender().send(&[9]) == Ok(true) && try_receive(&to.receiver()) == Ok(Some(9))
}

/// One side, and what its thread sleeps on.
pub struct Side {
    pub end: Ended,
    own: Ring,
    // Dropped after the end.
    _memory: Arc<Map>,
}

impl Side {
    pub fn sender(&self) -> Sender<Ended> {
        Sender::new(&self.end, 1).unwrap()
    }

    pub fn receiver(&self) -> Receiver<Ended> {
        Receiver::new(&self.end, 1).unwrap()
    }

    /// The values of the only state channel.
    pub fn state<T: Value>(&self) -> State<Ended, T> {
        State::new(&self.end, 1).unwrap()
    }

    /// Takes steps, as a thread that drives a link does, until one comes to something.
    pub fn until<T>(&self, mut step: impl FnMut() -> Option<T>, arm: impl Fn(&Waker)) -> T {
        let waker = Waker::from(self.own.bell.clone());
        loop {
            if let Some(done) = step() {
                return done;
            }
            arm(&waker);
            self.own.bell.sleep();
            if !self.own.looks {
                self.end.look(0);
            }
        }
    }

    /// Arms, and sleeps until the bell rings.
    pub fn sleep_after(&self, arm: impl FnOnce(&Waker)) {
        arm(&Waker::from(self.own.bell.clone()));
        self.own.bell.sleep();
        if !self.own.looks {
            self.end.look(0);
        }
    }

    /// Waits until the link is up in this pairing or a later one.
    pub fn wait_up(&self, pairing: u32) {
        while self.end.look(0) != Status::Up || self.end.pairing() < pairing {
            self.own.bell.sleep();
        }
    }

    /// Waits for a place, and sends one byte.
    pub fn send(&self, sender: &Sender<Ended>, value: u8) -> Result<bool, Lost> {
        let step = || match sender.send(&[value]) {
            Err(Refused::Full) => None,
            Err(Refused::Lost(lost)) => Some(Err(lost)),
            Err(Refused::TooLarge) => unreachable!("a byte fits"),
            Ok(sent) => Some(Ok(sent)),
        };
        self.until(step, |waker| sender.arm(waker))
    }

    /// Waits for a packet, and reads its one byte.
    pub fn receive(&self, receiver: &Receiver<Ended>) -> Result<u8, Lost> {
        let step = || try_receive(receiver).transpose();
        self.until(step, |waker| receiver.arm(waker))
    }

    /// As [`Side::receive`], in one step.
    pub fn take(&self, receiver: &Receiver<Ended>) -> Result<u8, Lost> {
        let step = || try_take(receiver).transpose();
        self.until(step, |waker| receiver.arm(waker))
    }

    /// Ends this life, and checks its books.
    pub fn stop(self) {
        assert!(self.end.check_books());
        assert_eq!(Arc::strong_count(&self.end), 1, "the end goes with it");
    }
}

/// As [`try_receive`], in one step.
pub fn try_take(receiver: &Receiver<Ended>) -> Result<Option<u8>, Lost> {
    let mut bytes = [0];
    let len = receiver.receive_into(&mut bytes)?;
    assert!(len.is_none_or(|len| len == 1));
    Ok(len.map(|_| bytes[0]))
}

/// The byte of the packet that is there.
pub fn try_receive(receiver: &Receiver<Ended>) -> Result<Option<u8>, Lost> {
    let Some(packet) = receiver.receive()? else {
        return Ok(None);
    };
    assert_eq!(packet.len(), 1);
    if let Some(bytes) = packet.trusted() {
        return Ok(Some(bytes[0]));
    }
    let mut bytes = [0];
    packet.copy_to(&mut bytes)?;
    Ok(Some(bytes[0]))
}
