//! The sensor, whose one source is in two images, with a node of this process on the other end of each.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use sinew::frame::Framing;
use sinew_io::ConnectError;
use sinew_io::apart::{self, Apart};
use sinew_io::bytes::ByteLink;
use sinew_io::endpoint::{Endpoint, Use};
use sinew_io::pubsub::{Options, Overflow, accept};

use crate::Result;
use crate::agreed::BATCH;
use crate::budget::Figures;
use crate::emulator::Emulator;
use crate::image::Image;
use crate::machine::NODE;
use crate::shared::Place;

/// No answer of the board takes this long on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// Samples that are taken, of both keys.
const SAMPLES: u32 = 6;

pub fn run(figures: &mut Figures) -> Result<()> {
    let image = Image::read(NODE, "sensor_uart")?;
    let mut board = Emulator::start(NODE, &image)?;
    let uart = OwnedFd::from(board.uart()?.try_clone()?);
    let link = ByteLink::duplex(uart, Framing::HDLC, BATCH)?.apart();
    check(&image, link, &mut board, figures)?;

    let image = Image::read(NODE, "sensor")?;
    let place = Place::new()?;
    let mut board = Emulator::start_sharing(&image, &place.memory, &place.bell)?;
    let at = Endpoint::parse(&place.endpoint(BATCH), Use::Batches)?;
    check(&image, open(&at)?, &mut board, figures)
}

/// The emulator makes its socket at its start.
fn open(at: &Endpoint) -> Result<Apart> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match apart::open(at) {
            Err(ConnectError::NoServer(_)) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            opened => return Ok(opened?),
        }
    }
}

/// Its samples count on, and its temperatures are such of a room.
fn check(image: &Image, link: Apart, board: &mut Emulator, figures: &mut Figures) -> Result<()> {
    let name = &image.name;
    let node = accept(link, Options::peer());
    let samples = node.samples("sensor/*", 64, Overflow::Wait)?;
    let mut next: Option<f32> = None;
    for n in 0..SAMPLES {
        let sample = samples.next_within(Some(PATIENCE));
        let sample = sample.ok_or_else(|| format!("{name} publishes nothing"))?;
        let value: f32 = String::from_utf8_lossy(&sample.payload).parse()?;
        let is_due = match (n % 2, sample.key.as_str()) {
            (0, "sensor/count") => next.replace(value + 1.0).is_none_or(|next| next == value),
            (1, "sensor/temperature") => (20.0..=25.0).contains(&value),
            _ => false,
        };
        if !is_due {
            return Err(format!("{name}: sample {n} is {sample:?}").into());
        }
    }
    println!("{name}: {SAMPLES} samples arrived as they must");
    figures.add(name, "flash", image.flash);
    figures.add(name, "ram_static", image.ram);
    figures.add(name, "stack", board.stack_used(image)?);
    Ok(())
}
