//! Tells a Cortex-R from a Cortex-M: for the compiler both are `arm`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(cortex_r)");
    let target = std::env::var("TARGET").unwrap_or_default();
    if target.starts_with("armv7r") || target.starts_with("armv8r") {
        println!("cargo:rustc-cfg=cortex_r");
    }
}
