//! Ctrl-C: the first one asks a command to end, the second one ends it.

use std::process::exit;

use crate::failure::Failure;

/// What a shell says of a process that Ctrl-C has ended.
const ENDED: i32 = 130;

/// From now on the first Ctrl-C calls `ask`. Another one ends the process: what it waits for need never
/// come, such as a peer that takes nothing.
pub fn at_ctrl_c(mut ask: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    let mut asked = false;
    ctrlc::set_handler(move || {
        if std::mem::replace(&mut asked, true) {
            exit(ENDED);
        }
        ask();
    })
    .map_err(|error| Failure::internal("cannot listen for Ctrl-C", error))
}
