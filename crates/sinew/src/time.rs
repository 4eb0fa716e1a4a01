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
        self.after_micros(micros(span))
    }

    /// [`Instant::after`] for a span that has been converted by [`micros`].
    pub(crate) const fn after_micros(self, span: u64) -> Instant {
        Instant(self.0.saturating_add(span))
    }

    /// The same with one copy on small cores, for who calls it in many places and seldom.
    #[cfg_attr(target_os = "none", inline(never))]
    pub(crate) const fn later(self, span: u64) -> Instant {
        self.after_micros(span)
    }
}

/// A span in microseconds. Engines keep spans like this: the conversion is long on a small core.
pub(crate) const fn micros(span: Duration) -> u64 {
    span.as_secs()
        .saturating_mul(1_000_000)
        .saturating_add(span.subsec_micros() as u64)
}
