//! The usual way of a packet, step by step.

use std::hint::black_box;
use std::task::Waker;

use sinew_shm::domain::{Lost, Role};

use super::Meter;
use super::world::{HEARTBEAT, SIZE, Sample, World, told, word};
use crate::Result;

const BLOCKS: u16 = 16;

pub fn take(meter: &mut Meter) -> Result<()> {
    let ends = World::of_blocks(BLOCKS)?.up()?;
    meter.rounds(|meter| {
        let place = meter.count(|| ends.tx.place(SIZE));
        place.map(drop).map_err(told)
    })
}

pub fn send(meter: &mut Meter, rings: bool) -> Result<()> {
    let world = World::of_blocks(BLOCKS)?;
    let ends = world.up()?;
    meter.rounds(|meter| {
        if rings {
            ends.rx.arm(Waker::noop());
        }
        let place = ends.place()?;
        meter.count(|| place.send(SIZE)).map_err(told)?;
        ends.second.look(0);
        ends.receive(1)
    })?;
    match rings {
        true => world.check(Role::First, word::RUNG, meter),
        false => Ok(()),
    }
}

pub fn publish(meter: &mut Meter) -> Result<()> {
    let ends = World::of_blocks(BLOCKS)?.up()?;
    meter.rounds(|meter| {
        let place = ends.place()?;
        meter.count(|| place.publish(SIZE)).map_err(told)?;
        ends.tx.flush();
        ends.receive(1)
    })
}

pub fn flush(meter: &mut Meter) -> Result<()> {
    let ends = World::of_blocks(BLOCKS)?.up()?;
    meter.rounds(|meter| {
        ends.place()?.publish(SIZE).map_err(told)?;
        meter.count(|| ends.tx.flush());
        ends.receive(1)
    })
}

pub fn receive(meter: &mut Meter) -> Result<()> {
    let ends = World::of_blocks(BLOCKS)?.up()?;
    meter.rounds(|meter| {
        ends.send(1)?;
        let packet = meter.count(|| ends.rx.receive()).map_err(told)?;
        packet.map(drop).ok_or("no packet".into())
    })
}

/// Take, copy and send in one.
pub fn post(meter: &mut Meter) -> Result<()> {
    let ends = World::of_blocks(BLOCKS)?.up()?;
    meter.rounds(|meter| {
        meter.count(|| ends.tx.send(&[0; SIZE])).map_err(told)?;
        ends.receive(1)
    })
}

/// Receive, copy and release in one.
pub fn receive_into(meter: &mut Meter) -> Result<()> {
    let ends = World::of_blocks(BLOCKS)?.up()?;
    let mut bytes = [0; SIZE];
    meter.rounds(|meter| {
        ends.send(1)?;
        let len = meter.count(|| ends.rx.receive_into(&mut bytes));
        match len.map_err(told)? {
            Some(SIZE) => Ok(()),
            other => Err(told(other)),
        }
    })
}

pub fn receive_nothing(meter: &mut Meter) -> Result<()> {
    let ends = World::of_blocks(BLOCKS)?.up()?;
    meter.rounds(|meter| {
        let packet = meter.count(|| ends.rx.receive()).map_err(told)?;
        packet.map_or(Ok(()), |_| Err("a packet".into()))
    })
}

pub fn copy(meter: &mut Meter) -> Result<()> {
    let ends = World::of_blocks(BLOCKS)?.up()?;
    let mut bytes = [0; SIZE];
    meter.rounds(|meter| {
        ends.send(1)?;
        let packet = ends.rx.receive().map_err(told)?.ok_or("no packet")?;
        let copied = meter.count(|| packet.copy_to(&mut bytes));
        copied.map(drop).map_err(told)
    })
}

/// The only block goes back: its return is taken up before the next packet.
pub fn release(meter: &mut Meter, rings: bool) -> Result<()> {
    let world = World::of_blocks(1)?;
    let ends = world.up()?;
    meter.rounds(|meter| {
        ends.send(1)?;
        let packet = ends.rx.receive().map_err(told)?.ok_or("no packet")?;
        if rings {
            ends.tx.arm(Waker::noop());
        }
        meter.count(|| drop(packet));
        ends.first.look(0);
        Ok(())
    })?;
    match rings {
        true => world.check(Role::Second, word::RUNG, meter),
        false => Ok(()),
    }
}

pub fn arm(meter: &mut Meter) -> Result<()> {
    let ends = World::of_blocks(BLOCKS)?.up()?;
    meter.rounds(|meter| {
        meter.count(|| ends.rx.arm(Waker::noop()));
        // Whoever was armed is woken.
        ends.send(1)?;
        ends.second.look(0);
        ends.receive(1)
    })
}

/// Sets a value of 16 bytes.
pub fn set(meter: &mut Meter) -> Result<()> {
    let ends = World::with_state()?.up()?;
    let (near, far) = ends.values()?;
    let mut value = black_box(SAMPLE);
    meter.rounds(|meter| {
        value.time += 1;
        if !meter.count(|| near.set(&value)).map_err(told)? {
            return Err("no value".into());
        }
        same(far.get(), value)
    })
}

/// Reads the peer's.
pub fn get(meter: &mut Meter) -> Result<()> {
    let ends = World::with_state()?.up()?;
    let (near, far) = ends.values()?;
    let mut value = black_box(SAMPLE);
    meter.rounds(|meter| {
        value.time += 1;
        near.set(&value).map_err(told)?;
        same(meter.count(|| far.get()), value)
    })
}

const SAMPLE: Sample = Sample {
    time: 0,
    level: [1.0, 2.0],
};

fn same(found: std::result::Result<Option<Sample>, Lost>, value: Sample) -> Result<()> {
    match found {
        Ok(Some(found)) if found == value => Ok(()),
        other => Err(told(other)),
    }
}

/// A look after which a sign of life is due; nothing has happened.
pub fn look(meter: &mut Meter, channels: u16) -> Result<()> {
    let ends = World::of_channels(channels)?.up()?;
    let mut now = 0;
    meter.rounds(|meter| {
        now += HEARTBEAT;
        meter.count(|| ends.first.look(now));
        Ok(())
    })
}
