//! What keeps a node up.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use sinew::link::SendError;
use sinew::pubsub::session::{
    Closed, Ended, Event, PutError, QueryId, QueryableId, Question, Reply, RequestId, Sample,
    State, Step, SubscriberId,
};
use sinew::time::Instant;

use super::Options;
use super::Source;
use super::core::{Core, Shared, Status, Trouble, random_zid};
use super::deliver::{Arrivals, Takes};
use super::query::Responder;
use super::sample::SharedQueue;
use crate::apart::{Apart, Receive};
use crate::reconnect::{Backoff, jitter};

thread_local! {
    static HANDS_OUT: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs a handler, and must not wait for what may only come when it receives.
pub(super) fn hands_out() -> bool {
    HANDS_OUT.get()
}

/// Takes each sample of a subscriber.
pub(super) type OnSample = Box<dyn FnMut(&Sample<'_>) + Send>;
/// Takes each query of a queryable.
pub(super) type OnQuery = Box<dyn FnMut(&Question<'_>, Responder) + Send>;

/// What the driver is told of by other threads.
pub(super) enum Order {
    Subscriber(SubscriberId, Handler),
    Queryable(QueryableId, OnQuery),
    NoSubscriber(SubscriberId),
    NoQueryable(QueryableId),
}

/// Orders that the driver has not seen.
pub(super) type Orders = Arc<Mutex<Vec<Order>>>;

/// What takes the samples of a subscriber.
pub(super) enum Handler {
    Call(OnSample),
    Queue(SharedQueue),
}

/// Who is called, in the driver's thread.
struct Handlers {
    shared: Arc<Shared>,
    subscribers: Vec<Option<Handler>>,
    queryables: Vec<Option<OnQuery>>,
}

fn enter<H>(handlers: &mut Vec<Option<H>>, index: usize, handler: H) {
    if handlers.len() <= index {
        handlers.resize_with(index + 1, || None);
    }
    handlers[index] = Some(handler);
}

fn leave<H>(handlers: &mut [Option<H>], index: usize) {
    if let Some(handler) = handlers.get_mut(index) {
        *handler = None;
    }
}

impl Takes for Handlers {
    fn sample(&mut self, subscriber: SubscriberId, sample: &Sample<'_>) {
        match self.subscribers.get_mut(subscriber.index()) {
            Some(Some(Handler::Call(handler))) => handler(sample),
            Some(Some(Handler::Queue(queue))) => queue.put(sample),
            _ => {}
        }
    }

    fn query(&mut self, queryable: QueryableId, request: RequestId, question: &Question<'_>) {
        let opened = self.shared.core().session.stats().opened;
        let responder = Responder {
            shared: self.shared.clone(),
            request,
            opened,
        };
        if let Some(Some(handler)) = self.queryables.get_mut(queryable.index()) {
            handler(question, responder);
        }
    }

    fn reply(&mut self, query: QueryId, reply: &Reply<'_>) {
        if let Some(mailbox) = self.shared.core().queries.get(&query) {
            mailbox.put(reply);
        }
    }

    fn ended(&mut self, query: QueryId, how: Ended) {
        if let Some(mailbox) = self.shared.core().queries.remove(&query) {
            mailbox.end(how);
        }
    }
}

impl Handlers {
    fn is_full(&self) -> bool {
        self.subscribers
            .iter()
            .flatten()
            .any(|handler| match handler {
                Handler::Queue(queue) => queue.is_full(),
                Handler::Call(_) => false,
            })
    }
}

/// Keeps the session of a node up: opens its link again when it is lost, sends what is due, and calls
/// handlers.
///
/// A node has a thread that does so, or is driven by one that exists already, which then need not be
/// woken for every sample.
pub struct Driver {
    shared: Arc<Shared>,
    orders: Orders,
    handlers: Handlers,
    arrivals: Arrivals,
    source: Source,
    backoff: Backoff,
    zid_is_random: bool,
    lease: Duration,
    linger: Duration,
    link: Option<Linked>,
    /// How long to wait before the next attempt, and until when.
    pause: Duration,
    rests: Option<std::time::Instant>,
    /// When something is due, as of the last packet.
    due: Instant,
}

/// The link that there is.
struct Linked {
    rx: Box<dyn Receive + Send>,
    waker: Waker,
}

/// How a link ended.
enum End {
    /// For good.
    Node,
    /// To be opened again.
    Link(Closed),
}

impl Driver {
    pub(super) fn new(
        shared: Arc<Shared>,
        orders: Orders,
        source: Source,
        options: Options,
    ) -> Driver {
        Driver {
            handlers: Handlers {
                shared: shared.clone(),
                subscribers: Vec::new(),
                queryables: Vec::new(),
            },
            shared,
            orders,
            arrivals: Arrivals::default(),
            source,
            backoff: options.backoff,
            zid_is_random: options.zid.is_none(),
            lease: options.lease,
            linger: options.linger,
            link: None,
            pause: options.backoff.min,
            rests: None,
            due: Instant::START,
        }
    }

    /// Does what there is to do, or waits for it, at most so long (`None`: until something is done).
    /// `false`: the node has ended. It must be called again within a quarter of the lease.
    pub fn turn(&mut self, timeout: Option<Duration>) -> bool {
        let Some(mut link) = self.link.take() else {
            return self.begin(timeout);
        };
        match self.serve(&mut link, timeout) {
            Ok(()) => {
                self.link = Some(link);
                true
            }
            Err(end) => {
                let goes_on = self.lost(&end);
                if matches!(end, End::Node) {
                    self.linger(&mut *link.rx);
                }
                goes_on
            }
        }
    }

    /// Whether everything is on the link, and there is a place for saying that this was all.
    fn may_close(&self, core: &mut Core, now: Instant) -> bool {
        if self.linger.is_zero() || core.session.state() != State::Open {
            return true;
        }
        match core.session.flush(&mut *core.tx, now) {
            Err(PutError::Full) => false,
            _ => !matches!(core.tx.place(CLOSE), Err(SendError::Full)),
        }
    }

    /// Waits until the other side has hung up, which it does when it has taken everything. To close
    /// before would throw away what is on its way: a TCP socket that gets packets and is not read
    /// any more resets the connection, and a link over shared memory ends for both at once.
    fn linger(&self, rx: &mut dyn Receive) {
        let start = std::time::Instant::now();
        let mut heard = start;
        while start.elapsed() < self.linger && heard.elapsed() < self.lease {
            match rx.peek() {
                Ok(Some(_)) => {
                    rx.release();
                    heard = std::time::Instant::now();
                }
                Ok(None) => rx.wait(Some(PAUSE)),
                Err(_) => break,
            }
        }
    }

    /// Opens a link, or waits for the time to do so.
    fn begin(&mut self, timeout: Option<Duration>) -> bool {
        let seen = self.shared.room.count();
        let core = self.shared.core();
        if core.ending {
            return self.ended(core);
        }
        self.end_queries(core);
        let now = std::time::Instant::now();
        if let Some(rests) = self.rests.filter(|&rests| rests > now) {
            let left = rests - now;
            self.shared
                .room
                .wait(seen, timeout.map_or(left, |timeout| timeout.min(left)));
            return true;
        }
        let Some(opened) = self.source.link() else {
            let core = self.shared.core();
            return self.ended(core);
        };
        match opened {
            Ok(Apart { tx, mut rx }) => {
                let waker = Waker::from(Arc::new(Both {
                    thread: thread::current(),
                    rx: rx.waker(),
                }));
                let mut core = self.shared.core();
                core.tx = tx;
                core.waker = waker.clone();
                core.looks_at = Instant::START;
                let now = core.clock.now();
                match self.source.accepts() {
                    true => core.session.accept(now),
                    false => core.session.open(now),
                }
                drop(core);
                self.link = Some(Linked { rx, waker });
            }
            Err(error) => self.failed(Trouble::Link(error)),
        }
        true
    }

    /// The link has ended.
    fn lost(&mut self, end: &End) -> bool {
        let mut core = self.shared.core();
        core.session.link_lost();
        core.unlink();
        let End::Link(closed) = *end else {
            return self.ended(core);
        };
        if core.status.failures == 0 {
            self.pause = self.backoff.min;
        }
        // The other side holds a session with the same id, perhaps for long. Where the id was chosen,
        // only its lease ends that.
        if closed == Closed::ByPeer(4) && self.zid_is_random {
            core.session.set_zid(random_zid());
            self.pause = self.backoff.min;
        }
        drop(core);
        self.failed(Trouble::Session(closed));
        true
    }

    fn failed(&mut self, trouble: Trouble) {
        let mut core = self.shared.core();
        core.status.failures += 1;
        core.status.trouble = Some(trouble);
        // Who is told that his query is lost can see why.
        self.end_queries(core);
        self.shared.room.tell();
        self.rests = Some(std::time::Instant::now() + jitter(self.pause));
        self.pause = (self.pause * 2).min(self.backoff.max);
    }

    fn ended(&self, mut core: MutexGuard<'_, Core>) -> bool {
        core.ending = true;
        self.end_queries(core);
        self.shared.room.tell();
        false
    }

    /// Tells who waits for answers of a session that is lost.
    fn end_queries(&self, mut core: MutexGuard<'_, Core>) {
        let queries: Vec<_> = core.queries.drain().collect();
        for (query, mailbox) in queries {
            core.session.forget(query);
            mailbox.end(Ended::Lost);
        }
    }

    fn serve(&mut self, link: &mut Linked, timeout: Option<Duration>) -> Result<(), End> {
        let Linked { rx, waker } = link;
        // First everything that has arrived, then what time asks for: a packet that waits unread is a
        // sign of life.
        let waits = self.handlers.is_full();
        let now = self.shared.clock.now();
        let busy = !waits && self.arrived(&mut **rx, waker)?;
        if busy && self.due > now {
            return Ok(());
        }
        let due = self.attend(waits, now, &mut **rx, waker)?;
        if busy || self.arrivals.has_any() {
            self.hand_out(&[]);
            return Ok(());
        }
        let timeout = match (due, timeout) {
            (Some(due), Some(timeout)) => Some(due.min(timeout)),
            (due, timeout) => due.or(timeout),
        };
        if waits {
            // What has arrived already would end every other sleep.
            thread::park_timeout(timeout.unwrap_or(PAUSE).min(PAUSE));
            return Ok(());
        }
        rx.wait(timeout);
        self.shared.core().looks_at = Instant::START;
        self.arrived(&mut **rx, waker).map(drop)
    }

    /// Takes in one packet, if there is one.
    fn arrived(&mut self, rx: &mut dyn Receive, waker: &Waker) -> Result<bool, End> {
        match rx.peek() {
            Ok(Some(packet)) => {
                if self.take_in(packet, waker)? {
                    rx.release();
                }
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(_) => Err(End::Link(Closed::Link)),
        }
    }

    fn hand_out(&mut self, packet: &[u8]) {
        let before = HANDS_OUT.replace(true);
        self.arrivals.hand_out(packet, &mut self.handlers);
        HANDS_OUT.set(before);
    }

    /// Hands what is in a packet to whom it is for. `false`: an answer had no place.
    fn take_in(&mut self, packet: &[u8], waker: &Waker) -> Result<bool, End> {
        loop {
            let mut core = self.shared.driver_core();
            let all = &mut *core;
            let now = all.clock.now();
            let mut done = false;
            let mut full = false;
            while !(done || full || self.arrivals.is_full()) {
                match all.session.receive(packet, &mut *all.tx, now) {
                    Step::More => {}
                    Step::Done => done = true,
                    Step::Full => full = true,
                    Step::Event(event) => {
                        if let Some(event) = self.arrivals.keep(packet, event) {
                            noticed(&mut all.status, &self.shared, &event)?;
                        }
                    }
                }
            }
            if full {
                all.tx.arm(waker);
            }
            // Where packets come without end, time passes all the same.
            self.due = match all.unfinished.is_empty() {
                true => all.session.deadline(),
                false => Instant::START,
            };
            drop(core);
            self.take_orders();
            self.hand_out(packet);
            if full {
                thread::park_timeout(PAUSE);
            }
            if done || full {
                return Ok(done);
            }
        }
    }

    /// Does what time asks for, and says how long to sleep.
    fn attend(
        &mut self,
        waits: bool,
        looked: Instant,
        rx: &mut dyn Receive,
        waker: &Waker,
    ) -> Result<Option<Duration>, End> {
        self.take_orders();
        let mut core = self.shared.driver_core();
        let core = &mut *core;
        // What has arrived while the lock was waited for has not been looked at, so the lease is judged
        // by the time before.
        let now = looked;
        if core.ending && self.may_close(core, now) {
            core.session.close(&mut *core.tx, now);
            return Err(End::Node);
        }
        if waits {
            core.session.is_alive(now);
        }
        core.finish_all();
        let full = loop {
            match core.session.poll(&mut *core.tx, now) {
                Step::More => {}
                Step::Done => break false,
                Step::Full => break true,
                Step::Event(event) => {
                    if let Some(event) = self.arrivals.keep(&[], event) {
                        noticed(&mut core.status, &self.shared, &event)?;
                    }
                }
            }
        };
        core.status.traffic = rx.traffic();
        if full || !core.unfinished.is_empty() {
            core.tx.arm(waker);
        }
        // Who ends waits for a place as well.
        let full = full || core.ending;
        core.looks_at = match full {
            true => now.after(PAUSE),
            false => core.session.deadline(),
        };
        if std::mem::take(&mut core.batched) {
            // Samples are being published: to look again in time is cheaper than to be woken.
            core.looks_at = core.looks_at.min(now.after(core.batching));
        }
        Ok((core.looks_at != Instant::FAR).then(|| core.looks_at.since(now)))
    }

    fn take_orders(&mut self) {
        // A handler that goes may hold handles, which give orders when they go.
        let orders = std::mem::take(&mut *crate::lock(&self.orders));
        for order in orders {
            match order {
                Order::Subscriber(id, handler) => {
                    enter(&mut self.handlers.subscribers, id.index(), handler);
                }
                Order::Queryable(id, handler) => {
                    enter(&mut self.handlers.queryables, id.index(), handler);
                }
                Order::NoSubscriber(id) => leave(&mut self.handlers.subscribers, id.index()),
                Order::NoQueryable(id) => leave(&mut self.handlers.queryables, id.index()),
            }
        }
    }
}

/// What is not for a handler.
fn noticed(status: &mut Status, shared: &Shared, event: &Event<'_>) -> Result<(), End> {
    match event {
        Event::Opened => {
            status.opened += 1;
            status.failures = 0;
            status.trouble = None;
        }
        Event::Closed(reason) => return Err(End::Link(*reason)),
        _ => {}
    }
    shared.room.tell();
    Ok(())
}

/// Room for a CLOSE.
const CLOSE: usize = 16;

/// Who waits for a place looks again after this long, whatever he was told.
const PAUSE: Duration = Duration::from_millis(20);

/// Wakes the driver wherever it sleeps.
struct Both {
    thread: Thread,
    rx: Waker,
}

impl Wake for Both {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rx.wake_by_ref();
        self.thread.unpark();
    }
}
