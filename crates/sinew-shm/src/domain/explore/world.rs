//! A state of both sides, and the calls that lead from one to the next.

use std::boxed::Box;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::vec::Vec;

use super::super::books::Block;
use super::super::config::{Config, Role};
use super::super::port::{Coherent, Silent};
use super::super::{End, Memory, Options, Parts, Platform, Slot, Status};
use crate::lock::Unshared;
use crate::word::trial::{Trial, under};
use crate::word::{Line, Segment, Span};

/// What is explored.
#[derive(Clone, Copy)]
pub(super) struct Model {
    pub(super) config: Config<'static>,
    /// Packets that a side sends in one pairing, at most.
    pub(super) sends: u32,
    /// Whether sides drain.
    pub(super) drains: bool,
    /// Calls of the other side between two accesses of a call, at most.
    pub(super) interrupting: u32,
    /// Whether the memory of a side that opens is cleared before, as at the reset of a chip.
    pub(super) forgets: bool,
    pub(super) mutant: Mutant,
}

/// What is left out of the protocol, to see whether the search finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mutant {
    None,
    /// Rings are not emptied when a new session of the peer's is acknowledged.
    Rings,
    /// A side that opens takes its last session again.
    Session,
    /// A side that opens leaves its last acknowledgement.
    Acknowledgement,
}

/// A call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Op {
    Open,
    Crash,
    Look,
    Send,
    Receive,
    Release,
    Close,
    Gone,
    /// The peer is gone, and what it sent is still read.
    Ended,
    /// The user does not read the rest.
    Renew,
    Drain,
    Drained,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code)]
pub(super) enum Fate {
    Whole,
    /// Its side dies after so many stores.
    Dies(u32),
    /// The other side makes these calls before this access.
    Interrupted(u32, Op, Option<Op>),
}

pub(super) struct Solo;

impl Platform for Solo {
    type Lock = Unshared;
    type Doorbell = Silent;
    type Cache = Coherent;
    type Slots = [Slot; 1];
    type Blocks = [Block; 4];
}

/// An end that can be copied: it has no waker and owns nothing.
pub(super) struct Image(ManuallyDrop<End<Solo>>);

impl Image {
    pub(super) fn of(end: End<Solo>) -> Image {
        Image(ManuallyDrop::new(end))
    }

    pub(super) fn end(&self) -> &End<Solo> {
        &self.0
    }
}

impl Clone for Image {
    fn clone(&self) -> Image {
        // SAFETY: of both copies, neither is dropped, so nothing is freed twice; an end without
        // wakers is numbers and addresses, and only one copy at a time is used on the memory.
        Image(unsafe { core::ptr::read(&self.0) })
    }
}

#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) block: u16,
    pub(super) pairing: u32,
    bytes: Span,
    /// What it says: the sessions of sender and receiver.
    pub(super) says: [u32; 2],
}

#[derive(Clone)]
pub(super) struct Side {
    end: Image,
    pub(super) held: Vec<Held>,
}

impl Side {
    pub(super) fn end(&self) -> &End<Solo> {
        &self.end.0
    }
}

#[derive(Clone)]
pub(super) struct World {
    pub(super) words: [Box<[u32]>; 2],
    pub(super) sides: [Option<Side>; 2],
}

/// The memory in which the calls of one search run.
#[derive(Clone, Copy)]
pub(super) struct Arena {
    pub(super) model: Model,
    pub(super) segments: [Segment; 2],
}

pub(super) type Outcome = Result<(), &'static str>;

/// What the interruption does, and came to.
#[derive(Clone, Copy)]
struct Interruption {
    arena: *const Arena,
    side: *mut Option<Side>,
    index: usize,
    ops: [Option<Op>; 2],
    outcome: Outcome,
}

std::thread_local! {
    static INTERRUPTION: Cell<Option<Interruption>> = const { Cell::new(None) };
}

pub(super) const ROLES: [Role; 2] = [Role::First, Role::Second];

impl Arena {
    pub(super) fn new(model: Model) -> Arena {
        let segment = |role| {
            let lines = std::vec![Line::ZERO; Line::count(model.config.segment_len(role))];
            Segment::from_lines(Box::leak(lines.into_boxed_slice()))
        };
        Arena {
            model,
            segments: ROLES.map(segment),
        }
    }

