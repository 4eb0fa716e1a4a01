//! One side of a domain link: the input is a script of its calls, of an honest peer's, and of writes
//! into the peer's memory. What must hold is said where the scripts are played, in the tests of
//! sinew-shm, which play random ones.

use std::cell::RefCell;

#[path = "../../crates/sinew-shm/tests/support/play.rs"]
mod play;
#[path = "../../crates/sinew-shm/tests/support/raw.rs"]
mod raw;

thread_local! {
    static STAGE: RefCell<play::Stage> = RefCell::new(play::Stage::new());
}

pub fn domain(script: &[u8]) {
    STAGE.with_borrow_mut(|stage| stage.play(script));
}
