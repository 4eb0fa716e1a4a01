//! Figures as short words.

use super::model::Presence;
use crate::output::thousands;

/// A rate in at most 7 letters; `-` where it is not known.
pub fn rate(rate: Option<f64>) -> String {
    match rate {
        None => "-".into(),
        Some(0.0) => "0".into(),
        Some(rate @ ..9.95) => format!("{rate:.1}"),
        Some(rate) => short(rate.round() as u64),
    }
}

/// A count in at most 7 letters.
pub fn short(count: u64) -> String {
    const UNITS: [&str; 5] = ["M", "G", "T", "P", "E"];
    if count < 1_000_000 {
        return thousands(count);
    }
    let mut value = count as f64 / 1e6;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1e3;
        unit += 1;
    }
    format!("{value:.1}{}", UNITS[unit])
}

/// How full something is, in so many cells.
pub fn bar(part: u32, whole: u32, cells: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let share = f64::from(part.min(whole)) / f64::from(whole.max(1));
    // What there is can be seen, however little.
    let eighths = (share * cells as f64 * 8.0).ceil() as usize;
    let (full, rest) = (eighths / 8, eighths % 8);
    let text = "█".repeat(full) + EIGHTHS[rest];
    format!("{text:<cells$}")
}

/// An endpoint as short as people know it: of a long path the end.
pub fn place(endpoint: &str) -> String {
    const LONG: usize = 24;
    let parts = endpoint.split_once(':').zip(endpoint.rsplit_once('/'));
    match parts {
        Some(((kind, _), (_, end))) if endpoint.chars().count() > LONG => format!("{kind}:…/{end}"),
        _ => endpoint.into(),
    }
}

/// A name in so many letters: what is too much goes from its middle, because its end tells it from others.
pub fn shortened(name: &str, letters: usize) -> String {
    let count = name.chars().count();
    if count <= letters {
        return name.into();
    }
    let kept = letters.saturating_sub(1);
    let first = kept / 2;
    let start = name.chars().take(first);
    let end = name.chars().skip(count - (kept - first));
    start.chain(['…']).chain(end).collect()
}

/// Whether something is there, and why not.
pub fn presence(presence: &Presence) -> &str {
    match presence {
        Presence::Awaited => "opening",
        Presence::Here => "up",
        Presence::Away(why) => why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_at_most_seven_letters() {
        let rates =
            [0.0, 0.04, 9.9, 9.96, 1_234.4, 999_999.0, 1e6, 3.1e12].map(|it| rate(Some(it)));
        assert_eq!(
            rates,
            ["0", "0.0", "9.9", "10", "1,234", "999,999", "1.0M", "3.1T"]
        );
        assert_eq!(rate(None), "-");
        for bits in 0..64 {
            for count in [1 << bits, (1 << bits) - 1, u64::MAX >> bits] {
                assert!(short(count).len() <= 7, "{count} {}", short(count));
            }
        }
    }

    #[test]
    fn places_are_short() {
        let places = [
            "tcp:localhost:33000",
            "qemu:firmware/target/thumbv7m-none-eabi/release/queued?mtu=64",
            "tcp:a-host.of.a.very.long.name.example:33000",
        ];
        assert_eq!(
            places.map(place),
            [places[0], "qemu:…/queued?mtu=64", places[2]]
        );
    }

    #[test]
    fn names_that_are_too_long_keep_their_ends() {
        let name = "1 lamp tcp:127.0.0.1:34101";
        assert_eq!(shortened(name, 26), name);
        assert_eq!(shortened(name, 16), "1 lamp ….1:34101");
        assert_eq!(shortened("äöü", 2), "…ü");
        assert_eq!(shortened(name, 0), "…");
    }

    #[test]
    fn bars_are_as_full_as_what_they_show() {
        assert_eq!(bar(0, 8, 4), "    ");
        assert_eq!(bar(8, 8, 4), "████");
        assert_eq!(bar(4, 8, 4), "██  ");
        assert_eq!(bar(1, 1_000, 4), "▏   ");
        assert_eq!(bar(9, 8, 2), "██");
        assert_eq!(bar(0, 0, 2), "  ");
    }
}
