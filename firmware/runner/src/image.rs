//! Building an image, and reading what it is made of.

use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, elf};

use crate::Result;
use crate::machine::Machine;

/// Parts of the names of what panics: `panic_fmt`, `expect_failed`, `slice_index_fail`.
const PANICS: [&str; 2] = ["panic", "_fail"];

/// An image that has been built.
pub struct Image {
    pub name: String,
    pub path: PathBuf,
    /// Bytes of flash: vector table, start-up, code, constants, and the start values of data.
    pub flash: u64,
    /// Bytes of RAM that statics take.
    pub ram: u64,
    /// Where the stack starts; it grows down.
    pub stack_top: u64,
    symbols: Vec<String>,
}

/// The folder of the firmware's workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// Builds every image of this board.
pub fn build(
    Machine {
        target,
        package,
        profile,
        images,
        ..
    }: Machine,
) -> Result<()> {
    let status = Command::new("../.ci/cross")
        .current_dir(workspace())
        .args(["build", "--quiet", "--package", package])
        .args(["--profile", profile, "--target", target])
        .args(images)
        .status()?;
    if status.success() {
        return Ok(());
    }
    Err(format!(
        "the images do not build for {target}. Where the target is missing: \
         rustup target add {target}. Where the linker names \
         a_panic_can_be_reached_from_here: a panic can be reached"
    )
    .into())
}

impl Image {
    /// Reads the image of this name; fails where it contains code that can panic. (The linker refuses it as
    /// well: this finds what a change of the panic handler would let in.)
    pub fn read(machine: Machine, name: &str) -> Result<Image> {
        Image::load(machine, name)?.without_panics(&[])
    }

    /// The same for an image with tasks, which may panic where an `async fn` is polled after its end: the compiler
    /// puts that into each, and no executor does it.
    pub fn read_with_tasks(machine: Machine, name: &str) -> Result<Image> {
        Image::load(machine, name)?.without_panics(&[
            "panic_const_async_fn_resumed",
            "panic_fmt",
            "a_panic_can_be_reached_from_here",
        ])
    }

    fn load(machine: Machine, name: &str) -> Result<Image> {
        let path = workspace()
            .join("target")
            .join(machine.target)
            .join(machine.profile)
            .join(name);
        let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let file = object::File::parse(&*bytes)?;
        let (mut flash, mut ram) = (0, 0);
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags } = section.flags() else {
                continue;
            };
            if sh_flags & u64::from(elf::SHF_ALLOC) == 0 {
                continue;
            }
            let has_bytes = section.file_range().is_some();
            let is_written = sh_flags & u64::from(elf::SHF_WRITE) != 0;
            flash += if has_bytes { section.size() } else { 0 };
            ram += if is_written { section.size() } else { 0 };
        }
        let stack_top = file
            .symbols()
            .find(|symbol| symbol.name() == Ok("__stack_top"))
            .ok_or("no symbol __stack_top")?
            .address();
        let symbols = file
            .symbols()
            .filter_map(|symbol| symbol.name().ok())
            .map(str::to_owned)
            .collect();
        Ok(Image {
            name: name.to_owned(),
            path,
            flash,
            ram,
            stack_top,
            symbols,
        })
    }

    fn without_panics(self, allowed: &[&str]) -> Result<Image> {
        let panics: Vec<_> = self
            .symbols
            .iter()
            .filter(|name| PANICS.iter().any(|part| name.contains(part)))
            .filter(|name| !allowed.iter().any(|part| name.contains(part)))
            .map(String::as_str)
            .collect();
        if panics.is_empty() {
            return Ok(self);
        }
        Err(format!("{}: panics are linked: {}", self.name, panics.join(", ")).into())
    }
}
