//! The memory that the board shares with a Linux process, and the doorbell between them.
//!
//! The emulator makes a file of the 16 MB PSRAM of this board. The Linux process is the first side.
//! Both compile in what is in `agreed`.

use core::marker::PhantomData;
use core::ptr::{NonNull, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sinew_shm::domain::{
    Block, ChannelPlan, Coherent, Config, Doorbell, End, Memory, Options, Parts, Plan, Platform,
    Region, Role, Slot, Span, Uses,
};
use sinew_shm::{Lock, Segment};

use crate::agreed::{self, LINK};
pub use crate::agreed::{CALLS, MTU};
use crate::board;

/// PSRAM: Normal memory by the architecture's own map, so words may be read and written as in RAM.
const PSRAM: usize = 0x2100_0000;
const PSRAM_LEN: u64 = 16 << 20;

/// The board's side of a [link](agreed::link) with packets of at most `N` bytes, with this lock, and with
/// or without wakers.
pub struct Board<L, const WAKERS: bool, const N: usize = MTU>(PhantomData<L>);

impl<L: Lock, const WAKERS: bool, const N: usize> Platform for Board<L, WAKERS, N> {
    type Lock = L;
    type Doorbell = Uart1;
    type Cache = Coherent;
    type Slots = [Slot; LINK.channels.len()];
    type Blocks = [Block; LINK.blocks()];
    const PLAN: Option<Plan<'static>> = Some(Plan::new(
        Link::<N>::CONFIG,
        Role::Second,
        &Link::<N>::CHANNELS,
    ));
    const USES: Uses = Uses {
        wakers: WAKERS,
        ..Uses::PACKETS
    };
}

/// What of it the compiler works out. Links differ in the size of their blocks alone.
struct Link<const N: usize>;

impl<const N: usize> Link<N> {
    const CONFIG: Config<'static> = agreed::link::<N>();
    const CHANNELS: [ChannelPlan; LINK.channels.len()] =
        ChannelPlan::all(&Self::CONFIG, Role::Second);
    const REGION: Region = Region::of(&Self::CONFIG);
}

/// Opens the board's side; `None` from the second call on.
pub fn open<L: Lock, const WAKERS: bool, const N: usize>() -> Option<End<Board<L, WAKERS, N>>> {
    let memory = memory(&Link::<N>::REGION)?;
    let parts = Parts {
        doorbell: Uart1,
        cache: Coherent,
        platform: Board(PhantomData),
        slots: [const { Slot::EMPTY }; LINK.channels.len()],
        blocks: [Block::NEW; LINK.blocks()],
    };
    End::open_planned(memory, parts, Options::default()).ok()
}

/// Looks at the link. One that was stopped by what the peer wrote begins again: the next peer need not be like it.
pub fn look<P: Platform>(link: &End<P>, millis: u32) {
    link.look(millis);
    link.recover();
}

// ANCHOR: memory
fn memory(region: &Region) -> Option<Memory> {
    if region.len > PSRAM_LEN || region.exchange.len > 0 {
        return None;
    }
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.load(Relaxed) {
        return None;
    }
    TAKEN.store(true, Relaxed);
    // SAFETY: PSRAM is there for ever, and only this link uses it: link.x places nothing there, and
    // there is no second call.
    Some(unsafe { Memory::new(segment(region.second)?, segment(region.first)?, None) })
}

fn segment(span: Span) -> Option<Segment> {
    let base = NonNull::new(with_exposed_provenance_mut(PSRAM + span.offset as usize))?;
    // SAFETY: it lies in PSRAM, as checked above, which can be read and written, and into which no
    // reference of this image goes.
    unsafe { Segment::from_raw(base, span.len as usize) }
}
// ANCHOR_END: memory

/// Writes a word somewhere into the board's own segment, as nobody must but `scribbler`.
pub fn scribble(at: u32, word: u32) {
    const MINE: Span = Link::<MTU>::REGION.second;
    let words = MINE.len as u32 / 4;
    let address = PSRAM + MINE.offset as usize + 4 * (at % words) as usize;
    // SAFETY: it lies in PSRAM, an aligned word into which no reference of this image goes.
    unsafe { with_exposed_provenance_mut::<u32>(address).write_volatile(word) }
}

/// UART1: one byte rings.
pub struct Uart1;

impl Doorbell for Uart1 {
    fn ring(&self) {
        board::ring_bell();
    }
}
