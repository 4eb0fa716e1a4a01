//! Restarts of either side of a shared memory, in any order, with echoes in between.
//!
//! | restart | of | what it is | what tells the other side |
//! |---|---|---|---|
//! | `Reset` | board | core and devices, as by a watchdog; the shared memory and the doorbell's line stay | its words and its ring |
//! | `Power` | board | another emulator, with the same shared memory | the line hangs up |
//! | `Closed` | Linux | the link is closed, and opened again | its words and its ring |
//! | `Killed` | Linux | the process is killed, and another one opens the link | its words and its ring |
//! | `BothBoardFirst`, `BothLinuxFirst` | both | killed and powered, one after the other | what the other has left |
//!
//! Each hits its side in the middle of whatever it does, with packets under way, except `Closed`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Result;
use crate::agreed::MTU;
use crate::emulator::Emulator;
use crate::image::Image;
use crate::shared::{Place, Side};

/// Echoes after each restart: more than there are blocks, so that each is used again.
const ECHOES: u8 = 20;

/// Who is started again, and how.
const ROUND: [Restart; 6] = [
    Restart::Reset,
    Restart::Closed,
    Restart::Power,
    Restart::Killed,
    Restart::BothBoardFirst,
    Restart::BothLinuxFirst,
];
/// How many of a round are restarts of the board; as many are of Linux.
const OF_EACH: u32 = 4;

#[derive(Clone, Copy, Debug)]
enum Restart {
    Reset,
    Power,
    Closed,
    Killed,
    BothBoardFirst,
    BothLinuxFirst,
}

/// Starts each side again at least so many times, and checks after each that packets pass and no block is lost.
pub fn run(image: &Image, of_each: u32) -> Result<()> {
    let place = Place::new()?;
    let mut sides = Sides::both(Side::open(&place)?, image, &place)?;
    echo(&mut sides.linux, 0)?;
    let rounds = of_each.div_ceil(OF_EACH);
    for n in 0..rounds * ROUND.len() as u32 {
        let restart = ROUND[n as usize % ROUND.len()];
        // Some are under way when it happens.
        for lost in 0..n % 4 {
            sides.linux.send(&[lost as u8; 3])?;
        }
        sides = sides
            .restart(restart, n, image, &place)
            .and_then(|mut sides| {
                echo(&mut sides.linux, n)?;
                Ok(sides)
            })
            .map_err(|error| format!("restart {n}, {restart:?}: {error}"))?;
    }
    println!(
        "channel: {} restarts of each side, {ECHOES} echoes after each, no block lost",
        rounds * OF_EACH
    );
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

    fn restart(self, restart: Restart, n: u32, image: &Image, place: &Place) -> Result<Sides> {
        let Sides {
            mut board,
            mut linux,
        } = self;
        match restart {
            Restart::Reset => {
                let before = linux.pairing();
                board.reset()?;
                linux.renewed(before)?;
                Ok(Sides { board, linux })
            }
            Restart::Power => {
                drop(board);
                linux.board_is_gone();
                Sides::both(linux, image, place)
            }
            Restart::Closed => {
                drop(linux);
                Sides::with(board, place)
            }
            Restart::Killed => {
                drop(linux);
                killed(place, n)?;
                Sides::with(board, place)
            }
            Restart::BothBoardFirst => {
                drop(linux);
                killed(place, n)?;
                drop(board);
                let board = Emulator::start_sharing(image, &place.memory, &place.bell)?;
                Sides::with(board, place)
            }
            Restart::BothLinuxFirst => {
                drop(linux);
                killed(place, n)?;
                drop(board);
                Sides::both(Side::open(place)?, image, place)
            }
        }
    }
}

/// Lets another process be this side, and kills it.
fn killed(place: &Place, n: u32) -> Result<()> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(ECHO)
        .arg(place.folder())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line)?;
    }
    std::thread::sleep(Duration::from_micros(u64::from(n % 16) * 200));
    child.kill()?;
    child.wait()?;
    match line.trim() {
        READY => Ok(()),
        _ => Err("the process that was to be killed did not come so far".into()),
    }
}

/// The argument that makes this program the process that is killed.
pub const ECHO: &str = "echo-until-killed";
const READY: &str = "ready";

/// Sends packets and takes them back until it is killed.
pub fn echo_until_killed(folder: &Path) -> Result<()> {
    let place = Place::at(folder);
    let mut linux = Side::open(&place)?;
    linux.connect(&place)?;
    for n in 0.. {
        echo(&mut linux, n)?;
        if n == 0 {
            println!("{READY}");
        }
    }
    Ok(())
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
