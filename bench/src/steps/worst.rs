//! The most that a call can be made to do: by the size of the link, and by what the peer wrote.

use sinew_shm::domain::{MAX_CHANNELS, Predicate, Role, Sender};

use super::Meter;
use super::world::{CHANNEL, Ends, MANY, SIZE, World, told, word};
use crate::Result;

/// Wanted by nobody: the packets here are zeros.
const NONE: Predicate = Predicate::Matches {
    offset: 0,
    mask: u32::MAX,
    value: 1,
};

pub fn take_with_reserve(meter: &mut Meter) -> Result<()> {
    let ends = World::of_blocks(MANY)?.up()?;
    let bulk = ends.tx.clone().with_reserve(MANY - 1);
    meter.rounds(|meter| {
        ends.send(MANY)?;
        ends.receive(MANY)?;
        let place = meter.count(|| bulk.place(SIZE));
        place.map(drop).map_err(told)
    })
}

/// Packets that were sent before their sender saw that nobody wants them.
pub fn receive_unwanted(meter: &mut Meter, copies: bool) -> Result<()> {
    let ends = World::of_blocks(MANY)?.up()?;
    meter.rounds(|meter| {
        for _ in 0..MANY {
            ends.place()?.publish(SIZE).map_err(told)?;
        }
        ends.rx.set_filter(NONE);
        ends.tx.flush();
        match copies {
            true => {
                let received = meter.count(|| ends.rx.receive_into(&mut [0; SIZE]));
                received
                    .map_err(told)?
                    .map_or(Ok(()), |len| Err(told(len)))?;
            }
            false => receive_none(meter, &ends)?,
        }
        // The sender takes a wish up when it shows something: what is wanted in both cases.
        ends.rx.set_filter(Predicate::All);
        let mut place = ends.place()?;
        place.get_mut(..4).ok_or("a short place")?[0] = 1;
        place.send(SIZE).map_err(told)?;
        ends.receive(1)
    })
}

pub fn answer_behind_returns(meter: &mut Meter) -> Result<()> {
    let ends = World::with_replies(MANY)?.up()?;
    meter.rounds(|meter| {
        ends.send(MANY)?;
        ends.receive(MANY - 1)?;
        let packet = ends.rx.receive().map_err(told)?.ok_or("no packet")?;
        packet.reply(SIZE);
        let reply = meter.count(|| ends.tx.reply()).map_err(told)?;
        reply.map(drop).ok_or("no answer".into())
    })
}

pub fn drained(meter: &mut Meter) -> Result<()> {
    let ends = World::of_blocks(MANY)?.up()?;
    meter.rounds(|meter| {
        ends.send(MANY)?;
        ends.receive(MANY)?;
        match meter.count(|| ends.first.is_drained()) {
            true => Ok(()),
            false => Err("not drained".into()),
        }
    })
}

/// The peer is there again while every block of either side is in the other's ring. So is it where
/// a peer only writes other sessions.
pub fn restart(meter: &mut Meter) -> Result<()> {
    let world = World::of_blocks(MANY)?;
    let second = world.open(Role::Second)?;
    meter.rounds(|meter| {
        let first = world.open(Role::First)?;
        // Nobody has looked since the last one was there.
        meter.count(|| second.look(0));
        first.look(0);
        second.look(0);
        for end in [&first, &second] {
            let tx = Sender::new(end, CHANNEL).ok_or("no channel")?;
            for _ in 0..MANY {
                tx.send(&[0; SIZE]).map_err(told)?;
            }
        }
        Ok(())
    })
}

/// A peer that came up in a session of its own, with another last channel.
pub fn look_at_a_misfit(meter: &mut Meter) -> Result<()> {
    let channels = MAX_CHANNELS as u16;
    let world = World::of_channels(channels)?;
    let ends = world.up()?;
    let last = world.directory(channels - 1, word::POOL);
    for word in [word::HASH, last, word::SESSION] {
        let value = world.peek(Role::First, word)?;
        world.poke(Role::First, word, value.wrapping_add(64))?;
    }
    meter.rounds(|meter| {
        meter.count(|| ends.second.look(0));
        Ok(())
    })
}

pub fn receive_too_long(meter: &mut Meter) -> Result<()> {
    let world = World::of_blocks(16)?;
    let ends = world.up()?;
    let mut position = 0;
    meter.rounds(|meter| {
        ends.send(1)?;
        let entry = world.entry(Role::First, position)?;
        position += 1;
        world.poke(Role::First, entry + word::LEN, u32::MAX)?;
        receive_none(meter, &ends)
    })?;
    world.check(Role::Second, word::VIOLATIONS, meter)
}

pub fn receive_no_such_block(meter: &mut Meter) -> Result<()> {
    let world = World::of_blocks(MANY)?;
    let ends = world.up()?;
    let mut position = 0;
    meter.rounds(|meter| {
        ends.send(1)?;
        let entry = world.entry(Role::First, position)?;
        position += 1;
        no_such_block(&world, Role::First, entry)?;
        receive_none(meter, &ends)
    })?;
    world.check(Role::Second, word::VIOLATIONS, meter)
}

/// Garbage stays where it is, and is found again by each call.
pub fn receive_garbage(meter: &mut Meter) -> Result<()> {
    let world = World::of_blocks(16)?;
    let ends = world.up()?;
    let entry = world.entry(Role::First, 0)?;
    world.poke(Role::First, entry + word::SEQUENCE, 0x8000_0000)?;
    meter.rounds(|meter| receive_none(meter, &ends))?;
    world.check(Role::Second, word::VIOLATIONS, meter)
}

pub fn take_bad_return(meter: &mut Meter) -> Result<()> {
    let world = World::of_blocks(MANY)?;
    let ends = world.up()?;
    ends.send(MANY)?;
    let mut position = 0;
    meter.rounds(|meter| {
        ends.receive(1)?;
        let entry = world.return_entry(Role::Second, position)?;
        position += 1;
        no_such_block(&world, Role::Second, entry)?;
        match meter.count(|| ends.tx.place(SIZE)) {
            Ok(_) => Err("a place".into()),
            Err(_) => Ok(()),
        }
    })?;
    world.check(Role::First, word::VIOLATIONS, meter)
}

pub fn flush_with_a_new_filter(meter: &mut Meter) -> Result<()> {
    let world = World::of_blocks(16)?;
    let ends = world.up()?;
    let line = world.peek(Role::Second, world.directory(0, word::CONTROL))?;
    let version = u64::from(line) / 4 + word::FILTER;
    let mut count = 0;
    meter.rounds(|meter| {
        count += 2;
        world.poke(Role::Second, version, count)?;
        ends.place()?.publish(SIZE).map_err(told)?;
        meter.count(|| ends.tx.flush());
        ends.receive(1)
    })
}

/// The block of this entry becomes one that there is not.
fn no_such_block(world: &World, role: Role, entry: u64) -> Result<()> {
    let word = entry + word::BLOCK;
    let block = world.peek(role, word)? | 0xFFFF;
    world.poke(role, word, block)
}

fn receive_none(meter: &Meter, ends: &Ends) -> Result<()> {
    let packet = meter.count(|| ends.rx.receive()).map_err(told)?;
    packet.map_or(Ok(()), |_| Err("a packet".into()))
}
