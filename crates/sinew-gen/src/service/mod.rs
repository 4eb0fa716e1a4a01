//! The code of one service: a module with its trait, its clients and what stands between.
//!
//! Everything of `sinew` is named `rpc::…` inside, so that no name of a .proto can hide it.

use micropb_gen::TypeResolver;
use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;
use sinew::rpc::MethodKind;

use crate::names::{camel, ident, snake};

mod calls;
mod client;
mod mock;
mod server;

/// A service as its code needs it.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    /// `package.Service`.
    pub full_name: String,
    /// `Service`.
    pub name: String,
    pub docs: Vec<String>,
    pub methods: Vec<Method>,
}

/// A method as its code needs it.
#[derive(Clone, Debug)]
pub(crate) struct Method {
    pub name: String,
    pub kind: MethodKind,
    pub docs: Vec<String>,
    /// Full names with a leading dot.
    pub request: String,
    pub response: String,
    /// Capacity where both messages are plain bytes.
    pub raw: Option<u32>,
}

/// Names that the code of a service's module uses, so that its trait must not take them.
const TAKEN: &[&str] = &[
    // Its own items.
    "AsyncClient",
    "AsyncReach",
    "Calls",
    "Client",
    "Defer",
    "Reach",
    "Serve",
    // Type parameters.
    "F",
    "N",
    "R",
    "S",
    "T",
    // The prelude; a trait that is hidden there loses its methods, too.
    "AsRef",
    "Clone",
    "Copy",
    "Default",
    "Drop",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "Future",
    "Into",
    "IntoFuture",
    "IntoIterator",
    "Iterator",
    "Option",
    "Result",
    "Send",
    "Sized",
    "Sync",
    "Unpin",
];

/// Functions that every client has from the prelude by itself and that take `self` or `&self`:
/// one of the same name that takes `&mut self` would not be found.
const EVERYBODYS: &[&str] = &["clone", "clone_into", "into", "to_owned", "try_into"];

/// A service with its Rust names.
struct Names<'s> {
    service: &'s Service,
    /// The trait.
    interface: Ident,
    methods: Vec<MethodNames<'s>>,
}

struct MethodNames<'s> {
    method: &'s Method,
    /// Marker type and variant of `Calls`.
    marker: Ident,
    /// Function.
    function: Ident,
    /// Constant of the id.
    id: Ident,
    /// Message types, as seen from the service's module.
    request: TokenStream,
    response: TokenStream,
    docs: TokenStream,
}

/// The name of the function of a method; `poll` and `arm` are the trait's own.
pub(crate) fn function_name(method: &str) -> String {
    let name = snake(method);
    match name == "poll" || name == "arm" || EVERYBODYS.contains(&name.as_str()) {
        true => name + "_",
        false => name,
    }
}

/// The name of the trait of a service.
pub(crate) fn trait_name(service: &str) -> String {
    let name = camel(service);
    match TAKEN.contains(&name.as_str()) {
        true => name + "Service",
        false => name,
    }
}

/// The module of the service, for the place beside its messages.
pub(crate) fn generate(service: &Service, types: &dyn TypeResolver, mocks: bool) -> TokenStream {
    let names = names(service, types);
    let module = ident(&snake(&service.name));
    let module_doc = format!(
        " Service `{}`: its trait, its clients and what stands between.",
        service.full_name
    );
    let service_id = hex(sinew::rpc::id(&service.full_name));
    let ids = names.methods.iter().map(|m| {
        let (name, value) = (&m.id, hex(sinew::rpc::id(&m.method.name)));
        let doc = format!(" Id of `{}`.", m.method.name);
        quote! { #[doc = #doc] pub const #name: u32 = #value; }
    });
    let markers = names.methods.iter().map(|m| marker(&names, m));
    let server = server::generate(&names);
    let client = client::generate(&names);
    let calls = calls::generate(&names);
    let mock = mocks.then(|| mock::generate(&names));
    quote! {
        #[doc = #module_doc]
        pub mod #module {
            use ::sinew::rpc;

            /// Id of the service.
            pub const SERVICE_ID: u32 = #service_id;

            /// Ids of the methods.
            pub mod id { #(#ids)* }

            /// One type per method: it names the method where a trait is generic over one.
            pub mod method {
                use ::sinew::rpc;
                #(#markers)*
            }

            #server
            #client
            #calls
            #mock
        }
    }
}

fn names<'s>(service: &'s Service, types: &dyn TypeResolver) -> Names<'s> {
    let methods = service.methods.iter().map(|method| {
        let message = |name: &str| match method.raw {
            Some(capacity) => {
                let capacity = Literal::u32_unsuffixed(capacity);
                quote!(rpc::Raw<#capacity>)
            }
            None => {
                let path = crate::tidy::retarget(types.rust_path(name));
                quote!(super::#path)
            }
        };
        MethodNames {
            method,
            marker: ident(&camel(&method.name)),
            function: ident(&function_name(&method.name)),
            id: ident(&snake(&method.name).to_uppercase()),
            request: message(&method.request),
            response: message(&method.response),
            docs: match method.docs.as_slice() {
                [] => docs(&[format!(" `{}/{}`.", service.full_name, method.name)]),
                lines => docs(lines),
            },
        }
    });
    Names {
        service,
        interface: ident(&trait_name(&service.name)),
        methods: methods.collect(),
    }
}

fn marker(names: &Names<'_>, m: &MethodNames<'_>) -> TokenStream {
    let (marker, id, request, response) = (&m.marker, &m.id, &m.request, &m.response);
    let full_name = format!("{}/{}", names.service.full_name, m.method.name);
    let doc = format!(" `{full_name}`.");
    // One module deeper than the paths were made for.
    let [request, response] = [request, response].map(|path| match m.method.raw {
        Some(_) => path.clone(),
        None => quote!(super::#path),
    });
    let kind = match m.method.kind {
        MethodKind::Unary => quote!(Unary),
        MethodKind::ServerStream => quote!(ServerStream),
        MethodKind::ClientStream => quote!(ClientStream),
        MethodKind::Bidi => quote!(Bidi),
    };
    quote! {
        #[doc = #doc]
        #[derive(Clone, Copy, Debug)]
        pub struct #marker;

        impl rpc::Method for #marker {
            type Request = #request;
            type Response = #response;
            const ID: rpc::MethodId = rpc::MethodId {
                service: super::SERVICE_ID,
                method: super::id::#id,
                kind: rpc::MethodKind::#kind,
            };
            const NAME: &'static str = #full_name;
        }
    }
}

fn hex(value: u32) -> Literal {
    // Grouped as people write them; the text is a literal of Rust by construction.
    let text = format!("0x{:04x}_{:04x}", value >> 16, value & 0xffff);
    text.parse().unwrap_or(Literal::u32_unsuffixed(value))
}

fn docs(lines: &[String]) -> TokenStream {
    lines.iter().map(|line| quote!(#[doc = #line])).collect()
}
