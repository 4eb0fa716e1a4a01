//! The hardware semaphores of NXP's i.MX chips, SEMA4 (i.MX 7D reference manual, chapter 4.3 "Semaphore
//! (SEMA4)"; i.MX 8M, chapter "Semaphore (SEMA4)").
//!
//! Written by the reference manual: unit tests and compilation only, run on no chip.
//!
//! A gate is a byte: 0 where it is free, else the number of the processor that has it, plus 1. The hardware takes
//! a write only from who may do it: of the own number where the gate is free, of 0 from who has it.

use sinew_shm::domain::HardwareLock;

use crate::register::{barrier, read8, write8, write16};

/// 16 bits: a gate's number in the upper byte, one of two keys in the lower one.
const RSTGT: usize = 0x100;
const RESET_FIRST: u16 = 0xe2;
const RESET_THEN: u16 = 0x1d;

/// Gate `GATE`, 0 to 15, of the unit whose registers begin at `BASE`, for processor `CPU`, 0 or 1, which this
/// runs on.
#[derive(Clone, Copy, Debug)]
pub struct Sema4<const BASE: usize, const GATE: usize, const CPU: u8>(());

impl<const BASE: usize, const GATE: usize, const CPU: u8> Sema4<BASE, GATE, CPU> {
    const VALID: () = assert!(GATE < 16 && CPU < 2);
    const MINE: u8 = CPU + 1;

    /// The gate there.
    ///
    /// # Safety
    /// At `BASE` are the registers of such a unit, and this code runs on that processor.
    pub const unsafe fn new() -> Self {
        () = Self::VALID;
        Sema4(())
    }

    fn holder() -> u8 {
        // SAFETY: `new` has promised the device; reading has no effect.
        unsafe { read8(BASE + GATE) & 3 }
    }

    fn write(value: u8) {
        // SAFETY: as above; the device writes to no memory.
        unsafe { write8(BASE + GATE, value) }
    }
}

// SAFETY: registers, and nothing of the link.
unsafe impl<const BASE: usize, const GATE: usize, const CPU: u8> HardwareLock
    for Sema4<BASE, GATE, CPU>
{
    fn try_lock(&self) -> bool {
        Self::write(Self::MINE);
        let is_mine = Self::holder() == Self::MINE;
        barrier();
        is_mine
    }

    fn unlock(&self) {
        barrier();
        Self::write(0);
    }

    fn is_held_by_peer(&self) -> bool {
        !matches!(Self::holder(), 0 | 3) && Self::holder() != Self::MINE
    }

    /// By the two writes that reset this gate, whoever has it.
    fn force_unlock(&self) -> bool {
        // SAFETY: as above.
        unsafe {
            write16(BASE + RSTGT, RESET_FIRST);
            write16(BASE + RSTGT, (GATE as u16) << 8 | RESET_THEN);
        }
        Self::holder() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Access::*, Registers, device, done};

    const BASE: usize = 0x30ac_0000;
    const GATE: usize = BASE + 5;

    /// Takes 2 of processor 1 where it is free, and 0; the reset frees any gate.
    fn sema4(registers: &mut Registers, at: usize, value: u32) {
        let held = registers.get(&GATE).copied().unwrap_or_default();
        match (at, value) {
            (GATE, 0) if held == 2 => registers.insert(GATE, 0),
            (GATE, 2) if held == 0 => registers.insert(GATE, 2),
            (GATE, _) => None,
            (_, 0x051d) => registers.insert(GATE, 0),
            _ => None,
        };
    }

    #[test]
    fn a_gate_has_one_holder_until_it_is_given_back_or_reset() {
        // SAFETY: registers of the test.
        let gate = unsafe { Sema4::<BASE, 5, 1>::new() };
        device(sema4);
        assert!(gate.try_lock());
        assert_eq!(done(), [Write(GATE, 2), Read(GATE), Barrier]);
        assert!(!gate.is_held_by_peer());
        gate.unlock();
        crate::fake::set(GATE, 1);
        assert!(!gate.try_lock() && gate.is_held_by_peer());
        gate.unlock();
        assert!(
            gate.is_held_by_peer(),
            "who does not hold it does not free it"
        );
        done();
        assert!(gate.force_unlock());
        let reset = BASE + 0x100;
        assert_eq!(
            done(),
            [Write(reset, 0xe2), Write(reset, 0x51d), Read(GATE)]
        );
        assert!(gate.try_lock());
    }
}
