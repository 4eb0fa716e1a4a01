//! A node: one session, shared by any number of threads.

use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sinew::pubsub::codec::{Body, Consolidation, Zid};
use sinew::pubsub::keyexpr::KeyExprError;
use sinew::pubsub::session::{
    Ask, AskError, DeclareError, Peer, PublisherId, PublisherOptions, Put, PutError, QueryId,
    QueryableId, Question, Sample, Session, State, Stats, SubscriberId,
};
use sinew::time::Instant;

use super::core::{Shared, Status, Trouble, random_zid};
use super::driver::Driver;
use super::handlers::{Handler, Order, Orders};
use super::query::{GRACE, Mailbox, Replies, Responder};
use super::sample::{Overflow, OwnedSample, Queue, SharedQueue, Taken};
use super::tables::Host;
use super::{Options, Source, key_expr};

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
    orders: Orders,
    thread: Mutex<Option<JoinHandle<()>>>,
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
        if let Some(thread) = crate::lock(&self.thread).take()
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

impl Node {
    /// A node, and what keeps it up.
    pub(super) fn new(source: Source, options: Options) -> (Node, Driver) {
        let mut config = options.config(random_zid(), crate::random() as u32);
        config.resend = source.resend();
        let session = Session::new(config, Host::new(options.largest));
        let shared = Arc::new(Shared::new(session, config.batching));
        let orders = Orders::default();
        let driver = Driver::new(shared.clone(), orders.clone(), source, options);
        let inner = Arc::new(Inner {
            shared,
            orders,
            thread: Mutex::new(None),
        });
        (Node { inner }, driver)
    }

    /// A node with a thread that keeps it up.
    pub(super) fn start(source: Source, options: Options) -> Node {
        let (node, driver) = Node::new(source, options);
        node.keep_up(driver);
        node
    }

    /// Gives the node's driver a thread of its own, which ends with the node. What was declared before is
    /// there when the session opens.
    pub fn keep_up(&self, mut driver: Driver) {
        let thread = thread::Builder::new().name("sinew-node".into());
        let thread = thread.spawn(move || while driver.turn(None) {});
        *crate::lock(&self.inner.thread) = thread.ok();
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    /// The id of this node. It changes where the other side holds a session of the old one.
    pub fn zid(&self) -> Zid {
        self.shared().core().session.zid()
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
            if let Some(result) = self.opened() {
                return result;
            }
            let left = until.map_or(Duration::from_secs(1), |until| {
                until.saturating_duration_since(std::time::Instant::now())
            });
            if left.is_zero() {
                return self.not_open();
            }
            self.shared().room.wait(seen, left);
        }
    }

    /// Whether there is a session; `None` while one can come about.
    pub(super) fn opened(&self) -> Option<Result<Peer, NotOpen>> {
        let core = self.shared().core();
        let over = core.ending;
        match core.session.peer() {
            Some(peer) => Some(Ok(peer)),
            None => {
                drop(core);
                over.then(|| self.not_open())
            }
        }
    }

    pub(super) fn not_open(&self) -> Result<Peer, NotOpen> {
        let trouble = self.status().trouble;
        Err(NotOpen { trouble })
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
        let id = core.session.publisher(declared(key)?, options)?;
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
        let key = key_expr(key).map_err(SendOnceError::Key)?;
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
        let id = core.session.subscriber(declared(key)?)?;
        if core.ending {
            // Nobody takes the order any more.
            handler.end();
        }
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
        let id = core.session.queryable(declared(key)?, complete)?;
        crate::lock(&self.inner.orders).push(Order::Queryable(id, Box::new(handler)));
        core.wake_by(Instant::START);
        drop(core);
        let node = self.clone();
        Ok(Queryable { node, id })
    }

    /// Asks; the answers are what is returned, as they arrive.
    pub fn ask(&self, ask: &Ask<'_>) -> Result<Replies, AskError> {
        let mailbox = Mailbox::default();
        let query = self.shared().ask(ask, &mailbox)?;
        Ok(self.replies(ask, query, mailbox))
    }

