//! Garbage on the UART, a piece at a time from a seed, with a valid call or sample behind each.

use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use sinew::frame::hdlc::{self, RPC_ADDRESS};

use crate::emulator::Emulator;
use crate::image::Image;
use crate::machine::AN385;
use crate::shared::Place;
use crate::{Result, calls, named};

/// Pieces for each image, unless `SINEW_GARBAGE` says how many.
const PIECES: u32 = 1000;

/// How many pieces.
pub fn pieces() -> u32 {
    let text = std::env::var("SINEW_GARBAGE").ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(PIECES)
}

/// Numbers that look random, the same in each run (xorshift).
pub struct Random(u64);

impl Random {
    /// From a seed that is not 0.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Below `limit`, which is above 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16) as usize % limit
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 24) as u8).collect()
    }
}

fn frame(address: u64, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; hdlc::max_encoded_len(address, packet.len())];
    let len = hdlc::encode(address, packet, &mut frame).unwrap_or(0);
    frame.truncate(len);
    frame
}

/// The next piece. None of them is a frame for the board.
pub fn piece(random: &mut Random) -> Vec<u8> {
    let len = 1 + random.below(60);
    let packet = random.bytes(len);
    let mut good = frame(RPC_ADDRESS, &packet);
    let at = 1 + random.below(good.len() - 2);
    match random.below(8) {
        // Noise, a little or much.
        0 => random.bytes(len),
        1 => random.bytes(40 * len),
        // A frame that ends early, or begins late.
        2 => good[..at].to_vec(),
        3 => good[at..good.len() - 1].to_vec(),
        // A bit that has changed. (Of the address or the CRC as well; not so that a flag comes about.)
        4 => {
            good[at] ^= if good[at] == 0x7d ^ 1 || good[at] == 0x7e ^ 1 {
                0x10
            } else {
                1
            };
            good
        }
        // For somebody else.
        5 => frame(RPC_ADDRESS + 1 + random.next() % 1000, &packet),
        // Longer than any place.
        6 => {
            let len = 300 + random.below(3000);
            frame(RPC_ADDRESS, &random.bytes(len))
        }
        // The line breaks in the middle of a frame: zeros, then the rest of it.
        _ => [&good[..at], &[0; 20], &good[at..]].concat(),
    }
}

/// What stands behind a piece: a call, and how often it may be repeated.
fn call_behind(uart: &UnixStream, count: u32, repeats: u32) -> Result<u32> {
    let mut random = Random::new(0x5eed_0001);
    let mut again = 0;
    for n in 0..count {
        let piece = piece(&mut random);
        let mut line = uart;
        line.write_all(&piece)?;
        again += calls::double(uart, n, repeats)
            .map_err(|error| format!("garbage {n}, {} bytes: {error}", piece.len()))?;
    }
    Ok(again)
}

/// Images whose loop reads the UART: the emulator waits for them, so that not one call may be lost.
pub fn polled(name: &str) -> Result<()> {
    let board = Emulator::start(AN385, &Image::read(AN385, name)?)?;
    call_behind(board.uart()?, pieces(), 0).map_err(named(name))?;
    println!(
        "{name}: {} pieces of garbage, a call answered behind each",
        pieces()
    );
    Ok(())
}

/// The image whose handler reads the UART as fast as bytes come: where its buffer is full they are lost, and the call
/// behind them is sent again.
pub fn interrupted(name: &str) -> Result<()> {
    let place = Place::new()?;
    let image = Image::read_with_tasks(AN385, name)?;
    let board = Emulator::start_with_both(&image, &place.memory, &place.bell)?;
    let again = call_behind(board.uart()?, pieces(), 20).map_err(named(name))?;
    println!(
        "{name}: {} pieces of garbage, a call answered behind each, {again} of them at a second attempt",
        pieces()
    );
    Ok(())
}

/// Writes a few pieces, to a line that a node writes to as well, so that it does not block.
pub fn write(uart: &UnixStream, random: &mut Random, count: u32) -> Result<()> {
    let mut line = uart;
    for _ in 0..count {
        let piece = piece(random);
        let mut left = &piece[..];
        while !left.is_empty() {
            match line.write(left) {
                Ok(len) => left = &left[len..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}
