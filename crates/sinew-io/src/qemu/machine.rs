//! The machines that can be started. One more is one more entry here.

use object::Architecture;

/// A machine that QEMU emulates.
#[derive(Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its name for QEMU (`-M`), in endpoints, and in what images say of themselves.
    pub name: &'static str,
    /// The name of its core.
    pub core: &'static str,
    /// What it runs.
    pub architecture: Architecture,
    /// The emulator's program, and the Debian package that has it.
    pub program: &'static str,
    /// See `program`.
    pub package: &'static str,
    /// What the program is always given.
    pub arguments: &'static [&'static str],
    /// How many bytes of memory it can share, where it can: then the object with the id `shared` is given
    /// as its `memory-backend`, and its second UART is the doorbell. The first is the UART of its images.
    pub shared: Option<u64>,
}

/// It shares its 16 MB of PSRAM, at 0x2100_0000. Images end by semihosting.
const AN385: Machine = Machine {
    name: "mps2-an385",
    core: "Cortex-M3",
    architecture: Architecture::Arm,
    program: "qemu-system-arm",
    package: "qemu-system-arm",
    arguments: &["-semihosting-config", "enable=on,target=native"],
    shared: Some(16 << 20),
};

/// Every machine that `qemu:` knows.
pub static MACHINES: &[Machine] = &[
    AN385,
    Machine {
        name: "mps2-an386",
        core: "Cortex-M4",
        ..AN385
    },
    Machine {
        name: "mps2-an521",
        core: "2 Cortex-M33",
        shared: None,
        ..AN385
    },
    // Its first Cortex-R5F is one core more than there are Cortex-A53. Its links are those of its Linux.
    Machine {
        name: "xlnx-zcu102",
        core: "Cortex-R5F",
        program: "qemu-system-aarch64",
        arguments: &["-smp", "5", "-m", "512M"],
        shared: None,
        ..AN385
    },
    // Images end by the test device.
    Machine {
        name: "virt",
        core: "RV32",
        architecture: Architecture::Riscv32,
        program: "qemu-system-riscv32",
        package: "qemu-system-misc",
        arguments: &["-bios", "none", "-m", "16M"],
        shared: None,
    },
];

impl Machine {
    /// The machine of this name.
    pub fn named(name: &str) -> Option<&'static Machine> {
        MACHINES.iter().find(|machine| machine.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_is_found_by_its_name() {
        for machine in MACHINES {
            assert!(std::ptr::eq(Machine::named(machine.name).unwrap(), machine));
        }
        assert_eq!(Machine::named("mps2-an999"), None);
    }
}
