//! The schema that a device keeps of itself, as small as it can be.

use prost_reflect::prost::Message as _;
use prost_reflect::prost_types::{FileDescriptorSet, SourceCodeInfo};
use sha2::{Digest, Sha256};

/// What `sinew::rpc::Schema` will hold.
pub(crate) struct Schema {
    pub set: Vec<u8>,
    pub hash: u64,
}

impl Schema {
    /// These descriptors, with the comments of what is in them or without.
    pub fn new(set: &FileDescriptorSet, comments: bool) -> Schema {
        let mut set = set.clone();
        for file in &mut set.file {
            let info = file.source_code_info.take().filter(|_| comments);
            file.source_code_info = info.map(only_comments);
        }
        let set = set.encode_to_vec();
        let hash = hash(&set);
        Schema { set, hash }
    }
}

/// Where things are in the file is of no use without the file.
fn only_comments(mut info: SourceCodeInfo) -> SourceCodeInfo {
    for location in &mut info.location {
        location.span.clear();
        location.leading_detached_comments.clear();
    }
    let is_said = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
    info.location
        .retain(|it| is_said(&it.leading_comments) || is_said(&it.trailing_comments));
    info
}

/// As `sinew::rpc::Schema` defines it.
fn hash(set: &[u8]) -> u64 {
    let digest = Sha256::digest(set);
    digest
        .iter()
        .take(8)
        .fold(0, |hash, &byte| hash << 8 | u64::from(byte))
}
