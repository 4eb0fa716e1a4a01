//! `sinew demo`: one service and one client, called unchanged in every placement of this machine.

use std::fs::File;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use sinew_io::{Address, Endpoint};

mod chart;
mod control;
mod here;
mod measure;
mod network;
mod processes;
mod table;

use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use measure::Times;
use table::Row;

/// Call one service in every placement that this machine offers, and compare.
///
/// The service demo.Cache and its client are each written once; what differs between the
/// placements is the line that names the link. Of publish and subscribe, a call is a sample to
/// another process and its echo.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Draw the times as a chart as well
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Calls per placement
    #[arg(long, value_name = "N", default_value_t = 20_000,
          value_parser = clap::value_parser!(u64).range(2..=100_000_000))]
    calls: u64,
    /// Call this image as well, on a microcontroller that QEMU emulates: qemu:IMAGE; more than once for
    /// more images
    ///
    /// `make demo` has one for a UART and one for shared memory, where QEMU and the Rust target are there.
    #[arg(long, value_name = "ENDPOINT", value_parser = board)]
    board: Vec<Endpoint>,
    /// Publish through a Zenoh router as well, that this command starts: an endpoint follows it,
    /// as in 'zenohd -l'
    ///
    /// `make demo` has one, where Zenoh's Python package is there.
    #[arg(long, value_name = "COMMAND")]
    router: Option<String>,
}

