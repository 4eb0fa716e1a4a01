//! Where the channels of an end come to be, when it opens.

use super::super::books::Block;
use super::super::config::{Channel, Kind};
use super::super::directory;
use super::super::lock::LockEnd;
use super::super::memory::Memory;
use super::super::message::MessageEnd;
use super::super::plan::{ChannelPlan, Plan};
use super::super::state::StateEnd;
use super::channel::{ChannelEnd, Room, Slot};
use super::platform::Platform;

/// Puts the channels into their slots, the most urgent first, and into the own directory; `None` where
/// the memory, the slots or the books do not suffice.
///
/// Of a plan that is a constant, and memory at a constant place, the compiler leaves only stores.
#[inline(always)]
pub(super) fn place_channels<P: Platform>(
    plan: &Plan<'_>,
    channel_plan: impl Fn(&Channel, usize) -> Option<ChannelPlan>,
    memory: &Memory,
    (slots, blocks): (&mut [Slot], &mut [Block]),
    (platform, cache): (&P, &P::Cache),
) -> Option<()> {
    let (role, mut books) = (plan.role, 0);
    for (index, channel) in plan.config.channels.iter().enumerate() {
        let of_it = channel_plan(channel, index)?;
        directory::write(&memory.mine, index, &of_it.directory, cache);
        let room = match channel.kind {
            Kind::Queue => {
                let end = ChannelEnd::new::<P>(channel, &of_it, role, memory, (blocks, books))?;
                books = end.books_end;
                Room::Queue(end)
            }
            Kind::State if P::USES.states => {
                Room::State(StateEnd::new(channel, &of_it, role, memory)?)
            }
            Kind::Lock if P::USES.locks => {
                let number = channel.semaphore.checked_sub(1);
                let hardware = number.and_then(|number| platform.hardware_lock(number));
                let facts = (role, plan.identity.hash(), hardware);
                Room::Lock(LockEnd::new(channel, &of_it, facts, memory)?)
            }
            Kind::Message if P::USES.messages => {
                let end = MessageEnd::new(channel, &of_it, role, memory, (blocks, books))?;
                books = end.books_end;
                Room::Messages(end)
            }
            Kind::State | Kind::Lock | Kind::Message => return None,
        };
        // Insertion: behind everything that is as urgent.
        let mut slots = slots.get_mut(..=index)?;
        if index > 0 {
            let behind = |slot: &Slot| {
                let other = slot.priority();
                other.is_none_or(|other| other > channel.priority)
            };
            let at = slots.iter().position(behind).unwrap_or(index);
            slots = slots.get_mut(at..)?;
            // There is one at least, and the compiler is to see it: nothing here can panic.
            if !slots.is_empty() {
                slots.rotate_right(1);
            }
        }
        let before = core::mem::replace(&mut slots.first_mut()?.0, room);
        // Nothing else of it needs to be dropped.
        match P::USES.wakers {
            true => drop(before),
            false => core::mem::forget(before),
        }
    }
    Some(())
}
