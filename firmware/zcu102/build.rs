//! Gives the linker the memory map of each image.

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    for image in ["services", "boot"] {
        println!("cargo:rustc-link-arg-bin={image}=-T{here}/{image}.x");
        println!("cargo:rerun-if-changed={image}.x");
    }
}