fn board(text: &str) -> Result<Endpoint, String> {
    match text.parse::<Endpoint>() {
        Ok(at) if matches!(at.address, Address::Qemu(_)) => Ok(at),
        Ok(_) => Err("it is no board: write qemu:IMAGE".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// What a placement found: its times, and the bytes that its link carried meanwhile.
struct Outcome {
    times: Times,
    bytes: u64,
}

/// A way to reach the service.
struct Placement {
    name: &'static str,
    link: &'static str,
    run: fn(u64, &ProgressBar) -> Result<Outcome, String>,
    /// What to look at where it cannot run.
    needs: &'static str,
}

const PLACEMENTS: [Placement; 10] = [
    Placement {
        name: "same thread",
        link: "direct",
        run: here::direct,
        needs: "nothing; report this",
    },
    Placement {
        name: "two threads",
        link: "queue",
        run: here::threads,
        needs: "a second thread",
    },
    Placement {
        name: "two threads",
        link: "shared memory",
        run: here::shared_memory,
        needs: "a second thread",
    },
    Placement {
        name: "two processes",
        link: "shared memory",
        run: processes::shared_memory,
        needs: "child processes, memory for a link, and sockets in the folder for temporary files",
    },
    Placement {
        name: "two processes",
        link: "unix",
        run: processes::unix,
        needs: "child processes, and sockets in the folder for temporary files",
    },
    Placement {
        name: "two processes",
        link: "pty + HDLC",
        run: processes::pty,
        needs: "child processes and /dev/ptmx; in a container, mount devpts",
    },
    Placement {
        name: "two processes",
        link: "TCP",
        run: processes::tcp,
        needs: "child processes and the loopback interface",
    },
    Placement {
        name: "two processes",
        link: "UDP",
        run: processes::udp,
        needs: "child processes and the loopback interface",
    },
    Placement {
        name: "Zenoh peers",
        link: "shared memory",
        run: network::shared_memory,
        needs: "child processes, memory for a link, and sockets in the folder for temporary files",
    },
    Placement {
        name: "Zenoh peers",
        link: "TCP",
        run: network::tcp,
        needs: "child processes and the loopback interface",
    },
];

/// The one that needs a program of others: a router in between.
const ROUTED: (&str, &str) = ("Zenoh router", "TCP");

const NEEDS_IMAGE: &str = "an image that serves demo.Cache, and QEMU: `make demo` has both";

pub fn run(args: Args) -> Result<(), Failure> {
    if let Some(path) = &args.svg {
        // Before it all, not after.
        let file = File::options().append(true).create(true).open(path);
        file.map_err(|error| unwritten(path, &error))?;
    }
    let more = args.board.len() + usize::from(args.router.is_some());
    let placements = PLACEMENTS.len() + more;
    let boards = args.board.iter().map(|at| {
        let refused = |cause| failed("board", "qemu", cause, NEEDS_IMAGE);
        processes::board_name(at).map_err(refused)
    });
    // What cannot run is said before all that can has.
    let boards: Vec<_> = boards.collect::<Result<_, _>>()?;
    let shown = Progress::steps("calling", args.calls * (placements as u64 + 1));
    let bar = shown.bar();
    stay_on_one_core()
        .map_err(|cause| failed("control", "two threads", cause, "to choose its processor"))?;
    bar.set_message("calling: control");
    let control = control::run(args.calls, bar)
        .map_err(|cause| failed("control", "two threads", cause, "a second thread"))?;
    let mut rows = Vec::new();
    for placement in &PLACEMENTS {
        let Placement {
            name,
            link,
            run,
            needs,
        } = placement;
        bar.set_message(format!("calling: {name}, {link}"));
        let outcome = run(args.calls, bar).map_err(|cause| failed(name, link, cause, needs))?;
        rows.push(row((name, link), &outcome, &control));
    }
    if let Some(command) = &args.router {
        let (name, link) = ROUTED;
        bar.set_message(format!("calling: {name}, {link}"));
        let needs = "a command that starts a Zenoh router at the endpoint behind it, and \
                     loopback";
        let outcome = network::routed(command, args.calls, bar);
        let outcome = outcome.map_err(|cause| failed(name, link, cause, needs))?;
        rows.push(row(ROUTED, &outcome, &control));
    }
    for (at, (name, link)) in args.board.iter().zip(boards) {
        let needs = NEEDS_IMAGE;
        bar.set_message(format!("calling: {name}, {link}"));
        let outcome = processes::board(at, args.calls, bar);
        let outcome = outcome.map_err(|cause| failed(name, link, cause, needs))?;
        rows.push(row((name, link), &outcome, &control));
    }
    drop(shown);
    if let Some(path) = &args.svg {
        std::fs::write(path, chart::svg(&rows)).map_err(|error| unwritten(path, &error))?;
    }
    let text = match output::is_json() {
        true => table::json(&rows),
        false => {
            let legend = table::legend(control.median_ns);
            table::text(&rows, output::has_colour()) + &legend
        }
    };
    output::line(&text)
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(
        format!("cannot write {}: {error}", path.display()),
        "check the path and its permissions",
    )
}

/// Keeps this process and its children on one core, so that every placement pays for the same kind
/// of wake-up: one across cores can cost ten times as much, and which one it is would be chance.
fn stay_on_one_core() -> Result<(), String> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let cause = |error: rustix::io::Errno| error.to_string();
    let allowed = sched_getaffinity(None).map_err(cause)?;
    let mut last = CpuSet::new();
    if let Some(core) = (0..CpuSet::MAX_CPU)
        .rev()
        .find(|&core| allowed.is_set(core))
    {
        last.set(core);
        sched_setaffinity(None, &last).map_err(cause)?;
    }
    Ok(())
}

fn row((placement, link): (&'static str, &'static str), outcome: &Outcome, control: &Times) -> Row {
    let times = outcome.times;
    Row {
        placement,
        link,
        calls: times.calls,
        median_ns: times.median_ns,
        p99_ns: times.p99_ns,
        bytes_per_call: outcome.bytes as f64 / times.all_calls as f64,
        ratio_to_control: times.median_ns / control.median_ns.max(0.001),
    }
}

/// A placement that cannot run is an error with its name, never a missing row.
fn failed(name: &str, link: &str, cause: String, needs: &str) -> Failure {
    Failure::Placement {
        placement: format!("the placement \"{name}, {link}\" cannot run"),
        cause,
        help: format!("it needs {needs}"),
    }
}

#[cfg(test)]
mod tests {
    /// Everything that a placement consists of.
    const SOURCES: [&str; 7] = [
        include_str!("mod.rs"),
        include_str!("here.rs"),
        include_str!("network.rs"),
        include_str!("processes.rs"),
        include_str!("control.rs"),
        include_str!("measure.rs"),
        include_str!("../serve.rs"),
    ];

    fn uses(text: &str) -> usize {
        SOURCES
            .iter()
            .map(|source| source.matches(text).count())
            .sum()
    }

    #[test]
    fn every_placement_runs_the_one_exercise_and_the_one_service() {
        // Split, so that this test does not find itself.
        assert_eq!(uses(concat!("match exer", "cise(black_box")), 1);
        assert_eq!(uses(concat!("exer", "cise(")), 1);
        // Each placement goes through the function around it, on its kind of link.
        assert_eq!(uses(concat!("exer", "cises(&mut ")), 2);
        // The service is that of the demo crate; nobody here writes another one.
        assert_eq!(uses(concat!("Cache ", "for ")), 0);
        assert_eq!(uses(concat!("CacheService::", "new()")), 2);
    }

    #[test]
    fn every_placement_has_its_own_name() {
        for (at, one) in super::PLACEMENTS.iter().enumerate() {
            let same = |other: &super::Placement| (other.name, other.link) == (one.name, one.link);
            assert_eq!(super::PLACEMENTS.iter().position(same), Some(at));
            assert_ne!((one.name, one.link), super::ROUTED);
        }
    }
}
