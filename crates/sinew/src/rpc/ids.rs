//! Ids of services and methods: the 65599 hash (wire reference, section Ids).

/// The id of a service, from `package.Service`, or of a method, from its bare name.
///
/// An id of 0 is unusable; the generator refuses such a name.
///
/// ```
/// assert_eq!(sinew::rpc::id("pw.rpc.EchoService"), 0x14fb_d052);
/// assert_eq!(sinew::rpc::id("Echo"), 0x8b47_0ee9);
/// ```
pub const fn id(name: &str) -> u32 {
    let bytes = name.as_bytes();
    let mut hash = bytes.len() as u32;
    let mut factor = 65599u32;
    let mut i = 0;
    while i < bytes.len() {
        hash = hash.wrapping_add(factor.wrapping_mul(bytes[i] as u32));
        factor = factor.wrapping_mul(65599);
        i += 1;
    }
    hash
}
