//! Compiles what the generator makes of `protos/`.

use sinew_gen::Builder;

fn main() {
    let run = |proto: &str| Builder::new().protos(&[format!("protos/{proto}")]);
    run("features.proto").schema(true).mocks(true).build();
    run("versions.proto").build();
    run("rootless.proto").build();
    run("hostile.proto")
        .protos(&["protos/hostile_services.proto"])
        .mocks(true)
        .build();
}
