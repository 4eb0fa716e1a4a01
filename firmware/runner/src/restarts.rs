//! Restarts of either side of a shared memory, in any order, with echoes in between.

use crate::Result;
use crate::agreed::MTU;
use crate::emulator::Emulator;
use crate::image::Image;
use crate::shared::{Place, Side};

/// Echoes after each restart: more than there are blocks, so that each is used again.
const ECHOES: u8 = 20;

/// Who is started again, and how.
const ROUND: [Restart; 5] = [
    Restart::Board,
    Restart::Closed,
    Restart::Crashed,
    Restart::BothBoardFirst,
    Restart::BothLinuxFirst,
];

#[derive(Clone, Copy, Debug)]
enum Restart {
    /// The emulator is stopped in the middle of whatever it does.
    Board,
    /// This side closes the link, and opens it again.
    Closed,
    /// This side goes without a word, and comes again.
    Crashed,
    /// Both, and the board comes up first.
    BothBoardFirst,
    /// Both, and this side comes up first.
    BothLinuxFirst,
}

/// Starts sides again `count` times, and checks after each that packets pass and no block is lost.
pub fn run(image: &Image, count: u32) -> Result<()> {
    image.check_no_panic()?;
    let place = Place::new()?;
    let mut sides = Sides::both(Side::open(&place)?, image, &place)?;
    echo(&mut sides.linux, 0)?;
    for n in 0..count {
        let restart = ROUND[n as usize % ROUND.len()];
        // Some are under way when it happens.
        for lost in 0..n % 4 {
            sides.linux.send(&[lost as u8; 3])?;
        }
        sides = sides
            .restart(restart, image, &place)
            .and_then(|mut sides| {
                echo(&mut sides.linux, n)?;
                Ok(sides)
            })
            .map_err(|error| format!("restart {n}, {restart:?}: {error}"))?;
    }
    println!("channel: {count} restarts of either side, {ECHOES} echoes after each, no block lost");
    Ok(())
}

struct Sides {
    board: Emulator,
    linux: Side,
}

impl Sides {
    /// Starts the board beside this side.
    fn both(mut linux: Side, image: &Image, place: &Place) -> Result<Sides> {
        let board = Emulator::start_sharing(image, &place.memory, &place.bell)?;
        linux.connect(place)?;
        Ok(Sides { board, linux })
    }

    /// Opens this side beside the board.
    fn with(board: Emulator, place: &Place) -> Result<Sides> {
        let mut linux = Side::open(place)?;
        linux.connect(place)?;
        Ok(Sides { board, linux })
    }

    fn restart(self, restart: Restart, image: &Image, place: &Place) -> Result<Sides> {
        let Sides { board, mut linux } = self;
        match restart {
            Restart::Board => {
                drop(board);
                linux.board_is_gone();
                Sides::both(linux, image, place)
            }
            Restart::Closed => {
                drop(linux);
                Sides::with(board, place)
            }
            Restart::Crashed => {
                linux.crash();
                Sides::with(board, place)
            }
            Restart::BothBoardFirst => {
                drop(board);
                linux.crash();
                let board = Emulator::start_sharing(image, &place.memory, &place.bell)?;
                Sides::with(board, place)
            }
            Restart::BothLinuxFirst => {
                linux.crash();
                drop(board);
                Sides::both(Side::open(place)?, image, place)
            }
        }
    }
}

/// Sends packets of all sizes and expects each of them back, and nothing else.
fn echo(linux: &mut Side, n: u32) -> Result<()> {
    for at in 0..ECHOES {
        let mut packet = [at; MTU];
        packet[..4].copy_from_slice(&n.to_le_bytes());
        let packet = &packet[..4 + usize::from(at) * (MTU - 4) / usize::from(ECHOES - 1)];
        linux.send(packet)?;
        let answer = linux.receive()?;
        if answer != packet {
            return Err(format!("sent {packet:?}, received {answer:?}").into());
        }
    }
    match linux.is_conserved() {
        true => Ok(()),
        false => Err("a block is lost".into()),
    }
}
