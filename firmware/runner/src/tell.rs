//! The images that tell of themselves, over the UART and over shared memory: what each of the services by which they
//! do costs, and that what they tell is right while they are called, when nobody listens, and after a reset.

use std::time::{Duration, Instant};

use sinew::rpc::{CallError, Status};
use sinew_demo::{Num, kinds};
use sinew_io::Client;
use sinew_io::reconnect::{self, Backoff, Redial};
use sinew_services::record::Said;
use sinew_services::{
    DescribeRequest, IndexRequest, InfoRequest, ReadRequest, Record, RecordsRequest, Severity,
    ValuesRequest, device, log, reflection,
};

use crate::budget::Figures;
use crate::emulator::{self, Emulator};
use crate::image::{self, Image};
use crate::machine::{DEFERRED, TELL};
use crate::shared::Place;
use crate::{Result, named};

/// The largest packet of these images.
const MTU: usize = 512;
/// No answer of the board takes this long on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// Records that a board keeps.
const KEPT: u32 = 8;
/// Calls of which the board writes a record each.
const CALLS: u32 = 200;

#[derive(Clone, Copy)]
enum Over {
    Uart,
    Memory,
}

/// What an image tells.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Tells {
    reflection: bool,
    log: bool,
    device: bool,
}

const NOTHING: Tells = Tells {
    reflection: false,
    log: false,
    device: false,
};
const REFLECTION: Tells = Tells {
    reflection: true,
    ..NOTHING
};
const LOG: Tells = Tells {
    log: true,
    ..NOTHING
};
const DEVICE: Tells = Tells {
    device: true,
    ..NOTHING
};
const ALL: Tells = Tells {
    reflection: true,
    log: true,
    device: true,
};

const IMAGES: [(&str, Over, Tells); 11] = [
    ("tell_nothing", Over::Uart, NOTHING),
    ("tell_reflection", Over::Uart, REFLECTION),
    ("tell_comments", Over::Uart, REFLECTION),
    ("tell_log", Over::Uart, LOG),
    ("tell_device", Over::Uart, DEVICE),
    ("tell_all", Over::Uart, ALL),
    ("tell_nothing_shared", Over::Memory, NOTHING),
    ("tell_reflection_shared", Over::Memory, REFLECTION),
    ("tell_log_shared", Over::Memory, LOG),
    ("tell_device_shared", Over::Memory, DEVICE),
    ("tell_all_shared", Over::Memory, ALL),
];

/// The argument that runs these images alone, and prints what each service costs.
pub const NAME: &str = "tell";

/// Builds and asks them, and prints what they cost beside the one that tells nothing.
pub fn alone() -> Result<()> {
    emulator::check(TELL)?;
    image::build(TELL)?;
    image::build(DEFERRED)?;
    let mut figures = Figures::new();
    run(&mut figures)?;
    println!(
        "{:24} {:>7} {:>7} {:>7}   more than without",
        "B of", "flash", "RAM", "stack"
    );
    let mut before = [0; 3];
    for (name, _, tells) in IMAGES {
        let costs = ["flash", "ram_static", "stack"].map(|figure| figures.get(name, figure));
        let [flash, ram, stack] = costs;
        print!("{name:24} {flash:7} {ram:7} {stack:7}");
        if tells == NOTHING {
            before = costs;
        } else {
            for (cost, before) in costs.iter().zip(before) {
                print!(" {:+7}", *cost as i64 - before as i64);
            }
        }
        println!();
    }
    Ok(())
}

/// Asks each of them, and takes its figures.
pub fn run(figures: &mut Figures) -> Result<()> {
    for (name, over, tells) in IMAGES {
        let image = Image::read(TELL, name)?;
        let place = Place::new()?;
        let mut board = start(&image, &place, over)?;
        let client = connect(&place, over)?;
        let asked = check(&client, tells).map_err(named(name))?;
        println!("{name}: {asked}");
        figures.add(name, "flash", image.flash);
        figures.add(name, "ram_static", image.ram);
        figures.add(name, "stack", board.stack_used(&image)?);
        if tells.log {
            drop(board);
            resets(&client, &image, &place, over).map_err(named(name))?;
            println!("{name}: the log of the same client goes on after a reset");
        }
    }
    // What it says is tested with the tool, which makes its texts: `crates/sinew-cli/tests/log.rs`.
    let image = Image::read(DEFERRED, "deferred")?;
    figures.add(&image.name, "flash", image.flash);
    figures.add(&image.name, "ram_static", image.ram);
    Ok(())
}

fn uart(place: &Place) -> std::path::PathBuf {
    place.folder().join("uart")
}

fn start(image: &Image, place: &Place, over: Over) -> Result<Emulator> {
    match over {
        Over::Uart => Emulator::start_listening(image, &uart(place)),
        Over::Memory => Emulator::start_sharing(image, &place.memory, &place.bell),
    }
}

