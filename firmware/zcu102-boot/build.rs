//! Gives the linker the memory map. The emulator takes the image without a header.

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:rustc-link-arg-bins=-T{here}/link.x");
    println!("cargo:rustc-link-arg-bins=--oformat=binary");
    println!("cargo:rerun-if-changed=link.x");
}
