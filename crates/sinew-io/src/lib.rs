//! Drivers: thin loops that tie an engine of `sinew` to a link.
//!
//! | module | what it is for |
//! |---|---|
//! | [`endpoint`] | the one syntax that names a link |
//! | [`mod@open`] | opens what an endpoint names; [`connect`] makes a client of it |
//! | [`link`] | what a blocking driver needs beyond the seam |
//! | [`bytes`], [`stream`], [`udp`] | carriers: packets on a stream of bytes, on one without loss, and in datagrams |
//! | [`apart`] | the halves of any link, for two threads; and listening for such |
//! | [`threads`], [`loopback`] | two threads joined by queues; client and services in one thread |
//! | [`shm`] | memory shared with another thread or process |
//! | [`client`] | a blocking client, driven in the caller's thread |
//! | [`reconnect`] | a link that is opened again when it is lost |
//! | [`pubsub`] | a node that publishes, subscribes and queries: Zenoh |
//! | [`qemu`] | boards that QEMU emulates |
//! | [`relay`] | packets from one link to another, and back |
//! | [`serve`] | services for any number of links, one thread each |
//! | `tokio` (feature) | an async client that tasks share, a server task per link, an async node |
//!
//! Nothing here knows the protocol: packets go from links to engines and back.
#![forbid(unsafe_code)]

mod alarm;
pub mod apart;
pub mod bytes;
pub mod client;
mod connect_error;
mod counted;
pub mod endpoint;
pub mod link;
pub mod loopback;
pub mod open;
mod out;
mod parked;
pub mod pubsub;
pub mod qemu;
mod reactor;
pub mod reconnect;
pub mod relay;
mod remedy;
pub mod serve;
pub mod shm;
mod sleep;
pub mod stream;
pub mod threads;
#[cfg(feature = "tokio")]
pub mod tokio;
pub mod udp;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use client::Client;
pub use endpoint::{Address, Endpoint, EndpointError};
pub use link::{AnyLink, Link, Traffic, Want};
pub use open::{ConnectError, connect, open};
pub use serve::Server;

/// The guard of a mutex whose holders leave sound state even if they panic.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number that differs from call to call and from start to start; no secret.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn nonblocking(fd: impl AsFd) -> std::io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    Ok(rustix::fs::fcntl_setfl(
        &fd,
        flags | rustix::fs::OFlags::NONBLOCK,
    )?)
}

/// The clock of the drivers: microseconds since a driver's start.
#[derive(Clone, Copy, Debug)]
struct Clock(std::time::Instant);

impl Clock {
    fn start() -> Clock {
        Clock(std::time::Instant::now())
    }

    fn now(self) -> sinew::time::Instant {
        sinew::time::Instant::START.after(self.0.elapsed())
    }
}
