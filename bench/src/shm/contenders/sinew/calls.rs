//! The calls of a queue channel, one by one: both ends of a link, as processes have them, in one
//! thread.

use std::hint::black_box;

use sinew_shm::domain::{Channel, Config, Packet, Place, Pool, Receiver, Sender};

use super::link::{CHANNEL, Handle, both, told};
use crate::Result;
use crate::shm::per_call::{Calls, Probe, RUN};

const SIZE: u32 = 64;
/// With as many blocks as one run needs: from the second run on `alloc` takes up returns.
const CONFIG: Config = Config::new(&[Channel::new(CHANNEL, "bench", Pool::new(RUN as u16, SIZE))]);

/// Both ends of a channel.
pub struct QueueCalls {
    sender: Sender<Handle>,
    receiver: Receiver<Handle>,
}

impl Calls for QueueCalls {
    const NAME: &'static str = "sinew, trust none";
    const CALLS: &'static [&'static str] = &[
        "alloc",
        "free",
        "get",
        "enqueue",
        "enqueue and notify",
        "dequeue",
        "release",
        "notify",
    ];
    const DIFFERENCE: Option<(usize, usize)> = Some((4, 3));
    /// Entries have four words; `alloc` takes a return up; each of the four that moves a block counts
    /// it in a word of the statistics; `notify` looks at the wake word and at the filter, `release`
    /// at the wake word.
    const ACCESSES: &'static [u32] = &[5, 0, 0, 5, 7, 5, 6, 2];

    fn new() -> Result<Self> {
        let (first, second) = both(CONFIG)?;
        Ok(QueueCalls {
            sender: Sender::new(&first, CHANNEL).ok_or("no channel")?,
            receiver: Receiver::new(&second, CHANNEL).ok_or("no channel")?,
        })
    }

    fn burst(&mut self, n: usize, probe: &mut impl Probe) -> Result<()> {
        let mut places: [Option<Place<'_, Handle>>; RUN] = [const { None }; RUN];
        let mut packets: [Option<Packet<'_, Handle>>; RUN] = [const { None }; RUN];
        let (places, packets) = (&mut places[..n], &mut packets[..n]);
        let len = SIZE as usize;
        alloc(&self.sender, places);
        probe.run(1, || places.fill_with(|| None));
        probe.run(0, || alloc(&self.sender, places));
        probe.run(2, || {
            for place in places.iter_mut().flatten() {
                black_box(place.as_mut_ptr());
            }
        });
        probe.run(3, || {
            for place in places.iter_mut().filter_map(Option::take) {
                black_box(place.publish(len).is_ok());
            }
        });
        self.sender.flush();
        probe.run(5, || receive(&self.receiver, packets));
        if packets.iter().any(Option::is_none) {
            return Err(told("a packet is missing"));
        }
        probe.run(6, || packets.fill_with(|| None));

        alloc(&self.sender, places);
        probe.run(4, || {
            for place in places.iter_mut().filter_map(Option::take) {
                black_box(place.send(len).is_ok());
            }
        });
        receive(&self.receiver, packets);
        Ok(())
    }
}

fn alloc<'a>(sender: &'a Sender<Handle>, places: &mut [Option<Place<'a, Handle>>]) {
    for place in places {
        *place = sender.place(SIZE as usize).ok();
    }
}

fn receive<'a>(receiver: &'a Receiver<Handle>, packets: &mut [Option<Packet<'a, Handle>>]) {
    for packet in packets {
        *packet = receiver.receive().ok().flatten();
    }
}
