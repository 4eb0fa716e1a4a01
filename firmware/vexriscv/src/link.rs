//! The link between the two contexts, as the images open it.

use sinew_shm::domain::{
    Block, Coherent, Config, End, Memory, Messages, Options, Parts, Platform, Role, Silent, Slot,
    Status, Uses,
};

use crate::space::own_and_foreign;
use crate::switch;

/// What a link is made of: without a lock, for a context is alone on its side, and without a doorbell, for
/// the switch is one. `BLOCKS` are those of [`Config::blocks`], `MESSAGES` says
/// whether the channel is one of messages, or a queue.
pub struct Context<const BLOCKS: usize, const MESSAGES: bool>;

impl<const BLOCKS: usize, const MESSAGES: bool> Platform for Context<BLOCKS, MESSAGES> {
    type Lock = sinew_shm::Unshared;
    type Doorbell = Silent;
    type Cache = Coherent;
    type Slots = [Slot; 1];
    type Blocks = [Block; BLOCKS];
    const USES: Uses = Uses {
        messages: MESSAGES,
        ..Uses::PACKETS
    };
}

/// Opens this context's end of a link with one channel; called once by each. `None` where the memory does
/// not suffice.
#[inline(never)]
pub fn open<const BLOCKS: usize, const MESSAGES: bool>(
    config: Config<'static>,
    role: Role,
) -> Option<End<Context<BLOCKS, MESSAGES>>> {
    let (own, foreign) = own_and_foreign(role)?;
    // SAFETY: the segments are this link's alone, and each context opens one end.
    let memory = unsafe { Memory::new(own, foreign, None) };
    let parts = Parts {
        doorbell: Silent,
        cache: Coherent,
        platform: Context,
        slots: [Slot::EMPTY],
        blocks: [Block::NEW; BLOCKS],
    };
    End::open(memory, config, role, parts, Options::default()).ok()
}

/// Says that this side is there, and hears of the other one; called by both. `None` where the link does not
/// come up. The client is the one who goes on.
#[inline(never)]
pub fn meet<const BLOCKS: usize, const MESSAGES: bool>(
    end: &End<Context<BLOCKS, MESSAGES>>,
) -> Option<()> {
    for now in 0..4 {
        end.look(now);
        switch();
    }
    (end.look(4) == Status::Up).then_some(())
}

/// One side of its message channel.
pub type Side<'e, const BLOCKS: usize> = Messages<&'e End<Context<BLOCKS, true>>>;
