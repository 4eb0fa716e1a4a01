//! Who is called with what has arrived.

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use sinew::pubsub::session::{
    Ended, QueryId, QueryableId, Question, Reply, RequestId, Sample, SubscriberId,
};

use super::core::Shared;
use super::deliver::{Arrivals, Takes};
use super::query::Responder;
use super::sample::SharedQueue;

thread_local! {
    static HANDS_OUT: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs a handler, and must not wait for what may only come when it receives.
pub(super) fn hands_out() -> bool {
    HANDS_OUT.get()
}

/// While it lives, this thread runs handlers.
struct Handing(bool);

impl Drop for Handing {
    fn drop(&mut self) {
        HANDS_OUT.set(self.0);
    }
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

impl Handler {
    /// Nothing comes any more.
    pub(super) fn end(&self) {
        if let Handler::Queue(queue) = self {
            queue.end();
        }
    }
}

/// Who is called, in the driver's thread.
pub(super) struct Handlers {
    shared: Arc<Shared>,
    orders: Orders,
    subscribers: Vec<Option<Handler>>,
    queryables: Vec<Option<OnQuery>>,
}

impl Handlers {
    pub(super) fn new(shared: Arc<Shared>, orders: Orders) -> Handlers {
        Handlers {
            shared,
            orders,
            subscribers: Vec::new(),
            queryables: Vec::new(),
        }
    }

    /// Lets come and go who is to, as other threads have ordered.
    pub(super) fn take_orders(&mut self) {
        // A handler that goes may hold handles, which give orders when they go.
        let orders = std::mem::take(&mut *crate::lock(&self.orders));
        for order in orders {
            match order {
                Order::Subscriber(id, handler) => {
                    enter(&mut self.subscribers, id.index(), handler);
                }
                Order::Queryable(id, handler) => {
                    enter(&mut self.queryables, id.index(), handler);
                }
                Order::NoSubscriber(id) => leave(&mut self.subscribers, id.index()),
                Order::NoQueryable(id) => leave(&mut self.queryables, id.index()),
            }
        }
    }

    /// Calls whom what has arrived is for.
    pub(super) fn hand_out(&mut self, arrivals: &mut Arrivals, packet: &[u8]) {
        let _handing = Handing(HANDS_OUT.replace(true));
        arrivals.hand_out(packet, self);
    }

    /// Whether a subscriber's queue takes nothing more now.
    pub(super) fn is_full(&self) -> bool {
        self.subscribers
            .iter()
            .flatten()
            .any(|handler| match handler {
                Handler::Queue(queue) => queue.is_full(),
                Handler::Call(_) => false,
            })
    }

    /// Nothing comes any more.
    pub(super) fn end(&self) {
        self.subscribers.iter().flatten().for_each(Handler::end);
    }
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
