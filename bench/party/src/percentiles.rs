//! Percentiles of times.

use std::fmt::Write;

/// Names and per milles of what is told.
const TOLD: [(&str, usize); 4] = [("p50", 500), ("p90", 900), ("p99", 990), ("p999", 999)];

/// `"p50":..,` and so on in µs, and the `count`, of times in ns.
pub fn told(times: &mut [u32]) -> String {
    times.sort_unstable();
    let mut text = String::new();
    for (name, part) in TOLD {
        // The least time that so many are not above.
        let at = (times.len() * part).div_ceil(1000).saturating_sub(1);
        if let Some(time) = times.get(at) {
            let _ = write!(text, "\"{name}\":{:.3},", f64::from(*time) / 1000.0);
        }
    }
    let _ = write!(text, "\"count\":{}", times.len());
    text
}

#[cfg(test)]
mod tests {
    use super::told;

    #[test]
    fn percentiles_are_those_of_the_sorted_times() {
        let mut times: Vec<u32> = (1..=1000).rev().map(|us| us * 1000).collect();
        let text =
            "\"p50\":500.000,\"p90\":900.000,\"p99\":990.000,\"p999\":999.000,\"count\":1000";
        assert_eq!(told(&mut times), text);
        assert_eq!(told(&mut []), "\"count\":0");
    }
}
