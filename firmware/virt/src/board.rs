//! The devices of `virt`, and what its harts share.
//!
//! Unsafe code names devices.

use core::sync::atomic::{AtomicBool, Ordering};

use pair::{Chip, First};
use sinew::time::Instant;
use sinew_ports::clint::{Msip, Mtimer};
use sinew_ports::plic::Plic;
use sinew_ports::uart16550::Uart;
use sinew_shm::domain::Doorbell as _;

const CLINT: usize = 0x200_0000;
/// As in hart1.x.
const SECOND_START: usize = 0x8010_0000;
/// A core sleeps no longer, so that deadlines and signs of life are not late.
const SLEEP_MICROS: u32 = 20_000;

/// The UART.
pub type Uart0 = Uart<0x1000_0000>;
/// See [`Uart0`].
// SAFETY: this board has a 16550 there.
pub const UART: Uart0 = unsafe { Uart::new() };
const UART_IRQ: u16 = 10;
// SAFETY: this board has a PLIC there, whose context 0 is hart 0 in machine mode.
const PLIC: Plic<0xc00_0000, 0> = unsafe { Plic::new() };

/// The clock, 10 MHz, and the timer of hart 0.
// SAFETY: this board has a CLINT there.
pub const TIMER: Mtimer<CLINT, 0, 10> = unsafe { Mtimer::new() };
// SAFETY: as above.
const SECOND_TIMER: Mtimer<CLINT, 1, 10> = unsafe { Mtimer::new() };

/// Switches the UART on, with its interrupt, which ends [`sleep`].
pub fn start_uart() {
    UART.start(1); // the emulator's takes no time
    PLIC.enable(UART_IRQ);
}

/// Waits until the UART has received something, or some time has passed: for images of one hart, that never handle an
/// interrupt. What has been received already ends the wait at once.
pub fn sleep() {
    TIMER.wake_in(SLEEP_MICROS);
    sinew_rt::sleep();
    TIMER.stop();
    let device = PLIC.claim();
    PLIC.complete(device);
}

/// The doorbell has rung since the last look.
static RUNG: AtomicBool = AtomicBool::new(false);

extern "C" fn rung<const HART: usize, const PEER: usize>() {
    Board::<HART, PEER>::DOORBELL.acknowledge();
    RUNG.store(true, Ordering::Relaxed);
}

/// A hart of this board, and the other one.
pub struct Board<const HART: usize, const PEER: usize>;

// SAFETY: there is RAM from this address on, hart0.x and hart1.x leave it out, and harts see each other's writes. The
// handler stores one flag.
unsafe impl<const HART: usize, const PEER: usize> Chip for Board<HART, PEER> {
    const SHARED: usize = 0x8020_0000;
    type Doorbell = Msip<CLINT, HART, PEER>;
    // SAFETY: it is there, and images are built for one hart.
    const DOORBELL: Self::Doorbell = unsafe { Msip::new() };
    type Clock = ();

    fn start() {
        // What started this hart, or started it again, is still there.
        match HART {
            0 => TIMER.stop(),
            _ => SECOND_TIMER.stop(),
        }
        Self::DOORBELL.acknowledge();
        sinew_rt::unmask(rung::<HART, PEER>);
    }

    fn look((): &mut ()) -> Instant {
        RUNG.store(false, Ordering::Relaxed);
        Instant::from_micros(TIMER.micros())
    }

    /// Hart 0 also wakes when time has passed; its timer runs only as long as interrupts are masked, as it is no
    /// interrupt to be handled. The timer of hart 1 is not its own.
    fn sleep() {
        sinew_rt::masked(|| {
            if RUNG.load(Ordering::Relaxed) {
                return;
            }
            if HART == 0 {
                TIMER.wake_in(SLEEP_MICROS);
            }
            sinew_rt::wait();
            if HART == 0 {
                TIMER.stop();
            }
        });
    }
}

impl First for Board<0, 1> {
    fn start_peer() {
        sinew_rt::release(SECOND_START);
        Self::DOORBELL.ring();
    }

    fn restart_peer() {
        SECOND_TIMER.wake_in(0);
    }

    fn spin(times: u32) {
        <crate::Virt as counted::Board>::spin(times);
    }
}
