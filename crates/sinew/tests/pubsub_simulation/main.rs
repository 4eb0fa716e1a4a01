//! Two sessions, joined by a line that pushes back, or loses, repeats and reorders, while either side
//! starts anew or reads nothing: in virtual time, over thousands of seeds. The runs check the
//! invariants (`world.rs`, `app.rs`), and what comes of them is compared with `table.txt`.

#[path = "../support/node.rs"]
#[allow(dead_code, unused_imports)]
mod node;
#[path = "../simulation/prng.rs"]
mod prng;

mod app;
mod faults;
mod line;
mod world;

use std::fmt::Write;

use faults::MIXES;
use world::World;

/// Runs per mix of faults. `SINEW_SEEDS` asks for more, whose table is printed only.
const SEEDS: u64 = 100;

#[test]
fn what_is_said_to_be_sent_arrives_once_and_all_comes_back_after_faults() {
    let more = std::env::var("SINEW_SEEDS").ok();
    let seeds = more.map_or(SEEDS, |seeds| seeds.parse().expect("a number"));
    let mut table = String::from(
        "mix, runs, sent, unheard, dropped, given up, met full, cut, arrived, queries, complete, \
         timed out, lost, opened, ended, missed, old, messages lost\n",
    );
    for (index, faults) in MIXES.into_iter().enumerate() {
        let mut sum = [0; 16];
        for run in 0..seeds {
            let mut world = World::new(faults, (index as u64) << 32 | run);
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run()));
            assert!(ran.is_ok(), "{}, seed {run}", faults.name);
            if faults.name == "loss" && world.counts.ended == 0 {
                for (missed, lost) in world.losses() {
                    assert_eq!(missed, lost, "seed {run}");
                }
            }
            let counts = &world.counts;
            for ledger in world.ledgers() {
                let row = [
                    ledger.heard,
                    ledger.unheard,
                    ledger.dropped,
                    ledger.given_up,
                    ledger.full,
                    ledger.cut,
                    0,
                    ledger.asked,
                    ledger.complete,
                    ledger.timed_out,
                    ledger.lost,
                ];
                sum.iter_mut()
                    .zip(row)
                    .for_each(|(sum, value)| *sum += value);
            }
            let rest = [
                counts.opened,
                counts.ended,
                counts.missed,
                counts.old,
                counts.fragments_lost,
            ];
            sum[6] += world.arrived();
            sum[11..]
                .iter_mut()
                .zip(rest)
                .for_each(|(sum, value)| *sum += value);
        }
        let cells = sum.map(|value| value.to_string()).join(", ");
        writeln!(table, "{}, {seeds}, {cells}", faults.name).expect("a string takes all");
    }
    println!("{table}");
    if seeds != SEEDS {
        return;
    }
    assert_eq!(
        table,
        include_str!("table.txt"),
        "the results changed: where that is meant, put the table above into table.txt"
    );
}
