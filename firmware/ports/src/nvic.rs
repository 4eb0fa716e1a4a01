//! The NVIC, the interrupt controller of every Cortex-M (Armv7-M ARM, B3.4): which devices interrupt the core.

use crate::register::write;

const ISER: usize = 0xe000_e100;
const ICPR: usize = 0xe000_e280;

/// Lets the interrupt in: number 0 is the first of the chip's own.
pub fn enable(interrupt: usize) {
    set(ISER, interrupt);
}

/// Takes a pending interrupt back, for who sleeps with interrupts masked: what comes later ends the next sleep.
pub fn acknowledge(interrupt: usize) {
    set(ICPR, interrupt);
}

/// There are at most 496.
fn set(registers: usize, interrupt: usize) {
    let interrupt = interrupt % 496;
    // SAFETY: Armv6-M, 7-M and 8-M have these registers there (6-M one of each, and it ignores writes to the others),
    // and none of them writes to memory.
    unsafe { write(registers + 4 * (interrupt / 32), 1 << (interrupt % 32)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Access, done};

    #[test]
    fn each_interrupt_has_its_bit() {
        enable(0);
        enable(33);
        acknowledge(63);
        let written = [(ISER, 1), (ISER + 4, 2), (ICPR + 4, 1 << 31)];
        assert_eq!(done(), written.map(|(at, bits)| Access::Write(at, bits)));
    }
}
