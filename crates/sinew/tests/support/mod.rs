//! What the tests of the call engines share: a port, a service of all four kinds, packets by hand.
#![allow(dead_code)] // every test file uses another part

pub mod client;
pub mod kinds;
pub mod later;
pub mod port;
pub mod wire;

use sinew::link::{Port, SendError};
use sinew::rpc::{Channels, Server, ServerStats, Slot, Via};
use sinew::time::Instant;

use kinds::Kinds;
use port::TestPort;
use wire::{P, Seen};

/// The mtu of the tests' links.
pub const MTU: usize = 128;

/// A point `millis` milliseconds after the start of the tests' clock.
pub const fn at(millis: u64) -> Instant {
    Instant::from_micros(millis * 1000)
}

/// Slots that live for ever, as a server wants them.
pub fn slots<const N: usize>() -> &'static [Slot; N] {
    Box::leak(Box::new([const { Slot::new() }; N]))
}

/// A server with four slots, its service, and one link.
pub struct Bench {
    pub server: Server<4>,
    pub kinds: Kinds,
    pub port: &'static TestPort,
    pub via: Via,
    pub now: Instant,
}

impl Bench {
    pub fn new() -> Bench {
        Bench::with_port(TestPort::leak(MTU, 8))
    }

    pub fn with_port(port: &'static TestPort) -> Bench {
        Bench {
            server: Server::new(slots()),
            kinds: Kinds::default(),
            port,
            via: Via {
                link: 0,
                channels: Channels::Any,
                port: Some(port as &'static dyn Port),
                bulk: None,
            },
            now: Instant::START,
        }
    }

    /// Gives bytes to the server; what it answers in the place.
    pub fn bytes(&mut self, packet: &[u8]) -> Option<Seen> {
        self.bytes_via(packet, self.via)
    }

    pub fn bytes_via(&mut self, packet: &[u8], via: Via) -> Option<Seen> {
        let mut place = [0xAA; MTU];
        let len = self
            .server
            .handle(packet, &via, &mut place, &mut self.kinds, self.now);
        (len > 0).then(|| Seen::of(&place[..len]))
    }

    /// Gives one packet to the server; what it answers in the place.
    pub fn send(&mut self, packet: &P) -> Option<Seen> {
        self.bytes(&packet.bytes())
    }

    /// One poll; what it says in the place.
    pub fn poll(&mut self) -> Result<Option<Seen>, SendError> {
        let mut place = [0xAA; MTU];
        let len = self
            .server
            .poll(&self.via, &mut place, &mut self.kinds, self.now)?;
        Ok((len > 0).then(|| Seen::of(&place[..len])))
    }

    /// Whether the server holds this call open, found out with an item for exactly this id.
    pub fn is_open(&mut self, method: u32, call_id: u32) -> bool {
        let before = self.server.stats().no_such_call;
        self.send(&wire::item(method, call_id, &[]));
        self.server.stats().no_such_call == before
    }
}

/// The counters that moved, as `name` or `name+2`, in their order.
pub fn moved(before: &ServerStats, after: &ServerStats) -> String {
    difference(before.iter(), after.iter())
}

pub fn difference(
    before: impl Iterator<Item = (&'static str, u32)>,
    after: impl Iterator<Item = (&'static str, u32)>,
) -> String {
    let mut names = Vec::new();
    for ((name, before), (_, after)) in before.zip(after) {
        match after.wrapping_sub(before) {
            0 => {}
            1 => names.push(name.to_string()),
            more => names.push(format!("{name}+{more}")),
        }
    }
    names.join(" ")
}
