//! Builds the images, runs them in the emulator, calls them through the emulated UART, and prints
//! what they cost beside what they should cost.
//!
//! With the argument `vexriscv` it runs the cycle-exact bench alone, and prints it by its parts; with `tell` the images
//! that tell of themselves, and prints what each of the services costs.
//!
//! Exit code 0 where everything worked. A figure above its aim is shown, not failed; one that has left its
//! recorded value fails. With the argument `record` it is recorded instead.

#[path = "../../an385/src/agreed.rs"]
mod agreed;
mod budget;
mod calls;
mod cores;
mod embassy;
mod emulator;
mod garbage;
mod image;
mod machine;
mod resets;
mod restarts;
mod rpc;
mod scribble;
mod sensor;
mod shared;
mod tell;
mod vexriscv;
mod zcu102;
mod zenoh;

use std::error::Error;
use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

use budget::Figures;
use calls::Services;
use emulator::Emulator;
use image::Image;
use machine::{AN385, AN386, AN521, AVR, DEFERRED, M0, Machine, NODE, RPC, TELL, VIRT};

/// Whatever goes wrong, said in words.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The images that serve calls through the UART.
const SERVING: [(&str, Services); 2] = [("direct", Services::KINDS), ("queued", Services::BOTH)];

/// The images that count instructions, and their names in budgets.toml.
const COUNTING: [(Machine, &str, &str); 5] = [
    (NODE, "puts", "puts"),
    (AN386, "count", "count"),
    (AN385, "messages", "messages"),
    (AN385, "calls", "calls"),
    (VIRT, "calls", "calls-rv"),
];

/// Images that differ in one thing: its flash is that of the one less that of the other.
const DIFFERENCES: [(&str, &str); 2] = [("channel", "link"), ("link", "blank")];

/// The argument that has the figures recorded.
const RECORD: &str = "record";
/// The argument that runs the cycle-exact bench alone.
const BENCH: &str = "vexriscv";

/// Everything together takes a few seconds; this ends what hangs in spite of its own time limits.
const WATCHDOG: Duration = Duration::from_secs(3600);

