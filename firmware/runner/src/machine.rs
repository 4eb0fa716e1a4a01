//! The boards that the emulator knows.

/// A board that the emulator knows.
#[derive(Clone, Copy)]
pub struct Machine {
    /// What its core runs.
    pub target: &'static str,
    /// The package of its images.
    pub package: &'static str,
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
    qemu: "qemu-system-arm",
    apt: "qemu-system-arm",
    arguments: &["-semihosting-config", "enable=on,target=native"],
    counting: &["-M", "mps2-an385", "-icount", "shift=6,sleep=off"],
};

/// A RISC-V core of 32 bits.
pub const VIRT: Machine = Machine {
    target: "riscv32imac-unknown-none-elf",
    package: "virt",
    qemu: "qemu-system-riscv32",
    apt: "qemu-system-misc",
    arguments: &["-bios", "none", "-m", "16M"],
    counting: &["-M", "virt", "-icount", "shift=0,sleep=off"],
};
