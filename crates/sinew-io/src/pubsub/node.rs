//! A node: one session, kept up by a thread, shared by any number of others.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use sinew::pubsub::codec::{Body, Consolidation};
use sinew::pubsub::keyexpr::{KeyExpr, KeyExprError};
use sinew::pubsub::session::{
    Ask, AskError, Closed, DeclareError, Ended, Event, Peer, PublisherId, PublisherOptions, Put,
    PutError, QueryId, QueryableId, Question, Reply, RequestId, Sample, Session, State, Stats,
    Step, SubscriberId,
};
use sinew::time::Instant;

use super::core::{Core, Shared, Status, Trouble, random, random_zid};
use super::deliver::{Arrivals, Takes};
use super::query::{GRACE, Mailbox, Replies, Responder};
use super::sample::{Overflow, OwnedSample, Queue, SharedQueue};
use super::tables::Host;
use super::{Options, Source};
use crate::apart::{Apart, Receive};
use crate::reconnect::jitter;

thread_local! {
    static DRIVER: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is the thread of a node, which runs handlers.
pub(super) fn is_driver() -> bool {
    DRIVER.get()
}

type OnSample = Box<dyn FnMut(&Sample<'_>) + Send>;
type OnQuery = Box<dyn FnMut(&Question<'_>, Responder) + Send>;

/// What the driver is told of by other threads.
enum Order {
    Subscriber(SubscriberId, Handler),
    Queryable(QueryableId, OnQuery),
}

/// What takes the samples of a subscriber.
enum Handler {
    Call(OnSample),
    Queue(SharedQueue),
}

/// A node in the network of Zenoh; copies are handles of the same one, for any thread.
///
/// A thread keeps its session up, and opens it again when it is lost. Everything declared is declared
/// again then. The node ends when the last handle, publisher, subscriber and queryable is gone.
#[derive(Clone)]
pub struct Node {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    orders: Arc<std::sync::Mutex<Vec<Order>>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut core = self.shared.core();
        core.ending = true;
        core.looks_at = Instant::FAR;
        core.wake_by(Instant::START);
        drop(core);
        self.shared.room.tell();
        // A handler that drops the last handle runs in the thread itself.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

impl Node {
    pub(super) fn start(source: Source, options: Options) -> Node {
        let mut config = options.config(random_zid(), random() as u32);
        config.resend = source.resend();
        let session = Session::new(config, Host::new(options.largest));
        let shared = Arc::new(Shared::new(session, config.batching));
        let orders = Arc::default();
        let driver = Driver {
            shared: shared.clone(),
            orders: Arc::clone(&orders),
            handlers: Handlers {
                shared: shared.clone(),
                subscribers: Vec::new(),
                queryables: Vec::new(),
            },
            arrivals: Arrivals::default(),
            source,
            options,
        };
        let thread = thread::Builder::new().name("sinew-node".into());
        let thread = thread.spawn(move || driver.run()).ok();
        Node {
            inner: Arc::new(Inner {
                shared,
                orders,
                thread,
            }),
        }
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    /// How far the session is.
    pub fn state(&self) -> State {
        self.shared().core().session.state()
    }

    /// How the connection is: sessions so far, and why there is none.
    pub fn status(&self) -> Status {
        self.shared().core().status.clone()
    }

    /// What the session has counted.
    pub fn stats(&self) -> Stats {
        self.shared().core().stats()
    }

    /// Who is on the other side, while there is a session.
    pub fn peer(&self) -> Option<Peer> {
        self.shared().core().session.peer()
    }

    /// Waits until there is a session.
    pub fn wait_open(&self, timeout: Duration) -> Result<Peer, NotOpen> {
        let until = std::time::Instant::now().checked_add(timeout);
        loop {
            let seen = self.shared().room.count();
            let core = self.shared().core();
            if let Some(peer) = core.session.peer() {
                return Ok(peer);
            }
            let trouble = core.status.trouble.clone();
            let over = core.ending;
            drop(core);
            let left = until.map_or(Duration::from_secs(1), |until| {
                until.saturating_duration_since(std::time::Instant::now())
            });
            if left.is_zero() || over {
                return Err(NotOpen { trouble });
            }
            self.shared().room.wait(seen, left);
        }
    }

    /// A publisher on `key`, with the usual options.
    pub fn publisher(&self, key: &str) -> Result<Publisher, DeclareError> {
        self.publisher_with(key, PublisherOptions::DEFAULT)
    }

    /// A publisher on `key`.
    pub fn publisher_with(
        &self,
        key: &str,
        options: PublisherOptions,
    ) -> Result<Publisher, DeclareError> {
        let mut core = self.shared().core();
        core.session.tables_mut().room_for_publisher();
        let id = core.session.publisher(key.into(), options)?;
        core.wake_by(Instant::START);
        drop(core);
        Ok(Publisher {
            node: self.clone(),
            id,
            blocks: options.qos.is_blocking(),
        })
    }

    /// Publishes once, on a key that is not declared.
    pub fn put(
        &self,
        key: &str,
        body: &Body<'_>,
        options: PublisherOptions,
    ) -> Result<Put, SendOnceError> {
        let key = KeyExpr::new(key).map_err(SendOnceError::Key)?;
        let blocks = options.qos.is_blocking();
        let sent = self.shared().send(blocks, |session, tx, now| {
            session.publish_on(tx, key, options, body, now)
        });
        sent.map_err(SendOnceError::Put)
    }

    /// Calls `handler` with every sample on `key`, in the node's thread: it should be short, and may
    /// publish. While it runs, nothing else is received.
    pub fn subscriber(
        &self,
        key: &str,
        handler: impl FnMut(&Sample<'_>) + Send + 'static,
    ) -> Result<Subscriber, DeclareError> {
        self.subscribe(key, Handler::Call(Box::new(handler)))
    }

    /// The samples on `key`, to be taken out by any thread, from a queue of so many.
    pub fn samples(
        &self,
        key: &str,
        most: usize,
        overflow: Overflow,
    ) -> Result<Samples, DeclareError> {
        let queue = Arc::new(Queue::new(most, overflow));
        let subscriber = self.subscribe(key, Handler::Queue(queue.clone()))?;
        Ok(Samples { queue, subscriber })
    }

    fn subscribe(&self, key: &str, handler: Handler) -> Result<Subscriber, DeclareError> {
        let mut core = self.shared().core();
        core.session.tables_mut().room_for_subscriber();
        let id = core.session.subscriber(key.into())?;
        crate::lock(&self.inner.orders).push(Order::Subscriber(id, handler));
        core.wake_by(Instant::START);
        drop(core);
        let node = self.clone();
        Ok(Subscriber { node, id })
    }

    /// Calls `handler` with every query for `key`, in the node's thread; the responder can be kept, and
    /// used from another. `complete`: it knows all that there is for its key.
    pub fn queryable(
        &self,
        key: &str,
        complete: bool,
        handler: impl FnMut(&Question<'_>, Responder) + Send + 'static,
    ) -> Result<Queryable, DeclareError> {
        let mut core = self.shared().core();
        core.session.tables_mut().room_for_queryable();
        let id = core.session.queryable(key.into(), complete)?;
        crate::lock(&self.inner.orders).push(Order::Queryable(id, Box::new(handler)));
        core.wake_by(Instant::START);
        drop(core);
        let node = self.clone();
        Ok(Queryable { node, id })
    }

    /// Asks; the answers are what is returned, as they arrive.
    pub fn ask(&self, ask: &Ask<'_>) -> Result<Replies, AskError> {
        let mailbox = Mailbox::default();
        let consolidation = ask.query.consolidation;
        // One who asks for a time is one who wants all of it.
        let ranged = ask
            .query
            .parameters
            .split(';')
            .any(|pair| pair.starts_with("_time"));
        let query = self.shared().ask(ask, &mailbox)?;
        Ok(Replies {
            shared: self.shared().clone(),
            query,
            mailbox,
            consolidation: match consolidation {
                Consolidation::Auto if ranged => Consolidation::None,
                chosen => chosen,
            },
            deadline: std::time::Instant::now() + ask.timeout + GRACE,
            newest: Default::default(),
            end: None,
        })
    }

    /// Everything that waits in a batch leaves now.
    pub fn flush(&self) -> Result<(), PutError> {
        let core = &mut *self.shared().core();
        let now = core.clock.now();
        core.session.flush(&mut *core.tx, now)
    }
}

/// There was no session in time.
#[derive(Clone, Debug)]
pub struct NotOpen {
    /// Why, as far as is known.
    pub trouble: Option<Trouble>,
}

impl std::fmt::Display for NotOpen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.trouble {
            Some(trouble) => trouble.fmt(f),
            None => f.write_str("no session came about in time: is the other side a Zenoh node?"),
        }
    }
}

impl std::error::Error for NotOpen {}

/// Why a sample on a key that is not declared was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendOnceError {
    /// It is no key expression.
    Key(KeyExprError),
    /// As for a publisher.
    Put(PutError),
}

impl std::fmt::Display for SendOnceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SendOnceError::Key(error) => error.fmt(f),
            SendOnceError::Put(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SendOnceError {}

/// Publishes on one key. Dropping it withdraws the key.
pub struct Publisher {
    node: Node,
    id: PublisherId,
    blocks: bool,
}

impl Publisher {
    /// Publishes a value. Where the link is full and the policy is to block, it waits; in a handler,
    /// which must not wait, it is [`PutError::Full`].
    #[inline]
    pub fn put(&self, payload: &[u8]) -> Result<Put, PutError> {
        self.publish(&Body::put(payload))
    }

    /// Publishes that there is no value any more.
    pub fn delete(&self) -> Result<Put, PutError> {
        self.publish(&Body::del())
    }

    /// Publishes a value with options.
    #[inline]
    pub fn publish(&self, body: &Body<'_>) -> Result<Put, PutError> {
        let id = self.id;
        self.node.shared().send(self.blocks, |session, tx, now| {
            session.publish(tx, id, body, now)
        })
    }

    /// Whether somebody subscribes; `None` where that is not known.
    pub fn is_heard(&self) -> Option<bool> {
        self.node.shared().core().session.is_heard(self.id)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let core = &mut *self.node.shared().core();
        core.session.withdraw_publisher(self.id);
        core.wake_by(Instant::START);
    }
}

/// Dropping it ends the subscription.
pub struct Subscriber {
    node: Node,
    id: SubscriberId,
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let core = &mut *self.node.shared().core();
        core.session.withdraw_subscriber(self.id);
        core.wake_by(Instant::START);
    }
}

/// Dropping it ends the queryable.
pub struct Queryable {
    node: Node,
    id: QueryableId,
}

impl Drop for Queryable {
    fn drop(&mut self) {
        let core = &mut *self.node.shared().core();
        core.session.withdraw_queryable(self.id);
        core.wake_by(Instant::START);
    }
}

/// A subscription whose samples wait in a queue.
pub struct Samples {
    queue: SharedQueue,
    subscriber: Subscriber,
}

impl Samples {
    /// The next sample; waits for it, at most so long (`None`: for ever).
    pub fn next_within(&self, timeout: Option<Duration>) -> Option<OwnedSample> {
        let was_full = self.queue.is_full();
        let sample = self.queue.take(timeout);
        if was_full && !self.queue.is_full() {
            self.subscriber.node.shared().core().wake_by(Instant::START);
        }
        sample
    }

    /// Samples that were dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }
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

/// The thread of a node.
struct Driver {
    shared: Arc<Shared>,
    orders: Arc<std::sync::Mutex<Vec<Order>>>,
    handlers: Handlers,
    arrivals: Arrivals,
    source: Source,
    options: Options,
}

/// How a link ended.
enum End {
    /// For good.
    Node,
    /// To be opened again.
    Link(Closed),
}

impl Driver {
    fn run(mut self) {
        DRIVER.set(true);
        let mut pause = self.options.backoff.min;
        loop {
            match self.source.link() {
                Some(Ok(apart)) => match self.drive(apart) {
                    End::Node => break,
                    End::Link(closed) => {
                        let mut core = self.shared.core();
                        if core.status.failures == 0 {
                            pause = self.options.backoff.min;
                        }
                        core.status.failures += 1;
                        core.status.trouble = Some(Trouble::Session(closed));
                        // The other side holds a session with the same id, perhaps for long.
                        if closed == Closed::ByPeer(4) {
                            core.session.set_zid(random_zid());
                        }
                    }
                },
                Some(Err(error)) => {
                    let mut core = self.shared.core();
                    core.status.failures += 1;
                    core.status.trouble = Some(Trouble::Link(error));
                }
                None => break,
            }
            self.shared.room.tell();
            if !self.rest(jitter(pause)) {
                break;
            }
            pause = (pause * 2).min(self.options.backoff.max);
        }
        let mut core = self.shared.core();
        core.ending = true;
        core.session.link_lost();
        self.end_queries(core);
        self.shared.room.tell();
    }

    /// Waits between two attempts. `false`: the node ends.
    fn rest(&self, span: Duration) -> bool {
        let until = std::time::Instant::now() + span;
        loop {
            let seen = self.shared.room.count();
            let core = self.shared.core();
            if core.ending {
                return false;
            }
            self.end_queries(core);
            let left = until.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return true;
            }
            self.shared.room.wait(seen, left);
        }
    }

    /// Tells who waits for answers of a session that is lost.
    fn end_queries(&self, mut core: std::sync::MutexGuard<'_, Core>) {
        let queries: Vec<_> = core.queries.drain().collect();
        for (query, mailbox) in queries {
            core.session.forget(query);
            mailbox.end(Ended::Lost);
        }
    }

    /// Keeps one session up until it ends.
    fn drive(&mut self, apart: Apart) -> End {
        let Apart { tx, mut rx } = apart;
        let accepts = self.source.accepts();
        let waker = Waker::from(Arc::new(Both {
            thread: thread::current(),
            rx: rx.waker(),
        }));
        {
            let mut core = self.shared.core();
            core.tx = tx;
            core.waker = waker.clone();
            core.looks_at = Instant::START;
            let now = core.clock.now();
            match accepts {
                true => core.session.accept(now),
                false => core.session.open(now),
            }
        }
        let end = self.serve(&mut *rx, &waker);
        let mut core = self.shared.core();
        core.session.link_lost();
        core.unlink();
        self.end_queries(core);
        self.shared.room.tell();
        end
    }

    fn serve(&mut self, rx: &mut dyn Receive, waker: &Waker) -> End {
        loop {
            // First everything that has arrived, then what time asks for: a packet that waits unread is
            // a sign of life.
            let waits = self.handlers.is_full();
            if !waits {
                match rx.peek() {
                    Ok(Some(packet)) => {
                        match self.take_in(packet, waker) {
                            Ok(true) => rx.release(),
                            Ok(false) => {}
                            Err(end) => return end,
                        }
                        continue;
                    }
                    Ok(None) => {}
                    Err(_) => return End::Link(Closed::Link),
                }
            }
            let timeout = match self.attend(waits, rx, waker) {
                Ok(timeout) => timeout,
                Err(end) => return end,
            };
            if self.arrivals.has_any() {
                self.arrivals.hand_out(&[], &mut self.handlers);
                continue;
            }
            if waits {
                // What has arrived already would end every other sleep.
                thread::park_timeout(timeout.unwrap_or(PAUSE).min(PAUSE));
            } else {
                rx.wait(timeout);
            }
            self.shared.core().looks_at = Instant::START;
        }
    }

    /// Hands what is in a packet to whom it is for. `false`: an answer had no place.
    fn take_in(&mut self, packet: &[u8], waker: &Waker) -> Result<bool, End> {
        loop {
            let mut core = self.shared.core();
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
            drop(core);
            self.take_orders();
            self.arrivals.hand_out(packet, &mut self.handlers);
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
        rx: &mut dyn Receive,
        waker: &Waker,
    ) -> Result<Option<Duration>, End> {
        self.take_orders();
        let mut core = self.shared.core();
        let core = &mut *core;
        let now = core.clock.now();
        if core.ending {
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
        for order in crate::lock(&self.orders).drain(..) {
            match order {
                Order::Subscriber(id, handler) => {
                    enter(&mut self.handlers.subscribers, id.index(), handler);
                }
                Order::Queryable(id, handler) => {
                    enter(&mut self.handlers.queryables, id.index(), handler);
                }
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
