//! Drivers: thin loops that tie an engine of `sinew` to a link of the host.
#![forbid(unsafe_code)]
