//! `make bench BENCH=shm`: what shared memory between two processes costs, and what the peers cost.
//!
//! This program starts itself as the second process. Every message is really written by its sender
//! and really read by its receiver, and checked. All contenders take turns, round by round, so that
//! the ratios hold on a machine that changes its speed; figures are medians of the rounds, and
//! ratios medians of the ratios within a round.

mod child;
mod contender;
mod contenders;
mod control;
mod parent;
mod payload;
mod per_call;
mod report;

use std::time::Duration;

use contender::{Contender, Opening, Waiting};
use control::Control;

pub use child::run as child;
pub use parent::run;
pub use per_call::{count as calls, print as print_calls, rows as per_call};
pub use report::print;

/// What the contenders have to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A request and its answer, of the same size.
    RoundTrip,
    /// Messages one way, in batches of so many.
    OneWay { batch: usize },
}

/// One thing that is measured.
struct Case {
    /// By [`Placement`].
    figures: [&'static str; 2],
    kind: Kind,
    size: usize,
    waiting: Waiting,
    /// The second process is on core 1, or on core 0 like the first.
    two_cores: bool,
}

/// Where the machine has put the two cores. A virtual machine's change their places, and with them
/// every figure, so each round belongs to one of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Placement {
    /// A small round trip over the reference ring takes less than [`NEAR`]: the cores share a cache.
    /// Also where one core does all, and there are no places to tell apart.
    Near = 0,
    /// It takes longer: every line crosses a bus between caches.
    Far = 1,
}

/// The bound between [`Placement::Near`] and [`Placement::Far`], ns. Seen were 110 to 140 and 480
/// to 600.
const NEAR: f64 = 250.0;

/// Messages in a batch.
const BATCH: usize = 32;

macro_rules! two_cores {
    ($what:literal, $kind:expr, $size:expr, $waiting:expr) => {
        Case {
            figures: [concat!($what, " (near)"), concat!($what, " (far)")],
            kind: $kind,
            size: $size,
            waiting: $waiting,
            two_cores: true,
        }
    };
}

const fn one_core(figure: &'static str, size: usize) -> Case {
    Case {
        figures: [figure, figure],
        kind: RoundTrip,
        size,
        waiting: Blocking,
        two_cores: false,
    }
}

use Kind::{OneWay, RoundTrip};
use Waiting::{Blocking, Busy};

/// Everything that is measured.
const CASES: [Case; 14] = [
    two_cores!("round trip 8 B busy", RoundTrip, 8, Busy),
    two_cores!("round trip 64 B busy", RoundTrip, 64, Busy),
    two_cores!("round trip 1 KiB busy", RoundTrip, 1 << 10, Busy),
    two_cores!("round trip 64 KiB busy", RoundTrip, 1 << 16, Busy),
    two_cores!("one way 64 B", OneWay { batch: 1 }, 64, Busy),
    two_cores!("one way 64 B batched", OneWay { batch: BATCH }, 64, Busy),
    two_cores!("round trip 8 B blocking", RoundTrip, 8, Blocking),
    two_cores!("round trip 64 B blocking", RoundTrip, 64, Blocking),
    two_cores!("round trip 1 KiB blocking", RoundTrip, 1 << 10, Blocking),
    two_cores!("round trip 64 KiB blocking", RoundTrip, 1 << 16, Blocking),
    one_core("round trip 8 B blocking (one core)", 8),
    one_core("round trip 64 B blocking (one core)", 64),
    one_core("round trip 1 KiB blocking (one core)", 1 << 10),
    one_core("round trip 64 KiB blocking (one core)", 1 << 16),
];

impl Case {
    /// What both ends are opened with.
    fn opening<'a>(&self, name: &'a str, control: &'a Control) -> Opening<'a> {
        let (depth, batch) = match self.kind {
            RoundTrip => (16, 1),
            OneWay { batch } => (4096, batch),
        };
        Opening {
            size: self.size,
            depth,
            batch,
            waiting: self.waiting,
            name,
            control,
        }
    }

    /// Whether a contender takes part.
    fn is_for(&self, contender: &Contender) -> bool {
        (self.kind == RoundTrip || contender.one_way)
            && contender.size.is_none_or(|size| size == self.size)
            && (self.waiting == Busy || contender.blocks)
    }
}

/// How long to measure.
#[derive(Clone, Copy)]
pub struct Effort {
    /// All of it. The cases take turns until then, so that each meets both placements.
    time: Duration,
    /// One round of one contender, about.
    round: Duration,
    /// Rounds of one case in its turn.
    rounds: usize,
}

impl Effort {
    /// Below three minutes.
    pub const FULL: Effort = Effort {
        time: Duration::from_secs(150),
        round: Duration::from_micros(1000),
        rounds: 10,
    };
    /// For a look.
    pub const QUICK: Effort = Effort {
        time: Duration::from_secs(20),
        ..Effort::FULL
    };
}
