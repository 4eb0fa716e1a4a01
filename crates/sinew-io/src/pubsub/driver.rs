//! What keeps a node up.

use std::sync::{Arc, MutexGuard};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use sinew::link::SendError;
use sinew::pubsub::session::{Closed, Ended, Event, PutError, State, Step};
use sinew::time::Instant;

use super::Options;
use super::Source;
use super::core::{Core, PAUSE, Shared, Status, Trouble, random_zid};
use super::deliver::Arrivals;
use super::handlers::{Handlers, Orders};
use crate::apart::{Apart, Receive};
use crate::connect_error::ConnectError;
use crate::reconnect::{Backoff, jitter};

/// Keeps the session of a node up: opens its link again when it is lost, sends what is due, and calls
/// handlers.
///
/// A node has a thread that does so, or is driven by one that exists already, which then need not be
/// woken for every sample.
pub struct Driver {
    shared: Arc<Shared>,
    handlers: Handlers,
    arrivals: Arrivals,
    /// Elsewhere while a link is being opened.
    source: Option<Source>,
    backoff: Backoff,
    zid_is_random: bool,
    lease: Duration,
    linger: Duration,
    /// Since when the node is to end.
    ends: Option<std::time::Instant>,
    /// The node has ended, and waits for the other side.
    lingers: Option<Lingers>,
    link: Option<Linked>,
    /// The link had no place for what was due.
    was_full: bool,
    /// How long to wait before the next attempt, and until when.
    pause: Duration,
    rests: Option<std::time::Instant>,
    /// When something is due, as of the last packet.
    due: Instant,
}

/// Since when, and when something was heard last.
type Lingers = (std::time::Instant, std::time::Instant);

/// The link that there is.
struct Linked {
    rx: Box<dyn Receive + Send>,
    waker: Waker,
}

/// What a driver needs before it goes on. Where that is something to wait for, a call of the waker
/// that it was given ends the waiting, too.
pub(super) enum Next {
    /// Nothing.
    Turn,
    /// The node has ended.
    Ended,
    /// A link: see [`Driver::source`] and [`Driver::opened`].
    Link,
    /// That the room is told after this number was read, or so much time.
    Rest(u64, Duration),
    /// A packet, or so much time.
    Packet(Option<Duration>),
    /// So much time: what has arrived cannot be taken in now.
    Pause(Duration),
}

