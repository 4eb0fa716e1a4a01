//! Makes the code of demo.proto.

fn main() {
    sinew_gen::Builder::new()
        .protos(&["demo.proto"])
        .mocks(true)
        .descriptors(true)
        .build();
}
