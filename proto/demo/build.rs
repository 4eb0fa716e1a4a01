//! Makes the code of demo.proto.

fn main() {
    sinew_gen::build(&["demo.proto"]);
}
