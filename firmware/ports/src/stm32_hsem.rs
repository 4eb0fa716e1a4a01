//! The hardware semaphores of the STM32H7, WB, WL and MP1, HSEM (RM0399, chapter "Hardware semaphore (HSEM)";
//! the same chapter of RM0434, RM0453 and RM0436).
//!
//! Written by the reference manual: unit tests and compilation only, run on no chip.
//!
//! A core takes a semaphore by reading: the hardware enters the core that reads, which it knows from the bus.

use sinew_shm::domain::HardwareLock;

use crate::register::{barrier, read, write};

const R: usize = 0x0;
const RLR: usize = 0x80;
const CR: usize = 0x140;
const KEYR: usize = 0x144;
const LOCKED: u32 = 1 << 31;
const HOLDER: u32 = 0xf << 8;
const KEY: u32 = 0xffff << 16;

/// Semaphore `N`, 0 to 31, of the unit whose registers begin at `BASE`, for the core with the bus number `CORE`,
/// which this runs on, and its peer with `PEER`: on the H745 the Cortex-M7 has 3 and the Cortex-M4 1, on the WB
/// the Cortex-M4 has 4 and the Cortex-M0+ 8, on the MP1 the Cortex-A7 has 1 and the Cortex-M4 2.
#[derive(Clone, Copy, Debug)]
pub struct Hsem<const BASE: usize, const N: usize, const CORE: u32, const PEER: u32>(());

impl<const BASE: usize, const N: usize, const CORE: u32, const PEER: u32>
    Hsem<BASE, N, CORE, PEER>
{
    const VALID: () = assert!(N < 32 && CORE < 16 && PEER < 16 && CORE != PEER);
    const MINE: u32 = LOCKED | CORE << 8;

    /// The semaphore there.
    ///
    /// # Safety
    /// At `BASE` are the registers of such a unit, this code runs on that core, and no other code of it takes
    /// this semaphore.
    pub const unsafe fn new() -> Self {
        () = Self::VALID;
        Hsem(())
    }

    fn read(register: usize) -> u32 {
        // SAFETY: one of the constants above, and `new` has promised the device, which writes to no memory.
        unsafe { read(BASE + register) }
    }

    fn write(register: usize, value: u32) {
        // SAFETY: as above.
        unsafe { write(BASE + register, value) }
    }

    fn holder() -> u32 {
        Self::read(R + 4 * N) & (LOCKED | HOLDER)
    }
}

// SAFETY: registers, and nothing of the link.
unsafe impl<const BASE: usize, const N: usize, const CORE: u32, const PEER: u32> HardwareLock
    for Hsem<BASE, N, CORE, PEER>
{
    fn try_lock(&self) -> bool {
        let is_mine = Self::read(RLR + 4 * N) == Self::MINE;
        barrier();
        is_mine
    }

    fn unlock(&self) {
        barrier();
        // Taken only from the core that has it.
        Self::write(R + 4 * N, CORE << 8);
    }

    fn is_held_by_peer(&self) -> bool {
        Self::holder() == LOCKED | PEER << 8
    }

    /// Frees every semaphore that the peer's core has.
    fn force_unlock(&self) -> bool {
        Self::write(CR, Self::read(KEYR) & KEY | PEER << 8);
        !self.is_held_by_peer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Access::*, device, done, set};

    const BASE: usize = 0x5802_6400;
    const R7: usize = BASE + 28;
    const RLR7: usize = BASE + 0x80 + 28;

    #[test]
    fn a_semaphore_is_taken_by_reading_and_given_back_by_the_own_number() {
        // SAFETY: registers of the test.
        let semaphore = unsafe { Hsem::<BASE, 7, 3, 1>::new() };
        // What the hardware answers to this core, and to the other one.
        set(RLR7, LOCKED | 3 << 8);
        assert!(semaphore.try_lock());
        assert_eq!(done(), [Read(RLR7), Barrier]);
        semaphore.unlock();
        assert_eq!(done(), [Barrier, Write(R7, 3 << 8)]);
        set(RLR7, LOCKED | 1 << 8);
        set(R7, LOCKED | 1 << 8);
        assert!(!semaphore.try_lock() && semaphore.is_held_by_peer());
        set(R7, LOCKED | 3 << 8);
        assert!(!semaphore.is_held_by_peer());
    }

    #[test]
    fn a_dead_peers_semaphores_are_freed_by_the_key() {
        // SAFETY: registers of the test.
        let semaphore = unsafe { Hsem::<BASE, 7, 3, 1>::new() };
        set(BASE + 0x144, 0x5aa5_0000);
        set(R7, LOCKED | 1 << 8);
        assert!(
            !semaphore.force_unlock(),
            "the hardware did not take the key"
        );
        device(|registers, at, value| {
            if (at, value) == (BASE + 0x140, 0x5aa5_0100) {
                registers.insert(R7, 0);
            }
        });
        assert!(semaphore.force_unlock());
    }
}
