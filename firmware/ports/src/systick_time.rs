//! SysTick as the time of embassy: microseconds since the start, and alarms.
//!
//! ```ignore
//! embassy_time_driver::time_driver_impl!(static TIME: Time<25, 8> = Time::new()); // 25 MHz, 8 tasks
//! // at the start: TIME.start(); in SysTick's handler: TIME.interrupt();
//! ```
//!
//! Limits. The counter has 24 bits: an alarm later than that (0.67 s at 25 MHz) is reached in several interrupts.
//! It also is the only counter: for each alarm that comes before the one that is set it begins anew, and the clock
//! goes behind by the few ticks that this takes. It never goes back. Handlers of any priority may read it and set
//! alarms; but alarms wake in SysTick's handler, and of periods that end without it and without a look, as while
//! interrupts stay masked, one counts. For dates, take a clock that nothing restarts. SysTick stops in the deep sleep
//! of many chips; a plain WFI or WFE does not stop it.

use core::cell::{Cell, RefCell};
use core::task::Waker;

use critical_section::{CriticalSection, Mutex};
use embassy_time_driver::Driver;

use crate::systick::{Clock, SysTick, WRAP};

/// The core's SysTick at `MHZ` megahertz, at most 27, for up to `TASKS` tasks that wait at a time; one in an image.
///
/// Where more wait, one is woken early, and waits again.
pub struct Time<const MHZ: u32, const TASKS: usize> {
    clock: Mutex<Cell<Clock<MHZ>>>,
    waiting: Mutex<RefCell<Waiting<TASKS>>>,
}

/// Who waits until when. Not embassy's own queues: they can panic, which an image must not.
struct Waiting<const TASKS: usize>([Option<(u64, Waker)>; TASKS]);

impl<const TASKS: usize> Waiting<TASKS> {
    fn put(&mut self, at: u64, waker: &Waker) {
        let mut free = None;
        for place in &mut self.0 {
            match place {
                Some((before, same)) if same.will_wake(waker) => {
                    *before = at.min(*before);
                    return;
                }
                Some(_) => {}
                None => free = Some(place),
            }
        }
        match free {
            Some(place) => *place = Some((at, waker.clone())),
            None => waker.wake_by_ref(),
        }
    }

    /// Wakes whose time has come; when the next one is due.
    fn wake(&mut self, now: u64) -> u64 {
        let mut next = u64::MAX;
        for place in &mut self.0 {
            match place {
                Some((at, _)) if *at > now => next = next.min(*at),
                _ => {
                    if let Some((_, waker)) = place.take() {
                        waker.wake();
                    }
                }
            }
        }
        next
    }
}

/// The shortest way to an alarm, in ticks: so that it lies ahead when the counter starts.
const SOON: u32 = 64;
/// The longest, in microseconds, at 25 MHz; so that it comes before the counter wraps.
const LATE: u64 = 600_000;

impl<const MHZ: u32, const TASKS: usize> Time<MHZ, TASKS> {
    /// A clock that shows 0 until it is started.
    pub const fn new() -> Self {
        const { assert!(MHZ as u64 * LATE <= WRAP as u64) };
        Time {
            clock: Mutex::new(Cell::new(Clock::start())),
            waiting: Mutex::new(RefCell::new(Waiting([const { None }; TASKS]))),
        }
    }

    /// Switches SysTick on.
    pub fn start(&self) {
        SysTick.start();
    }

    /// What SysTick's handler calls.
    pub fn interrupt(&self) {
        critical_section::with(|cs| self.wake(cs, true));
    }

    /// Wakes who has waited long enough, and sets the alarm for the next one; where the counter has `ended`, in any
    /// case.
    fn wake(&self, cs: CriticalSection<'_>, ended: bool) {
        let Ok(mut waiting) = self.waiting.borrow(cs).try_borrow_mut() else {
            return; // never: nothing in here wakes anything that comes back here
        };
        loop {
            let next = waiting.wake(self.micros(cs));
            if self.set_alarm(cs, next, ended) {
                return;
            }
        }
    }

    fn micros(&self, cs: CriticalSection<'_>) -> u64 {
        let mut clock = self.clock.borrow(cs).get();
        let micros = clock.micros();
        self.clock.borrow(cs).set(clock);
        micros
    }

    /// `false` where the time has come.
    fn set_alarm(&self, cs: CriticalSection<'_>, at: u64, ended: bool) -> bool {
        let micros = self.micros(cs);
        if at <= micros {
            return false;
        }
        let mut clock = self.clock.borrow(cs).get();
        if at >= clock.end() && !ended {
            return true; // then it is looked at again
        }
        let ticks = (at - micros).min(LATE) as u32 * MHZ;
        clock.restart(ticks.max(SOON));
        // Of the period before: it has been counted.
        SysTick.acknowledge();
        self.clock.borrow(cs).set(clock);
        true
    }
}

impl<const MHZ: u32, const TASKS: usize> Default for Time<MHZ, TASKS> {
    fn default() -> Self {
        Time::new()
    }
}

impl<const MHZ: u32, const TASKS: usize> Driver for Time<MHZ, TASKS> {
    fn now(&self) -> u64 {
        critical_section::with(|cs| self.micros(cs))
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|cs| {
            if let Ok(mut waiting) = self.waiting.borrow(cs).try_borrow_mut() {
                waiting.put(at, waker);
            }
            self.wake(cs, false);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    use super::*;
    use crate::systick::tests::{pass, simulate, take_interrupt};

    const PERIOD: u32 = WRAP + 1;

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn start() -> (Time<25, 2>, Arc<Woken>) {
        simulate();
        let time = Time::new();
        time.start();
        (time, Arc::default())
    }

    #[test]
    fn a_handler_that_comes_before_systicks_sees_the_period_that_has_ended() {
        let (time, woken) = start();
        pass(PERIOD - 10);
        assert_eq!(time.now(), 671_088);
        pass(20);
        // The core has entered SysTick's handler, and another one's before its first instruction.
        SysTick.acknowledge();
        assert_eq!(time.now(), 671_089);
        time.schedule_wake(681_089, &Arc::clone(&woken).into());
        time.interrupt();
        assert_eq!(time.now(), 671_089);
        pass(250_000 + 10);
        time.interrupt();
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn time_never_goes_back_while_interrupts_are_masked() {
        let (time, _) = start();
        let mut last = 0;
        for _ in 0..20 {
            pass(PERIOD / 4);
            let now = time.now();
            assert_eq!(
                now,
                last + u64::from(PERIOD / 4 / 25) + u64::from(now - last > 167_772)
            );
            last = now;
        }
        // Two of them without a look.
        pass(2 * PERIOD + 25);
        assert!(time.now() > last);
        let last = time.now();
        time.interrupt();
        assert!(time.now() >= last);
    }

    #[test]
    fn an_alarm_of_several_periods_wakes_when_it_is_due_and_not_before() {
        let (time, woken) = start();
        time.schedule_wake(2_000_000, &Arc::clone(&woken).into());
        while woken.0.load(Ordering::Relaxed) == 0 {
            assert!(time.now() < 2_001_000);
            pass(250);
            if take_interrupt() {
                time.interrupt();
            }
        }
        assert!(time.now() >= 2_000_000);
    }
}
