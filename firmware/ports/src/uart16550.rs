//! The 16550 UART (TI PC16550D, section 8), with registers of a byte, one behind the other.
//!
//! It keeps 16 bytes each way, and interrupts while there are some that have arrived.

use sinew_drive::bytes::Device;

use crate::register::{read8, write8};

/// Receive and send; divisor, lower byte.
const DATA: usize = 0;
/// Interrupts; divisor, upper byte.
const INTERRUPTS: usize = 1;
const FIFO: usize = 2;
const LINE: usize = 3;
const STATE: usize = 5;

const RECEIVED: u8 = 1;
const DIVISOR: u8 = 0x80;
const EIGHT_BITS: u8 = 3;
const FIFO_EMPTY_AND_ON: u8 = 7;
const HAS_BYTE: u8 = 1;
const HAS_ROOM: u8 = 0x20;

/// The UART whose registers begin at `BASE`.
#[derive(Clone, Copy, Debug)]
pub struct Uart<const BASE: usize>(());

impl<const BASE: usize> Uart<BASE> {
    /// The UART there.
    ///
    /// # Safety
    /// At `BASE` are the registers of a 16550.
    pub const unsafe fn new() -> Self {
        Uart(())
    }

    fn read(register: usize) -> u8 {
        // SAFETY: one of the constants above, and `new` has promised the device. Reading has effects on
        // the device only.
        unsafe { read8(BASE + register) }
    }

    fn write(register: usize, value: u8) {
        // SAFETY: as above; the device writes to no memory.
        unsafe { write8(BASE + register, value) }
    }

    /// Switches it on, 8 bits without parity, with its receive interrupt: a bit takes 16 * `divisor` clocks of
    /// the UART.
    pub fn start(&self, divisor: u16) {
        let [low, high] = divisor.to_le_bytes();
        Self::write(LINE, DIVISOR | EIGHT_BITS);
        Self::write(DATA, low);
        Self::write(INTERRUPTS, high);
        Self::write(LINE, EIGHT_BITS);
        Self::write(FIFO, FIFO_EMPTY_AND_ON);
        Self::write(INTERRUPTS, RECEIVED);
    }
}

// ANCHOR: device
/// The receive interrupt ends with the last byte. Where there is no room, a byte that is sent is lost.
impl<const BASE: usize> Device for Uart<BASE> {
    fn receive(&self) -> Option<u8> {
        (Self::read(STATE) & HAS_BYTE != 0).then(|| Self::read(DATA))
    }

    fn has_room(&self) -> bool {
        Self::read(STATE) & HAS_ROOM != 0
    }

    fn send(&self, byte: u8) {
        Self::write(DATA, byte);
    }
}
// ANCHOR_END: device

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Access::*, done, set};

    // SAFETY: registers of the test.
    const UART: Uart<0x1000_0000> = unsafe { Uart::new() };

    #[test]
    fn the_divisor_is_set_before_interrupts_are_on() {
        UART.start(0x102);
        let at = |register: usize, value| Write(0x1000_0000 + register, value);
        let divisor = [at(3, 0x83), at(0, 2), at(1, 1)];
        assert_eq!(
            done(),
            [&divisor[..], &[at(3, 3), at(2, 7), at(1, 1)]].concat()
        );
    }

    #[test]
    fn a_byte_is_taken_only_where_there_is_one() {
        assert_eq!(UART.receive(), None);
        set(0x1000_0005, 1);
        set(0x1000_0000, 0x7e);
        assert_eq!(UART.receive(), Some(0x7e));
        assert!(!UART.has_room());
        set(0x1000_0005, 0x20);
        assert!(UART.has_room());
    }
}
