//! The loop of one link: packets to the engine, answers and streams to the link.

use sinew::link::{Rx, SendError, Tx};
use sinew::rpc::Service;
use sinew::time::Instant;
use std::time::Duration;

use super::seat::Seat;
use crate::Clock;
use crate::endpoint::MAX_MTU;
use crate::link::{Link, Want};

/// Packets taken up in a row before answers are flushed.
const BURST: usize = 16;
/// Packets of a bulk stream that leave in a row: what an urgent answer may have to wait for.
const BULK_BURST: usize = 8;
/// How long a service that asks to be polled may have to wait while another link is stuck.
const RETRY: Duration = Duration::from_millis(5);

/// What a step came to.
enum Step {
    Done,
    Wait(Want),
    Closed,
}

/// What is to be done after a turn.
pub(crate) enum Next {
    /// Another turn, at once.
    Turn,
    /// Sleep until there is something to do, at the latest for this long.
    Sleep(Want, Option<Duration>),
    /// The link has closed.
    End,
}

/// Serves one link until it closes or `stopped` says so.
pub(super) fn run<L: Link, S: Service, const CALLS: usize>(
    link: &mut L,
    seat: &mut Seat<S, CALLS>,
    clock: Clock,
    stopped: impl Fn() -> bool,
) {
    let waker = link.waker();
    let mut moved = false;
    while !stopped() {
        match turn(link, seat, clock, &mut moved) {
            Next::Turn => {}
            Next::Sleep(want, timeout) => {
                seat.arm(&waker, want);
                link.wait(want, timeout);
            }
            Next::End => return,
        }
    }
}

/// One bounded piece of work, and what passed counted.
pub(super) fn turn<L: Link, S: Service, const CALLS: usize>(
    link: &mut L,
    seat: &mut Seat<S, CALLS>,
    clock: Clock,
    moved: &mut bool,
) -> Next {
    let next = work(link, seat, clock, moved);
    seat.count(!matches!(next, Next::Turn), || link.traffic());
    next
}

/// Packets in, answers out, then deferred answers, then streams.
/// `moved`: whether the turn before moved something out of the lanes.
fn work<L: Link, S: Service, const CALLS: usize>(
    link: &mut L,
    seat: &mut Seat<S, CALLS>,
    clock: Clock,
    moved: &mut bool,
) -> Next {
    let now = clock.now();
    let mut received = false;
    let mut want = None;
    let mut closed = false;
    for _ in 0..BURST {
        match receive(link, seat, now) {
            Step::Done => received = true,
            Step::Wait(what) => {
                want = Some(what);
                break;
            }
            Step::Closed => return Next::End,
        }
    }
    // After packets have been moved there is room in the lanes for what services have to send.
    if seat.take_ring() | *moved | (seat.is_busy && !received) || now >= seat.deadline {
        match poll(link, seat, now) {
            Step::Wait(what) => want = Some(what),
            Step::Closed => closed = true,
            Step::Done => {}
        }
    }
    let (urgent, mut stop) = seat.urgent.pump(link.halves().0, BURST);
    link.halves().0.flush();
    let urgent_full = stop == Some(SendError::Full);
    let (mut bulk, mut bulk_full) = (0, false);
    if link.is_idle() {
        let (moved, bulk_stop) = seat.bulk.pump(link.halves().0, BULK_BURST);
        bulk_full = bulk_stop == Some(SendError::Full);
        (bulk, stop) = (moved, stop.or(bulk_stop));
        link.halves().0.flush();
    }
    closed |= stop == Some(SendError::Closed);
    if closed && want == Some(Want::Packet) {
        // The peer has been heard out and takes nothing any more.
        return Next::End;
    }
    *moved = urgent + bulk > 0;
    let Some(mut want) = want.filter(|_| !*moved) else {
        return Next::Turn;
    };
    if urgent_full || bulk_full {
        want = Want::Place;
    } else if want == Want::Packet && seat.bulk.peek().is_some() {
        if link.is_idle() {
            // It came after the lane was found empty.
            return Next::Turn;
        }
        want = Want::Idle;
    }
    let far = seat.deadline == Instant::FAR;
    let mut timeout = (!far).then(|| seat.deadline.since(now));
    if seat.is_busy && want == Want::Packet {
        if !seat.others_will_poll() {
            return Next::Turn;
        }
        timeout = Some(timeout.map_or(RETRY, |span| span.min(RETRY)));
    }
    Next::Sleep(want, timeout)
}

/// Takes one packet up, with a place for its answer in hand.
fn receive<L: Link, S: Service, const CALLS: usize>(
    link: &mut L,
    seat: &mut Seat<S, CALLS>,
    now: Instant,
) -> Step {
    let (tx, rx) = link.halves();
    let packet = match rx.peek() {
        Ok(Some(packet)) => packet,
        Ok(None) => return Step::Wait(Want::Packet),
        Err(_) => return Step::Closed,
    };
    let mut unread;
    let place = match tx.place(tx.mtu()) {
        Ok(place) => place,
        Err(SendError::Full) => return Step::Wait(Want::Place),
        // What the client sent before it went is still of use; nobody reads the answer.
        Err(_) => {
            unread = [0; MAX_MTU];
            unread.as_mut_slice()
        }
    };
    let len = seat.handle(packet, place, now);
    let _ = tx.commit(len);
    rx.release();
    Step::Done
}

/// Polls the engine for this link.
fn poll<L: Link, S: Service, const CALLS: usize>(
    link: &mut L,
    seat: &mut Seat<S, CALLS>,
    now: Instant,
) -> Step {
    let tx = link.halves().0;
    for _ in 0..=CALLS {
        let place = match tx.place(tx.mtu()) {
            Ok(place) => place,
            Err(SendError::Full) => return Step::Wait(Want::Place),
            Err(_) => return Step::Closed,
        };
        let result = seat.poll(place, now);
        let _ = tx.commit(*result.as_ref().unwrap_or(&0));
        match result {
            Ok(0) => return Step::Done,
            Ok(_) => {}
            // A lane is full: it is emptied next, then this is called again.
            Err(_) => return Step::Done,
        }
    }
    Step::Done
}
