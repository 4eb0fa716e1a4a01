//! The UART of Arm's Cortex-M System Design Kit (CMSDK, DDI 0479, 4.3 "APB UART").
//!
//! It keeps one byte each way, and interrupts for each byte that arrives.

use sinew_drive::bytes::Device;

use crate::register::{read, write};

const DATA: usize = 0x0;
const STATE: usize = 0x4;
const CTRL: usize = 0x8;
const INT: usize = 0xc;
const BAUDDIV: usize = 0x10;

const TX_FULL: u32 = 1;
const RX_FULL: u32 = 2;
const TX_RX_AND_RX_INT: u32 = 1 | 2 | 8;
const RX_INT: u32 = 2;

/// The UART whose registers begin at `BASE`.
#[derive(Clone, Copy, Debug)]
pub struct Uart<const BASE: usize>(());

impl<const BASE: usize> Uart<BASE> {
    /// The UART there.
    ///
    /// # Safety
    /// At `BASE` are the registers of a CMSDK UART.
    pub const unsafe fn new() -> Self {
        Uart(())
    }

    fn read(register: usize) -> u32 {
        // SAFETY: one of the constants above, and `new` has promised the device. Reading has effects on
        // the device only.
        unsafe { read(BASE + register) }
    }

    fn write(register: usize, value: u32) {
        // SAFETY: as above; the device writes to no memory.
        unsafe { write(BASE + register, value) }
    }

    /// Switches it on, with its receive interrupt: `divisor` clocks of the peripheral a bit, 16 or more.
    pub fn start(&self, divisor: u32) {
        Self::write(BAUDDIV, divisor);
        Self::write(CTRL, TX_RX_AND_RX_INT);
    }

    /// Takes the receive interrupt back. Before bytes are taken: one that comes meanwhile interrupts again.
    pub fn acknowledge(&self) {
        Self::write(INT, RX_INT);
    }

    /// Takes what the receive register holds, whether or not it says that something has arrived. A byte that
    /// came before the receiver was on would hold up those that follow.
    pub fn discard(&self) {
        Self::read(DATA);
    }
}

/// Where there is no room, a byte that is sent is lost.
impl<const BASE: usize> Device for Uart<BASE> {
    fn receive(&self) -> Option<u8> {
        (Self::read(STATE) & RX_FULL != 0).then(|| Self::read(DATA) as u8)
    }

    fn has_room(&self) -> bool {
        Self::read(STATE) & TX_FULL == 0
    }

    fn send(&self, byte: u8) {
        Self::write(DATA, u32::from(byte));
    }
}
