//! Makes the code of demo.proto and of the benchmark service.

fn main() {
    sinew_gen::Builder::new()
        .protos(&["demo.proto"])
        .mocks(true)
        .descriptors(true)
        .build();
    sinew_gen::build(&["../sinew/benchmark.proto"]);
}
