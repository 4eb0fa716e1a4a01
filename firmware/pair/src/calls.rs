//! Calls from the first core, by the client that a program on Linux uses too.

use core::cell::Cell;
use core::mem::forget;
use core::time::Duration;

use sinew::rpc::streams::*;
use sinew::rpc::{CallError, Status};
use sinew_demo::{KindsAnswers, Num, cache, exercise, exercise_kinds, kinds};
use sinew_drive::calling::Caller;
use sinew_shm::domain::observe::Channel;
use sinew_shm::domain::{End, Incoming, Outgoing, Receiver, Role, Sender};

use crate::agreed::{CALLS, MTU};
use crate::chip::{order, starts};
use crate::pace::Turns;
use crate::scribble::Scribbler;
use crate::{Core, First, open};

/// Rounds of [`round`] on a link that nobody disturbs.
const ROUNDS: u32 = 200;
/// How often each side is started again.
const RESTARTS: u32 = 200;
/// Seeds of the peer that scribbles, and rounds with each.
const SIEGES: u32 = 16;
const SIEGE_ROUNDS: u32 = 12;
/// Strokes before a round.
const STROKES: u32 = 20;
/// Rounds after a restart until one has worked: more than ever fail.
const ATTEMPTS: u32 = 50;
/// Looks until the peer has started again: more than it ever takes.
const PATIENCE: u32 = 1_000_000;

/// Items of each stream of a round.
const ITEMS: u32 = 20;
/// What arrives of one stream while another is read: `ITEMS` of at most 4 bytes.
const INBOX: usize = 160;

/// What did not work. Its number is the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Wrong {
    /// The link cannot be opened.
    Opening = 3,
    /// A call of a link that nobody disturbs has failed, or was answered wrongly.
    Call = 10,
    /// The link does not come up again after a restart of the peer.
    AfterPeer = 11,
    /// The same after a restart of this side.
    AfterOwn = 12,
    /// A block is lost.
    Books = 13,
    /// The link does not come up again after the peer scribbled.
    AfterSiege = 14,
    /// Nobody has found a violation: nothing was scribbled.
    NoSiege = 15,
    /// The peer does not start again.
    NoRestart = 16,
    /// The peer has broken the protocol, and does not scribble.
    Fault = 17,
    /// As [`Wrong::Call`], after the peer scribbled.
    CallAfterSiege = 18,
}

type Side<'e, C> = &'e End<Core<C>>;
type Client<'e, C> =
    Caller<Outgoing<Side<'e, C>>, Incoming<Side<'e, C>, [u8; MTU]>, Turns<'e, C>, 4, INBOX>;

fn client<'e, C: First>(
    end: &'e End<Core<C>>,
    clock: &'e mut C::Clock,
    faults: &'e Cell<u32>,
    seed: u32,
) -> Result<Client<'e, C>, Wrong> {
    let halves = || {
        Some((
            Outgoing::new(Sender::new(&end, CALLS)?),
            Incoming::new(Receiver::new(&end, CALLS)?, [0; MTU])?,
        ))
    };
    let (tx, rx) = halves().ok_or(Wrong::Opening)?;
    let turns = Turns { end, clock, faults };
    Ok(Caller::new(tx, rx, turns, 1, seed))
}

/// Calls every method, all four kinds, the three streams at the same time; then a stream without an end that is
/// cancelled, a status, and a call after both.
fn round<C: First>(client: &Client<'_, C>, n: u32) -> Result<(), CallError> {
    let right = |is_right| match is_right {
        true => Ok(()),
        false => Err(CallError::Undecodable),
    };
    right(exercise(&mut cache::Client(client), n as i32)? == n as i32)?;
    let mut kinds = kinds::Client(client);
    let answers = exercise_kinds(&mut kinds, ITEMS)?;
    let (doubled, summed) = (2 * ITEMS, ITEMS * (ITEMS - 1) / 2);
    right(answers == KindsAnswers { doubled, summed })?;

    let mut endless = kinds.count(&Num { n: u32::MAX })?;
    right(endless.next()? == Some(Num { n: 0 }))?;
    endless.cancel();
    let refused = kinds.double(&Num { n: u32::MAX });
    right(refused == Err(CallError::Status(Status::OUT_OF_RANGE)))?;
    right(kinds.double(&Num { n: 4 })? == Num { n: 8 })
}

/// Rounds until one has worked, as those do that no restart falls into.
fn again<C: First>(client: &Client<'_, C>, n: u32) -> Option<()> {
    (0..ATTEMPTS).find_map(|_| round(client, n).ok())
}

/// Starts the other core again, and waits until it has.
fn restart<C: First>() -> Option<()> {
    let before = starts::<C>();
    C::restart_peer();
    (0..PATIENCE).find_map(|_| {
        C::spin(1000);
        (starts::<C>() != before).then_some(())
    })
}

