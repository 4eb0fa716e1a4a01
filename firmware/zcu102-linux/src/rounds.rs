//! Starts either side again and again, in the middle of calls.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread::{scope, sleep};
use std::time::Duration;

use sinew_demo::{Num, kinds};

use crate::chip::Chip;
use crate::{Result, Side, call};

/// How often, where the kernel's command line says nothing else by `SINEW_RESTARTS`.
const ROUNDS: u32 = 60;

#[derive(Clone, Copy, Debug)]
enum Restart {
    /// The Cortex-R5F is stopped in the middle of a stream, and started.
    Core,
    /// Linux closes the link, and opens it again.
    Closed,
    /// A process that is Linux's side is killed in the middle of calls.
    Killed,
    /// The process, then the core.
    Both,
}

const TURNS: [Restart; 4] = [
    Restart::Core,
    Restart::Closed,
    Restart::Killed,
    Restart::Both,
];

/// Calls after each restart.
pub fn run(mut side: Side, chip: &mut Chip, image: &[u8]) -> Result<Side> {
    let rounds = std::env::var("SINEW_RESTARTS").ok();
    let rounds = rounds.and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let mut streamed = 0;
    for n in 0..rounds {
        let restart = TURNS[n as usize % TURNS.len()];
        // Another moment each time.
        let moment = Duration::from_micros(u64::from(n) * 7919 % 20_000);
        side = again(restart, moment, side, chip, image, &mut streamed)
            .and_then(|side| {
                call(&side.client()?, n as i32)?;
                side.check()?;
                Ok(side)
            })
            .map_err(|error| format!("restart {n}, {restart:?}: {error}"))?;
    }
    println!("zcu102: {rounds} restarts of either side, calls after each, no block lost");
    println!("zcu102: {streamed} items had come from cores that were stopped, all in order");
    match streamed {
        0 if rounds > 0 => Err("no core was stopped in the middle of a stream".into()),
        _ => Ok(side),
    }
}

fn again(
    restart: Restart,
    moment: Duration,
    side: Side,
    chip: &mut Chip,
    image: &[u8],
    streamed: &mut u32,
) -> Result<Side> {
    match restart {
        Restart::Core => {
            scope(|scope| {
                let stream = scope.spawn(|| stream(&side));
                sleep(moment);
                chip.stop()?;
                chip.start(image)?;
                *streamed += stream.join().map_err(|_| "the stream panicked")??;
                Ok::<_, Box<dyn Error + Send + Sync>>(())
            })?;
            Ok(side)
        }
        Restart::Closed => {
            drop(side);
            Side::open()
        }
        Restart::Killed => {
            drop(side);
            killed(moment)?;
            Side::open()
        }
        Restart::Both => {
            drop(side);
            killed(moment)?;
            chip.stop()?;
            chip.start(image)?;
            Side::open()
        }
    }
}

/// Receives a stream until the core that sends it is gone: in order, and nothing else. How many items.
fn stream(side: &Side) -> Result<u32> {
    let client = side.client()?;
    let mut client = kinds::Client(&client);
    // The core may be stopped before it has taken it up.
    let Ok(mut count) = client.count(&Num { n: u32::MAX }) else {
        return Ok(0);
    };
    let mut n = 0;
    loop {
        match count.next() {
            Ok(Some(item)) if item.n == n => n += 1,
            Ok(item) => return Err(format!("{item:?} instead of {n}").into()),
            Err(_) => return Ok(n),
        }
    }
}

/// The argument that makes this program the process that is killed.
pub const CHILD: &str = "call-until-killed";
const READY: &str = "ready";

/// Lets another process be this side, and kills it.
fn killed(moment: Duration) -> Result<()> {
    let mut child = Command::new("/proc/self/exe")
        .arg(CHILD)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line)?;
    }
    sleep(moment);
    child.kill()?;
    child.wait()?;
    match line.trim() {
        READY => Ok(()),
        _ => Err("the process that was to be killed did not come so far".into()),
    }
}

/// Calls until it is killed.
pub fn call_until_killed() -> Result<()> {
    let side = Side::open()?;
    let client = side.client()?;
    for n in 0.. {
        call(&client, n)?;
        if n == 0 {
            println!("{READY}");
        }
    }
    Ok(())
}
