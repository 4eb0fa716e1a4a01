//! The VexRiscv images, in the cycle-exact bench of `vexriscv/bench.cpp`: simulators are built of the
//! Verilog of a pinned Python wheel.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::budget::Figures;
use crate::emulator;
use crate::image::{self, Image, workspace};
use crate::machine::Machine;

/// A core of the wheel, and what its images are built for.
struct Core {
    /// As it stands in budgets.toml.
    name: &'static str,
    /// What it has, for readers.
    has: &'static str,
    verilog: &'static str,
    machine: Machine,
}

const BENCH: Machine = Machine {
    target: "riscv32imac-unknown-none-elf",
    package: "vexriscv",
    profile: "speed",
    images: &["--bins"],
    name: "VexRiscv",
    arguments: &[],
    counting: &[],
};
const CORES: [Core; 2] = [
    Core {
        name: "vex",
        has: "RV32IMAC, one address space",
        verilog: "VexRiscv_IMAC.v",
        machine: BENCH,
    },
    Core {
        name: "vex-mmu",
        has: "RV32IMA with Sv32, an address space for each context",
        verilog: "VexRiscv_Linux.v",
        machine: Machine {
            target: "riscv32im-unknown-none-elf",
            ..BENCH
        },
    },
];

/// In the order of the table.
const IMAGES: [&str; 5] = ["floor", "scalar", "lend", "rpc", "puts"];

/// Cycles of a word that is read or written: the 70 ns SRAM at 100 MHz, and what makes the clear of a page
/// as long as that of Xous.
const MODELS: [u32; 2] = [7, 17];

/// The parts of a call, as the bench counts them.
const PARTS: [&str; 5] = ["client", "switch", "channel", "server", "clear"];

/// Xous's published figures, in cycles.
const XOUS: [(&str, &str); 3] = [
    ("scalar", "17,400"),
    ("lend_mut", "unsafe 30,200, normal 77,100"),
    ("clear_page", "17,370"),
];

/// Cycles of a run, by part.
struct Row {
    name: String,
    parts: [u64; PARTS.len()],
}

impl Row {
    fn of(line: &str) -> Option<Row> {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        let mut parts = [0; PARTS.len()];
        for part in &mut parts {
            *part = words.next()?.parse().ok()?;
        }
        words.next().is_none().then_some(Row { name, parts })
    }

    fn cycles(&self) -> u64 {
        self.parts.iter().sum()
    }
}

/// A core with its images, both built.
struct Bench {
    simulator: PathBuf,
    images: Vec<Image>,
}

impl Bench {
    fn build(core: &Core) -> Result<Bench> {
        emulator::check_program("verilator", "verilator")?;
        image::build(core.machine)?;
        let read = |name| {
            let image = Image::read(core.machine, name)?;
            Ok(image)
        };
        Ok(Bench {
            simulator: simulator(core)?,
            images: IMAGES.into_iter().map(read).collect::<Result<_>>()?,
        })
    }

    /// What each image takes on a memory of so many cycles.
    fn run(&self, model: u32) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for image in &self.images {
            // The bench itself ends after some cycles.
            let output = Command::new(&self.simulator)
                .arg(&image.path)
                .args([model.to_string(), model.to_string(), model.to_string()])
                .output()?;
            let (name, text) = (&image.name, String::from_utf8(output.stdout)?);
            if !output.status.success() {
                let error = String::from_utf8_lossy(&output.stderr).into_owned();
                return Err(format!("{name} has ended with {}: {error}", output.status).into());
            }
            for line in text.lines() {
                let row = Row::of(line);
                rows.push(row.ok_or_else(|| format!("{name} prints {line:?}"))?);
            }
        }
        Ok(rows)
    }
}

/// Builds the simulator of a core; quick where it is there.
fn simulator(core: &Core) -> Result<PathBuf> {
    let verilog = verilog()?.join(core.verilog);
    let folder = workspace().join("target/vexriscv").join(core.name);
    std::fs::create_dir_all(&folder)?;
    let output = Command::new("verilator")
        .args(["-O3", "--x-assign", "fast", "--noassert", "--cc", "--build"])
        .args(["-Wno-fatal", "-Wno-lint", "-Wno-style", "-j", "2"])
        .args(["--top-module", "VexRiscv", "-CFLAGS", "-O2 -std=c++17"])
        .arg("-Mdir")
        .arg(&folder)
        .arg(verilog)
        .arg("--exe")
        .arg(workspace().join("vexriscv/bench.cpp"))
        .output()?;
    match output.status.success() {
        true => Ok(folder.join("VVexRiscv")),
        false => Err(format!(
            "verilator: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
        .into()),
    }
}

/// Where the wheel has its Verilog.
fn verilog() -> Result<PathBuf> {
    let python = workspace().join("../build/venv/bin/python");
    let where_it_is = "import pythondata_cpu_vexriscv as wheel; print(wheel.data_location)";
    let output = Command::new(python).args(["-c", where_it_is]).output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(Path::new(String::from_utf8(output.stdout)?.trim()).to_owned())
        }
        _ => Err("no VexRiscv in build/venv: ./setup bench-firmware installs it".into()),
    }
}

/// Adds the figures that are held: on the memory of Xous, whole calls. What is done by hand, as a floor, is
/// this code's own, and not held.
pub fn count(figures: &mut Figures) -> Result<()> {
    for core in &CORES {
        for row in Bench::build(core)?.run(MODELS[1])? {
            if !row.name.starts_with("floor") {
                figures.add(core.name, &row.name, row.cycles());
            }
        }
    }
    Ok(())
}

/// Prints everything by its parts, and writes it to `bench/results/firmware.csv`.
pub fn bench() -> Result<()> {
    let mut csv = String::from("case,figure,value,unit,note\n");
    for core in &CORES {
        let bench = Bench::build(core)?;
        for model in MODELS {
            println!("\nVexRiscv, {}; {model} cycles a word", core.has);
            print!("{:28} {:>7}", "cycles", "whole");
            println!("{}  Xous", PARTS.map(|part| format!(" {part:>7}")).concat());
            for row in bench.run(model)? {
                let (name, cycles) = (&row.name, row.cycles());
                let parts = row.parts.map(|cycles| format!(" {cycles:7}")).concat();
                // Theirs are measured on a memory like the slower one.
                let theirs = XOUS
                    .iter()
                    .find(|(xous, _)| xous == name && model == MODELS[1]);
                let theirs = theirs.map_or("", |(_, cycles)| cycles);
                println!("{name:28} {cycles:7}{parts}  {theirs}");
                let each = PARTS.into_iter().zip(row.parts);
                for (part, cycles) in [("whole", cycles)].into_iter().chain(each) {
                    let note = format!("{}; {model} cycles a word", core.has);
                    writeln!(
                        csv,
                        "{} {model} {name},{part},{cycles},cycles,\"{note}\"",
                        core.name
                    )?;
                }
            }
        }
    }
    println!(
        "\nThe same instruction set as Xous's own core, and a memory whose clear of a page takes as long\n\
         as theirs: not the same SoC. Here is no kernel, and no policy of one: the switch saves and restores\n\
         31 registers, and the address space where there is one. Figures without `_cold` are with warm\n\
         caches; with it, both caches are emptied before each call."
    );
    let path = workspace().join("../bench/results/firmware.csv");
    std::fs::write(&path, csv)?;
    println!("written: bench/results/firmware.csv");
    Ok(())
}
