//! Services as their code needs them, out of descriptors.

use prost_reflect::prost_types::FileDescriptorProto;
use prost_reflect::{MethodDescriptor, ServiceDescriptor};
use sinew::rpc::MethodKind;

use crate::service::{Method, Service};
use crate::tidy::doc_line;

/// A service as its code needs it; `raw` tells the capacity of methods of plain bytes.
pub(crate) fn describe(
    service: &ServiceDescriptor,
    raw: impl Fn(&MethodDescriptor) -> Option<u32>,
) -> Service {
    let file = service.parent_file();
    let file = file.file_descriptor_proto();
    Service {
        full_name: service.full_name().to_owned(),
        name: service.name().to_owned(),
        docs: comments(file, service.path()),
        methods: service
            .methods()
            .map(|method| Method {
                name: method.name().to_owned(),
                kind: kind(&method),
                docs: comments(file, method.path()),
                request: format!(".{}", method.input().full_name()),
                response: format!(".{}", method.output().full_name()),
                raw: raw(&method),
            })
            .collect(),
    }
}

fn kind(method: &MethodDescriptor) -> MethodKind {
    match (method.is_client_streaming(), method.is_server_streaming()) {
        (false, false) => MethodKind::Unary,
        (false, true) => MethodKind::ServerStream,
        (true, false) => MethodKind::ClientStream,
        (true, true) => MethodKind::Bidi,
    }
}

/// The comments before and behind an element, as lines of documentation.
fn comments(file: &FileDescriptorProto, path: &[i32]) -> Vec<String> {
    let location = file
        .source_code_info
        .iter()
        .flat_map(|info| &info.location)
        .find(|location| location.path == path);
    let Some(location) = location else {
        return Vec::new();
    };
    [&location.leading_comments, &location.trailing_comments]
        .into_iter()
        .flatten()
        .flat_map(|text| text.trim_end().lines())
        .map(doc_line)
        .collect()
}
