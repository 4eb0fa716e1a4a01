//! The image under embassy: both of its links, one after the other and at the same time.

use crate::budget::Figures;
use crate::calls::{self, Services};
use crate::emulator::Emulator;
use crate::image::Image;
use crate::machine::AN385;
use crate::shared::{Place, Side};
use crate::{Result, named};

const NAME: &str = "embassy";

/// Calls it, and measures it.
pub fn run(figures: &mut Figures) -> Result<()> {
    let image = Image::read_with_tasks(AN385, NAME)?;
    let place = Place::new()?;
    let mut board = Emulator::start_with_both(&image, &place.memory, &place.bell)?;
    let mut side = Side::open(&place)?;
    side.connect(&place)?;
    let uart = board.uart()?;
    let calls = calls::through_uart(uart, Services::BOTH).and_then(|alone| {
        let together = std::thread::scope(|scope| {
            let over_uart = scope.spawn(|| calls::through_uart(uart, Services::BOTH));
            let over_memory = calls::through_memory(side)?;
            let over_uart = over_uart.join().map_err(|_| "a thread has panicked")?;
            Ok(over_uart? + over_memory)
        });
        together.map(|together: u32| alone + together)
    });
    let calls = calls
        .and_then(|calls| Ok(calls + calls::by_endpoint(&place.endpoint(crate::agreed::MTU))?));
    let calls = calls.map_err(named(NAME))?;
    println!("{NAME}: {calls} calls over both links answered as they must be");
    figures.add(NAME, "flash", image.flash);
    figures.add(NAME, "ram_static", image.ram);
    figures.add(NAME, "stack", board.stack_used(&image)?);
    Ok(())
}
