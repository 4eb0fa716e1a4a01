//! Two processes that are killed, stopped and started again at random moments while packets go both
//! ways, and values, and messages with and without memory; and what must hold after each time: every own
//! block is back, nothing old arrives, nothing is lost, doubled, out of order or changed while a pairing
//! lasts, and no call hangs.
//!
//! Each round is one such event. How many, in all: `SINEW_ROUNDS` (200). The random numbers:
//! `SINEW_SEED`. Only one [`Medium`]: `SINEW_MEDIUM`. The program of the second side: `SINEW_PEER` (this one), for sides of 32 and 64 bits.

#[cfg(target_os = "linux")]
mod control;
#[cfg(target_os = "linux")]
mod messages;
#[cfg(target_os = "linux")]
mod peer;
#[cfg(target_os = "linux")]
#[path = "../support/random.rs"]
mod random;
#[cfg(target_os = "linux")]
mod traffic;

#[cfg(target_os = "linux")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == "peer" => peer::run(rest),
        // Of a list of tests that is asked for, there is none here.
        _ if arguments.iter().any(|argument| argument == "--list") => {}
        _ => control::run(),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}

/// What the sides have between them.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Medium {
    /// Sealed memory, new at each connection, and this doorbell.
    Socket,
    Futex,
    EventFd,
    /// A file, the same one again and again.
    Region,
    RegionMutual,
}

#[cfg(target_os = "linux")]
impl Medium {
    const ALL: [Medium; 5] = [
        Medium::Region,
        Medium::Socket,
        Medium::Futex,
        Medium::EventFd,
        Medium::RegionMutual,
    ];

    fn name(self) -> String {
        format!("{self:?}")
    }

    fn of(name: &str) -> Medium {
        let found = Medium::ALL.into_iter().find(|medium| medium.name() == name);
        found.expect("a medium")
    }

    fn is_region(self) -> bool {
        matches!(self, Medium::Region | Medium::RegionMutual)
    }

    fn is_mutual(self) -> bool {
        matches!(self, Medium::EventFd | Medium::RegionMutual)
    }
}
