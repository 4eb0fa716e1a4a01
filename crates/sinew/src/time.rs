//! Time is an argument: engines never read a clock.

use core::time::Duration;

/// A point in time: microseconds since a start that the caller chose (boot, program start).
///
/// Only differences matter. The range is 584,000 years, so it never wraps in practice; additions
/// saturate, and [`Instant::FAR`] stands for "no deadline" where a minimum is computed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The start of the caller's clock.
    pub const START: Instant = Instant(0);
    /// Later than every deadline.
    pub const FAR: Instant = Instant(u64::MAX);

    /// The point `micros` microseconds after the start.
    pub const fn from_micros(micros: u64) -> Self {
        Instant(micros)
    }

    /// Microseconds since the start.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to `self`; zero where `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// The point `span` later; [`Instant::FAR`] where that is out of range.
    pub const fn after(self, span: Duration) -> Instant {
        let micros = span.as_micros();
        if micros > (u64::MAX - self.0) as u128 {
            Instant::FAR
        } else {
            Instant(self.0 + micros as u64)
        }
    }
}
