fn main() {
    sinew_gen::build(&["lamp.proto"]);
}