/// What was found of packets.
enum Found {
    Nothing,
    Packet,
    /// One that is to be taken in again: an answer had no place.
    Part,
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
            handlers: Handlers::new(shared.clone(), orders),
            shared,
            arrivals: Arrivals::default(),
            source: Some(source),
            backoff: options.backoff,
            zid_is_random: options.zid.is_none(),
            lease: options.lease,
            linger: options.linger,
            ends: None,
            lingers: None,
            link: None,
            was_full: false,
            pause: options.backoff.min,
            rests: None,
            due: Instant::START,
        }
    }

    /// Does what there is to do, or waits for it, at most so long (`None`: until something is done).
    /// `false`: the node has ended. It must be called again within a quarter of the lease.
    pub fn turn(&mut self, timeout: Option<Duration>) -> bool {
        let limit = |span: Duration| timeout.map_or(span, |timeout| timeout.min(span));
        match self.step() {
            Next::Turn => {}
            Next::Ended => return false,
            Next::Link => {
                let link = self.source.as_mut().and_then(Source::link);
                self.opened(link, |rx| {
                    let thread = thread::current();
                    Waker::from(Arc::new(Both { thread, rx }))
                });
            }
            Next::Rest(seen, span) => self.shared.room.wait(seen, limit(span)),
            // What has arrived already would end every other sleep.
            Next::Pause(span) => thread::park_timeout(limit(span)),
            Next::Packet(span) => {
                let span = match (span, timeout) {
                    (Some(span), Some(timeout)) => Some(span.min(timeout)),
                    (span, timeout) => span.or(timeout),
                };
                if let Some(link) = &mut self.link {
                    link.rx.wait(span);
                }
                if self.lingers.is_none() {
                    self.shared.core().looks_at = Instant::START;
                    return self.take_up();
                }
            }
        }
        true
    }

    /// Does what there is to do now.
    pub(super) fn step(&mut self) -> Next {
        let Some(mut link) = self.link.take() else {
            return self.begin();
        };
        if let Some(lingers) = self.lingers.take() {
            return self.linger_on(lingers, link);
        }
        match self.serve(&mut link) {
            Ok(next) => {
                self.link = Some(link);
                next
            }
            Err(end) => {
                let next = self.lost(&end);
                if matches!(end, End::Node) && !self.linger.is_zero() {
                    let now = std::time::Instant::now();
                    self.lingers = Some((now, now));
                    self.link = Some(link);
                    return Next::Turn;
                }
                next
            }
        }
    }

    /// Whether everything is on the link, and there is a place for saying that this was all.
    fn may_close(&self, core: &mut Core, now: Instant) -> bool {
        // A peer that sends and takes nothing would hold it up for ever.
        let is_over = |since: std::time::Instant| since.elapsed() >= self.linger;
        if self.ends.is_none_or(is_over) || core.session.state() != State::Open {
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
    fn linger_on(&mut self, (start, mut heard): Lingers, mut link: Linked) -> Next {
        if start.elapsed() >= self.linger || heard.elapsed() >= self.lease {
            return Next::Ended;
        }
        let next = match link.rx.peek() {
            Ok(Some(_)) => {
                link.rx.release();
                heard = std::time::Instant::now();
                Next::Turn
            }
            Ok(None) => Next::Packet(Some(PAUSE)),
            Err(_) => return Next::Ended,
        };
        self.lingers = Some((start, heard));
        self.link = Some(link);
        next
    }

    /// Takes in a packet, for which it has slept. `false`: the node has ended.
    fn take_up(&mut self) -> bool {
        let Some(mut link) = self.link.take() else {
            return true;
        };
        match self.arrived(&mut link) {
            Ok(_) => {
                self.link = Some(link);
                true
            }
            Err(end) => !matches!(self.lost(&end), Next::Ended),
        }
    }

    /// Looks whether a link is to be opened now.
    fn begin(&mut self) -> Next {
        let seen = self.shared.room.count();
        let core = self.shared.core();
        if core.ending {
            drop(core);
            return self.ended();
        }
        self.end_queries(core);
        let now = std::time::Instant::now();
        match self.rests.filter(|&rests| rests > now) {
            Some(rests) => Next::Rest(seen, rests - now),
            None => Next::Link,
        }
    }

    #[cfg(feature = "tokio")]
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Where links come from, for one to be opened without this; to be given back.
    #[cfg(feature = "tokio")]
    pub(super) fn source(&mut self) -> &mut Option<Source> {
        &mut self.source
    }

    /// The receiving half of the link that there is.
    #[cfg(feature = "tokio")]
    pub(super) fn receiving(&mut self) -> Option<&mut Box<dyn Receive + Send>> {
        self.link.as_mut().map(|link| &mut link.rx)
    }

    /// A link was opened, or not; `None`: there will be none any more. `waker`: what wakes this driver,
    /// made of what wakes the receiving half.
    pub(super) fn opened(
        &mut self,
        link: Option<Result<Apart, Arc<ConnectError>>>,
        waker: impl FnOnce(Waker) -> Waker,
    ) {
        let Some(link) = link else {
            self.shared.core().ending = true;
            return;
        };
        match link {
            Ok(Apart { tx, mut rx }) => {
                let waker = waker(rx.waker());
                let mut core = self.shared.core();
                core.tx = tx;
                core.waker = waker.clone();
                core.looks_at = Instant::START;
                let now = core.clock.now();
                match self.source.as_ref().is_some_and(Source::accepts) {
                    true => core.session.accept(),
                    false => core.session.open(now),
                }
                drop(core);
                self.link = Some(Linked { rx, waker });
            }
            Err(error) => self.failed(Trouble::Link(error)),
        }
    }

    /// The link has ended.
    fn lost(&mut self, end: &End) -> Next {
        let mut core = self.shared.core();
        core.session.link_lost();
        core.unlink();
        let End::Link(closed) = *end else {
            drop(core);
            return self.ended();
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
        Next::Turn
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

    /// What is ordered from now on ends at once, where it is given.
    fn ended(&mut self) -> Next {
        let mut core = self.shared.core();
        core.ending = true;
        self.end_queries(core);
        self.handlers.take_orders();
        self.handlers.end();
        self.shared.room.tell();
        Next::Ended
    }

    /// Tells who waits for answers of a session that is lost.
    fn end_queries(&self, mut core: MutexGuard<'_, Core>) {
        let queries: Vec<_> = core.queries.drain().collect();
        for (query, mailbox) in queries {
            core.session.forget(query);
            mailbox.end(Ended::Lost);
        }
    }

    fn serve(&mut self, link: &mut Linked) -> Result<Next, End> {
        // First everything that has arrived, then what time asks for: a packet that waits unread is a
        // sign of life.
        let mut waits = self.handlers.is_full();
        let now = self.shared.clock.now();
        let mut busy = false;
        if !waits {
            match self.arrived(link)? {
                Found::Nothing => {}
                Found::Packet if self.due > now => return Ok(Next::Turn),
                Found::Packet => busy = true,
                Found::Part => waits = true,
            }
        }
        let due = self.attend(waits, now, link)?;
        if busy || self.arrivals.has_any() {
            self.handlers.hand_out(&mut self.arrivals, &[]);
            return Ok(Next::Turn);
        }
        Ok(match waits {
            true => Next::Pause(due.unwrap_or(PAUSE).min(PAUSE)),
            false => Next::Packet(due),
        })
    }

    /// Takes in one packet, if there is one.
    fn arrived(&mut self, link: &mut Linked) -> Result<Found, End> {
        let Linked { rx, waker } = link;
        match rx.peek() {
            Ok(Some(packet)) if self.take_in(packet, waker)? => {
                rx.release();
                Ok(Found::Packet)
            }
            Ok(Some(_)) => Ok(Found::Part),
            Ok(None) => Ok(Found::Nothing),
            Err(_) => Err(End::Link(Closed::Link)),
        }
    }

    /// Hands what is in a packet to whom it is for. `false`: an answer had no place.
    fn take_in(&mut self, packet: &[u8], waker: &Waker) -> Result<bool, End> {
        loop {
            let mut core = self.shared.driver_core();
            let all = &mut *core;
            let now = all.clock.now();
            let mut done = false;
            let mut full = false;
            let mut end = None;
            self.arrivals.watch(all.session.tables_mut().fragments());
            while !(done
                || full
                || end.is_some()
                || self.arrivals.is_full()
                || self.arrivals.lies_in_session())
            {
                if let Some(run) = all.session.run(packet) {
                    self.arrivals.keep_run(packet, &run);
                    continue;
                }
                match all.session.receive(packet, &mut *all.tx, now) {
                    Step::More => {}
                    Step::Done => done = true,
                    Step::Full => full = true,
                    Step::Event(event) => {
                        if let Some(event) = self.arrivals.keep(packet, event) {
                            end = noticed(&mut all.status, &self.shared, &event).err();
                        }
                    }
                }
            }
            if let Some(peer) = all.session.peer() {
                all.status.peer = Some(peer);
            }
            if self.arrivals.lies_in_session() {
                let needed = all.session.assembled_len();
                self.arrivals.take_over(all.session.tables_mut(), needed);
            }
            if full {
                await_place(&self.shared, all, waker);
            }
            // Where packets come without end, time passes all the same.
            self.due = match all.unfinished.is_empty() && !all.ending {
                true => all.session.deadline(),
                false => Instant::START,
            };
            drop(core);
            self.handlers.take_orders();
            // What stands before the end of a session has arrived.
            self.handlers.hand_out(&mut self.arrivals, packet);
            if let Some(end) = end {
                return Err(end);
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
        link: &Linked,
    ) -> Result<Option<Duration>, End> {
        self.handlers.take_orders();
        let mut core = self.shared.driver_core();
        let core = &mut *core;
        // What has arrived while the lock was waited for has not been looked at, so the lease is judged
        // by the time before.
        let now = looked;
        if core.ending {
            self.ends.get_or_insert_with(std::time::Instant::now);
        }
        if core.ending && self.may_close(core, now) {
            if core.session.state() != State::Open {
                // Nothing was sent that could be on its way.
                self.linger = Duration::ZERO;
            }
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
        core.status.traffic = link.rx.traffic();
        if full || !core.unfinished.is_empty() {
            await_place(&self.shared, core, &link.waker);
        }
        if std::mem::replace(&mut self.was_full, full) && !full {
            // What waited for the end of what was due.
            self.shared.room.tell();
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

/// Wakes the driver when there may be a place, like all who wait for one.
fn await_place(shared: &Shared, core: &mut Core, waker: &Waker) {
    let seen = shared.await_place(core, None);
    if shared.room.has_changed(seen, waker) {
        waker.wake_by_ref();
    }
}

impl Drop for Driver {
    /// Also where a handler has panicked, or the runtime has ended.
    fn drop(&mut self) {
        let mut core = self.shared.core();
        core.session.link_lost();
        core.unlink();
        drop(core);
        self.ended();
    }
}

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
