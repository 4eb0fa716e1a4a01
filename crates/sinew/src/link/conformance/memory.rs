//! A plain link in memory, and the ways in which it can be broken.

use std::boxed::Box;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::Duration;
use std::vec;
use std::vec::Vec;

use super::{End, Harness, Ports};
use crate::link::{Port, RecvError, Rx, SendError, Tx};

const PLACES: usize = 4;
const MTU: usize = 32;

/// What is wrong with a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    Nothing,
    DropsTheLastByte,
    Reorders,
    GivesAnotherPlace,
    AcceptsTooLarge,
    SendsNothingAsAPacket,
    LeaksAPlaceOnCommitOfNothing,
    CommitsWithoutAPlace,
    PeeksTheNext,
    ReleasesUnpeeked,
    NeverWakesTheReceiver,
    ArmOfReceiverDoesNotLook,
    ArmOfSenderDoesNotLook,
    NeverWakesTheSender,
    LosesAPacketWhenFull,
    FlushRepeats,
    ForgetsTheRestAtClose,
    ClosesInSilence,
    ClosesInSilenceForSenders,
    PortTakesTheLastPlace,
    BulkTakesAllButOne,
    PortHoldsTheLock,
    PortSendsNothingAsAPacket,
    RingIsSilent,
}

/// One direction.
struct Way {
    fault: Fault,
    queue: VecDeque<Vec<u8>>,
    out: usize,
    closed: bool,
    flushed: bool,
    receiver: Option<Waker>,
    senders: Vec<(Waker, usize)>,
}

type Shared = Arc<Mutex<Way>>;

fn lock(way: &Shared) -> MutexGuard<'_, Way> {
    way.lock().unwrap()
}

impl Way {
    fn free(&self) -> usize {
        PLACES.saturating_sub(self.queue.len() + self.out)
    }

    fn take(&mut self, min: usize, reserve: usize) -> Result<Vec<u8>, SendError> {
        if min > MTU && self.fault != Fault::AcceptsTooLarge {
            return Err(SendError::TooLarge);
        }
        if self.closed {
            return Err(SendError::Closed);
        }
        if self.free() <= reserve {
            if self.fault == Fault::LosesAPacketWhenFull && self.out == 0 {
                self.queue.pop_back();
                self.out = 1;
            }
            return Err(SendError::Full);
        }
        self.out += 1;
        Ok(vec![0; MTU.max(min.min(MTU + 1))])
    }

    fn put(&mut self, mut place: Vec<u8>, len: usize) -> Result<(), SendError> {
        self.out -= 1;
        if len > place.len() {
            return Err(SendError::TooLarge);
        }
        if self.closed {
            return Err(SendError::Closed);
        }
        place.truncate(len - usize::from(self.fault == Fault::DropsTheLastByte && len > 1));
        self.queue.push_back(place);
        self.flushed = false;
        if self.fault == Fault::Reorders && self.queue.len() == 3 {
            self.queue.swap(1, 2);
        }
        if self.fault != Fault::NeverWakesTheReceiver {
            self.receiver.take().into_iter().for_each(Waker::wake);
        }
        Ok(())
    }

    fn wake_senders(&mut self) {
        if self.fault != Fault::NeverWakesTheSender {
            let free = self.free();
            let (ready, rest) = self
                .senders
                .drain(..)
                .partition(|&(_, reserve)| free > reserve || self.closed);
            self.senders = rest;
            let ready: Vec<(Waker, usize)> = ready;
            ready.into_iter().for_each(|(waker, _)| waker.wake());
        }
    }

    fn arm_sender(&mut self, waker: &Waker, reserve: usize) {
        let ready = self.free() > reserve || self.closed;
        if ready && self.fault != Fault::ArmOfSenderDoesNotLook {
            waker.wake_by_ref();
        } else {
            self.senders.push((waker.clone(), reserve));
        }
    }

    fn close(&mut self) {
        self.closed = true;
        if self.fault == Fault::ForgetsTheRestAtClose {
            self.queue.clear();
        }
        if self.fault != Fault::ClosesInSilence {
            self.receiver.take().into_iter().for_each(Waker::wake);
        }
        if self.fault != Fault::ClosesInSilenceForSenders {
            self.wake_senders();
        }
    }
}

struct MemoryTx(Shared, Option<Vec<u8>>);

impl Tx for MemoryTx {
    fn mtu(&self) -> usize {
        MTU
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        let mut way = lock(&self.0);
        if self.1.is_none() || min > MTU {
            self.1 = Some(way.take(min, 0)?);
        } else if way.fault == Fault::GivesAnotherPlace {
            self.1 = Some(vec![0; MTU]);
        }
        Ok(self.1.as_mut().unwrap())
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        let mut way = lock(&self.0);
        let Some(place) = self.1.take() else {
            let lax = way.fault == Fault::CommitsWithoutAPlace;
            return if lax {
                Ok(())
            } else {
                Err(SendError::TooLarge)
            };
        };
        if len > 0 || way.fault == Fault::SendsNothingAsAPacket {
            return way.put(place, len);
        }
        if way.fault != Fault::LeaksAPlaceOnCommitOfNothing {
            way.out -= 1;
            way.wake_senders();
        }
        Ok(())
    }

