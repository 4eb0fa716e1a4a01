//! `sinew.Device` in an image: who it is, and what it has counted.

use sinew_services::device::{About, Counters, Observed};

use crate::now;

/// Methods that are measured.
const METHODS: usize = 12;

const ABOUT: About = About {
    name: "mps2-an385",
    version: env!("CARGO_PKG_VERSION"),
    build: env!("BUILD"),
};

/// The services, measured, and the device with these counters beside them.
pub fn observed<S, C: Counters>(services: S, counters: C) -> Observed<S, METHODS, C> {
    Observed::new(ABOUT, now, services).with_counters(counters)
}
