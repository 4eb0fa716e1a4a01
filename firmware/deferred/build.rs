//! Gives the linker the board's memory map, and the section of the texts, which is not loaded.

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:rustc-link-arg-bins=-T{here}/../an385/link.x");
    println!("cargo:rustc-link-arg-bins=-Tdefmt.x");
    println!("cargo:rerun-if-changed={here}/../an385/link.x");
    // What defmt keeps of its macros; without it, errors alone.
    println!("cargo:rustc-env=DEFMT_LOG=trace");
}
