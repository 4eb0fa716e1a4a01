//! Hart 0: prints instructions per message of five words to hart 1 and its answer, of both harts
//! together, as a `name value` line on the UART.
#![no_std]
#![no_main]

use counted::{Meter, is_exact, print};
use virt::{Board, Virt};

/// Calls that are counted, after some that are not.
const CALLS: u32 = 1000;
const WARM_UP: u32 = 16;

fn run() -> Option<()> {
    pair::ask::with_peer::<Board<0, 1>>(|mut asking| {
        is_exact::<Virt>().then_some(())?;
        (0..WARM_UP)
            .try_for_each(|n| asking.call(n).ok_or(()))
            .ok()?;
        let mut meter = Meter::<Virt>::new();
        meter.runs(0..CALLS, |n| asking.call(n))?;
        print::<Virt>("", "message", meter.per_run());
        Some(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    sinew_rt::exit(match run() {
        Some(()) => 0,
        None => 3,
    })
}
