//! What the threads of a node share: the session, and the sending half of its link.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use sinew::link::{SendError, Tx};
use sinew::pubsub::codec::Zid;
use sinew::pubsub::session::{
    Ask, AskError, Closed, Peer, Put, PutError, QueryId, RequestId, Session, Stats,
};
use sinew::time::Instant;

use super::query::Mailbox;
use super::tables::Host;
use crate::connect_error::ConnectError;
use crate::link::Traffic;
use crate::{Clock, lock, random};

/// Behind the lock of a node.
pub(super) struct Core {
    pub session: Session<Host>,
    pub tx: Box<dyn Tx + Send>,
    pub clock: Clock,
    /// The time that is good enough while a batch is filled.
    now: Instant,
    /// Who is sending a sample that the link has cut.
    cut: Option<u64>,
    tickets: u64,
    /// When the driver looks next by itself; [`Instant::START`] while it is awake.
    pub looks_at: Instant,
    /// Samples were batched since the driver looked.
    pub batched: bool,
    pub batching: Duration,
    /// Wakes the driver.
    pub waker: Waker,
    /// Answers that are waited for.
    pub queries: HashMap<QueryId, Mailbox>,
    /// Ends of answers that the link had no place for.
    pub unfinished: Vec<(u32, RequestId)>,
    pub status: Status,
    /// The node is to end.
    pub ending: bool,
}

/// How a node's connection is.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Sessions that came about so far.
    pub opened: u32,
    /// Who is on the other side, or was there last.
    pub peer: Option<Peer>,
    /// Why the last one ended, or why there is none yet.
    pub trouble: Option<Trouble>,
    /// Attempts that failed since there was a session.
    pub failures: u32,
    /// What the link has carried. Of the link before, after a reconnect, nothing.
    pub traffic: Traffic,
}

/// Why there is no session.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// The link could not be opened.
    Link(Arc<ConnectError>),
    /// The session ended, or did not come about.
    Session(Closed),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Link(error) => error.fmt(f),
            Trouble::Session(closed) => closed.fmt(f),
        }
    }
}

/// A node, as all its handles share it.
pub(super) struct Shared {
    core: Mutex<Core>,
    /// The driver waits for the lock. A thread that publishes without end would take it again and again
    /// before the driver has woken up.
    wanted: AtomicBool,
    pub clock: Clock,
    /// Told when a place may be free, or the state changes.
    pub room: Arc<Room>,
}

/// Waiters for what only a look at the core can tell: threads, and who gave a waker.
#[derive(Default)]
pub(super) struct Room {
    waiters: Mutex<Waiters>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiters {
    count: u64,
    /// Each with the count that it saw.
    wakers: Vec<(u64, Waker)>,
}

impl Room {
    pub fn count(&self) -> u64 {
        lock(&self.waiters).count
    }

    /// Waits until it is told after `seen` was read, or time is up.
    pub fn wait(&self, seen: u64, timeout: Duration) {
        let waiters = lock(&self.waiters);
        let _ = self
            .changed
            .wait_timeout_while(waiters, timeout, |waiters| waiters.count == seen);
    }

    /// As [`Room::wait`], for a task.
    #[cfg(feature = "tokio")]
    pub async fn changed(&self, seen: u64) {
        std::future::poll_fn(|cx| match self.has_changed(seen, cx.waker()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        })
        .await;
    }

    /// Whether it was told after `seen` was read; else the waker is called when it is, once.
    pub fn has_changed(&self, seen: u64, waker: &Waker) -> bool {
        let mut waiters = lock(&self.waiters);
        let changed = waiters.count != seen;
        if !changed {
            let mut known = waiters.wakers.iter_mut();
            match known.find(|(_, known)| known.will_wake(waker)) {
                Some(known) => known.0 = seen,
                None => waiters.wakers.push((seen, waker.clone())),
            }
        }
        changed
    }

    pub fn tell(&self) {
        let mut waiters = lock(&self.waiters);
        waiters.count += 1;
        let told = waiters.count;
        self.changed.notify_all();
        // One by one, so that the list keeps its memory. Who comes again meanwhile waits for the next.
        while let Some(at) = waiters.wakers.iter().position(|(seen, _)| *seen < told) {
            let (_, waker) = waiters.wakers.swap_remove(at);
            drop(waiters);
            waker.wake();
            waiters = lock(&self.waiters);
        }
    }
}

impl Wake for Room {
    fn wake(self: Arc<Self>) {
        self.tell();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.tell();
    }
}

/// Sends something, or a part of it.
pub(super) type Attempt<'f> =
    dyn FnMut(&mut Session<Host>, &mut dyn Tx, Instant) -> Result<Put, PutError> + 'f;

/// Something that the link had no place for, or took in part.
pub(super) struct Waiting {
    pub ticket: u64,
    blocks: bool,
    since: std::time::Instant,
}

impl Waiting {
    pub fn new(ticket: u64, blocks: bool) -> Waiting {
        let since = std::time::Instant::now();
        Waiting {
            ticket,
            blocks,
            since,
        }
    }

