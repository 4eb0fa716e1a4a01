//! Shared memory between domains.
#![no_std]
