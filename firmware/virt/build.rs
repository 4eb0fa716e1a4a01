//! Gives the linker the memory map of the hart that each image is for.

const SECOND: [&str; 3] = ["serve", "scribble", "answer"];

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:rustc-link-arg-bins=-L{here}");
    for entry in std::fs::read_dir("src/bin").into_iter().flatten().flatten() {
        let file = entry.file_name();
        let Some(name) = file.to_str().and_then(|file| file.strip_suffix(".rs")) else {
            continue;
        };
        let hart = u8::from(SECOND.contains(&name));
        println!("cargo:rustc-link-arg-bin={name}=-T{here}/hart{hart}.x");
    }
    for file in ["hart0.x", "hart1.x", "sections.x", "src/bin"] {
        println!("cargo:rerun-if-changed={file}");
    }
}
