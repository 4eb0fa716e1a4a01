//! What a chip gives, and the link's end that is made of it.
//!
//! Unsafe code makes segments of the shared memory, and says why this side's lock need not lock.

use core::marker::PhantomData;
use core::ptr::{NonNull, with_exposed_provenance, with_exposed_provenance_mut};

use sinew::time::Instant;
use sinew_shm::domain::{
    Block, Coherent, Doorbell, End, Memory, Options, Parts, Platform, Region, Role, Slot, Span,
    Uses,
};
use sinew_shm::{Lock, Segment};

use crate::agreed::LINK;

/// A core of a chip, as the link needs it.
///
/// # Safety
/// * From [`Chip::SHARED`] on, [`SHARED_LEN`] bytes are memory that both cores see at this address, coherent, and
///   that neither has for anything else.
/// * Nothing but [`Chip::look`] and what it is called by runs while it runs, except interrupt handlers that use
///   neither the link nor anything of this crate.
// ANCHOR: chip
pub unsafe trait Chip: Send + Sync + 'static {
    /// Where the shared memory begins.
    const SHARED: usize;
    /// Rings the other core.
    type Doorbell: Doorbell + Send + Sync;
    /// See [`Chip::Doorbell`].
    const DOORBELL: Self::Doorbell;
    /// What the time is kept in.
    type Clock;

    /// Switches on clock and doorbell, takes back what was rung before, and lets interrupts in.
    fn start() -> Self::Clock;
    /// Takes note of what was rung, and gives the time.
    fn look(clock: &mut Self::Clock) -> Instant;
    /// Waits until the doorbell rings or some time has passed, unless it has rung since [`Chip::look`].
    fn sleep();
}
// ANCHOR_END: chip

/// The core that starts first, and the other one.
pub trait First: Chip {
    /// Starts the other core.
    fn start_peer();
    /// Starts the other core again, wherever it is.
    fn restart_peer();
    /// Waits for so many turns of a loop.
    fn spin(times: u32);
}

const REGION: Region = Region::of(&LINK);
/// Behind the region: what the second core is told to do, and how often it has started.
const ORDER: usize = REGION.len as usize;
const STARTS: usize = ORDER + 4;
/// How much is shared, in bytes.
pub const SHARED_LEN: usize = STARTS + 4;

/// The platform of a core.
pub struct Core<C>(PhantomData<C>);

impl<C: Chip> Platform for Core<C> {
    type Lock = OneContext;
    type Doorbell = C::Doorbell;
    type Cache = Coherent;
    type Slots = [Slot; LINK.channels.len()];
    type Blocks = [Block; LINK.blocks()];
    const USES: Uses = Uses {
        messages: true,
        wakers: true,
        ..Uses::PACKETS
    };
}

/// No lock, for statics.
pub struct OneContext(());

// SAFETY: images of this crate have one context that uses what it guards, as `Chip` promises: handlers do not.
unsafe impl Lock for OneContext {
    const NEW: Self = OneContext(());

    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }
}

/// Opens this core's end. After [`Chip::start`], as it rings. Not while there is another one.
pub fn open<C: Chip>(role: Role) -> Option<End<Core<C>>> {
    let peer = match role {
        Role::First => Role::Second,
        Role::Second => Role::First,
    };
    let (mine, peer) = (segment::<C>(role)?, segment::<C>(peer)?);
    // SAFETY: the memory is the link's alone, as `Chip` promises, and `mine` is that of this core.
    let memory = unsafe { Memory::new(mine, peer, None) };
    let parts = Parts {
        doorbell: C::DOORBELL,
        cache: Coherent,
        platform: Core(PhantomData),
        slots: [const { Slot::EMPTY }; LINK.channels.len()],
        blocks: [Block::NEW; LINK.blocks()],
    };
    End::open(memory, LINK, role, parts, Options::default()).ok()
}

fn segment<C: Chip>(role: Role) -> Option<Segment> {
    const { assert!(REGION.exchange.len == 0) };
    let Span { offset, len, .. } = REGION.segment(role);
    let base = NonNull::new(with_exposed_provenance_mut(C::SHARED + offset as usize))?;
    // SAFETY: it lies in the shared memory, which can be read and written, and into which no reference goes.
    unsafe { Segment::from_raw(base, len as usize) }
}

/// Tells the second core what to do from its next start on: 0 to serve, else to scribble with this seed.
pub(crate) fn order<C: Chip>(seed: u32) {
    // SAFETY: in the shared memory, behind the segments; the first core is the only one that writes it.
    unsafe { with_exposed_provenance_mut::<u32>(C::SHARED + ORDER).write_volatile(seed) }
}

/// What the first core has told.
pub(crate) fn ordered<C: Chip>() -> u32 {
    // SAFETY: as above.
    unsafe { with_exposed_provenance::<u32>(C::SHARED + ORDER).read_volatile() }
}

/// How often the second core has started.
pub(crate) fn starts<C: Chip>() -> u32 {
    // SAFETY: in the shared memory, behind the segments.
    unsafe { with_exposed_provenance::<u32>(C::SHARED + STARTS).read_volatile() }
}

/// The second core has started, and taken back what started it.
pub(crate) fn started<C: Chip>() {
    let starts = starts::<C>().wrapping_add(1);
    // SAFETY: as above; the second core is the only one that writes it.
    unsafe { with_exposed_provenance_mut::<u32>(C::SHARED + STARTS).write_volatile(starts) }
}

/// Gives a word of this side's own segment another value, unless it is one of the first `spared` bytes: what the link
/// must not do.
pub(crate) fn scribble<C: Chip>(role: Role, at: u32, spared: u32, change: impl FnOnce(u32) -> u32) {
    let Span { offset, len, .. } = REGION.segment(role);
    let at = (at & (len as u32).next_power_of_two().wrapping_sub(1)) & !3;
    if at >= spared && u64::from(at) < len {
        let word = with_exposed_provenance_mut::<u32>(C::SHARED + offset as usize + at as usize);
        // SAFETY: an aligned word of the own segment, which only this core writes, by volatile words too.
        unsafe { word.write_volatile(change(word.read_volatile())) }
    }
}