fn main() -> ExitCode {
    std::thread::spawn(|| {
        std::thread::sleep(WATCHDOG);
        eprintln!("firmware: no end after {} s, given up", WATCHDOG.as_secs());
        std::process::exit(1);
    });
    let mut arguments = std::env::args_os().skip(1);
    let result = match (arguments.next(), arguments.next()) {
        (Some(what), Some(folder)) if what == restarts::ECHO => {
            restarts::echo_until_killed(folder.as_ref())
        }
        (Some(what), None) if what == RECORD => run().and_then(|figures| figures.record()),
        (Some(what), None) if what == BENCH => vexriscv::bench(),
        (Some(what), None) if what == tell::NAME => tell::alone(),
        (Some(what), None) if what == zcu102::NAME => zcu102::run(),
        (None, None) => budget::check_book()
            .and_then(|()| run())
            .and_then(|figures| figures.check()),
        _ => Err(format!(
            "what can be asked for: nothing, {RECORD}, {BENCH}, {}, or {}",
            tell::NAME,
            zcu102::NAME
        )
        .into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("firmware: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures everything.
fn run() -> Result<Figures> {
    for machine in [
        AN385, TELL, DEFERRED, AN386, NODE, RPC, M0, AVR, VIRT, AN521,
    ] {
        emulator::check(machine)?;
        image::build(machine)?;
    }
    let mut figures = Figures::new();
    for (name, services) in SERVING {
        let image = Image::read(AN385, name)?;
        let mut board = Emulator::start(AN385, &image)?;
        let calls = calls::through_uart(board.uart()?, services)
            .map_err(|error| format!("{name}: {error}"))?;
        println!("{name}: {calls} calls answered as they must be");
        figures.add(name, "flash", image.flash);
        figures.add(name, "ram_static", image.ram);
        figures.add(name, "stack", board.stack_used(&image)?);
    }
    rpc::run(&mut figures)?;
    serve_shared(&mut figures)?;
    embassy::run(&mut figures)?;
    tell::run(&mut figures)?;
    cores::run(&mut figures)?;
    for (name, check) in zenoh::IMAGES {
        let image = Image::read(NODE, name)?;
        let mut board = Emulator::start(NODE, &image)?;
        let right = check(&board).map_err(|error| format!("{name}: {error}"))?;
        println!("{name}: {right} samples, queries and replies arrived as they must");
        zenoh::garbage(name, &Emulator::start(NODE, &image)?)
            .map_err(|error| format!("{name}: {error}"))?;
        figures.add(name, "flash", image.flash);
        let without = Image::read(NODE, "blank_uart")?;
        figures.add(
            name,
            "flash_of_node",
            image.flash.saturating_sub(without.flash),
        );
        figures.add(name, "flash_m0", Image::read(M0, name)?.flash);
        figures.add(name, "ram_static", image.ram);
        figures.add(name, "stack", board.stack_used(&image)?);
    }
    let image = Image::read(AVR, "zenoh_pub.elf")?;
    figures.add("zenoh_pub", "flash_avr", image.flash);
    for (name, _) in SERVING {
        garbage::polled(name)?;
    }
    garbage::interrupted("embassy")?;
    scribble::by_linux(&Image::read(AN385, "shared")?)?;
    scribble::by_linux(&Image::read_with_tasks(AN385, "embassy")?)?;
    scribble::by_board("scribbler", "shared")?;
    resets::run("direct", restarts())?;
    sensor::run(&mut figures)?;
    restarts::run(&Image::read(AN385, "channel")?, restarts())?;
    for (machine, image, name) in COUNTING {
        count(machine, image, name, &mut figures)?;
    }
    vexriscv::count(&mut figures)?;
    for (with, without) in DIFFERENCES {
        let (with, without) = (Image::read(AN385, with)?, Image::read(AN385, without)?);
        figures.add(
            &with.name,
            "flash",
            with.flash.saturating_sub(without.flash),
        );
    }
    Ok(figures)
}

/// Says which image it was.
fn named(image: &str) -> impl Fn(Box<dyn Error + Send + Sync>) -> Box<dyn Error + Send + Sync> {
    move |error| format!("{image}: {error}").into()
}

/// Calls the image that shares memory with this process.
fn serve_shared(figures: &mut Figures) -> Result<()> {
    let image = Image::read(AN385, "shared")?;
    let place = shared::Place::new()?;
    let mut board = Emulator::start_sharing(&image, &place.memory, &place.bell)?;
    let mut side = shared::Side::open(&place)?;
    side.connect(&place)?;
    let calls = calls::through_memory(side).map_err(named("shared"))?
        + calls::by_endpoint(&place.endpoint(agreed::MTU)).map_err(named("shared"))?;
    println!("shared: {calls} calls answered as they must be");
    figures.add("shared", "flash", image.flash);
    figures.add("shared", "ram_static", image.ram);
    figures.add("shared", "stack", board.stack_used(&image)?);
    Ok(())
}

/// How often each side is started again, unless `SINEW_RESTARTS` says.
const RESTARTS: u32 = 200;

fn restarts() -> u32 {
    let text = std::env::var("SINEW_RESTARTS").ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(RESTARTS)
}

/// Runs an image that counts instructions.
fn count(machine: Machine, image: &str, name: &str, figures: &mut Figures) -> Result<()> {
    let image = Image::read(machine, image)?;
    let board = Emulator::start_counting(machine, &[&image])?;
    let mut text = String::new();
    board.uart()?.read_to_string(&mut text)?;
    match board.wait()? {
        0 => {}
        code => return Err(format!("{name} has ended with {code}, after {text:?}").into()),
    }
    for line in text.lines() {
        let (figure, value) = line
            .split_once(' ')
            .ok_or_else(|| format!("{name} prints something else"))?;
        figures.add(name, figure, value.parse()?);
    }
    Ok(())
}
