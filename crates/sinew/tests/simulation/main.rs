//! Both engines, joined by a line that loses, repeats, reorders, damages and delays packets, while
//! either side reboots: in virtual time, over thousands of seeds. The runs check the invariants
//! (`world.rs`, `app.rs`), and what comes of them is compared with `table.txt`.

#[path = "../support/mod.rs"]
mod support;

mod app;
mod faults;
mod framing;
mod prng;
mod service;
mod world;

use std::fmt::Write;

use app::Ends;
use faults::{Line, MIXES};
use world::World;

/// Runs per fault mix.
const SEEDS: u64 = 500;

#[test]
fn every_call_ends_by_its_deadline_and_no_wrong_answer_is_accepted() {
    let mut table = String::from(
        "mix, runs, calls, ok, aborted, exhausted, precondition, other, deadline, cancelled, \
         rebooted, not opened, items, met full, packets, lost, duplicated, corrupted, delivered, \
         counted by server, counted by client\n",
    );
    for (index, faults) in MIXES.into_iter().enumerate() {
        let mut sum = [0; 19];
        for run in 0..SEEDS {
            let mut world = World::new(faults, (index as u64) << 32 | run);
            world.run();
            let Ends {
                calls,
                ok,
                aborted,
                exhausted,
                precondition,
                other,
                deadline,
                cancelled,
                rebooted,
                items,
            } = world.app.ends.clone();
            let Line {
                sent,
                lost,
                duplicated,
                corrupted,
                delivered,
            } = world.line;
            let row = [
                calls,
                ok,
                aborted,
                exhausted,
                precondition,
                other,
                deadline,
                cancelled,
                rebooted,
                world.app.refused,
                items,
                world.service.met_full,
                sent,
                lost,
                duplicated,
                corrupted,
                delivered,
                world.server_counted,
                world.client_counted,
            ];
            for (sum, value) in sum.iter_mut().zip(row) {
                *sum += value;
            }
        }
        let cells = sum.map(|value| value.to_string()).join(", ");
        writeln!(table, "{}, {SEEDS}, {cells}", faults.name).expect("a string takes all");
    }
    println!("{table}");
    assert_eq!(
        table,
        include_str!("table.txt"),
        "the results changed: where that is meant, put the table above into table.txt"
    );
}
