//! What must cost the same with few blocks and with many, empty and full.

use super::Meter;
use super::world::{SIZE, World, told};
use crate::Result;

/// The packet after `before` others that nobody has received.
pub fn enqueue(meter: &mut Meter, blocks: u16, before: u16) -> Result<()> {
    let ends = World::of_blocks(blocks)?.up()?;
    meter.rounds(|meter| {
        ends.send(before)?;
        let place = ends.place()?;
        meter.count(|| place.send(SIZE)).map_err(told)?;
        ends.receive(before + 1)
    })
}

/// The packet before which `before` others were received and are held; every block was sent.
pub fn dequeue(meter: &mut Meter, blocks: u16, before: u16) -> Result<()> {
    let ends = World::of_blocks(blocks)?.up()?;
    let rx = &ends.rx;
    meter.rounds(|meter| {
        ends.send(blocks)?;
        let held: Vec<_> = (0..before).map(|_| rx.receive()).collect();
        let packet = meter.count(|| rx.receive()).map_err(told)?;
        packet.ok_or("no packet")?;
        drop(held);
        ends.receive(blocks - before - 1)
    })
}

/// Nothing is free, and every block has come back.
pub fn take_of_returns(meter: &mut Meter, blocks: u16) -> Result<()> {
    let ends = World::of_blocks(blocks)?.up()?;
    meter.rounds(|meter| {
        ends.send(blocks)?;
        ends.receive(blocks)?;
        let place = meter.count(|| ends.tx.place(SIZE));
        place.map(drop).map_err(told)
    })
}

/// Nothing is free, and nothing has come back.
pub fn take_in_vain(meter: &mut Meter, blocks: u16) -> Result<()> {
    let ends = World::of_blocks(blocks)?.up()?;
    ends.send(blocks)?;
    meter.rounds(|meter| match meter.count(|| ends.tx.place(SIZE)) {
        Ok(_) => Err("a place".into()),
        Err(_) => Ok(()),
    })
}
