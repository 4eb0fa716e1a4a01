//! Lengths of time that a user wrote.

use std::time::Duration;

/// A clock can count so far.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Any time.
pub fn any(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(span) if span > LONGEST => Err("it is above 100 years: give e.g. 365d".into()),
        Ok(span) => Ok(span),
        Err(error) => Err(format!("{error}: give e.g. 100ms, 5s or 2min")),
    }
}

/// A time above zero.
pub fn above_zero(text: &str) -> Result<Duration, String> {
    match any(text)? {
        Duration::ZERO => Err("it must be above zero: give e.g. 100ms or 5s".into()),
        span => Ok(span),
    }
}
