//! Message types, by micropb-gen, with the services beside them.

use std::collections::HashMap;
use std::fmt;

use micropb_gen::config::OptionalRepr;
use micropb_gen::{Config, Generator, ServiceGenerator, ServiceView, TypeResolver};
use proc_macro2::{Span, TokenStream};
use prost_reflect::prost::Message as _;
use prost_reflect::prost_types::FileDescriptorSet;

use crate::bounds::Bound;
use crate::embed::Schema;
use crate::service::{self, Service};
use crate::{paths, tidy};

/// One Rust file for these descriptors: a module per package.
pub(crate) fn generate(
    set: &FileDescriptorSet,
    bounds: &[Bound],
    services: HashMap<String, Service>,
    mocks: bool,
    schema: Option<Schema>,
) -> Result<syn::File, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (input, output) = (folder.path().join("set"), folder.path().join("out.rs"));
    std::fs::write(&input, set.encode_to_vec()).map_err(|e| e.to_string())?;

    // Everything it warns of has been checked before, with source lines.
    let mut generator = Generator::with_warning_callback(|_: fmt::Arguments<'_>| {});
    generator
        .format(false)
        .suffixed_package_names(false)
        .add_service_generator(Services { services, mocks })
        .configure(
            ".",
            Config::new()
                .vec_type("::sinew::heapless::Vec<$T, $N>")
                .string_type("::sinew::heapless::String<$N>")
                .bytes_type("::sinew::heapless::Vec<u8, $N>")
                .map_type("::sinew::heapless::index_map::FnvIndexMap<$K, $V, $N>")
                // With micropb's bit fields a value that was written is not sent until its bit is
                // set as well; an Option cannot be half there.
                .optional_repr(OptionalRepr::Option)
                .no_accessors(true),
        );
    for bound in bounds {
        let mut config = Config::new();
        if let Some(size) = bound.size {
            config = config.max_bytes(size);
        }
        if let Some(count) = bound.count {
            config = config.max_len(count);
        }
        generator.configure(&bound.path, config);
    }
    generator
        .compile_fdset_file(&input, &output)
        .map_err(|e| e.to_string())?;
    let text = std::fs::read_to_string(&output).map_err(|e| e.to_string())?;
    let tokens: TokenStream = text.parse().map_err(|e| format!("{e}"))?;
    let mut file: syn::File =
        syn::parse2(tidy::retarget(tokens)).map_err(|e| format!("generated code: {e}"))?;
    if let Some(Schema { set, hash }) = schema {
        let set = syn::LitByteStr::new(&set, Span::call_site());
        file.items.push(syn::parse_quote! {
            /// What all of this looks like, for who asks by reflection.
            pub const SCHEMA: ::sinew::rpc::Schema = ::sinew::rpc::Schema {
                set: #set,
                hash: #hash,
            };
        });
    }
    tidy::polish(&mut file);
    paths::absolute(&mut file);
    Ok(file)
}

/// Puts the code of each service beside the messages of its package.
struct Services {
    services: HashMap<String, Service>,
    mocks: bool,
}

impl ServiceGenerator for Services {
    fn generate(&mut self, view: &ServiceView, types: &dyn TypeResolver) -> TokenStream {
        let full_name = match view.package {
            "" => view.name.to_owned(),
            package => format!("{package}.{}", view.name),
        };
        self.services
            .get(&full_name)
            .map(|service| service::generate(service, types, self.mocks))
            .unwrap_or_default()
    }
}
