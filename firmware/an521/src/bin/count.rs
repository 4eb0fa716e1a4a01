//! The first core: prints instructions per message of five words to the second one and its answer, of both cores
//! together, as a `name value` line on UART0.
#![no_std]
#![no_main]

use an521::count::An521;
use an521::{Board, start_uart};
use counted::{Meter, is_exact, print};

an521::vectors!(0);

/// Calls that are counted, after some that are not.
const CALLS: u32 = 1000;
const WARM_UP: u32 = 16;

fn run() -> Option<()> {
    pair::ask::with_peer::<Board<0>>(|mut asking| {
        is_exact::<An521>().then_some(())?;
        (0..WARM_UP)
            .try_for_each(|n| asking.call(n).ok_or(()))
            .ok()?;
        let mut meter = Meter::<An521>::new();
        meter.runs(0..CALLS, |n| asking.call(n))?;
        print::<An521>("", "message", meter.per_run());
        Some(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    start_uart();
    sinew_rt::exit(match run() {
        Some(()) => 0,
        None => 3,
    })
}
