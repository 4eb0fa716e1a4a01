//! What is measured.

use sinew_bench_party::Path;

/// How a figure is made.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Measure {
    /// Samples as fast as they go, counted by the subscriber.
    Rate,
    /// The same for ten seconds, of which none may be lost.
    Sustained,
    /// A sample there and back.
    RoundTrip,
    /// Time from `put` to the subscriber at so many samples a second. A round has ten samples at least;
    /// where it has no more, what 99 of 100 are below is the longest.
    Latency(u32),
    /// Bytes on the wire.
    Wire,
}

impl Measure {
    /// Whether it counts samples a second.
    pub fn is_rate(self) -> bool {
        matches!(self, Measure::Rate | Measure::Sustained)
    }
}

/// One thing that is measured.
pub struct Case {
    /// Of its figures in their order, as in the results.
    pub figures: &'static [&'static str],
    pub measure: Measure,
    pub path: Path,
    /// Bytes of a payload.
    pub size: usize,
    pub batched: bool,
    pub cores: Cores,
}

/// On which processors the two parties are. It is half of a round trip's time.
#[derive(Clone, Copy, PartialEq)]
pub enum Cores {
    /// Where the system puts them.
    Any,
    /// On one each, with all their threads.
    Two,
    /// Both on the same one.
    One,
}

impl Case {
    /// Its first figure's name.
    pub fn name(&self) -> &'static str {
        self.figures.first().copied().unwrap_or_default()
    }
}

const fn rate(name: &'static [&'static str], path: Path, size: usize, batched: bool) -> Case {
    Case {
        figures: name,
        measure: Measure::Rate,
        path,
        size,
        batched,
        cores: Cores::Any,
    }
}

macro_rules! round_trip {
    ($name:literal, $path:expr, $cores:expr) => {
        Case {
            figures: &[concat!($name, ", p50"), concat!($name, ", p99")],
            measure: Measure::RoundTrip,
            path: $path,
            size: 8,
            batched: false,
            cores: $cores,
        }
    };
}

macro_rules! latency {
    ($kind:literal, $batched:literal, $rate:literal) => {
        Case {
            figures: &[
                concat!("latency 16 B ", $kind, ", ", $rate, "/s, p50"),
                concat!("latency 16 B ", $kind, ", ", $rate, "/s, p99"),
            ],
            measure: Measure::Latency($rate),
            path: Path::Peer,
            size: 16,
            batched: $batched,
            cores: Cores::Any,
        }
    };
}

macro_rules! wire {
    ($kind:literal, $batched:literal) => {
        Case {
            figures: &[
                concat!("wire ", $kind, ", per sample beside 8 B"),
                concat!("wire ", $kind, ", to open"),
            ],
            measure: Measure::Wire,
            path: Path::Peer,
            size: 8,
            batched: $batched,
            cores: Cores::Any,
        }
    };
}

use Path::{Peer, Router, Shm};

/// Everything that is measured.
#[rustfmt::skip]
pub const CASES: &[Case] = &[
    rate(&["8 B peer to peer, batched"], Peer, 8, true),
    rate(&["8 B peer to peer, unbatched"], Peer, 8, false),
    rate(&["8 B via router, batched"], Router, 8, true),
    rate(&["8 B via router, unbatched"], Router, 8, false),
    rate(&["8 KiB peer to peer"], Peer, 8 << 10, true),
    rate(&["64 KiB peer to peer"], Peer, 64 << 10, true),
    rate(&["8 B shared memory, batched"], Shm, 8, true),
    rate(&["8 B shared memory, unbatched"], Shm, 8, false),
    rate(&["8 KiB shared memory"], Shm, 8 << 10, true),
    rate(&["64 KiB shared memory"], Shm, 64 << 10, true),
    round_trip!("round trip 8 B peer to peer, two cores", Peer, Cores::Two),
    round_trip!("round trip 8 B peer to peer, one core", Peer, Cores::One),
    round_trip!("round trip 8 B peer to peer", Peer, Cores::Any),
    round_trip!("round trip 8 B via router", Router, Cores::Any),
    round_trip!("round trip 8 B shared memory, two cores", Shm, Cores::Two),
    round_trip!("round trip 8 B shared memory, one core", Shm, Cores::One),
    round_trip!("round trip 8 B shared memory", Shm, Cores::Any),
    latency!("unbatched", false, 10),
    latency!("unbatched", false, 100),
    latency!("unbatched", false, 1000),
    latency!("unbatched", false, 10000),
    latency!("unbatched", false, 100000),
    latency!("batched", true, 10),
    latency!("batched", true, 100),
    latency!("batched", true, 1000),
    latency!("batched", true, 10000),
    latency!("batched", true, 100000),
    wire!("batched", true),
    wire!("unbatched", false),
    Case {
        figures: &["8 B peer to peer, batched, 10 s", "lost in 10 s"],
        measure: Measure::Sustained,
        path: Peer,
        size: 8,
        batched: true,
        cores: Cores::Any,
    },
];
