//! What can go wrong between two sessions.

/// How often what happens; chances are in a thousand.
#[derive(Clone, Copy)]
pub struct Faults {
    pub name: &'static str,
    /// A stream keeps order and pushes back; otherwise packets are datagrams.
    pub stream: bool,
    /// Of a datagram.
    pub loss: u64,
    pub duplication: u64,
    /// Up to how many microseconds a datagram is held up: later ones overtake it.
    pub jitter: u64,
    /// That a side starts anew before an action.
    pub restart: u64,
    /// That a side reads nothing for a while before an action.
    pub stop: u64,
    /// How long, at most, in microseconds.
    pub stopped: u64,
    /// Packets on the way at most.
    pub places: u64,
}

const STREAM: Faults = Faults {
    name: "stream",
    stream: true,
    loss: 0,
    duplication: 0,
    jitter: 0,
    restart: 0,
    stop: 0,
    stopped: 0,
    places: 16,
};

const DATAGRAMS: Faults = Faults {
    name: "datagrams",
    stream: false,
    ..STREAM
};

/// The mixes that are simulated; their results are `table.txt`.
#[rustfmt::skip]
pub const MIXES: [Faults; 11] = [
    STREAM,
    Faults { name: "few places", places: 2, ..STREAM },
    Faults { name: "slow reader", places: 3, stop: 100, stopped: 100_000, ..STREAM },
    Faults { name: "reader that stops", places: 4, stop: 5, stopped: 3_000_000, ..STREAM },
    Faults { name: "restarts", restart: 20, ..STREAM },
    Faults { name: "all on a stream", places: 2, restart: 20, stop: 50, stopped: 200_000, ..STREAM },
    Faults { name: "loss", loss: 100, ..DATAGRAMS },
    Faults { name: "duplication", duplication: 100, ..DATAGRAMS },
    Faults { name: "reordering", jitter: 3_000, ..DATAGRAMS },
    Faults { name: "restarts unseen", restart: 10, ..DATAGRAMS },
    Faults { name: "all on datagrams", loss: 50, duplication: 50, jitter: 1_000, restart: 10, ..DATAGRAMS },
];