    /// Nobody is there, in fresh memory.
    pub(super) fn start(&self) -> World {
        let words = self.segments.map(|segment| {
            let words = std::vec![0; segment.len() / 4];
            words.into_boxed_slice()
        });
        World {
            words,
            sides: [None, None],
        }
    }

    /// A segment as plain words.
    #[allow(clippy::mut_from_ref)]
    pub(super) fn plain(&self, index: usize) -> &mut [u32] {
        let segment = &self.segments[index];
        let base = segment.base().cast();
        // SAFETY: the memory lives for ever, all of it is of this thread, and what comes back is
        // used for a copy, while no call is under way.
        unsafe { core::slice::from_raw_parts_mut(base.as_ptr(), segment.len() / 4) }
    }

    fn load(&self, world: &World) {
        (0..2).for_each(|index| self.plain(index).copy_from_slice(&world.words[index]));
    }

    fn store(&self, world: &mut World) {
        (0..2).for_each(|index| world.words[index].copy_from_slice(self.plain(index)));
    }

    /// The calls that a side can make.
    pub(super) fn enabled(&self, side: &Option<Side>) -> Vec<Op> {
        let Some(side) = side else {
            return [Op::Open].into();
        };
        let private = side.end().private();
        let mut ops = Vec::from([Op::Crash]);
        if !side.held.is_empty() {
            ops.push(Op::Release);
        }
        if private.status == Status::Closed {
            return ops;
        }
        ops.extend([Op::Look, Op::Close]);
        if private.status == Status::Up {
            ops.extend([Op::Gone, Op::Ended]);
            if private.is_rest {
                ops.push(Op::Renew);
            }
            // All of this pairing and one of an earlier one are as good as more.
            if side.held.len()
                <= usize::from(self.blocks(Role::First).max(self.blocks(Role::Second)))
            {
                ops.push(Op::Receive);
            }
            if private.outbox[1] < self.model.sends {
                ops.push(Op::Send);
            }
            if self.model.drains {
                ops.push(Op::Drained);
                if !private.is_draining {
                    ops.push(Op::Drain);
                }
            }
        }
        ops
    }

    /// Blocks that a side sends.
    pub(super) fn blocks(&self, role: Role) -> u16 {
        self.model.config.channels[0].pool(role).blocks
    }

    /// The calls of a side that come between two accesses of the other one.
    pub(super) fn interrupting(&self, side: &Option<Side>) -> Vec<(Op, Option<Op>)> {
        if self.model.interrupting == 0 {
            return Vec::new();
        }
        let is_use = |op: &Op| *op != Op::Crash;
        let mut all: Vec<_> = self
            .enabled(side)
            .into_iter()
            .filter(is_use)
            .map(|op| (op, None))
            .collect();
        if self.model.interrupting > 1 {
            // A side that dies there may be back, too.
            let first = self.enabled(side);
            let second = [
                Op::Open,
                Op::Look,
                Op::Close,
                Op::Gone,
                Op::Send,
                Op::Receive,
                Op::Release,
            ];
            all.extend(
                first
                    .into_iter()
                    .flat_map(|first| second.map(|second| (first, Some(second)))),
            );
        }
        all
    }

    /// Makes a call in a copy of a world. Also how many stores and accesses it made.
    pub(super) fn step(
        &self,
        world: &World,
        (index, op): (usize, Op),
        fate: Fate,
    ) -> (World, Outcome, (u32, u32)) {
        let mut next = world.clone();
        self.load(world);
        let mut trial = Trial {
            keep: self.keep(index, op),
            ..Trial::NONE
        };
        match fate {
            Fate::Whole => {}
            Fate::Dies(stores) => trial.stores = stores,
            Fate::Interrupted(accesses, ..) => {
                trial.accesses = accesses;
                trial.interrupt = Some(interrupt);
            }
        }
        let (mine, other) = {
            let [first, second] = &mut next.sides;
            if index == 0 {
                (first, second)
            } else {
                (second, first)
            }
        };
        if let Fate::Interrupted(_, first, second) = fate {
            INTERRUPTION.set(Some(Interruption {
                arena: self,
                side: other,
                index: 1 - index,
                ops: [Some(first), second],
                outcome: Ok(()),
            }));
        }
        let mut outcome = Ok(());
        self.before(index, op);
        let left = under(trial, || outcome = self.run(mine, index, op));
        if matches!(fate, Fate::Dies(_)) {
            *mine = None;
            outcome = Ok(());
        }
        if let Some(interruption) = INTERRUPTION.take() {
            outcome = outcome.and(interruption.outcome);
        }
        self.after(world, index, op);
        self.store(&mut next);
        let made = (u32::MAX - left.stores, u32::MAX - left.accesses);
        (next, outcome, made)
    }

