//! Makes the code of the services that the book shows.

fn main() {
    sinew_gen::build(&["book/update.proto"]);
    sinew_gen::build(&["book/weather.proto"]);
    sinew_gen::Builder::new()
        .protos(&["../examples/tutorial/lamp.proto"])
        .schema(true)
        .comments(true)
        .build();
}