/// Starts the other core and calls it; starts it again and again, in the middle of whatever it does, with calls under
/// way; then starts this side again and again, sometimes without a word. After each restart calls must work again,
/// and at the end every block must be where it should be.
pub fn all<C: First>() -> Result<(), Wrong> {
    let mut clock = C::start();
    let end = open::<C>(Role::First).ok_or(Wrong::Opening)?;
    let faults = Cell::new(0);
    order::<C>(0);
    C::start_peer();
    let calling = client(&end, &mut clock, &faults, 1)?;
    for n in 0..ROUNDS {
        round(&calling, n).map_err(|_| Wrong::Call)?;
    }
    for n in 0..RESTARTS {
        let mut kinds = kinds::Client(&calling);
        let endless = kinds.count(&Num { n: u32::MAX });
        let sum = kinds.sum();
        C::spin(1 + n * 37 % 4000);
        restart::<C>().ok_or(Wrong::NoRestart)?;
        drop((endless, sum));
        again(&calling, n).ok_or(Wrong::AfterPeer)?;
    }
    drop(calling);
    end.check_books().then_some(()).ok_or(Wrong::Books)?;
    drop(end);
    for n in 0..RESTARTS {
        let end = open::<C>(Role::First).ok_or(Wrong::Opening)?;
        let calling = client(&end, &mut clock, &faults, 7 * n)?;
        again(&calling, n).ok_or(Wrong::AfterOwn)?;
        let endless = kinds::Client(&calling).count(&Num { n: u32::MAX });
        C::spin(1 + n * 53 % 4000);
        drop(endless);
        drop(calling);
        match n % 2 {
            0 => end.check_books().then_some(()).ok_or(Wrong::Books)?,
            // As after a reset.
            _ => forget(end),
        }
    }
    (faults.get() == 0).then_some(()).ok_or(Wrong::Fault)
}

/// Starts a core that serves and scribbles. Its calls may end as they like, but each must end, and this core must
/// not fault. Then the peer becomes honest, and calls must work again.
pub fn besieged<C: First>() -> Result<(), Wrong> {
    let mut clock = C::start();
    let end = open::<C>(Role::First).ok_or(Wrong::Opening)?;
    let faults = Cell::new(0);
    order::<C>(1);
    C::start_peer();
    let mut calling = client(&end, &mut clock, &faults, 1)?;
    calling.set_timeout(Duration::from_millis(2));
    for seed in 1..=SIEGES {
        for n in 0..SIEGE_ROUNDS {
            let _ = round(&calling, n);
        }
        order::<C>(match seed {
            SIEGES => 0,
            seed => seed.wrapping_mul(0x9e37_79b9),
        });
        restart::<C>().ok_or(Wrong::NoRestart)?;
    }
    (faults.get() > 0).then_some(()).ok_or(Wrong::NoSiege)?;
    calling.set_timeout(Duration::from_secs(1));
    again(&calling, 1).ok_or(Wrong::AfterSiege)?;
    for n in 0..ROUNDS {
        round(&calling, n).map_err(|_| Wrong::CallAfterSiege)?;
    }
    drop(calling);
    end.check_books().then_some(()).ok_or(Wrong::Books)
}

/// Scribbles while it calls a core that serves; then opens the link anew, as after a reset. Its calls may end as they
/// like meanwhile; but each time calls must work again, on a core that was not started again.
pub fn besieger<C: First>() -> Result<(), Wrong> {
    let mut clock = C::start();
    let faults = Cell::new(0);
    order::<C>(0);
    C::start_peer();
    for seed in 1..=SIEGES {
        let end = open::<C>(Role::First).ok_or(Wrong::Opening)?;
        let mut calling = client(&end, &mut clock, &faults, seed)?;
        again(&calling, seed).ok_or(Wrong::AfterSiege)?;
        calling.set_timeout(Duration::from_millis(2));
        let mut scribbler = Scribbler::new(seed.wrapping_mul(0x9e37_79b9));
        for n in 0..SIEGE_ROUNDS {
            for _ in 0..STROKES {
                scribbler.stroke::<C>(Role::First);
            }
            let _ = round(&calling, n);
        }
        drop(calling);
        forget(end);
    }
    let end = open::<C>(Role::First).ok_or(Wrong::Opening)?;
    let calling = client(&end, &mut clock, &faults, 1)?;
    again(&calling, 1).ok_or(Wrong::AfterSiege)?;
    for n in 0..ROUNDS {
        round(&calling, n).map_err(|_| Wrong::CallAfterSiege)?;
    }
    drop(calling);
    let link = end.observe();
    let found = |channel: Channel| Some(channel.side(Role::Second)?.counts.violations);
    let is_found = link.channels().filter_map(found).any(|found| found > 0);
    is_found.then_some(()).ok_or(Wrong::NoSiege)?;
    end.check_books().then_some(()).ok_or(Wrong::Books)
}
