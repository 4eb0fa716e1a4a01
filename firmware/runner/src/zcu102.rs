//! Linux on a Cortex-A53 and the services on a Cortex-R5F of one emulated chip, joined by on-chip memory.
//!
//! `./setup zcu102` has fetched the kernel. Everything else is built here: the images, the device tree, and
//! the archive with the first process, which does the rest and prints the verdict.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;
use crate::emulator;
use crate::image::{self, Image};
use crate::machine::{AN385, Machine};

/// What makes this program run this testbed.
pub const NAME: &str = "zcu102";

/// The services, and what waits for them at the vectors.
const CORTEX_R5F: Machine = Machine {
    target: "armv7r-none-eabihf",
    package: "zcu102",
    profile: "release",
    images: &["--bins"],
    name: "xlnx-zcu102",
    ..AN385
};
/// What runs before Linux.
const BOOT: Machine = Machine {
    target: "aarch64-unknown-none",
    package: "zcu102-boot",
    ..CORTEX_R5F
};
/// The first process.
const LINUX: Machine = Machine {
    target: "aarch64-unknown-linux-musl",
    package: "zcu102-linux",
    ..CORTEX_R5F
};

/// Where zcu102-boot expects the kernel.
const KERNEL: &str = "0x200000";

/// The emulator ends after this, in seconds: some times what it takes on a loaded machine.
const LIMIT_S: &str = "600";

/// Runs it.
pub fn run() -> Result<()> {
    emulator::check(CORTEX_R5F)?;
    for machine in [CORTEX_R5F, BOOT, LINUX] {
        image::build(machine)?;
    }
    let services = Image::read(CORTEX_R5F, "services")?;
    println!(
        "services: {} B loaded, {} B of RAM beside the stack",
        services.flash, services.ram
    );

    let fetched = image::workspace().join("../build/zcu102");
    let made = image::workspace().join("target").join(NAME);
    std::fs::create_dir_all(&made)?;
    let archive = made.join("initramfs");
    std::fs::write(&archive, initramfs(&fetched, &services.path)?)?;
    let tree = made.join("board.dtb");
    compile_tree(&image::workspace().join("zcu102-linux/board.dts"), &tree)?;

    let loader = |file: &Path, what: &str| format!("loader,file={}{what}", file.display());
    let kernel = loader(
        &fetched.join("vmlinuz"),
        &format!(",addr={KERNEL},force-raw=on"),
    );
    let vectors = loader(&CORTEX_R5F.path("boot"), "");
    let mut line = "console=ttyPS0 quiet panic=-1".to_owned();
    if let Ok(restarts) = std::env::var("SINEW_RESTARTS") {
        line += &format!(" SINEW_RESTARTS={restarts}");
    }
    let qemu = CORTEX_R5F.qemu()?;
    let mut process = Command::new("timeout")
        .args(["-k", "1", LIMIT_S, qemu.program, "-M", qemu.name])
        .args(qemu.arguments)
        .args(["-display", "none", "-monitor", "none", "-no-reboot"])
        .args(["-audiodev", "none,id=none"])
        .arg("-kernel")
        .arg(BOOT.path("zcu102-boot"))
        .args(["-device", &kernel, "-device", &vectors])
        .arg("-initrd")
        .arg(&archive)
        .arg("-dtb")
        .arg(&tree)
        .args(["-append", &line, "-serial", "stdio"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut verdict = None;
    if let Some(output) = process.stdout.take() {
        // A console may print anything.
        for line in BufReader::new(output).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).trim_end().to_owned();
            println!("{line}");
            verdict = line.strip_prefix("zcu102: ").map(str::to_owned).or(verdict);
        }
    }
    let status = process.wait()?;
    match verdict.as_deref() {
        Some("passed") => Ok(()),
        Some(verdict) => Err(format!("zcu102 has ended ({status}) after: {verdict}").into()),
        None => Err(format!("Linux does not come up: the emulator has ended with {status}").into()),
    }
}

impl Machine {
    /// A file that the compiler has made for it.
    fn path(&self, name: &str) -> PathBuf {
        let target = image::workspace().join("target").join(self.target);
        target.join(self.profile).join(name)
    }
}

fn compile_tree(source: &Path, to: &Path) -> Result<()> {
    let status = Command::new("dtc")
        .args(["-q", "-I", "dts", "-O", "dtb", "-o"])
        .args([to, source])
        .status()
        .map_err(|error| format!("dtc: {error}: apt-get install device-tree-compiler"))?;
    match status.success() {
        true => Ok(()),
        false => Err("the device tree does not compile".into()),
    }
}

/// The archive that is Linux's first file system.
fn initramfs(fetched: &Path, services: &Path) -> Result<Vec<u8>> {
    const FILE: u32 = 0o100_644;
    const PROGRAM: u32 = 0o100_755;
    let files = [
        ("init", PROGRAM, LINUX.path("zcu102-linux")),
        ("services", FILE, services.to_owned()),
        ("evdev.ko", FILE, fetched.join("evdev.ko")),
        ("gpio_keys.ko", FILE, fetched.join("gpio_keys.ko")),
    ];
    let mut archive = Vec::new();
    for (name, mode, path) in files {
        let bytes = std::fs::read(&path)
            .map_err(|error| format!("{}: {error}: ./setup zcu102", path.display()))?;
        entry(&mut archive, name, mode, &bytes)?;
    }
    entry(&mut archive, "TRAILER!!!", 0, &[])?;
    Ok(archive)
}

/// One file of an archive in cpio's format `newc`: a header of numbers in hexadecimal, the name, the bytes.
fn entry(archive: &mut Vec<u8>, name: &str, mode: u32, bytes: &[u8]) -> Result<()> {
    let (len, name_len) = (u32::try_from(bytes.len())?, u32::try_from(name.len() + 1)?);
    // Inode, mode, user, group, links, time, length, four numbers of devices, length of the name, checksum.
    let header = [0, mode, 0, 0, 1, 0, len, 0, 0, 0, 0, name_len, 0];
    archive.extend(b"070701");
    for number in header {
        archive.extend(format!("{number:08x}").bytes());
    }
    archive.extend(name.bytes().chain([0]));
    archive.resize(archive.len().next_multiple_of(4), 0);
    archive.extend(bytes);
    archive.resize(archive.len().next_multiple_of(4), 0);
    Ok(())
}
