//! A peer that means no good, or is broken: never a panic, never an endless loop, and the next link
//! works.

#[path = "support/hand.rs"]
#[allow(dead_code)]
mod hand;
#[path = "support/node.rs"]
#[allow(dead_code, unused_imports)]
mod node;
#[path = "support/pubsub_play.rs"]
mod play;
#[path = "simulation/prng.rs"]
#[allow(dead_code)]
mod prng;

use play::Play;
use prng::Prng;

#[test]
fn random_scripts_break_nothing() {
    let mut prng = Prng::new(1);
    for _ in 0..20_000 {
        let len = prng.below(300) as usize;
        let mut script: Vec<u8> = (0..len).map(|_| prng.next() as u8).collect();
        // Half of them begin in an open session.
        if let Some(first) = script.first_mut() {
            *first |= 0x80;
        }
        Play::run(&script);
    }
}