    fn flush(&mut self) {
        let mut way = lock(&self.0);
        if std::mem::replace(&mut way.flushed, true) && way.fault == Fault::FlushRepeats {
            let last = way.queue.back().cloned();
            way.queue.extend(last);
        }
    }

    fn arm(&mut self, waker: &Waker) {
        if self.1.is_some() {
            waker.wake_by_ref();
        } else {
            lock(&self.0).arm_sender(waker, 0);
        }
    }
}

impl Drop for MemoryTx {
    fn drop(&mut self) {
        lock(&self.0).close();
    }
}

struct MemoryRx(Shared, Option<Vec<u8>>);

impl Rx for MemoryRx {
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError> {
        let mut way = lock(&self.0);
        if way.fault == Fault::PeeksTheNext && self.1.is_some() && way.queue.len() > 1 {
            way.queue.pop_front();
        }
        self.1 = way.queue.front().cloned();
        if self.1.is_none() && way.closed {
            return Err(RecvError::Closed);
        }
        Ok(self.1.as_deref())
    }

    fn release(&mut self) {
        let mut way = lock(&self.0);
        if self.1.take().is_some() || way.fault == Fault::ReleasesUnpeeked {
            way.queue.pop_front();
            way.wake_senders();
        }
    }

    fn arm(&mut self, waker: &Waker) {
        let mut way = lock(&self.0);
        let ready = !way.queue.is_empty() || way.closed;
        if ready && way.fault != Fault::ArmOfReceiverDoesNotLook {
            waker.wake_by_ref();
        } else {
            way.receiver = Some(waker.clone());
        }
    }
}

impl Drop for MemoryRx {
    fn drop(&mut self) {
        lock(&self.0).close();
    }
}

struct MemoryPort {
    way: Shared,
    reserve: usize,
    rung: Arc<Mutex<bool>>,
    turn: Arc<Mutex<()>>,
}

impl Port for MemoryPort {
    fn mtu(&self) -> usize {
        MTU
    }

    fn send(&self, min: usize, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> Result<(), SendError> {
        let fault = lock(&self.way).fault;
        let _held = (fault == Fault::PortHoldsTheLock).then(|| self.turn.lock().unwrap());
        let mut place = lock(&self.way).take(min, self.reserve)?;
        let len = fill(&mut place);
        let mut way = lock(&self.way);
        if len == 0 && fault != Fault::PortSendsNothingAsAPacket {
            way.out -= 1;
            way.wake_senders();
            return Ok(());
        }
        way.put(place, len)
    }

    fn arm(&self, waker: &Waker) {
        lock(&self.way).arm_sender(waker, self.reserve);
    }

    fn ring(&self) {
        *self.rung.lock().unwrap() = lock(&self.way).fault != Fault::RingIsSilent;
    }
}

/// Links in memory with one fault.
pub(super) struct Memory(pub(super) Fault);

impl Memory {
    fn end(&self, there: &Shared, back: &Shared) -> End {
        let rung = Arc::new(Mutex::new(false));
        let turn = Arc::new(Mutex::new(()));
        let port = |reserve| {
            let (rung, turn) = (rung.clone(), turn.clone());
            Box::new(MemoryPort {
                way: there.clone(),
                reserve,
                rung,
                turn,
            })
        };
        let urgent = port(usize::from(self.0 != Fault::PortTakesTheLastPlace));
        let bulk = port(if self.0 == Fault::BulkTakesAllButOne {
            1
        } else {
            2
        });
        let rung = Box::new(move || std::mem::take(&mut *rung.lock().unwrap()));
        End {
            tx: Box::new(MemoryTx(there.clone(), None)),
            rx: Box::new(MemoryRx(back.clone(), None)),
            ports: Some(Ports { urgent, bulk, rung }),
        }
    }
}

impl Harness for Memory {
    fn connect(&mut self) -> (End, End) {
        let [there, back] = [(); 2].map(|()| {
            Arc::new(Mutex::new(Way {
                fault: self.0,
                queue: VecDeque::new(),
                out: 0,
                closed: false,
                flushed: false,
                receiver: None,
                senders: Vec::new(),
            }))
        });
        (self.end(&there, &back), self.end(&back, &there))
    }

    fn patience(&self) -> Duration {
        // A broken link waits this long; a sound one never waits for a thread as long as that.
        Duration::from_millis(if self.0 == Fault::Nothing {
            10_000
        } else {
            100
        })
    }
}
