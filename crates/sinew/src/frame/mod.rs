//! Frames on byte streams.