    /// One call of a side, in the arena's memory.
    fn run(&self, side: &mut Option<Side>, index: usize, op: Op) -> Outcome {
        if op == Op::Open {
            *side = Some(Side {
                end: Image::of(self.open(index)),
                held: Vec::new(),
            });
        }
        let Some(Side { end, held }) = side else {
            return Ok(());
        };
        let end = &*end.0;
        let pairing = end.pairing();
        match op {
            Op::Open => {}
            Op::Crash => *side = None,
            Op::Look => drop(end.look(0)),
            Op::Close => end.close(),
            Op::Gone => end.peer_is_gone(),
            Op::Ended => end.peer_has_ended(),
            Op::Renew => drop(end.renew()),
            Op::Drain => end.drain(),
            Op::Drained => drop(end.is_drained()),
            Op::Send => {
                if let Ok((block, place)) = end.take(0, pairing, 8, 0) {
                    let [me, peer, _] = end.private().session;
                    // SAFETY: the block was just taken, and this is the one reference.
                    let place = unsafe { place.slice_mut() };
                    place[..4].copy_from_slice(&me.to_le_bytes());
                    place[4..8].copy_from_slice(&peer.to_le_bytes());
                    let _ = end.send(0, pairing, block, 8, true);
                }
            }
            Op::Receive => {
                if let Ok(Some((block, bytes))) = end.receive(0, pairing) {
                    let [me, peer, _] = end.private().session;
                    let says = read(bytes);
                    // What is not trusted counts only while the pairing does.
                    let counts = end.is_trusted() || end.is_current(pairing);
                    if counts && (says != [peer, me] || bytes.len() != 8) {
                        return Err("a packet of another session is received");
                    }
                    held.push(Held {
                        block,
                        pairing,
                        bytes,
                        says,
                    });
                }
            }
            Op::Release => {
                let packet = held.remove(0);
                if end.is_trusted() && read(packet.bytes) != packet.says {
                    return Err("a block was written while it was read");
                }
                end.release(0, packet.pairing, packet.block, None);
            }
        }
        Ok(())
    }

    pub(super) fn open(&self, index: usize) -> End<Solo> {
        let [first, second] = self.segments;
        let (mine, peer) = if index == 0 {
            (first, second)
        } else {
            (second, first)
        };
        // SAFETY: the memory lives for ever, and the world has one end on each segment.
        let memory = unsafe { Memory::new(mine, peer, None) };
        let parts = Parts {
            doorbell: Silent,
            cache: Coherent,
            platform: Solo,
            slots: [Slot::EMPTY; 1],
            blocks: [Block::NEW; 4],
        };
        let (config, options) = (self.model.config, Options::default());
        let end = End::open(memory, config, ROLES[index], parts, options);
        end.unwrap_or_else(|error| panic!("{error}"))
    }
}

/// What a packet says.
fn read(bytes: Span) -> [u32; 2] {
    [0, 4].map(|at| bytes.word(at).unwrap_or_default())
}

/// The calls of the other side, in the middle of a call.
fn interrupt() {
    let Some(mut interruption) = INTERRUPTION.get() else {
        return;
    };
    // SAFETY: both live until `step` returns; the side is not the one whose call is interrupted.
    let (arena, side) = unsafe { (&*interruption.arena, &mut *interruption.side) };
    for op in interruption.ops.into_iter().flatten() {
        if arena.enabled(side).contains(&op) {
            let outcome = arena.run(side, interruption.index, op);
            interruption.outcome = interruption.outcome.and(outcome);
        }
    }
    INTERRUPTION.set(Some(interruption));
}
