//! The registers of mps2-an385 that are used here: UART0, UART1 as a doorbell, and SysTick.
//!
//! Unsafe code reads and writes device registers, and nothing else.

use core::arch::asm;
use core::ptr;

const UART0: usize = 0x4000_4000;
const UART_DATA: usize = UART0;
const UART_STATE: usize = UART0 + 0x4;
const UART_CTRL: usize = UART0 + 0x8;
const UART_INT: usize = UART0 + 0xc;
const UART_BAUDDIV: usize = UART0 + 0x10;
const BELL: usize = 0x4000_5000; // UART1
const BELL_DATA: usize = BELL;
const BELL_STATE: usize = BELL + 0x4;
const BELL_CTRL: usize = BELL + 0x8;
const BELL_INT: usize = BELL + 0xc;
const BELL_BAUDDIV: usize = BELL + 0x10;
/// Interrupt of what UART1 receives.
const BELL_IRQ: usize = 2;
const TX_FULL: u32 = 1;
const RX_FULL: u32 = 2;
const TX_RX_AND_RX_INT: u32 = 1 | 2 | 8;

const SYST_CSR: usize = 0xe000_e010;
const SYST_RVR: usize = 0xe000_e014;
const SYST_CVR: usize = 0xe000_e018;
const ICSR: usize = 0xe000_ed04;
const PENDSTCLR: u32 = 1 << 25;
const NVIC_ISER: usize = 0xe000_e100;
const NVIC_ICPR: usize = 0xe000_e280;

fn read(register: usize) -> u32 {
    // SAFETY: only the constants above are read, each a readable register of this board.
    unsafe { ptr::with_exposed_provenance::<u32>(register).read_volatile() }
}

fn write(register: usize, value: u32) {
    // SAFETY: only the constants above are written, each a register of this board, and none of
    // them makes the hardware write to memory.
    unsafe { ptr::with_exposed_provenance_mut::<u32>(register).write_volatile(value) }
}

/// Switches UART0 and SysTick on. Their interrupts only end [`sinew_rt::sleep`].
pub fn start() {
    write(UART_BAUDDIV, 217); // 115,200 baud of 25 MHz
    write(UART_CTRL, TX_RX_AND_RX_INT);
    write(NVIC_ISER, 1);
    start_clock();
}

/// Switches SysTick on, which ends [`sinew_rt::sleep`] every 0.67 s.
pub fn start_clock() {
    write(SYST_RVR, Clock::WRAP);
    write(SYST_CVR, 0);
    write(SYST_CSR, 7); // enabled, with interrupt, from the core's clock
}

/// Takes back what woke the core, so that the next sleep waits for something new.
///
/// To be called before looking for work: what comes later ends the next sleep at once.
pub fn acknowledge() {
    write(UART_INT, 2);
    write(NVIC_ICPR, 1);
    write(ICSR, PENDSTCLR);
}

/// The byte that UART0 has received, if any.
pub fn receive() -> Option<u8> {
    (read(UART_STATE) & RX_FULL != 0).then(|| read(UART_DATA) as u8)
}

/// Gives UART0 a byte to send, once it has room; runs `meanwhile` until then.
pub fn send(byte: u8, mut meanwhile: impl FnMut()) {
    while read(UART_STATE) & TX_FULL != 0 {
        meanwhile();
    }
    write(UART_DATA, u32::from(byte));
}

/// Switches UART1 on as a doorbell; its interrupt is that of [`bell_interrupt`](crate::bell_interrupt).
/// Before the link is opened, which rings: a byte that is written to a UART that is off stays there,
/// and every later one waits behind it.
pub fn start_bell() {
    write(BELL_BAUDDIV, 16);
    write(BELL_CTRL, TX_RX_AND_RX_INT);
    // A byte that came before the receiver was on would hold up the first doorbell.
    read(BELL_DATA);
    write(NVIC_ISER, 1 << BELL_IRQ);
}

/// Rings the other side by one byte. Where one is still on its way out, that one rings: nobody has
/// taken it yet.
pub fn ring_bell() {
    if read(BELL_STATE) & TX_FULL == 0 {
        write(BELL_DATA, 1);
    }
}

/// Takes the doorbell: to be called in its interrupt, or after a sleep, before looking for what it
/// rang for.
pub fn take_bell() {
    // In this order, or the interrupt of a byte that comes meanwhile would be lost. The first two are
    // for who has interrupts masked, so that the next sleep waits for something new.
    write(NVIC_ICPR, 1 << BELL_IRQ);
    write(ICSR, PENDSTCLR);
    write(BELL_INT, 2);
    // What is left over interrupts again.
    for _ in 0..16 {
        if read(BELL_STATE) & RX_FULL == 0 {
            break;
        }
        read(BELL_DATA);
    }
}

/// What the processor calls: entry `n` is that of exception `n + 4`, and [`BELL_IRQ`] the last.
pub type Vectors = [extern "C" fn(); 13 + BELL_IRQ];

/// A vector table with a handler for the doorbell, and one for SysTick that does nothing.
pub const fn vectors(bell: extern "C" fn()) -> Vectors {
    let mut vectors: Vectors = [fault; 13 + BELL_IRQ];
    vectors[15 - 4] = systick;
    vectors[12 + BELL_IRQ] = bell;
    vectors
}

extern "C" fn fault() {
    sinew_rt::exit(2)
}

/// It has ended the sleep; there is nothing else to do.
extern "C" fn systick() {}

/// Calls a function when the doorbell arrives: `bell_interrupt!(path::of::function)`, an
/// `extern "C" fn()`. Once in an image.
#[macro_export]
macro_rules! bell_interrupt {
    ($handler:path) => {
        #[used]
        #[unsafe(link_section = ".vectors.irq")]
        static VECTORS: $crate::board::Vectors = $crate::board::vectors($handler);
    };
}

/// The time since the start, from SysTick at 25 MHz.
///
/// It has to be read once in 0.67 s; SysTick's own interrupt wakes the core that often.
#[derive(Debug)]
pub struct Clock {
    micros: u64,
    /// SysTick at the last look, less what does not make a microsecond yet.
    last: u32,
}

impl Clock {
    const WRAP: u32 = 0xff_ffff;
    const TICKS_PER_MICRO: u32 = 25;

    /// A clock that starts now.
    pub fn start() -> Clock {
        Clock {
            micros: 0,
            last: ticks(),
        }
    }

    /// Microseconds since the start.
    pub fn micros(&mut self) -> u64 {
        let micros = elapsed(self.last, ticks()) / Self::TICKS_PER_MICRO;
        self.last = self.last.wrapping_sub(micros * Self::TICKS_PER_MICRO) & Self::WRAP;
        self.micros += u64::from(micros);
        self.micros
    }
}

/// SysTick now; it counts down from [`Clock::WRAP`], at 25 MHz.
pub fn ticks() -> u32 {
    read(SYST_CVR)
}

/// Ticks from one look at [`ticks`] to a later one, less than 0.67 s apart.
pub fn elapsed(from: u32, to: u32) -> u32 {
    from.wrapping_sub(to) & Clock::WRAP
}

/// Runs a loop of two instructions so many times, at least once: what counts are checked with.
pub fn spin(times: u32) {
    // SAFETY: it changes a register and the flags, and nothing else.
    unsafe {
        asm!("1: subs {0}, {0}, #1", "bne 1b", inout(reg) times => _, options(nomem, nostack))
    }
}
