//! mps2-an385: UART0, UART1 as a doorbell, and SysTick; what is enabled, and what wakes the core.
//!
//! Unsafe code says where devices are, and spins; nothing else.

use core::arch::asm;

use sinew_drive::bytes::Device;
use sinew_ports::cmsdk_uart::Uart;
use sinew_ports::nvic;
use sinew_ports::systick::{self, SysTick};

/// UART0: bytes that are frames, or text.
pub type Uart0 = Uart<0x4000_4000>;
/// The one that this board has there.
// SAFETY: it has.
pub const UART: Uart0 = unsafe { Uart::new() };
// SAFETY: and there.
const BELL: Uart<0x4000_5000> = unsafe { Uart::new() };
/// Interrupt of what UART0 receives.
const UART_IRQ: usize = 0;
/// Interrupt of what UART1 receives.
const BELL_IRQ: usize = 2;

/// Switches UART0 and SysTick on. Their interrupts only end [`sinew_rt::sleep`], unless they have handlers.
pub fn start() {
    start_uart();
    start_clock();
}

/// Switches UART0 on, with its receive interrupt.
pub fn start_uart() {
    UART.start(217); // 115,200 baud of 25 MHz
    nvic::enable(UART_IRQ);
}

/// Switches SysTick on, which ends [`sinew_rt::sleep`] every 0.67 s.
pub fn start_clock() {
    SysTick.start();
}

/// Takes back what woke the core, so that the next sleep waits for something new.
///
/// To be called before looking for work: what comes later ends the next sleep at once.
pub fn acknowledge() {
    UART.acknowledge();
    nvic::acknowledge(UART_IRQ);
    SysTick.acknowledge();
}

/// Switches UART1 on as a doorbell; its handler is one of [`interrupts`](crate::interrupts).
/// Before the link is opened, which rings: a byte that is written to a UART that is off stays there,
/// and every later one waits behind it.
pub fn start_bell() {
    BELL.start(16);
    // A byte that came before the receiver was on would hold up the first doorbell.
    BELL.discard();
    nvic::enable(BELL_IRQ);
}

/// Rings the other side by one byte. Where one is still on its way out, that one rings: nobody has
/// taken it yet.
#[inline(never)]
pub fn ring_bell() {
    if BELL.has_room() {
        BELL.send(1);
    }
}

/// Takes the doorbell, and what woke the core: for a loop that sleeps with interrupts masked, after the sleep,
/// before it looks for what was rung for.
pub fn take_bell() {
    nvic::acknowledge(BELL_IRQ);
    SysTick.acknowledge();
    bell_rang();
}

/// Takes the doorbell: first in its interrupt handler.
pub fn bell_rang() {
    // In this order, or the interrupt of a byte that comes meanwhile would be lost.
    BELL.acknowledge();
    // What is left over interrupts again.
    for _ in 0..16 {
        if BELL.receive().is_none() {
            break;
        }
    }
}

/// What the processor calls: entry `n` is that of exception `n + 4`, and [`BELL_IRQ`] the last.
pub type Vectors = [extern "C" fn(); 13 + BELL_IRQ];

/// A vector table with these handlers. Every other interrupt ends the image.
pub const fn vectors(
    systick: extern "C" fn(),
    uart: extern "C" fn(),
    bell: extern "C" fn(),
) -> Vectors {
    let mut vectors: Vectors = [fault; 13 + BELL_IRQ];
    vectors[15 - 4] = systick;
    vectors[12 + UART_IRQ] = uart;
    vectors[12 + BELL_IRQ] = bell;
    vectors
}

/// A handler for what must not happen.
pub extern "C" fn fault() {
    sinew_rt::exit(2)
}

/// A handler for what only ends a sleep.
pub extern "C" fn nothing() {}

/// Names the functions that are called for SysTick, for what UART0 receives, and for the doorbell, each an
/// `extern "C" fn()`: `interrupts!(nothing, fault, path::of::function)`. Once in an image.
#[macro_export]
macro_rules! interrupts {
    ($systick:path, $uart:path, $bell:path) => {
        #[used]
        #[unsafe(link_section = ".vectors.irq")]
        static VECTORS: $crate::board::Vectors = $crate::board::vectors($systick, $uart, $bell);
    };
}

/// The time since the start. It has to be read once in 0.67 s; SysTick's own interrupt wakes the core that
/// often.
pub type Clock = systick::Clock<25>;

/// SysTick now; it counts down, at 25 MHz.
pub fn ticks() -> u32 {
    SysTick.ticks()
}

pub use systick::elapsed;

/// Runs a loop of two instructions so many times, at least once: what counts are checked with.
pub fn spin(times: u32) {
    // SAFETY: it changes a register and the flags, and nothing else.
    unsafe {
        asm!("1: subs {0}, {0}, #1", "bne 1b", inout(reg) times => _, options(nomem, nostack))
    }
}
