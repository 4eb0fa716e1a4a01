//! The second core.

use core::task::Waker;

use sinew::rpc::{Channels, Slot, Via};
use sinew_demo::{CacheService, KindsService, cache, kinds};
use sinew_drive::domain::Later;
use sinew_drive::{Link, Serving, run};
use sinew_shm::Bell;
use sinew_shm::domain::{End, Incoming, Lost, Messages, Outgoing, Receiver, Role, Sender};
use static_cell::StaticCell;

use crate::agreed::{CALLS, MESSAGES, MTU};
use crate::chip::{OneContext, ordered, started};
use crate::scribble::Scribbler;
use crate::{Chip, Core, look, open};

/// Calls that outlive their receive step, at a time.
const OPEN: usize = 4;

type Side<C> = &'static End<Core<C>>;

/// What serving has in statics.
pub struct Statics<C: Chip> {
    end: StaticCell<End<Core<C>>>,
    port: StaticCell<Later<Side<C>, OneContext>>,
    slots: [Slot; OPEN],
    bell: Bell<OneContext>,
}

impl<C: Chip> Statics<C> {
    /// As they are at the start.
    pub const fn new() -> Self {
        Statics {
            end: StaticCell::new(),
            port: StaticCell::new(),
            slots: [const { Slot::new() }; OPEN],
            bell: Bell::new(),
        }
    }
}

impl<C: Chip> Default for Statics<C> {
    fn default() -> Self {
        Statics::new()
    }
}

/// Serves `demo.Cache` and `demo.Kinds`. Returns only where the link cannot be opened.
pub fn serve<C: Chip>(statics: &'static Statics<C>) -> Option<()> {
    serving(statics, || (), C::sleep)
}

/// [`serve`]; but where the first core has said so, garbage goes into the own segment before every step, and the
/// peer is rung.
pub fn serve_and_scribble<C: Chip>(statics: &'static Statics<C>) -> Option<()> {
    // What was ordered is read after what orders it was taken back, so that no later restart is lost.
    let mut scribbler = None;
    let turn = move || {
        let scribbler = scribbler.get_or_insert_with(|| match ordered::<C>() {
            0 => None,
            seed => Some(Scribbler::new(seed)),
        });
        if let Some(scribbler) = scribbler {
            scribbler.stroke::<C>(Role::Second);
        }
    };
    let sleep = || {
        if ordered::<C>() == 0 {
            C::sleep();
        }
    };
    serving(statics, turn, sleep)
}

fn serving<C: Chip>(
    statics: &'static Statics<C>,
    mut turn: impl FnMut(),
    sleep: impl FnMut(),
) -> Option<()> {
    let mut clock = C::start();
    started::<C>();
    let end: Side<C> = statics.end.try_init(open::<C>(Role::Second)?)?;
    let port = statics
        .port
        .try_init(Later::new(end, CALLS, &statics.bell))?;
    let via = Via {
        link: 0,
        channels: Channels::Any,
        port: Some(port),
        bulk: None,
    };
    let link = Link::new(
        Outgoing::new(Sender::new(&end, CALLS)?),
        Incoming::new(Receiver::new(&end, CALLS)?, [0; MTU])?,
        &via,
    );
    let services = (
        cache::Serve(CacheService::new()),
        kinds::Serve(KindsService::<OPEN>::new()),
    );
    let mut serving = Serving::new(&statics.slots, services, (link, &statics.bell));
    let look = || {
        turn();
        look(end, &mut clock)
    };
    run(&mut serving, look, sleep)
}

/// Answers messages of five words, each with one added to each word. Returns only where the link cannot be opened.
pub fn answer<C: Chip>() -> Option<()> {
    let mut clock = C::start();
    let end = &open::<C>(Role::Second)?;
    let mut messages = Messages::new(&end, MESSAGES)?;
    loop {
        look(end, &mut clock);
        let mut answered = answer_one(&messages);
        if let Ok(false) = answered {
            messages.arm(Waker::noop());
            answered = answer_one(&messages);
        }
        match answered {
            Ok(true) => {}
            Ok(false) => C::sleep(),
            Err(_) => messages.renew(),
        }
    }
}

fn answer_one<C: Chip>(messages: &Messages<&End<Core<C>>>) -> Result<bool, Lost> {
    let Some(message) = messages.receive()? else {
        return Ok(false);
    };
    let words = message.words.map(|word| word.wrapping_add(1));
    message.answer(words);
    Ok(true)
}
