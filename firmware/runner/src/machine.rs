//! The boards that the emulator knows.

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
    /// The emulator's program, and the package that has it.
    pub qemu: &'static str,
    pub apt: &'static str,
    /// What the program is always given.
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
    qemu: "qemu-system-arm",
    apt: "qemu-system-arm",
    arguments: &["-semihosting-config", "enable=on,target=native"],
    counting: &["-M", "mps2-an385", "-icount", "shift=6,sleep=off"],
};

/// The same, with the images that are nodes of Zenoh, and the one that counts for them.
pub const NODE: Machine = Machine {
    profile: "node",
    images: &["--bin=zenoh_*", "--bin=puts"],
    ..AN385
};

/// A RISC-V core of 32 bits.
pub const VIRT: Machine = Machine {
    target: "riscv32imac-unknown-none-elf",
    package: "virt",
    profile: "release",
    images: &["--bins"],
    qemu: "qemu-system-riscv32",
    apt: "qemu-system-misc",
    arguments: &["-bios", "none", "-m", "16M"],
    counting: &["-M", "virt", "-icount", "shift=0,sleep=off"],
};
