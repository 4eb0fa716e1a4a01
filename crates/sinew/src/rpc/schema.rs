//! What services look like, as a device keeps it for who asks (`sinew.Reflection`).

/// The schema of some services. `sinew-gen` makes one for each run, with `Builder::schema`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schema {
    /// An encoded `google.protobuf.FileDescriptorSet`.
    pub set: &'static [u8],
    /// The first 8 bytes of the SHA-256 of `set`, as a big-endian number: by it a tool knows a schema
    /// that it has read before.
    pub hash: u64,
}

impl Schema {
    /// The same by its hash alone, for schemas that every tool has: those of `sinew_services`.
    pub const fn by_hash(self) -> Schema {
        let Schema { hash, .. } = self;
        Schema { set: &[], hash }
    }
}