    /// Tries again; `None`: there is still no place, and there is time.
    pub fn again(
        &self,
        core: &mut Core,
        room: &Room,
        f: &mut Attempt<'_>,
    ) -> Option<Result<Put, PutError>> {
        match core.attempt(Some(self.ticket), &mut *f) {
            (Err(PutError::Full | PutError::Cut), _) => {}
            (result, _) => {
                // Whoever waits for the end of this one can go on.
                room.tell();
                return Some(result);
            }
        }
        let limit = match (self.blocks, super::handlers::hands_out()) {
            (true, false) => return None,
            (true, true) => IN_A_HANDLER,
            (false, _) => PATIENCE,
        };
        (self.since.elapsed() > limit).then(|| self.give_up(core, room))
    }

    /// What the link took in part is not sent.
    pub fn give_up(&self, core: &mut Core, room: &Room) -> Result<Put, PutError> {
        if core.cut == Some(self.ticket) {
            core.cut = None;
            core.session.abandon();
            core.wake_by(Instant::START);
            room.tell();
        }
        match self.blocks {
            true => Err(PutError::Full),
            false => {
                core.session.count_dropped();
                Ok(Put::Dropped)
            }
        }
    }
}

impl Shared {
    pub fn new(session: Session<Host>, batching: Duration) -> Shared {
        let clock = Clock::start();
        Shared {
            wanted: AtomicBool::new(false),
            clock,
            core: Mutex::new(Core {
                session,
                tx: Box::new(NoLink),
                clock,
                now: Instant::START,
                cut: None,
                tickets: 0,
                looks_at: Instant::START,
                batched: false,
                batching,
                waker: Waker::noop().clone(),
                queries: HashMap::new(),
                unfinished: Vec::new(),
                status: Status::default(),
                ending: false,
            }),
            room: Arc::default(),
        }
    }

    pub fn core(&self) -> MutexGuard<'_, Core> {
        lock(&self.core)
    }

    /// The core, for the driver.
    pub fn driver_core(&self) -> MutexGuard<'_, Core> {
        if let Ok(core) = self.core.try_lock() {
            return core;
        }
        self.wanted.store(true, Ordering::Relaxed);
        let core = self.core();
        self.wanted.store(false, Ordering::Relaxed);
        core
    }

    /// Lets the driver go first where it waits.
    #[cold]
    fn give_way(&self) {
        for _ in 0..TURNS {
            thread::yield_now();
            if !self.wanted.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Sends, waiting for a place where the policy is to block. `f` is called again until the link
    /// has taken all of it.
    #[inline]
    pub fn send(
        &self,
        blocks: bool,
        mut f: impl FnMut(&mut Session<Host>, &mut dyn Tx, Instant) -> Result<Put, PutError>,
    ) -> Result<Put, PutError> {
        let mut core = self.core();
        let result = match core.attempt(None, &mut f) {
            (Err(PutError::Full | PutError::Cut), ticket) => {
                return self.wait(core, ticket, blocks, &mut f).1;
            }
            (result, _) => result,
        };
        drop(core);
        self.after_you();
        result
    }

    /// To be called after a lock that is soon taken again.
    #[inline]
    pub fn after_you(&self) {
        if self.wanted.load(Ordering::Relaxed) {
            self.give_way();
        }
    }

    #[inline(never)]
    fn wait<'c>(
        &'c self,
        mut core: MutexGuard<'c, Core>,
        ticket: u64,
        blocks: bool,
        f: &mut Attempt<'_>,
    ) -> (MutexGuard<'c, Core>, Result<Put, PutError>) {
        let waiting = Waiting::new(ticket, blocks);
        let mut looks = LOOKS;
        loop {
            if looks > 0 {
                // Mostly the other side is reading just now, and to be woken takes longer than it does.
                looks -= 1;
                drop(core);
                thread::yield_now();
            } else {
                let seen = self.await_place(&mut core, Some(ticket));
                drop(core);
                self.room.wait(seen, PAUSE);
            }
            core = self.core();
            if let Some(result) = waiting.again(&mut core, &self.room, &mut *f) {
                return (core, result);
            }
        }
    }

    /// The room is told when there may be a place, after the number that is returned.
    pub fn await_place(&self, core: &mut Core, ticket: Option<u64>) -> u64 {
        let seen = self.room.count();
        // While another's sample goes on, only its end helps: places there may be.
        if core.cut.is_none() || core.cut == ticket {
            core.tx.arm(&Waker::from(self.room.clone()));
        }
        seen
    }

    /// Asks, waiting for a place.
    pub fn ask(&self, ask: &Ask<'_>, mailbox: &Mailbox) -> Result<QueryId, AskError> {
        let mut asking = Asking::new(ask);
        let mut attempt =
            |session: &mut Session<Host>, tx: &mut dyn Tx, now| asking.attempt(session, tx, now);
        let mut core = self.core();
        let result = match core.attempt(None, &mut attempt) {
            (Err(PutError::Full | PutError::Cut), ticket) => {
                let (held, result) = self.wait(core, ticket, true, &mut attempt);
                core = held;
                result
            }
            (result, _) => result,
        };
        asking.enter(&mut core, result, mailbox)
    }
}

