//! Makes the code of the services: a run for each, so that a schema has no service that a device does not.

fn main() {
    for proto in ["reflection.proto", "log.proto", "device.proto"] {
        sinew_gen::Builder::new()
            .protos(&[proto])
            .schema(true)
            .comments(true)
            .build();
    }
}
