//! A peer that writes garbage into shared memory, on either side.
//!
//! Neither side may end or hang by it, whatever is written where. What a side writes into its own segment may cost
//! pairings, no more: a board that runs on serves the next peer. What is written into a segment that is not the
//! writer's nothing can mend but its owner: both serve once they have been started again in the same memory.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use sinew_demo::{cache, exercise};
use sinew_shm::domain::{Region, Span};

use crate::agreed::LINK;
use crate::emulator::Emulator;
use crate::garbage::Random;
use crate::image::Image;
use crate::machine::AN385;
use crate::shared::{Place, Side};
use crate::{Result, calls, named};

/// Rounds, each with a link opened anew.
const ROUNDS: u32 = 100;
/// Strokes of a round, with a packet tried in between.
const STROKES: u32 = 40;
/// Between two strokes: now and then the board takes a look in it.
const PAUSE: Duration = Duration::from_micros(50);
/// How long the image that scribbles is called.
const CALLED: Duration = Duration::from_secs(3);

const REGION: Region = Region::of(&LINK);

/// Writes a few random words into this part of the memory.
fn stroke(memory: &File, part: Span, random: &mut Random) -> Result<()> {
    for _ in 0..1 + random.below(32) {
        let at = part.offset + 4 * random.below(part.len as usize / 4) as u64;
        // Small numbers pass more checks.
        let word = match random.below(3) {
            0 => random.next() as u32,
            1 => random.below(20) as u32,
            _ => u32::MAX - random.below(3) as u32,
        };
        memory.write_all_at(&word.to_le_bytes(), at)?;
    }
    Ok(())
}

/// This process is the peer that scribbles: into its own segment, which is all that it may write, and into both, which
/// nothing keeps it from here.
pub fn by_linux(image: &Image) -> Result<()> {
    let violations = scribbled_by_linux(image).map_err(named(&image.name))?;
    println!(
        "{}: {ROUNDS} rounds of garbage in the peer's memory, of which it found {violations} pieces, calls answered \
         after each; as many in both: it runs on, and serves once it was started again",
        image.name
    );
    Ok(())
}

/// How often the board found that its peer breaks the protocol.
fn scribbled_by_linux(image: &Image) -> Result<u32> {
    let mut random = Random::new(0x5eed_0003);
    let place = Place::new()?;
    let memory = OpenOptions::new().write(true).open(&place.memory)?;
    let mut board = Emulator::start_sharing(image, &place.memory, &place.bell)?;
    for n in 0..ROUNDS {
        round(&mut board, &place, &memory, &[REGION.first], &mut random)
            .and_then(|()| serves_again(&place))
            .map_err(|error| format!("garbage in the peer's memory, round {n}: {error}"))?;
    }
    let violations = violations(&place)?;
    for n in 0..ROUNDS {
        let both = [REGION.first, REGION.second];
        round(&mut board, &place, &memory, &both, &mut random)
            .map_err(|error| format!("garbage in both memories, round {n}: {error}"))?;
    }
    drop(board);
    let _board = Emulator::start_sharing(image, &place.memory, &place.bell)?;
    serves_again(&place)?;
    Ok(violations)
}

/// What the board counts. While it is starting its side again, for the last peer, nobody can read it.
fn violations(place: &Place) -> Result<u32> {
    let side = Side::open(place)?;
    let start = Instant::now();
    loop {
        match side.violations() {
            0 if start.elapsed() < CALLED => std::thread::sleep(PAUSE),
            0 => return Err("nothing that was written made it find a violation".into()),
            violations => return Ok(violations),
        }
    }
}

fn round(
    board: &mut Emulator,
    place: &Place,
    memory: &File,
    parts: &[Span],
    random: &mut Random,
) -> Result<()> {
    let mut side = Side::open(place)?;
    side.connect(place)?;
    for _ in 0..STROKES {
        for &part in parts {
            stroke(memory, part, random)?;
        }
        side.nudge();
        std::thread::sleep(PAUSE);
    }
    drop(side);
    board.check_running()
}

fn serves_again(place: &Place) -> Result<()> {
    let mut side = Side::open(place)?;
    side.connect(place)?;
    calls::few_through_memory(side)
}

/// The board is the peer that scribbles, under a client that goes on.
pub fn by_board(name: &str, sane: &str) -> Result<()> {
    let image = Image::read(AN385, name)?;
    let place = Place::new()?;
    let board = Emulator::start_sharing(&image, &place.memory, &place.bell)?;
    let (start, mut answered, mut refused) = (Instant::now(), 0, 0);
    while start.elapsed() < CALLED {
        let endpoint = place.endpoint(crate::agreed::MTU).parse()?;
        // One client for a while, then the next: opening meets the garbage as well.
        let Ok(client) = sinew_io::connect(&endpoint) else {
            refused += 1;
            continue;
        };
        for n in 0..10 {
            let caller = client.with_timeout(Duration::from_millis(20));
            match exercise(&mut cache::Client(caller), n) {
                Ok(_) => answered += 1,
                Err(_) => refused += 1,
            }
        }
    }
    drop(board);
    if answered > 0 || refused == 0 {
        return Err(
            format!("{name}: {answered} calls answered by garbage, {refused} refused").into(),
        );
    }
    let image = Image::read(AN385, sane)?;
    let _board = Emulator::start_sharing(&image, &place.memory, &place.bell)?;
    serves_again(&place).map_err(named(sane))?;
    println!("{name}: {refused} calls ended with an error; then {sane} in the same memory serves");
    Ok(())
}
