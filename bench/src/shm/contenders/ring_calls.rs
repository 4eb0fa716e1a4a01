//! The calls of the unsafe ring, one by one: the least that such calls can take.

use std::hint::black_box;

use sinew_reference_ring::{Consumer, Producer, create};

use crate::Result;
use crate::shm::per_call::{Calls, Probe, RUN};

const SIZE: usize = 64;

/// Both ends of one ring.
pub struct RingCalls {
    producer: Producer,
    consumer: Consumer,
}

impl Calls for RingCalls {
    const NAME: &'static str = "reference ring";
    const CALLS: &'static [&'static str] = &["alloc", "enqueue", "notify", "dequeue", "free"];
    const ACCESSES: &'static [u32] = &[0, 1, 1, 1, 1];

    fn new() -> Result<Self> {
        let slots = RUN as u32; // alloc looks at the peer's tail once in so many messages
        let file = create(slots, SIZE)?;
        Ok(RingCalls {
            producer: Producer::new(&file, slots, SIZE)?,
            consumer: Consumer::new(&file, slots, SIZE)?,
        })
    }

    fn burst(&mut self, n: usize, probe: &mut impl Probe) -> Result<()> {
        let RingCalls { producer, consumer } = self;
        probe.run(0, || {
            for _ in 0..n {
                black_box(producer.place().map(|place| place.as_mut_ptr()));
                producer.end();
            }
        });
        probe.run(1, || {
            (0..n).for_each(|_| black_box(&mut *producer).publish())
        });
        probe.run(2, || (0..n).try_for_each(|_| producer.wake()))?;
        probe.run(3, || {
            for _ in 0..n {
                black_box(consumer.message().map(|message| message.as_ptr()));
                consumer.end();
            }
        });
        probe.run(4, || {
            (0..n).for_each(|_| black_box(&mut *consumer).give_back())
        });
        Ok(())
    }
}