fn connect(place: &Place, over: Over) -> Result<Client<Redial>> {
    let endpoint = match over {
        Over::Uart => format!("unix:{}?mtu={MTU}", uart(place).display()),
        Over::Memory => place.endpoint(MTU),
    };
    let backoff = Backoff {
        min: Duration::from_millis(5),
        max: Duration::from_millis(50),
    };
    Ok(reconnect::connect(&endpoint.parse()?, backoff))
}

/// Asks all that the image tells, and says how much that was.
fn check(client: &Client<Redial>, tells: Tells) -> Result<String> {
    let mut asked = Vec::new();
    if tells.log {
        let sent = in_order(client)?;
        asked.push(format!("a record of each of {CALLS} calls, in order"));
        let dropped = unread(client, tells, sent)?;
        asked.push(format!(
            "{dropped} records dropped while nobody read, and told"
        ));
    }
    let mut kinds = kinds::Client(client.with_timeout(PATIENCE));
    for n in 0..CALLS {
        doubled(&mut kinds, n)?;
    }
    asked.push(format!("{CALLS} calls answered as they must be"));
    if tells.reflection {
        asked.push(format!("a schema of {} B", schema(client)?));
    }
    if tells.device {
        asked.push(format!("{} counters", counters(client)?.len()));
        methods(client, if tells.log { 3 * CALLS + 1 } else { CALLS })?;
    }
    Ok(asked.join("; "))
}

fn doubled(kinds: &mut kinds::Client<impl kinds::Reach>, n: u32) -> Result<()> {
    match kinds.double(&Num { n })? {
        Num { n: doubled } if doubled == 2 * n => Ok(()),
        other => Err(format!("{other:?} is not twice {n}").into()),
    }
}

/// Bytes of its schema, read to the end.
fn schema(client: &Client<Redial>) -> Result<usize> {
    let mut device = reflection::Client(client.with_timeout(PATIENCE));
    let mut set = Vec::new();
    for schema in 0.. {
        let described = device.describe(&DescribeRequest { schema })?;
        let before = set.len();
        while set.len() < before + described.size as usize {
            let offset = (set.len() - before) as u32;
            let limit = u32::MAX;
            let piece = device.read(&ReadRequest {
                schema,
                offset,
                limit,
            })?;
            if piece.data.is_empty() {
                return Err("its schema ends before its end".into());
            }
            set.extend_from_slice(&piece.data);
        }
        if schema + 1 == described.schemas {
            break;
        }
    }
    let has = |name: &[u8]| set.windows(name.len()).any(|part| part == name);
    match has(b"demo.proto") && has(b"UnaryEcho") {
        true => Ok(set.len()),
        false => Err("its schema is not that of the demo".into()),
    }
}

/// Its counters by their names.
fn counters(client: &Client<Redial>) -> Result<Vec<(String, u64)>> {
    let mut device = device::Client(client.with_timeout(PATIENCE));
    let info = device.info(&InfoRequest { field: 0 })?;
    if &*info.name != "mps2-an385" || info.uptime == 0 {
        return Err(format!("it says that it is {info:?}").into());
    }
    let mut counters = Vec::new();
    loop {
        let from = counters.len() as u32;
        let page = device.counters(&ValuesRequest { from, limit: 64 })?;
        for value in &page.values {
            let index = counters.len() as u32;
            let counter = device.counter(&IndexRequest { index })?;
            counters.push((format!("{} {}", counter.group, counter.name), *value));
        }
        if counters.len() == page.count as usize {
            break;
        }
    }
    let packets = counters
        .iter()
        .find(|(name, _)| name == "link 0 packets_in");
    match packets {
        Some((_, packets)) if *packets > u64::from(CALLS) => Ok(counters),
        _ => Err(format!("its counters are {counters:?}").into()),
    }
}

/// The first method is `Double`, which was called so often.
fn methods(client: &Client<Redial>, calls: u32) -> Result<()> {
    let mut device = device::Client(client.with_timeout(PATIENCE));
    let values = device.methods(&ValuesRequest {
        from: 0,
        limit: 100,
    })?;
    // The log's stream comes first where there is one: it was opened before.
    let mut at = 0;
    loop {
        let method = device.method(&IndexRequest { index: at })?;
        if method.method == sinew::rpc::id("Double") {
            break;
        }
        at += 1;
    }
    let from = at * device::WORDS as u32;
    let values = match at {
        0 => values,
        _ => device.methods(&ValuesRequest { from, limit: 100 })?,
    };
    let [counted, errors, bytes_in, bytes_out, times @ ..] = &values.values[..] else {
        return Err(format!("the values of a method are {values:?}").into());
    };
    let is_right = *counted == u64::from(calls)
        && *errors == 0
        && bytes_in <= bytes_out
        && times.iter().sum::<u64>() == *counted;
    match is_right {
        true => Ok(()),
        false => Err(format!("{calls} calls are {values:?}").into()),
    }
}

