//! Boards with two cores that are joined by a domain link, and RV32 on one hart.

use std::io::{Read, Write};

use sinew::frame::hdlc;

use crate::Result;
use crate::budget::Figures;
use crate::calls::{self, Services};
use crate::emulator::Emulator;
use crate::image::Image;
use crate::machine::{AN521, Machine, VIRT, VIRT2};

/// A board with two cores, and what its images have behind their names in budgets.toml.
const BOARDS: [(Machine, &str); 2] = [(AN521, "an521"), (VIRT2, "rv")];

/// Everything on these boards.
pub fn run(figures: &mut Figures) -> Result<()> {
    for (machine, suffix) in BOARDS {
        let all = "every call answered as it must be, 200 restarts of each side";
        let besieged = "every call has ended while the peer scribbled, and was answered after it";
        let besieger = "calls answered each time after the first core scribbled";
        for (first, second, what) in [
            ("client", "serve", all),
            ("besieged", "scribble", besieged),
            ("besieger", "serve", besieger),
        ] {
            let images = [read(machine, first)?, read(machine, second)?];
            let [first, second] = &images;
            let board = Emulator::start_cores(machine, &[first, second])?;
            expect_end(board, &format!("{suffix}: {}", first.name))?;
            println!("{suffix}: {} and {}: {what}", first.name, second.name);
        }
        count(machine, suffix, figures)?;
    }
    served_by(AN521, &["relay", "serve"], "an521", figures)?;
    served_by(VIRT, &["direct"], "rv", figures)?;
    let name = "serve-rv";
    let serve = read(VIRT, "serve")?;
    figures.add(name, "flash", serve.flash);
    figures.add(name, "ram_static", serve.ram);
    Ok(())
}

fn read(machine: Machine, name: &str) -> Result<Image> {
    Image::read(machine, name)
}

/// Calls what is behind the UART of the first image, and measures all of them.
fn served_by(machine: Machine, names: &[&str], suffix: &str, figures: &mut Figures) -> Result<()> {
    let images = names.iter().map(|name| read(machine, name));
    let images = images.collect::<Result<Vec<_>>>()?;
    let images: Vec<_> = images.iter().collect();
    let mut board = Emulator::start_cores(machine, &images)?;
    let names = names.join(" and ");
    // A UART that is switched on loses the byte that it has: it is this flag, and not that of the first frame.
    board.uart()?.write_all(&[hdlc::FLAG])?;
    let calls = calls::through_uart(board.uart()?, Services::BOTH)
        .map_err(|error| format!("{suffix}: {names}: {error}"))?;
    println!("{suffix}: {names}: {calls} calls through the UART answered as they must be");
    for image in images {
        let name = format!("{}-{suffix}", image.name);
        figures.add(&name, "flash", image.flash);
        figures.add(&name, "ram_static", image.ram);
        figures.add(&name, "stack", board.stack_used(image)?);
    }
    Ok(())
}

/// Counts the instructions of both cores.
fn count(machine: Machine, suffix: &str, figures: &mut Figures) -> Result<()> {
    let images = [read(machine, "count")?, read(machine, "answer")?];
    let [first, second] = &images;
    let board = Emulator::start_counting(machine, &[first, second])?;
    let mut text = String::new();
    board.uart()?.read_to_string(&mut text)?;
    let name = format!("count-{suffix}");
    expect_end(board, &name)?;
    let printed = text.trim().split_once(' ');
    let (figure, value) = printed.ok_or_else(|| format!("{name} prints {text:?}"))?;
    figures.add(&name, figure, value.parse()?);
    Ok(())
}

fn expect_end(board: Emulator, name: &str) -> Result<()> {
    match board.wait().map_err(|error| format!("{name}: {error}"))? {
        0 => Ok(()),
        code => Err(format!("{name} has ended with {code}").into()),
    }
}
