//! Ports to listen at.

use std::net::TcpListener;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::Result;

/// Below those that a system gives to who connects: nobody takes one of these by chance between the moment
/// that it is found and the moment that a party listens at it.
const PORTS: Range<u16> = 20_000..30_000;

/// A port of this machine that nobody listens at, another one each time.
pub fn free_port() -> Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in PORTS {
        // Other runs at the same time begin elsewhere.
        let number = std::process::id().wrapping_mul(97);
        let number = number.wrapping_add(NEXT.fetch_add(1, Relaxed));
        let port = PORTS.start + (number % u32::from(PORTS.end - PORTS.start)) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err("no port is free".into())
}