/// While calls run, their records come in order, none is missing, and handlers' are among them. How many there were.
fn in_order(client: &Client<Redial>) -> Result<u32> {
    let mut log = log::Client(client.with_timeout(PATIENCE));
    let mut kinds = kinds::Client(client.with_timeout(PATIENCE));
    let mut records = log.records(&RecordsRequest::default())?;
    let mut number = 0;
    let mut next = || -> Result<Record> {
        let record = records.next()?.ok_or("the log has ended")?;
        number += 1;
        match record.number == number && record.dropped == 0 {
            true => Ok(record),
            false => Err(format!("record {number} is {record:?}").into()),
        }
    };
    let first = next()?;
    if (first.severity, &*first.module, text(&first)) != (Severity::Info, "board", "started") {
        return Err(format!("the first record is {first:?}").into());
    }
    let double = (sinew::rpc::id("demo.Kinds"), sinew::rpc::id("Double"));
    let double = format!("{:08x} {:08x}", double.0, double.1);
    let (mut calls, mut seconds) = (0, 0);
    while calls < CALLS || seconds == 0 {
        if calls < CALLS {
            doubled(&mut kinds, calls)?;
        }
        loop {
            let record = next()?;
            match (record.severity, &*record.module, text(&record)) {
                (Severity::Debug, "calls", said) if said == double && calls < CALLS => {
                    calls += 1;
                    break;
                }
                // The handler of SysTick.
                (Severity::Trace, "systick", _) => {
                    seconds += 1;
                    if calls == CALLS {
                        break;
                    }
                }
                _ => return Err(format!("record {number} is {record:?}").into()),
            }
        }
    }
    Ok(number)
}

fn text(record: &Record) -> &str {
    match &record.said {
        Some(Said::Text(text)) => text,
        _ => "",
    }
}

/// What was written while nobody read is told by its number; the oldest are kept.
fn unread(client: &Client<Redial>, tells: Tells, sent: u32) -> Result<u32> {
    let mut kinds = kinds::Client(client.with_timeout(PATIENCE));
    for n in 0..CALLS {
        doubled(&mut kinds, n)?;
    }
    let kept = waiting(client)?;
    if kept.len() != KEPT as usize || kept.iter().any(|record| record.dropped > 0) {
        return Err(format!("nobody read, and there are {kept:?}").into());
    }
    doubled(&mut kinds, 0)?;
    let new = waiting(client)?;
    let dropped = new.iter().map(|record| record.dropped).sum::<u32>();
    // Of all that was written since, also what had been sent to the reader before when it left.
    let last = new.last().map_or(sent, |record| record.number);
    let told = last - sent + dropped;
    if told < CALLS + 1 {
        let all = CALLS + 1;
        return Err(format!("{told} of {all} records are accounted for: {kept:?} {new:?}").into());
    }
    if tells.device {
        let counters = counters(client)?;
        let counted = ("log dropped".to_owned(), u64::from(dropped));
        if !counters.contains(&counted) {
            return Err(format!("{dropped} were dropped, and counted are {counters:?}").into());
        }
    }
    Ok(dropped)
}

/// The records that wait.
fn waiting(client: &Client<Redial>) -> Result<Vec<Record>> {
    let mut log = log::Client(client.with_timeout(PATIENCE));
    let mut stream = log.records(&RecordsRequest {
        until_empty: true,
        ..RecordsRequest::default()
    })?;
    let mut records = Vec::new();
    while let Some(record) = stream.next()? {
        records.push(record);
    }
    Ok(records)
}

/// The board ends in the middle of its log and starts again: the stream ends with an error, and the next one of the
/// same client has what the new start has to say.
fn resets(client: &Client<Redial>, image: &Image, place: &Place, over: Over) -> Result<()> {
    let wants = RecordsRequest::default();
    for _ in 0..3 {
        let mut board = Some(start(image, place, over)?);
        let mut log = log::Client(client.with_timeout(PATIENCE));
        let since = Instant::now();
        let mut number = 0;
        while board.is_some() {
            // The first call after a reset may find the link lost; then there is a new one.
            let mut records = match log.records(&wants) {
                Err(CallError::Closed) if since.elapsed() < PATIENCE => continue,
                opened => opened?,
            };
            loop {
                match records.next() {
                    Ok(Some(record)) if record.number == number + 1 => number += 1,
                    Ok(record) => return Err(format!("after {number} came {record:?}").into()),
                    Err(CallError::Closed) if number == 0 && since.elapsed() < PATIENCE => break,
                    Err(CallError::Closed | CallError::Status(Status::UNAVAILABLE))
                        if board.is_none() =>
                    {
                        break;
                    }
                    Err(error) => return Err(error.into()),
                }
                if number == 2 {
                    board = None;
                }
            }
        }
    }
    Ok(())
}
