//! A session of publish and subscribe: the input is a script of its link, its peer, its application and
//! the time. What must hold is said where the scripts are played, in the tests of sinew.

#[path = "../../crates/sinew/tests/support/pubsub_play.rs"]
mod play;

pub fn session(script: &[u8]) {
    play::Play::run(script);
}
