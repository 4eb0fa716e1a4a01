//! What a core does between two steps of its work.

use core::cell::Cell;

use sinew::time::Instant;
use sinew_drive::calling::Pace;
use sinew_shm::domain::{End, Status};

use crate::{Chip, Core};

/// Looks at the link, and gives the time. A link that was stopped by what the peer wrote begins again.
pub fn look<C: Chip>(end: &End<Core<C>>, clock: &mut C::Clock) -> Instant {
    look_for_faults(end, clock).0
}

/// [`look`], and whether the link was stopped.
fn look_for_faults<C: Chip>(end: &End<Core<C>>, clock: &mut C::Clock) -> (Instant, bool) {
    let now = C::look(clock);
    let status = end.look((now.as_micros() >> 10) as u32);
    let is_fault = matches!(status, Status::Fault(_));
    if is_fault {
        end.recover();
    }
    (now, is_fault)
}

/// The pace of a caller.
pub(crate) struct Turns<'e, C: Chip> {
    pub end: &'e End<Core<C>>,
    pub clock: &'e mut C::Clock,
    /// How often the link was stopped.
    pub faults: &'e Cell<u32>,
}

impl<C: Chip> Pace for Turns<'_, C> {
    fn look(&mut self) -> Instant {
        let (now, is_fault) = look_for_faults(self.end, self.clock);
        self.faults.set(self.faults.get() + u32::from(is_fault));
        now
    }

    fn sleep(&mut self) {
        C::sleep();
    }
}
