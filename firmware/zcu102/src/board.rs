//! The core and what it shares with Linux: protection, memory, doorbell, clock.

use core::arch::asm;
use core::ptr::{NonNull, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sinew_ports::gic::Pending;
use sinew_rt::cortex_r::{Access, Memory as Kind, Region as Protected, protect};
use sinew_shm::domain::{
    Block, ChannelPlan, Coherent, End, Memory, Options, Parts, Plan, Platform, Region, Role, Slot,
    Span, Uses,
};
use sinew_shm::{Lock, Segment};

use crate::agreed::{CODE_LEN, LINK, OCM, TCM};

/// The distributor of the interrupt controller of the Cortex-A53.
const GIC: usize = 0xf901_0000;
/// The interrupt that is the doorbell to Linux, also in zcu102-linux/board.dts: that of the IPI block, which
/// this emulator does not have.
const BELL: u32 = 67;
// SAFETY: the chip has a GICv2 there, and the IPI block, whose interrupt this is, is not used.
const DOORBELL: Pending<GIC, BELL> = unsafe { Pending::new() };

const REGION: Region = Region::of(&LINK);

/// As a region of the protection unit, which needs a power of two, and a multiple of it.
const fn own() -> Protected {
    let span = REGION.second;
    let (base, len) = (OCM as u32 + span.offset as u32, span.len as u32);
    assert!(len.is_power_of_two() && base.is_multiple_of(len));
    region(base, len.ilog2(), SHARED, Access::Write)
}

const PRIVATE: Kind = Kind::Normal { shared: false };
/// On-chip memory. Not cached: nothing keeps the caches of this core and of the Cortex-A53 the same, and
/// Linux maps it uncached as well. Normal, so that packets may be written byte by byte where they leave
/// from. (Where nothing else is said, this core takes it for Strongly-ordered, without unaligned accesses.)
const SHARED: Kind = Kind::Normal { shared: true };

const fn region(base: u32, log2: u32, memory: Kind, access: Access) -> Protected {
    Protected {
        base,
        log2,
        memory,
        access,
    }
}

/// Everything that the image may reach. The peer's segment can be read alone, so a mistake here can
/// spoil nothing there.
const REGIONS: [Protected; 6] = [
    region(TCM as u32, CODE_LEN.ilog2(), PRIVATE, Access::Run),
    region(TCM as u32 + 0x2_0000, 16, PRIVATE, Access::Write),
    region(OCM as u32, 18, SHARED, Access::Read),
    own(),
    region(0xffff_0000, 12, PRIVATE, Access::Run), // the vectors: `boot`
    region(GIC as u32, 12, Kind::Device, Access::Write),
];

/// The only context of the only core that runs the image.
pub struct Alone(());

// SAFETY: no interrupt is enabled, so the main loop is the only context, and what runs under the lock
// does not take it again.
unsafe impl Lock for Alone {
    const NEW: Self = Alone(());

    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }
}

/// The core's side of [`LINK`].
pub struct Board;

impl Platform for Board {
    type Lock = Alone;
    type Doorbell = Pending<GIC, BELL>;
    type Cache = Coherent;
    type Slots = [Slot; LINK.channels.len()];
    type Blocks = [Block; LINK.blocks()];
    const PLAN: Option<Plan<'static>> = Some(Plan::new(LINK, Role::Second, &CHANNELS));
    const USES: Uses = Uses {
        wakers: false,
        ..Uses::PACKETS
    };
}

const CHANNELS: [ChannelPlan; LINK.channels.len()] = ChannelPlan::all(&LINK, Role::Second);

/// Sets up the core and opens its side of the link; `None` from the second call on.
pub fn open() -> Option<End<Board>> {
    static OPENED: AtomicBool = AtomicBool::new(false);
    if OPENED.load(Relaxed) {
        return None;
    }
    OPENED.store(true, Relaxed);
    // SAFETY: code, data and stack lie where services.x has put them, and the vectors in the on-chip
    // memory.
    unsafe { protect(&REGIONS) };
    // SAFETY: the memory is there for ever, and only this link uses it: services.x places nothing there,
    // and there is no second call.
    let memory = unsafe { Memory::new(segment(REGION.second)?, segment(REGION.first)?, None) };
    let parts = Parts {
        doorbell: DOORBELL,
        cache: Coherent,
        platform: Board,
        slots: [const { Slot::EMPTY }; LINK.channels.len()],
        blocks: [Block::NEW; LINK.blocks()],
    };
    End::open_planned(memory, parts, Options::default()).ok()
}

const _: () = assert!(REGION.len <= 0x2_0000 && REGION.exchange.len == 0);

fn segment(span: Span) -> Option<Segment> {
    let base = NonNull::new(with_exposed_provenance_mut(OCM + span.offset as usize))?;
    // SAFETY: it lies in the on-chip memory, as checked above, which can be read, and written where it is
    // this side's, and into which no reference of this image goes.
    unsafe { Segment::from_raw(base, span.len as usize) }
}

/// Microseconds, by the core's cycle counter.
pub struct Clock {
    last: u32,
    ticks: u64,
}

impl Clock {
    /// A tick is 64 cycles. In the emulator a cycle is a nanosecond, on the chip two.
    const TICK_NS: u64 = 64;

    /// Starts the counter.
    pub fn start() -> Clock {
        const ENABLE: u32 = 1 << 0;
        const RESET_CYCLES: u32 = 1 << 2;
        const BY_64: u32 = 1 << 3;
        const CYCLES: u32 = 1 << 31;
        // SAFETY: PMCR and PMCNTENSET: it counts, and interrupts nobody.
        unsafe {
            asm!("mcr p15, 0, {}, c9, c12, 0", in(reg) ENABLE | RESET_CYCLES | BY_64, options(nomem, nostack));
            asm!("mcr p15, 0, {}, c9, c12, 1", in(reg) CYCLES, options(nomem, nostack));
        }
        Clock { last: 0, ticks: 0 }
    }

    /// Since the start. To be called at least once in a minute, or it loses time.
    pub fn micros(&mut self) -> u64 {
        let now: u32;
        // SAFETY: PMCCNTR is only read.
        unsafe {
            asm!("mrc p15, 0, {}, c9, c13, 0", out(reg) now, options(nomem, nostack, preserves_flags));
        }
        self.ticks += u64::from(now.wrapping_sub(self.last));
        self.last = now;
        self.ticks * Self::TICK_NS / 1000
    }
}
