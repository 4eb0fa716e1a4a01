//! What tells the bench where the core is; see `bench.cpp`.

use core::arch::asm;
use core::ptr::with_exposed_provenance_mut;

/// Where the bench has its device.
pub(crate) const DEVICE: usize = 0xf000_0000;
const NAME: usize = DEVICE;
const REPORT: usize = DEVICE + 4;

/// Calls that are counted of each kind, after some that are not.
const RUNS: u32 = 16;
const WARM_UP: u32 = 16;

/// What a cycle is spent on.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Part {
    /// Nothing that counts.
    Pause,
    /// The caller: what goes is written, what came back is used.
    Client,
    /// From one context to the other: the trap, registers, and the address space.
    Switch,
    /// The messages or packets between them, on both sides.
    Channel,
    /// The one who answers.
    Server,
    /// Clearing memory, so that nobody finds what was for another.
    Clear,
}

fn write(at: usize, value: u32) {
    // SAFETY: the device is there, takes every value, and changes no memory.
    unsafe { with_exposed_provenance_mut::<u32>(at).write_volatile(value) }
}

/// From here on it is this part. What has been written may still be on its way to the memory.
///
/// An instruction that does nothing, which the bench knows: a store to the device would take a place in
/// the TLB.
#[inline(always)]
pub fn begin(part: Part) {
    macro_rules! hint {
        ($part:expr) => {
            // SAFETY: nothing is changed. Memory is named, so that what belongs to a part stays in it.
            unsafe {
                asm!("addi zero, zero, {}", const 0x100 + $part as i32, options(nostack, preserves_flags))
            }
        };
    }
    match part {
        Part::Pause => hint!(Part::Pause),
        Part::Client => hint!(Part::Client),
        Part::Switch => hint!(Part::Switch),
        Part::Channel => hint!(Part::Channel),
        Part::Server => hint!(Part::Server),
        Part::Clear => hint!(Part::Clear),
    }
}

/// Empties both caches. What is in them is in the memory as well, for every store goes there.
///
/// Not inlined: this core empties a cache as soon as it decodes the instruction, also behind a branch that
/// is taken.
#[inline(never)]
fn empty_caches() {
    // SAFETY: the core's own instructions for it, `fence.i` with the data's cache in between; nothing
    // else changes.
    unsafe {
        asm!(
            ".word 0x500f",
            ".word 0x100f",
            options(nostack, preserves_flags)
        )
    }
}

/// Measures what `run` marks by [`begin`], with warm caches and with caches that are emptied before each
/// run. `run` ends in [`Part::Pause`]; `None` where one fails.
pub fn measure(name: &str, run: &mut dyn FnMut(u32) -> Option<()>) -> Option<()> {
    for is_cold in [false, true] {
        for n in 0..WARM_UP + RUNS {
            if n == WARM_UP {
                // What was counted so far is forgotten.
                write(REPORT, 0);
            }
            if is_cold {
                empty_caches();
            }
            run(n)?;
        }
        let state = if is_cold { "_cold" } else { "" };
        (name.bytes().chain(state.bytes())).for_each(|byte| write(NAME, byte.into()));
        write(REPORT, RUNS);
    }
    Some(())
}
