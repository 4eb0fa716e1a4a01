//! What is built for each board, and how it is counted there. How QEMU is started for it is known to
//! `sinew_io::qemu`.

use sinew_io::qemu;

use crate::Result;

/// A board that the emulator knows.
#[derive(Clone, Copy)]
pub struct Machine {
    /// What its core runs.
    pub target: &'static str,
    /// The package of its images, and the profile that they are built with.
    pub package: &'static str,
    pub profile: &'static str,
    /// What of the package is built.
    pub images: &'static [&'static str],
    /// Its name in [`sinew_io::qemu::MACHINES`].
    pub name: &'static str,
    /// What the emulator is given beside what every image of the machine wants.
    pub arguments: &'static [&'static str],
    /// With which its counter goes with the instructions.
    pub counting: &'static [&'static str],
}

/// A Cortex-M3.
pub const AN385: Machine = Machine {
    target: "thumbv7m-none-eabi",
    package: "an385",
    profile: "release",
    images: &["--bins"],
    name: "mps2-an385",
    arguments: &[],
    counting: &["-icount", "shift=6,sleep=off"],
};

/// The same, with the images that tell of themselves.
pub const TELL: Machine = Machine {
    package: "tell",
    ..AN385
};

/// The same, with the image whose log has its texts in the ELF file.
pub const DEFERRED: Machine = Machine {
    package: "deferred",
    ..AN385
};

/// A Cortex-M4, otherwise the same: what counts calls there.
pub const AN386: Machine = Machine {
    target: "thumbv7em-none-eabi",
    images: &["--bin=count"],
    name: "mps2-an386",
    ..AN385
};

/// And the images that serve calls with all memory in statics.
pub const RPC: Machine = Machine {
    profile: "node",
    images: &["--bin=rpc_*"],
    ..AN386
};

/// A Cortex-M0, of which only sizes are read.
pub const M0: Machine = Machine {
    target: "thumbv6m-none-eabi",
    images: &["--bin=rpc_*", "--bin=zenoh_*"],
    ..RPC
};

/// The same, with the images that are nodes of Zenoh, and the one that counts for them.
pub const NODE: Machine = Machine {
    profile: "node",
    images: &[
        "--bin=zenoh_*",
        "--bin=sensor*",
        "--bin=blank_uart",
        "--bin=puts",
    ],
    ..AN385
};

/// A core of 8 bits, of which only the size is read: nothing starts the image.
pub const AVR: Machine = Machine {
    target: "avr-none",
    package: "avr",
    images: &["--bins"],
    ..RPC
};

/// A RISC-V core of 32 bits.
pub const VIRT: Machine = Machine {
    target: "riscv32imac-unknown-none-elf",
    package: "virt",
    profile: "release",
    images: &["--bins"],
    name: "virt",
    arguments: &[],
    counting: &["-icount", "shift=0,sleep=off"],
};

/// Two Cortex-M33 cores.
pub const AN521: Machine = Machine {
    target: "thumbv8m.main-none-eabi",
    package: "an521",
    name: "mps2-an521",
    images: &["--bins"],
    ..AN385
};

/// Two RISC-V harts.
pub const VIRT2: Machine = Machine {
    arguments: &["-smp", "2"],
    ..VIRT
};

impl Machine {
    /// How QEMU is started for it.
    pub fn qemu(&self) -> Result<&'static qemu::Machine> {
        let machine = qemu::Machine::named(self.name);
        Ok(machine.ok_or_else(|| format!("sinew_io::qemu does not know {}", self.name))?)
    }
}
