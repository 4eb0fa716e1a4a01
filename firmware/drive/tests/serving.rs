//! No wake is lost: whatever a peer does at whichever moment of the driver's loop, no packet that could be answered
//! is left when the driver sleeps.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use sinew::link::{RecvError, Rx, SendError, Tx};
use sinew::rpc::{Call, Channels, Input, MethodKind, Service, Slot, Via};
use sinew::time::Instant;
use sinew_drive::{Link, Renew, Serving, run};
use sinew_shm::{Bell, StdLock};

/// What a peer does between two steps of the driver, or a task of this side.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Nothing,
    TakesAnAnswer,
    Sends,
    /// A packet of a stream leaves by a port, and takes the place.
    StreamSends,
}

/// A place for an answer, and the packets of the peer. It acts each time that the driver looks at the link, and
/// rings where it was asked to.
struct Wire {
    acts: RefCell<std::vec::IntoIter<Act>>,
    free: Cell<usize>,
    packets: Cell<usize>,
    place_asked: Cell<bool>,
    packet_asked: Cell<bool>,
    rung: Cell<bool>,
}

impl Wire {
    /// The peer's next act; `false` where there are no more.
    fn act(&self) -> bool {
        let Some(act) = self.acts.borrow_mut().next() else {
            return false;
        };
        let asked = match act {
            Act::TakesAnAnswer if self.free.get() < PLACES => {
                self.free.set(self.free.get() + 1);
                &self.place_asked
            }
            Act::StreamSends => {
                self.free.set(0);
                return true;
            }
            Act::Sends => {
                self.packets.set(self.packets.get() + 1);
                &self.packet_asked
            }
            _ => return true,
        };
        if asked.take() {
            self.rung.set(true);
        }
        true
    }
}

const PLACES: usize = 1;

struct Out(Rc<Wire>, [u8; 64]);

impl Tx for Out {
    fn mtu(&self) -> usize {
        self.1.len()
    }

    fn place(&mut self, _: usize) -> Result<&mut [u8], SendError> {
        self.0.act();
        match self.0.free.get() {
            0 => Err(SendError::Full),
            _ => Ok(&mut self.1),
        }
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        self.0
            .free
            .set(self.0.free.get().saturating_sub(usize::from(len > 0)));
        Ok(())
    }

    fn flush(&mut self) {}

    fn arm(&mut self, _: &Waker) {
        self.0.act();
        self.0.place_asked.set(true);
    }
}

/// A request of a method that there is not: channel, service, method and call id are 1.
const REQUEST: [u8; 14] = [0x10, 1, 0x1d, 1, 0, 0, 0, 0x25, 1, 0, 0, 0, 0x38, 1];

struct In(Rc<Wire>, bool);

impl Rx for In {
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError> {
        self.0.act();
        self.1 = self.0.packets.get() > 0;
        Ok(self.1.then_some(&REQUEST))
    }

    fn release(&mut self) {
        self.0
            .packets
            .set(self.0.packets.get() - usize::from(self.1));
        self.1 = false;
    }

    fn arm(&mut self, _: &Waker) {
        self.0.act();
        self.0.packet_asked.set(true);
    }
}

impl Renew for Out {
    const CLOSES: bool = false;
    fn renew(&mut self) {}
}

impl Renew for In {
    const CLOSES: bool = false;
    fn renew(&mut self) {}
}

/// Serves nothing: every request is answered, with an error.
struct Nobody;

impl Service for Nobody {
    fn kind(&self, _: u32, _: u32) -> Option<MethodKind> {
        None
    }

    fn handle(&mut self, _: &mut Call<'_>, _: Input<'_>) -> bool {
        false
    }
}

/// Runs the driver until it sleeps and the peer does nothing more; what is left: packets, and places for answers.
fn left_when_it_sleeps(acts: Vec<Act>) -> (usize, usize) {
    let wire = Rc::new(Wire {
        acts: RefCell::new(acts.into_iter()),
        free: Cell::new(PLACES),
        packets: Cell::new(0),
        place_asked: Cell::new(false),
        packet_asked: Cell::new(false),
        rung: Cell::new(false),
    });
    static SLOTS: [Slot; 0] = [];
    let via = Via {
        link: 0,
        channels: Channels::Any,
        port: None,
        bulk: None,
    };
    let link = Link::new(Out(wire.clone(), [0; 64]), In(wire.clone(), false), &via);
    let mut serving: Serving<_, _, 0> = Serving::new(&SLOTS, Nobody, link);
    struct Asleep;
    let Err(ended) = catch_unwind(AssertUnwindSafe(|| -> () {
        run(
            &mut serving,
            || Instant::START,
            || {
                while !wire.rung.take() {
                    if !wire.act() {
                        resume_unwind(Box::new(Asleep));
                    }
                }
            },
        )
    })) else {
        unreachable!("`run` does not return")
    };
    assert!(ended.is::<Asleep>());
    (wire.packets.get(), wire.free.get())
}

/// A service that has something to go on with.
struct Ready;

impl Service for Ready {
    fn kind(&self, _: u32, _: u32) -> Option<MethodKind> {
        None
    }

    fn handle(&mut self, _: &mut Call<'_>, _: Input<'_>) -> bool {
        false
    }

    fn arm(&mut self, waker: &Waker) {
        waker.wake_by_ref();
    }
}

struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn services_wake_the_driver_as_links_do() {
    static SLOTS: [Slot; 0] = [];
    static BELL: Bell<StdLock> = Bell::new();
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let count = || woken.0.load(Ordering::SeqCst);
    let mut serving: Serving<_, _, 0> = Serving::new(&SLOTS, (Nobody, Nobody), &BELL);
    serving.arm(&woken.clone().into());
    assert_eq!(count(), 0);
    let mut serving: Serving<_, _, 0> = Serving::new(&SLOTS, (Nobody, Ready), &BELL);
    serving.arm(&woken.clone().into());
    assert_eq!(count(), 1);
}

#[test]
fn driver_sleeps_through_no_packet_whenever_a_peer_acts() {
    const MOMENTS: u32 = 9;
    let mut answered = 0;
    for play in 0..4_usize.pow(MOMENTS) {
        let acts: Vec<Act> = (0..MOMENTS)
            .map(|at| match play / 4_usize.pow(at) % 4 {
                0 => Act::Nothing,
                1 => Act::TakesAnAnswer,
                2 => Act::Sends,
                _ => Act::StreamSends,
            })
            .collect();
        let sent = acts.iter().filter(|&&act| act == Act::Sends).count();
        let (packets, free) = left_when_it_sleeps(acts.clone());
        assert!(
            packets == 0 || free == 0,
            "asleep, with a packet and a place for its answer: {acts:?}"
        );
        answered += sent - packets;
    }
    assert!(answered > 0);
}
