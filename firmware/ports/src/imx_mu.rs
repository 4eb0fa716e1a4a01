//! The messaging unit of NXP's i.MX chips as a doorbell: one of its four general purpose interrupts.
//!
//! Written by the reference manual: unit tests and compilation only, run on no chip.
//!
//! There are two kinds: [`Mu`] with one status and one control register (i.MX 7D reference manual, chapter 4.2
//! "Messaging Unit (MU)"; i.MX 8M, chapter "Messaging Unit (MU)"), and [`Mu2`] with one for each purpose (i.MX
//! 8ULP, i.MX 93, chapter "Messaging Unit (MU)"). Each side has registers of its own, at its own `BASE`.
//!
//! The sides may have clocks of their own. Then what one takes still stands as a request at the other for a few of
//! its clocks, and a ring in that time is none. A side that sleeps until it is rung therefore also looks now and
//! then, as by a timer. (SR.EP says that an event of this side is still on its way; whether taking an interrupt is
//! such an event is to be tried on a chip.)

use sinew_shm::domain::Doorbell;

use crate::register::{barrier, read, write};

const SR: usize = 0x20;
const CR: usize = 0x24;
/// The requests of all four interrupts, in the control register. Written as 0 they stay as they are.
const REQUESTS: u32 = 0xf << 16;

/// General purpose interrupt `N`, 0 to 3, of the side whose registers begin at `BASE`.
#[derive(Clone, Copy, Debug)]
pub struct Mu<const BASE: usize, const N: u32>(());

impl<const BASE: usize, const N: u32> Mu<BASE, N> {
    const VALID: () = assert!(N < 4);
    /// Pending, in the status register; enabled, in the control register.
    const PENDING: u32 = 1 << (31 - N);
    const ENABLED: u32 = 1 << (31 - N);
    const REQUEST: u32 = 1 << (19 - N);

    /// The interrupt there.
    ///
    /// # Safety
    /// At `BASE` are the registers of one side of such a unit.
    pub const unsafe fn new() -> Self {
        () = Self::VALID;
        Mu(())
    }

    fn control() -> u32 {
        // SAFETY: `new` has promised the device; reading has no effect.
        unsafe { read(BASE + CR) }
    }

    fn write(register: usize, value: u32) {
        // SAFETY: one of the constants above, and `new` has promised the device, which writes to no memory.
        unsafe { write(BASE + register, value) }
    }

    /// Lets what the other side rings interrupt. Before the first ring, and while nothing else changes the
    /// control register.
    pub fn start(&self) {
        Self::write(CR, (Self::control() & !REQUESTS) | Self::ENABLED);
    }

    /// Takes what was rung. In the interrupt, before looking for what it rang for.
    pub fn acknowledge(&self) {
        Self::write(SR, Self::PENDING);
        barrier();
    }
}

impl<const BASE: usize, const N: u32> Doorbell for Mu<BASE, N> {
    fn ring(&self) {
        barrier();
        let control = Self::control();
        // The request stands until the other side has taken it: then that one rings already.
        if control & Self::REQUEST == 0 {
            Self::write(CR, (control & !REQUESTS) | Self::REQUEST);
        }
    }
}

const GIER: usize = 0x110;
const GCR: usize = 0x114;
const GSR: usize = 0x118;

/// General purpose interrupt `N`, 0 to 3, of the side of the later unit whose registers begin at `BASE`.
#[derive(Clone, Copy, Debug)]
pub struct Mu2<const BASE: usize, const N: u32>(());

impl<const BASE: usize, const N: u32> Mu2<BASE, N> {
    const VALID: () = assert!(N < 4);

    /// The interrupt there.
    ///
    /// # Safety
    /// At `BASE` are the registers of one side of such a unit.
    pub const unsafe fn new() -> Self {
        () = Self::VALID;
        Mu2(())
    }

    fn read(register: usize) -> u32 {
        // SAFETY: one of the constants above, and `new` has promised the device; reading has no effect.
        unsafe { read(BASE + register) }
    }

    fn write(register: usize, value: u32) {
        // SAFETY: as above; the device writes to no memory.
        unsafe { write(BASE + register, value) }
    }

    /// Lets what the other side rings interrupt. While nothing else changes which of them do.
    pub fn start(&self) {
        Self::write(GIER, Self::read(GIER) | 1 << N);
    }

    /// Takes what was rung. In the interrupt, before looking for what it rang for.
    pub fn acknowledge(&self) {
        Self::write(GSR, 1 << N);
        barrier();
    }
}

impl<const BASE: usize, const N: u32> Doorbell for Mu2<BASE, N> {
    fn ring(&self) {
        barrier();
        // The request stands until the other side has taken it: then that one rings already.
        if Self::read(GCR) & 1 << N == 0 {
            Self::write(GCR, 1 << N);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Access::*, done, set};

    const BASE: usize = 0x30aa_0000;

    #[test]
    fn a_request_that_stands_is_not_made_again() {
        // SAFETY: registers of the test.
        let mu = unsafe { Mu::<BASE, 1>::new() };
        let (sr, cr) = (BASE + 0x20, BASE + 0x24);
        mu.start();
        assert_eq!(done(), [Read(cr), Write(cr, 1 << 30)]);
        mu.ring();
        // Another request that stands is not repeated either.
        assert_eq!(done(), [Barrier, Read(cr), Write(cr, 1 << 30 | 1 << 18)]);
        mu.ring();
        assert_eq!(done(), [Barrier, Read(cr)]);
        set(cr, 1 << 30 | 1 << 19);
        mu.ring();
        assert_eq!(done(), [Barrier, Read(cr), Write(cr, 1 << 30 | 1 << 18)]);
        mu.acknowledge();
        assert_eq!(done(), [Write(sr, 1 << 30), Barrier]);
    }

    #[test]
    fn the_later_unit_has_a_register_for_each_purpose() {
        // SAFETY: registers of the test.
        let mu = unsafe { Mu2::<BASE, 2>::new() };
        set(BASE + 0x110, 1);
        mu.start();
        assert_eq!(done(), [Read(BASE + 0x110), Write(BASE + 0x110, 5)]);
        mu.ring();
        mu.ring();
        let gcr = BASE + 0x114;
        assert_eq!(
            done(),
            [Barrier, Read(gcr), Write(gcr, 4), Barrier, Read(gcr)]
        );
        mu.acknowledge();
        assert_eq!(done(), [Write(BASE + 0x118, 4), Barrier]);
    }
}
