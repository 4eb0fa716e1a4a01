fn main() {
    sinew_gen::build(&["../tutorial/lamp.proto"]);
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    println!("cargo::rustc-link-arg-bins=-T{here}/link.x");
    println!("cargo::rerun-if-changed=link.x");
}