    /// The answers to a query that was sent.
    pub(super) fn replies(&self, ask: &Ask<'_>, query: QueryId, mailbox: Mailbox) -> Replies {
        let consolidation = ask.query.consolidation;
        // One who asks for a time is one who wants all of it.
        let ranged = ask
            .query
            .parameters
            .split(';')
            .any(|pair| pair.starts_with("_time"));
        Replies {
            shared: self.shared().clone(),
            query,
            mailbox,
            consolidation: match consolidation {
                Consolidation::Auto if ranged => Consolidation::None,
                chosen => chosen,
            },
            deadline: std::time::Instant::now() + ask.timeout.min(LONGEST) + GRACE,
            newest: Default::default(),
            end: None,
        }
    }

    /// Everything that waits in a batch leaves now.
    pub fn flush(&self) -> Result<(), PutError> {
        let core = &mut *self.shared().core();
        let now = core.clock.now();
        core.session.flush(&mut *core.tx, now)
    }
}

/// Every clock can count so far.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A key of one's own that the wire can carry, to be kept.
fn declared(key: &str) -> Result<Box<str>, DeclareError> {
    key_expr(key).map_err(DeclareError::Key)?;
    Ok(key.into())
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
    pub(super) node: Node,
    pub(super) id: PublisherId,
    pub(super) blocks: bool,
}

impl Publisher {
    /// Publishes a value. Where the link is full and the policy is to block, it waits; in a handler,
    /// during which nothing is received, for a second at most, and is then [`PutError::Full`].
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

    /// Publishes a value of `len` bytes that `fill` writes straight into the batch it leaves in. It is
    /// called at most once. What stands there before is not defined. A value that does not fit one batch
    /// is [`PutError::TooLarge`].
    #[inline]
    pub fn put_with(&self, len: usize, fill: impl FnOnce(&mut [u8])) -> Result<Put, PutError> {
        let id = self.id;
        let mut fill = Some(fill);
        self.node.shared().send(self.blocks, |session, tx, now| {
            session.put_with(tx, id, len, now, |room| {
                if let Some(fill) = fill.take() {
                    fill(room);
                }
            })
        })
    }

    /// Whether somebody subscribes; `None` where that is not known.
    pub fn is_heard(&self) -> Option<bool> {
        self.node.shared().core().session.is_heard(self.id)
    }

    /// Waits until somebody subscribes, and returns what [`Publisher::is_heard`] says then: what is put
    /// earlier goes to nobody.
    pub fn wait_heard(&self, timeout: Duration) -> Option<bool> {
        let until = std::time::Instant::now().checked_add(timeout);
        loop {
            let seen = self.node.shared().room.count();
            let heard = self.is_heard();
            let left = until.map_or(Duration::from_secs(1), |until| {
                until.saturating_duration_since(std::time::Instant::now())
            });
            if heard == Some(true) || left.is_zero() {
                return heard;
            }
            self.node.shared().room.wait(seen, left);
        }
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

impl Subscriber {
    /// Something was taken out of its queue: the driver can go on where it was full.
    pub(super) fn taken(&self, taken: Taken) -> OwnedSample {
        if taken.frees {
            self.node.shared().core().wake_by(Instant::START);
        }
        taken.sample
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let core = &mut *self.node.shared().core();
        core.session.withdraw_subscriber(self.id);
        crate::lock(&self.node.inner.orders).push(Order::NoSubscriber(self.id));
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
        crate::lock(&self.node.inner.orders).push(Order::NoQueryable(self.id));
        core.wake_by(Instant::START);
    }
}

/// A subscription whose samples wait in a queue.
pub struct Samples {
    pub(super) queue: SharedQueue,
    pub(super) subscriber: Subscriber,
}

impl Samples {
    /// The next sample; waits for it, at most so long (`None`: for ever). `None` also when the node has
    /// ended, and nothing is left.
    pub fn next_within(&self, timeout: Option<Duration>) -> Option<OwnedSample> {
        let taken = self.queue.take(timeout)?;
        Some(self.subscriber.taken(taken))
    }

    /// Samples that were dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }
}
