//! What can go wrong between two ends.

use crate::prng::Prng;

/// How often what happens, in a thousand packets (or, for reboots, in a thousand opened calls).
#[derive(Clone, Copy)]
pub struct Faults {
    pub name: &'static str,
    pub loss: u64,
    pub duplication: u64,
    pub corruption: u64,
    /// Up to how many microseconds a packet is held up: later ones overtake it.
    pub jitter: u64,
    pub client_reboot: u64,
    pub server_reboot: u64,
}

const NONE: Faults = Faults {
    name: "none",
    loss: 0,
    duplication: 0,
    corruption: 0,
    jitter: 0,
    client_reboot: 0,
    server_reboot: 0,
};

/// The mixes that are simulated; their results are `table.txt`.
#[rustfmt::skip]
pub const MIXES: [Faults; 9] = [
    NONE,
    Faults { name: "loss", loss: 100, ..NONE },
    Faults { name: "duplication", duplication: 100, ..NONE },
    Faults { name: "reordering", jitter: 3_000, ..NONE },
    Faults { name: "corruption", corruption: 100, ..NONE },
    Faults { name: "client reboots", client_reboot: 50, ..NONE },
    Faults { name: "server reboots", server_reboot: 50, ..NONE },
    Faults { name: "bad line", loss: 50, duplication: 50, corruption: 50, jitter: 1_000, ..NONE },
    Faults {
        name: "everything", loss: 50, duplication: 50, corruption: 50, jitter: 3_000,
        client_reboot: 50, server_reboot: 50,
    },
];

/// What became of packets.
#[derive(Clone, Copy, Default, Debug)]
pub struct Line {
    pub sent: u64,
    pub lost: u64,
    pub duplicated: u64,
    pub corrupted: u64,
    pub delivered: u64,
}

impl Faults {
    /// The arrivals of one packet, as delays in microseconds and what arrives.
    pub fn carry(&self, frame: Vec<u8>, prng: &mut Prng, line: &mut Line) -> Vec<(u64, Vec<u8>)> {
        const DELAY: u64 = 200;
        line.sent += 1;
        if prng.chance(self.loss) {
            line.lost += 1;
            return Vec::new();
        }
        let mut copies = 1;
        if prng.chance(self.duplication) {
            line.duplicated += 1;
            copies = 2;
        }
        (0..copies)
            .map(|_| {
                let mut frame = frame.clone();
                if prng.chance(self.corruption) {
                    line.corrupted += 1;
                    corrupt(&mut frame, prng);
                }
                let jitter = if self.jitter > 0 {
                    prng.below(self.jitter)
                } else {
                    0
                };
                (DELAY + jitter, frame)
            })
            .collect()
    }
}

/// Flips a bit, cuts the end off, or puts noise in.
fn corrupt(frame: &mut Vec<u8>, prng: &mut Prng) {
    let at = prng.below(frame.len() as u64) as usize;
    match prng.below(3) {
        0 => frame[at] ^= 1 << prng.below(8),
        1 => frame.truncate(at),
        _ => frame.insert(at, prng.next() as u8),
    }
}
