//! The messages of Zenoh, byte for byte.

mod any;
mod examples;
mod extensions;
mod limits;
mod made;
mod numbers;
mod round_trips;
mod vectors;
