//! The services by which a device tells of itself: their schemas are the same everywhere, and a device may name them by
//! their hashes alone.

use sinew_services::{Description, device, log};

use crate::output;

/// The schema of this description, where it is one that the device does not keep.
pub fn get(described: &Description) -> Option<Vec<u8>> {
    if described.size > 0 {
        return None;
    }
    let known = [log::SCHEMA, device::SCHEMA];
    let schema = known.iter().find(|it| it.hash == described.hash);
    if schema.is_none() {
        output::note(
            "it serves something that it names by the hash of a schema which this tool does not have: another version \
             of sinew.Log or sinew.Device",
        );
    }
    Some(schema.map(|it| it.set.to_vec()).unwrap_or_default())
}
