//! The first process of a Linux on the Cortex-A53 of QEMU's xlnx-zcu102: loads and starts the Cortex-R5F
//! beside it, calls its services through on-chip memory, starts either side again and again, and powers off.
//!
//! | module | what it is |
//! |---|---|
//! | `chip` | the Cortex-R5F as Linux sees it: load, start, stop |
//! | `bell` | the doorbell: an interrupt, by drivers that Debian's kernel has |
//! | `rounds` | who is started again, and what must hold then |
//!
//! Its last line is the verdict.

#[path = "../../zcu102/src/agreed.rs"]
mod agreed;
mod bell;
mod chip;
mod rounds;

use std::error::Error;
use std::fs::{File, create_dir_all};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, finit_module, reboot};
use sinew_demo::{KindsAnswers, Num, cache, exercise, exercise_kinds, kinds};
use sinew_io::Client;
use sinew_io::shm::process::{DeviceTx, ProcessLink};
use sinew_shm::domain::{self, Role};
use sinew_shm::linux::Region;
use sinew_shm::linux::link::{Link, Options, RegionBell};

use agreed::{CALLS, LINK, OCM};
use bell::Bell;
use chip::Chip;

/// Whatever goes wrong, said in words.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Nothing takes this long on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Calls whose time is reported.
const TIMED: usize = 1000;

fn main() {
    if std::env::args().nth(1).as_deref() == Some(rounds::CHILD) {
        if let Err(error) = rounds::call_until_killed() {
            eprintln!("zcu102: the process that is to be killed: {error}");
        }
        return;
    }
    match run() {
        Ok(()) => println!("zcu102: passed"),
        Err(error) => println!("zcu102: failed: {error}"),
    }
    // What was printed has left when the port is closed or the system goes down.
    let _ = reboot(RebootCommand::PowerOff);
}

fn run() -> Result<()> {
    start_system()?;
    let mut chip = Chip::open()?;
    let image = std::fs::read("/services")?;
    chip.start(&image)?;
    println!("zcu102: Linux has loaded and started the Cortex-R5F");

    let side = Side::open()?;
    let client = side.client()?;
    call(&client, -7)?;
    println!("zcu102: demo.Cache and all four kinds of demo.Kinds answered as they must");
    println!("zcu102: {}", timed(&client)?);
    println!("zcu102: the doorbell has rung {} times", side.bell.rings());
    if side.bell.rings() == 0 {
        return Err("everything was found by looking: no interrupt has come".into());
    }
    drop(client);
    rounds::run(side, &mut chip, &image).map(drop)
}

/// What every first process does, and the drivers of the doorbell.
fn start_system() -> Result<()> {
    for (kind, at) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        create_dir_all(at)?;
        mount(kind, at, kind, MountFlags::empty(), None)?;
    }
    for module in ["/evdev.ko", "/gpio_keys.ko"] {
        finit_module(File::open(module)?, c"", 0).map_err(|error| format!("{module}: {error}"))?;
    }
    Ok(())
}

/// This process as the first side of the link.
struct Side {
    link: Link,
    bell: Arc<Bell>,
}

impl Side {
    fn open() -> Result<Side> {
        let bell = Arc::new(Bell::open()?);
        let len = domain::Region::of(&LINK).len as usize;
        // Not memory of Linux's, so it is mapped as Device memory.
        let region = Region::open("/dev/mem", OCM as u64, len)?;
        let options = Options {
            spin: Duration::ZERO,
            ..Options::default()
        };
        let other = RegionBell::Other(bell.clone());
        let link = Link::in_region(&region, LINK, Role::First, other, options)?;
        Ok(Side { link, bell })
    }

    /// A client in the present pairing, or the next one.
    fn client(&self) -> Result<Client<ProcessLink<DeviceTx>>> {
        let up = self.link.up_within(Some(PATIENCE));
        up.map_err(|error| format!("the Cortex-R5F does not come up: {error}"))?;
        // No looking before the sleep: each answer comes by the doorbell.
        let link = ProcessLink::on_device(self.link.clone(), CALLS, Duration::ZERO);
        let mut client = Client::new(link.ok_or("the channel is not configured")?, 1);
        client.set_timeout(PATIENCE);
        Ok(client)
    }

    /// Whether every block is where it should be.
    fn check(&self) -> Result<()> {
        match self.link.end().check_books() {
            true => Ok(()),
            false => Err("a block is lost".into()),
        }
    }
}

/// Calls both services as every client of them does.
fn call(client: &Client<ProcessLink<DeviceTx>>, value: i32) -> Result<()> {
    const ITEMS: u32 = 20;
    let answer = exercise(&mut cache::Client(client), value)?;
    if answer != value {
        return Err(format!("demo.Cache remembers {answer} instead of {value}").into());
    }
    let answers = exercise_kinds(&mut kinds::Client(client), ITEMS)?;
    let expected = KindsAnswers {
        doubled: 2 * ITEMS,
        summed: (0..ITEMS).sum(),
    };
    match answers == expected {
        true => Ok(()),
        false => Err(format!("{answers:?} instead of {expected:?}").into()),
    }
}

/// How long calls take: in an emulator, so only a report.
fn timed(client: &Client<ProcessLink<DeviceTx>>) -> Result<String> {
    let mut times = Vec::new();
    for n in 0..TIMED as u32 {
        let begin = Instant::now();
        let answer = kinds::Client(client).double(&Num { n })?;
        times.push(begin.elapsed());
        if answer.n != 2 * n {
            return Err(format!("Double({n}) is {}", answer.n).into());
        }
    }
    times.sort();
    let median = times.get(TIMED / 2).copied().unwrap_or_default();
    Ok(format!("{TIMED} calls, median {median:?} in the emulator"))
}
