//! Messages of five words from the first core, one at a time.

use core::task::Waker;

use sinew_shm::domain::{End, Messages, Role, Status};

use crate::agreed::MESSAGES;
use crate::{Core, First, look, open};

/// Asks the core that runs [`answer`](crate::answer).
pub struct Asking<'e, C: First> {
    end: &'e End<Core<C>>,
    clock: &'e mut C::Clock,
    messages: Messages<&'e End<Core<C>>>,
}

/// Starts the other core, and gives what asks it to `f`; `None` where the link does not come up, or `f` says so.
pub fn with_peer<C: First>(f: impl FnOnce(Asking<'_, C>) -> Option<()>) -> Option<()> {
    let mut clock = C::start();
    let end = open::<C>(Role::First)?;
    C::start_peer();
    while end.status() != Status::Up {
        look(&end, &mut clock);
        C::sleep();
    }
    f(Asking {
        end: &end,
        clock: &mut clock,
        messages: Messages::new(&&end, MESSAGES)?,
    })
}

impl<C: First> Asking<'_, C> {
    /// One call: asked by a ring, and waited for asleep until the other core has rung. `None` where its answer is
    /// not what it must be.
    pub fn call(&mut self, n: u32) -> Option<()> {
        let words = [n, 1, 2, 3, 4];
        let mut call = self.messages.call(7, words).ok()?;
        loop {
            look(self.end, self.clock);
            if let Some(answer) = call.poll().ok()? {
                return (answer == words.map(|word| word.wrapping_add(1))).then_some(());
            }
            call.arm(Waker::noop());
            if let Some(answer) = call.poll().ok()? {
                return (answer == words.map(|word| word.wrapping_add(1))).then_some(());
            }
            C::sleep();
        }
    }
}
