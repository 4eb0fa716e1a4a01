//! The talk's experiment: two threads pinned to one core, a ring with mutex and condition variable
//! on both sides.
//!
//! The control sends plain structs; the calls send packets of a typed RPC through the same ring.
//! Rounds of both are interleaved, so that a machine that changes its speed changes it for both.

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use rustix::thread::{CpuSet, sched_setaffinity};
use sinew_demo::cache::method::{GetValue, SetValue};
use sinew_demo::{GetValueRequest, SetValueRequest};

use sinew_demo::cache::{self, Serve};
use sinew_demo::{CacheService, exercise};
use sinew_io::{Client, Server, threads};

use crate::Result;
use crate::cases::{Answerer, Caller};
use crate::csv::{Row, spread};
use crate::ring::Ring;

const ROUNDS: usize = 151;
const CALLS: usize = 2_000;
const PACKET: usize = 64;

/// What a plain program would send: no ids, no encoding.
#[derive(Clone, Copy, Default)]
pub struct Plain {
    operation: u32,
    pub value: i32,
}

impl Plain {
    pub fn set(value: i32) -> Self {
        let operation = SET;
        Plain { operation, value }
    }

    pub fn get() -> Self {
        let operation = GET;
        Plain {
            operation,
            value: 0,
        }
    }

    /// What the service does.
    pub fn answer(self, remembered: &mut i32) -> Self {
        if self.operation == SET {
            *remembered = self.value;
        }
        Plain {
            value: *remembered,
            ..self
        }
    }
}

#[derive(Clone, Copy)]
struct Packet {
    len: usize,
    bytes: [u8; PACKET],
}

impl Default for Packet {
    fn default() -> Self {
        Packet {
            len: 0,
            bytes: [0; PACKET],
        }
    }
}

impl Packet {
    fn new(packet: &[u8]) -> Self {
        let mut bytes = [0; PACKET];
        bytes[..packet.len()].copy_from_slice(packet);
        Packet {
            len: packet.len(),
            bytes,
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

const SET: u32 = 1;
const GET: u32 = 2;
const STOP: u32 = 0;

/// A client and a server thread for one way of calling.
struct Pair<T> {
    there: Arc<Ring<T>>,
    back: Arc<Ring<T>>,
    server: thread::JoinHandle<()>,
}

impl<T: Copy + Default + Send + 'static> Pair<T> {
    /// Starts a server thread that answers until it gets what `serve` takes for the end.
    fn start(mut serve: impl FnMut(T) -> Option<T> + Send + 'static) -> Self {
        let (there, back) = (Arc::new(Ring::new()), Arc::new(Ring::new()));
        let ends = (there.clone(), back.clone());
        let server = thread::spawn(move || {
            while let Some(answer) = serve(ends.0.pop()) {
                ends.1.push(&answer);
            }
        });
        Pair {
            there,
            back,
            server,
        }
    }

    fn exchange(&self, value: &T) -> T {
        self.there.push(value);
        self.back.pop()
    }

    fn stop(self, end: &T) {
        self.there.push(end);
        self.server.join().expect("the server thread ends");
    }
}

/// One round's figures per call.
struct Round {
    nanoseconds: f64,
    switches: f64,
}

fn measure(mut call: impl FnMut(i32)) -> Result<Round> {
    let switches = context_switches()?;
    let start = Instant::now();
    for n in 0..CALLS / 2 {
        call(n as i32); // a set and a get
    }
    Ok(Round {
        nanoseconds: start.elapsed().as_nanos() as f64 / CALLS as f64,
        switches: (context_switches()? - switches) as f64 / CALLS as f64,
    })
}

/// Runs the experiment.
pub fn run() -> Result<Vec<Row>> {
    let mut one_core = CpuSet::new();
    one_core.set(0);
    sched_setaffinity(None, &one_core)?; // threads started from here on inherit it

    let mut remembered = 0;
    let control = Pair::start(move |request: Plain| {
        (request.operation != STOP).then(|| request.answer(&mut remembered))
    });
    let mut answerer = Answerer::new();
    let rpc = Pair::start(move |request: Packet| {
        let mut answer = Packet::default();
        if request.len == 0 {
            return None;
        }
        answer.len = answerer.answer(request.bytes(), &mut answer.bytes);
        Some(answer)
    });
    let mut caller = Caller::new();
    let (near, mut far) = threads::link();
    let driven = thread::spawn(move || Server::new(Serve(CacheService::new())).serve(&mut far, 1));
    let client = Client::new(near, 1);

    let (mut plain, mut typed, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let (mut drivers, mut driver_ratios) = (Vec::new(), Vec::new());
    let mut place = [0; PACKET];
    for round in 0..=ROUNDS {
        let control = measure(|value| {
            control.exchange(&Plain::set(value));
            let got = control.exchange(&Plain::get());
            assert_eq!(got.value, value);
        })?;
        let calls = measure(|value| {
            let mut answer = Packet::default();
            caller.call::<SetValue>(&SetValueRequest { value }, &mut place, |packet| {
                answer = rpc.exchange(&Packet::new(packet));
                answer.bytes()
            });
            let mut answer = Packet::default();
            let got = caller.call::<GetValue>(&GetValueRequest {}, &mut place, |packet| {
                answer = rpc.exchange(&Packet::new(packet));
                answer.bytes()
            });
            assert_eq!(got.value, value);
        })?;
        let shipped = measure(|value| {
            assert_eq!(exercise(&mut cache::Client(&client), value), Ok(value));
        })?;
        if round == 0 {
            continue; // warm-up
        }
        ratios.push(calls.nanoseconds / control.nanoseconds);
        driver_ratios.push(shipped.nanoseconds / control.nanoseconds);
        drivers.push(shipped);
        plain.push(control);
        typed.push(calls);
    }
    control.stop(&Plain::default());
    rpc.stop(&Packet::default());

    drop(client); // the link closes
    driven.join().expect("the driver ends");

    let rounds = format!("{ROUNDS} interleaved rounds of {CALLS} calls");
    let mut rows = Vec::new();
    for (case, figures) in [
        ("control (plain struct)", plain),
        ("typed call, same ring", typed),
        ("typed call, sinew-io", drivers),
    ] {
        let time = figures.iter().map(|round| round.nanoseconds).collect();
        rows.push(spread(case, "time", time, "ns/call", &rounds));
        let switches = figures.iter().map(|round| round.switches).collect();
        rows.push(spread(
            case,
            "context switches",
            switches,
            "per call",
            &rounds,
        ));
    }
    rows.push(spread(
        "typed call over control",
        "ratio",
        ratios,
        "",
        "aim 1.10; same ring",
    ));
    rows.push(spread(
        "sinew-io over control",
        "ratio",
        driver_ratios,
        "",
        "two threads as a program has them: queue link, client, server, deadlines",
    ));
    Ok(rows)
}

/// Context switches of all threads of this process so far.
fn context_switches() -> Result<u64> {
    let mut total = 0;
    for task in fs::read_dir("/proc/self/task")? {
        let status = fs::read_to_string(task?.path().join("status"))?;
        for line in status.lines().filter(|line| line.contains("ctxt_switches")) {
            total += line
                .split_whitespace()
                .nth(1)
                .unwrap_or("0")
                .parse::<u64>()?;
        }
    }
    Ok(total)
}
