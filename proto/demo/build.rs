//! Makes the code of demo.proto and of the benchmark service.

fn main() {
    sinew_gen::Builder::new()
        .protos(&["demo.proto"])
        .mocks(true)
        .schema(true)
        .comments(true)
        .build();
    sinew_gen::Builder::new()
        .protos(&["../sinew/benchmark.proto"])
        .schema(true)
        .comments(true)
        .build();
}
