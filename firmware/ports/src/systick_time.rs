//! SysTick as the time of embassy: microseconds since the start, and alarms.
//!
//! ```ignore
//! embassy_time_driver::time_driver_impl!(static TIME: Time<25, 8> = Time::new()); // 25 MHz, 8 tasks
//! // at the start: TIME.start(); in SysTick's handler: TIME.interrupt();
//! ```
//!
//! Limits. The counter has 24 bits: an alarm later than that (0.67 s at 25 MHz) is reached in several interrupts.
//! It also is the only counter: for each alarm that comes before the one that is set it begins anew, and the clock
//! goes behind by the few ticks that this takes, or by more where interrupts stay masked for longer than the alarm
//! was away. For dates, take a clock that nothing restarts. SysTick stops in the deep sleep of many chips; a plain
//! WFI or WFE does not stop it.

use core::cell::{Cell, RefCell};
use core::task::Waker;

use critical_section::{CriticalSection, Mutex};
use embassy_time_driver::Driver;

use crate::systick::{SysTick, WRAP};

/// The core's SysTick at `MHZ` megahertz, at most 27, for up to `TASKS` tasks that wait at a time; one in an image.
///
/// Where more wait, one is woken early, and waits again.
pub struct Time<const MHZ: u32, const TASKS: usize> {
    period: Mutex<Cell<Period>>,
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

/// What the counter does now.
#[derive(Clone, Copy)]
struct Period {
    /// When it began, in microseconds since the start, and ticks that make no microsecond yet.
    micros: u64,
    rest: u32,
    /// What it counts down from.
    from: u32,
}

/// The shortest way to an alarm, in ticks: so that it lies ahead when the counter starts.
const SOON: u32 = 64;
/// The longest, in microseconds, at 25 MHz; so that it comes before the counter wraps.
const LATE: u64 = 600_000;

impl Period {
    /// The time after so many ticks of it.
    fn after<const MHZ: u32>(self, ticks: u32) -> (u64, u32) {
        let ticks = self.rest + ticks;
        (self.micros + u64::from(ticks / MHZ), ticks % MHZ)
    }

    /// Ticks since it began, across its end.
    fn elapsed(self) -> u32 {
        let (ticks, has_ended) = loop {
            let before = SysTick.is_pending();
            let ticks = SysTick.ticks();
            if before == SysTick.is_pending() {
                break (ticks, before);
            }
        };
        match (has_ended, ticks) {
            // It was started, or has ended, in this very tick.
            (false, 0) => 0,
            (true, 0) => self.from,
            (false, ticks) => self.from.saturating_sub(ticks),
            (true, ticks) => self.from + 1 + self.from.saturating_sub(ticks),
        }
    }
}

impl<const MHZ: u32, const TASKS: usize> Time<MHZ, TASKS> {
    /// A clock that shows 0 until it is started.
    pub const fn new() -> Self {
        const { assert!(MHZ as u64 * LATE <= WRAP as u64) };
        let period = Period {
            micros: 0,
            rest: 0,
            from: WRAP,
        };
        Time {
            period: Mutex::new(Cell::new(period)),
            waiting: Mutex::new(RefCell::new(Waiting([const { None }; TASKS]))),
        }
    }

    /// Switches SysTick on.
    pub fn start(&self) {
        SysTick.start();
    }

    /// What SysTick's handler calls.
    pub fn interrupt(&self) {
        critical_section::with(|cs| {
            let period = self.period.borrow(cs);
            let from = period.get().from;
            let (micros, rest) = period.get().after::<MHZ>(from + 1);
            period.set(Period { micros, rest, from });
            self.wake(cs, true);
        });
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
        let period = self.period.borrow(cs).get();
        period.after::<MHZ>(period.elapsed()).0
    }

    /// `false` where the time has come.
    fn set_alarm(&self, cs: CriticalSection<'_>, at: u64, ended: bool) -> bool {
        let period = self.period.borrow(cs);
        let (micros, rest) = period.get().after::<MHZ>(period.get().elapsed());
        if at <= micros {
            return false;
        }
        let end = period.get().after::<MHZ>(period.get().from + 1).0;
        if at >= end && !ended {
            return true; // then it is looked at again
        }
        let ticks = (at - micros).min(LATE) as u32 * MHZ;
        let from = ticks.saturating_sub(rest).max(SOON);
        SysTick.restart(from);
        // Of the period before: it has been counted.
        SysTick.acknowledge();
        period.set(Period { micros, rest, from });
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
