//! Gives the linker the board's memory map, says what is built, and makes the schema of the demo without comments.

fn main() {
    let built = |name: &str| std::env::var(name).unwrap_or_default();
    let board = format!("{}/../an385/link.x", built("CARGO_MANIFEST_DIR"));
    println!("cargo:rustc-link-arg-bins=-T{board}");
    println!("cargo:rerun-if-changed={board}");
    let (target, level) = (built("TARGET"), built("OPT_LEVEL"));
    println!("cargo:rustc-env=BUILD={target}, opt-level {level}");
    sinew_gen::Builder::new()
        .protos(&[
            "../../proto/demo/demo.proto",
            "../../proto/sinew/benchmark.proto",
        ])
        .name("plain")
        .schema(true)
        .build();
}
