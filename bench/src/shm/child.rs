//! The second process: it answers and produces, as it is told.

use std::collections::HashMap;

use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::CASES;
use super::contender::Runner;
use super::contenders::ALL;
use super::control::Control;
use crate::Result;

/// Pins this thread to a core.
pub fn pin(core: usize) -> Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores)
        .map_err(|error| format!("missing capability: two cores (core {core}: {error})").into())
}

/// Runs until the first process says `end`; what it says comes over standard input.
pub fn run() -> Result<()> {
    // A first process that was killed must not leave this one spinning.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let control = Control::inherited()?;
    let mut opened = Opened::new();
    loop {
        let order = control.hear()?;
        if order == "end" {
            return Ok(());
        }
        match obey(&order, &control, &mut opened) {
            Ok(digest) => control.say(&format!("done {digest}"))?,
            Err(error) => control.say(&format!("{order}: {error}"))?,
        }
    }
}

type Opened = HashMap<String, Box<dyn Runner>>;

/// Does what `order` says; the digest of what was received.
fn obey(order: &str, control: &Control, opened: &mut Opened) -> Result<u64> {
    let words: Vec<&str> = order.split(' ').collect();
    let number = |at: usize| -> Result<u64> {
        let word = words.get(at).ok_or("a word is missing")?;
        Ok(word.parse()?)
    };
    let name = *words.get(1).ok_or("a word is missing")?;
    match words[0] {
        "pin" => pin(number(1)? as usize).map(|()| 0),
        "open" => {
            let contender = ALL.get(number(2)? as usize).ok_or("no such contender")?;
            let case = CASES.get(number(3)? as usize).ok_or("no such case")?;
            let end = (contender.far)(&case.opening(name, control))?;
            opened.insert(name.into(), end);
            Ok(0)
        }
        "close" => {
            opened.remove(name);
            Ok(0)
        }
        action => {
            let end = opened.get_mut(name).ok_or("not open")?;
            match action {
                "answer" => Ok(end.answers(number(2)?)?.0),
                "produce" => end.produce(number(2)?, number(3)?).map(|()| 0),
                _ => Err("no such order".into()),
            }
        }
    }
}
