//! The registers of mps2-an521, and what its two cores share.
//!
//! Unsafe code names devices, and reads and writes registers of the core and of the subsystem.

use core::arch::asm;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use pair::{Chip, First};
use sinew::time::Instant;
use sinew_ports::cmsdk_uart::Uart;
use sinew_ports::mhu::Mhu;
use sinew_ports::nvic;
use sinew_ports::systick::{Clock, SysTick};
use sinew_shm::domain::Doorbell as _;

const MHU0: usize = 0x5000_3000;
const MHU1: usize = 0x5000_4000;
/// Their interrupts, on both cores.
const MHU0_IRQ: usize = 6;
const MHU1_IRQ: usize = 7;

/// UART0.
pub type Uart0 = Uart<0x5020_0000>;
/// See [`Uart0`].
// SAFETY: this board has a CMSDK UART there.
pub const UART: Uart0 = unsafe { Uart::new() };
const UART_IRQ: usize = 32;

/// System control: where the second core starts, and which cores wait.
const INITSVTOR1: usize = 0x5002_1114;
const CPUWAIT: usize = 0x5002_1118;
/// As in core1.x.
const SECOND_START: u32 = 0x1020_0000;

fn write(register: usize, value: u32) {
    // SAFETY: only the constants above are written, each a register of this board, and none
    // of them makes the hardware write to memory that Rust code of this image has.
    unsafe { ptr::with_exposed_provenance_mut::<u32>(register).write_volatile(value) }
}

/// The doorbell has rung since the last look.
static RUNG: AtomicBool = AtomicBool::new(false);

/// A core of this board, by its number.
pub struct Board<const CORE: usize>;

// SAFETY: the first SRAM of 32 KiB and those behind it are there from this address on, core0.x and core1.x leave them
// out, and the cores have no caches. Handlers of this crate store one flag.
unsafe impl<const CORE: usize> Chip for Board<CORE> {
    const SHARED: usize = 0x3000_0000;
    type Doorbell = Mhu<MHU0, CORE>;
    // SAFETY: it is there, and images are built for one core.
    const DOORBELL: Self::Doorbell = unsafe { Mhu::new() };
    type Clock = Clock<20>;

    fn start() -> Self::Clock {
        SysTick.start();
        // What restarted this core is still there.
        // SAFETY: as above.
        unsafe { Mhu::<MHU1, CORE>::new() }.acknowledge();
        Self::DOORBELL.acknowledge();
        nvic::enable(MHU0_IRQ);
        if CORE == 1 {
            nvic::enable(MHU1_IRQ);
        }
        sinew_rt::unmask();
        Clock::start()
    }

    fn look(clock: &mut Self::Clock) -> Instant {
        RUNG.store(false, Ordering::Relaxed);
        Instant::from_micros(clock.micros())
    }

    fn sleep() {
        sinew_rt::sleep_unless(|| RUNG.load(Ordering::Relaxed));
    }
}

impl First for Board<0> {
    fn start_peer() {
        write(INITSVTOR1, SECOND_START);
        write(CPUWAIT, 0);
    }

    fn restart_peer() {
        // SAFETY: it is there.
        unsafe { Mhu::<MHU1, 0>::new() }.ring();
    }

    fn spin(times: u32) {
        spin(times);
    }
}

/// Runs a loop of two instructions so many times, at least once.
pub(crate) fn spin(times: u32) {
    // SAFETY: it changes a register and the flags, and nothing else.
    unsafe {
        asm!("1: subs {0}, {0}, #1", "bne 1b", inout(reg) times => _, options(nomem, nostack))
    }
}

/// What the processor calls: entry `n` is that of exception `n + 4`.
pub type Vectors = [extern "C" fn(); 13 + UART_IRQ];

/// The vector table of core `CORE`: doorbell, restart, and what only ends a sleep.
pub const fn vectors<const CORE: usize>() -> Vectors {
    let mut vectors: Vectors = [fault; 13 + UART_IRQ];
    vectors[15 - 4] = woken;
    vectors[12 + MHU0_IRQ] = rung::<CORE>;
    vectors[12 + MHU1_IRQ] = sinew_rt::restart;
    vectors[12 + UART_IRQ] = received;
    vectors
}

extern "C" fn fault() {
    sinew_rt::exit(2)
}

/// SysTick has ended a sleep; there is nothing else to do.
extern "C" fn woken() {}

extern "C" fn rung<const CORE: usize>() {
    Board::<CORE>::DOORBELL.acknowledge();
    RUNG.store(true, Ordering::Relaxed);
}

/// The main loop takes the byte.
extern "C" fn received() {
    UART.acknowledge();
    RUNG.store(true, Ordering::Relaxed);
}

/// Switches UART0 on, with its interrupt, which ends a sleep.
pub fn start_uart() {
    UART.start(174); // 115,200 baud of 20 MHz
    nvic::enable(UART_IRQ);
}
