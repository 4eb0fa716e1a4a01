//! Makes the code of the services that the book shows.

fn main() {
    sinew_gen::build(&["book/weather.proto"]);
    sinew_gen::build(&["../examples/tutorial/lamp.proto"]);
}
