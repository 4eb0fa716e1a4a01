//! Every step with its gate.

use sinew_shm::domain::MAX_CHANNELS;

use super::world::MANY;
use super::{Meter, level, usual, worst};
use crate::Result;

/// One counted call.
pub struct Step {
    /// What `sinew-bench step` calls it.
    pub name: &'static str,
    /// What it bounds.
    pub bounds: &'static str,
    /// Of what there are so many in one call, where its work grows with something.
    pub per: (u16, &'static str),
    /// The gate, in instructions per unit.
    pub limit: f64,
    /// Those of one group must cost the same.
    pub group: &'static str,
    pub run: fn(&mut Meter) -> Result<()>,
}

const BLOCKS: (u16, &str) = (MANY, "instructions/block");
const CHANNEL: (u16, &str) = (MAX_CHANNELS as u16, "instructions/channel");

const ENQUEUE: &str = "enqueue, any";
const DEQUEUE: &str = "dequeue, any";
const TAKE: &str = "take, any returns";
const FULL: &str = "take, none is back";

/// Name, limit, what it bounds. A limit is about 15 % above what was counted.
#[rustfmt::skip]
pub const STEPS: &[Step] = &[
    // The usual way of a packet of 64 bytes.
    step("take", 110.0, "a free block", usual::take),
    step("send", 135.0, "publish and flush, nobody waits", |meter| usual::send(meter, false)),
    step("send, rings", 150.0, "the peer waits", |meter| usual::send(meter, true)),
    step("publish", 110.0, "of a batch", usual::publish),
    step("flush", 49.0, "one batch", usual::flush),
    step("receive", 145.0, "one packet", usual::receive),
    step("copy", 97.0, "64 bytes, and a look at the sessions", usual::copy),
    step("release", 72.0, "nobody waits", |meter| usual::release(meter, false)),
    step("release, rings", 81.0, "the peer waits", |meter| usual::release(meter, true)),
    step("post", 245.0, "take, copy and send in one", usual::post),
    step("receive into", 230.0, "receive, copy and release in one", usual::receive_into),
    step("receive, empty", 120.0, "nothing there", usual::receive_nothing),
    step("set", 40.0, "a value of 16 bytes", usual::set),
    step("get", 40.0, "the peer's value of 16 bytes", usual::get),
    step("arm", 555.0, "for a packet: a look, the wake word, a second look", usual::arm),
    step("look", 280.0, "one channel, a sign of life", |meter| usual::look(meter, 1)),
    // Few blocks and many, the first of them and the last.
    same("enqueue, first of 4", 135.0, ENQUEUE, |meter| level::enqueue(meter, 4, 0)),
    same("enqueue, last of 4", 135.0, ENQUEUE, |meter| level::enqueue(meter, 4, 3)),
    same("enqueue, first of 1000", 135.0, ENQUEUE, |meter| level::enqueue(meter, MANY, 0)),
    same("enqueue, last of 1000", 135.0, ENQUEUE, |meter| level::enqueue(meter, MANY, MANY - 1)),
    same("dequeue, first of 4", 145.0, DEQUEUE, |meter| level::dequeue(meter, 4, 0)),
    same("dequeue, last of 4", 145.0, DEQUEUE, |meter| level::dequeue(meter, 4, 3)),
    same("dequeue, first of 1000", 145.0, DEQUEUE, |meter| level::dequeue(meter, MANY, 0)),
    same("dequeue, last of 1000", 145.0, DEQUEUE, |meter| level::dequeue(meter, MANY, MANY - 1)),
    same("take, 4 returns wait", 515.0, TAKE, |meter| level::take_of_returns(meter, 4)),
    same("take, 1000 returns wait", 515.0, TAKE, |meter| level::take_of_returns(meter, MANY)),
    same("take, none of 4 is back", 420.0, FULL, |meter| level::take_in_vain(meter, 4)),
    same("take, none of 1000 is back", 420.0, FULL, |meter| level::take_in_vain(meter, MANY)),
    // What grows with the link's own size.
    growing("take, 1000 are to be left", 105.0, BLOCKS, "as many returns as are missing: at most the own blocks", worst::take_with_reserve),
    growing("receive, 1000 unwanted", 185.0, BLOCKS, "a ring full of what the filter does not want: at most the peer's blocks", |meter| worst::receive_unwanted(meter, false)),
    growing("receive into, 1000 unwanted", 175.0, BLOCKS, "a ring full of what the filter does not want: at most the peer's blocks", |meter| worst::receive_unwanted(meter, true)),
    growing("answer, behind 1000 returns", 95.0, BLOCKS, "returns without an answer before one with it: at most the own blocks", worst::answer_behind_returns),
    growing("drained, 1000 returns wait", 87.0, BLOCKS, "all returns: at most the own blocks", worst::drained),
    growing("look, peer anew, 1000 lent", 137.0, BLOCKS, "blocks taken back, cleared of what was written, rings emptied: at most their capacity", worst::restart),
    growing("look, 64 channels", 67.0, CHANNEL, "each channel once", |meter| usual::look(meter, MAX_CHANNELS as u16)),
    growing("look, another configuration", 4_165.0, CHANNEL, "all 64 channels compared, of which the last differs", worst::look_at_a_misfit),
    // What the peer should not have written. Each is counted, and does not stop the link here.
    step("receive, too long", 450.0, "an entry of 4 GiB", worst::receive_too_long),
    step("receive, no such block", 415.0, "block 65,535", worst::receive_no_such_block),
    step("receive, garbage", 395.0, "a position far away", worst::receive_garbage),
    step("take, bad return", 530.0, "block 65,535, and nothing else is free", worst::take_bad_return),
    step("flush, new filter", 76.0, "the peer's wish changes each time", worst::flush_with_a_new_filter),
];

/// A call whose work is the same whatever there is.
const fn step(
    name: &'static str,
    limit: f64,
    bounds: &'static str,
    run: fn(&mut Meter) -> Result<()>,
) -> Step {
    Step {
        name,
        bounds,
        per: (1, "instructions/call"),
        limit,
        group: "",
        run,
    }
}

/// A call that must cost as much as others of its group.
const fn same(
    name: &'static str,
    limit: f64,
    group: &'static str,
    run: fn(&mut Meter) -> Result<()>,
) -> Step {
    Step {
        group,
        ..step(name, limit, "whatever is in the link", run)
    }
}

/// A call whose work grows with something, to which there is a bound.
const fn growing(
    name: &'static str,
    limit: f64,
    per: (u16, &'static str),
    bounds: &'static str,
    run: fn(&mut Meter) -> Result<()>,
) -> Step {
    Step {
        per,
        ..step(name, limit, bounds, run)
    }
}
