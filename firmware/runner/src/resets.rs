//! Resets of a board under a client over its UART that goes on: what a program does whose board reboots.

use std::time::{Duration, Instant};

use sinew::rpc::CallError;
use sinew::rpc::streams::*;
use sinew_demo::{Num, kinds};
use sinew_io::reconnect::{self, Backoff};

use crate::emulator::Emulator;
use crate::image::Image;
use crate::machine::AN385;
use crate::shared::Place;
use crate::{Result, named};

/// No answer of the board takes this long on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Resets the image `count` times in the middle of a stream; after each the same client must get answers again.
pub fn run(name: &str, count: u32) -> Result<()> {
    let image = Image::read(AN385, name)?;
    let place = Place::new()?;
    let uart = place.folder().join("uart");
    let backoff = Backoff {
        min: Duration::from_millis(5),
        max: Duration::from_millis(50),
    };
    let endpoint = format!("unix:{}", uart.display()).parse()?;
    let client = reconnect::connect(&endpoint, backoff);
    let mut kinds = kinds::Client(client.with_timeout(PATIENCE));
    for n in 0..count {
        let board = Emulator::start_listening(&image, &uart)?;
        served(&mut kinds, n)
            .and_then(|()| reset_in_a_stream(&mut kinds, board, n))
            .map_err(|error| format!("reset {n}: {error}"))
            .map_err(|error| named(name)(error.into()))?;
    }
    println!(
        "{name}: {count} resets in the middle of a stream, the same client goes on after each"
    );
    Ok(())
}

/// The first call after a reset may find the link lost; then there is a new one.
fn served(kinds: &mut kinds::Client<impl kinds::Reach>, n: u32) -> Result<()> {
    let start = Instant::now();
    loop {
        match kinds.double(&Num { n }) {
            Ok(Num { n: doubled }) if doubled == 2 * n => return Ok(()),
            Ok(other) => return Err(format!("{other:?} is not twice {n}").into()),
            Err(CallError::Closed) if start.elapsed() < PATIENCE => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The stream ends with an error, and every item before that is the next one.
fn reset_in_a_stream(
    kinds: &mut kinds::Client<impl kinds::Reach>,
    board: Emulator,
    n: u32,
) -> Result<()> {
    let mut stream = kinds.count(&Num { n: u32::MAX })?;
    let mut board = Some(board);
    for expected in 0.. {
        if expected == n % 50 {
            board.take();
        }
        match stream.next() {
            Ok(Some(item)) if item.n == expected => {}
            Ok(item) => return Err(format!("item {expected} is {item:?}").into()),
            Err(_) if board.is_none() => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