/// A query that is being sent.
pub(super) struct Asking<'a> {
    ask: &'a Ask<'a>,
    entered: Result<QueryId, AskError>,
}

impl<'a> Asking<'a> {
    pub fn new(ask: &'a Ask<'a>) -> Asking<'a> {
        Asking {
            ask,
            entered: Err(AskError::TooMany),
        }
    }

    pub fn attempt(
        &mut self,
        session: &mut Session<Host>,
        tx: &mut dyn Tx,
        now: Instant,
    ) -> Result<Put, PutError> {
        if super::key_expr(self.ask.key.as_str()).is_err() {
            self.entered = Err(AskError::Put(PutError::TooLarge));
            return Err(PutError::TooLarge);
        }
        session.tables_mut().room_for_query();
        self.entered = session.ask(tx, self.ask, now);
        match self.entered {
            Ok(_) => Ok(Put::Sent),
            Err(AskError::Put(error)) => Err(error),
            Err(AskError::TooMany) => Err(PutError::NoSuch),
        }
    }

    /// Takes answers from now on. The lock is the one under which it was sent: an answer can be there
    /// as soon as it is let go.
    pub fn enter(
        &self,
        core: &mut Core,
        result: Result<Put, PutError>,
        mailbox: &Mailbox,
    ) -> Result<QueryId, AskError> {
        match (result, self.entered) {
            (Ok(_), Ok(query)) => {
                core.queries.insert(query, mailbox.clone());
                core.wake_by(Instant::START);
                Ok(query)
            }
            (_, Err(error)) => Err(error),
            (Err(error), Ok(_)) => Err(AskError::Put(error)),
        }
    }
}

/// A sample that may be dropped is dropped when the link has taken nothing for this long. One that
/// a link has taken in part gets the same.
const PATIENCE: Duration = Duration::from_millis(50);
/// A handler waits no longer than this for a place: nothing is received meanwhile, and the other side
/// may be waiting for just that.
const IN_A_HANDLER: Duration = Duration::from_secs(1);
/// How often one who waits for a place looks for it before he sleeps.
const LOOKS: usize = 20;
/// How often a publisher lets the driver go first before it goes on.
const TURNS: usize = 1000;
/// Who waits for a place looks again after this long, whatever he was told.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

impl Core {
    /// One attempt to send; the number is to be given to the next one for the same thing.
    #[inline]
    pub fn attempt(
        &mut self,
        ticket: Option<u64>,
        f: &mut (impl FnMut(&mut Session<Host>, &mut dyn Tx, Instant) -> Result<Put, PutError> + ?Sized),
    ) -> (Result<Put, PutError>, u64) {
        let number = ticket.unwrap_or_else(|| {
            self.tickets += 1;
            self.tickets
        });
        if self.cut.is_some_and(|cut| cut != number) {
            return (Err(PutError::Full), number);
        }
        let was_batching = self.session.is_batching();
        if !was_batching {
            self.now = self.clock.now();
        }
        let result = f(&mut self.session, &mut *self.tx, self.now);
        self.cut = (result == Err(PutError::Cut)).then_some(number);
        if !was_batching && self.session.is_batching() {
            self.batched = true;
            self.wake_by(self.now.after(self.batching));
        }
        (result, number)
    }

    /// The driver must look at this time at the latest.
    pub fn wake_by(&mut self, time: Instant) {
        if self.looks_at > time {
            self.looks_at = Instant::START;
            self.waker.wake_by_ref();
        }
    }

    /// There is no link any more.
    pub fn unlink(&mut self) {
        self.tx = Box::new(NoLink);
        self.cut = None;
        self.unfinished.clear();
        self.waker = Waker::noop().clone();
    }

    pub fn stats(&self) -> Stats {
        *self.session.stats()
    }
}

/// Stands where there is no link.
pub(super) struct NoLink;

impl Tx for NoLink {
    fn mtu(&self) -> usize {
        0
    }

    fn place(&mut self, _min: usize) -> Result<&mut [u8], SendError> {
        Err(SendError::Closed)
    }

    fn commit(&mut self, _len: usize) -> Result<(), SendError> {
        Err(SendError::Closed)
    }

    fn flush(&mut self) {}

    fn arm(&mut self, waker: &Waker) {
        waker.wake_by_ref();
    }
}

/// A random id.
pub(super) fn random_zid() -> Zid {
    loop {
        let bytes = (u128::from(random()) << 64 | u128::from(random())).to_le_bytes();
        if let Some(zid) = Zid::new(&bytes) {
            return zid;
        }
    }
}
