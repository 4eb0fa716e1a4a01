//! The side that calls: clients that are generic over how the service is reached.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use sinew::rpc::MethodKind;

use super::{MethodNames, Names};

pub(super) fn generate(names: &Names<'_>) -> TokenStream {
    let blocking = side(names, false);
    let waiting = side(names, true);
    quote! { #blocking #waiting }
}

/// The reach trait and the client, for callers that block or that await.
fn side(names: &Names<'_>, awaits: bool) -> TokenStream {
    let prefix = if awaits { "Async" } else { "" };
    let (reach, client) = (
        format_ident!("{prefix}Reach"),
        format_ident!("{prefix}Client"),
    );
    let bounds: Vec<TokenStream> = names
        .methods
        .iter()
        .map(|m| {
            let (way, marker) = (way(m.method.kind, prefix), &m.marker);
            quote!(rpc::#way<method::#marker>)
        })
        .collect();
    let supertraits = (!bounds.is_empty()).then(|| quote!(: #(#bounds)+*));
    let functions = names.methods.iter().map(|m| function(m, awaits));
    let full_name = &names.service.full_name;
    let reach_doc = format!(
        " Whatever can do every method of `{full_name}`{}. It is implemented by itself.",
        if awaits { " without blocking" } else { "" }
    );
    let diagnostic = diagnostic(names, awaits);
    let client_doc = format!(
        " Calls `{full_name}` through whatever reaches it: a link, [`rpc::Direct`], a mock."
    );
    quote! {
        #[doc = #reach_doc]
        #diagnostic
        pub trait #reach #supertraits {}
        impl<R #supertraits> #reach for R {}

        #[doc = #client_doc]
        #[derive(Clone, Copy, Debug, Default)]
        pub struct #client<R>(pub R);

        impl<R> #client<R> {
            #(#functions)*
        }
    }
}

/// What the compiler says where something cannot do every method, for example because a stream was
/// added to a service that is called directly.
fn diagnostic(names: &Names<'_>, awaits: bool) -> TokenStream {
    let message = format!(
        "`{{Self}}` cannot call every method of `{}`",
        names.service.full_name
    );
    let mut kinds = names.methods.iter().map(|m| m.method.kind);
    let (link, prefix) = match awaits {
        true => ("between tasks `sinew_io::threads`", "Async"),
        false => ("in one thread `sinew_io::loopback`", ""),
    };
    let notes = kinds.any(|kind| kind != MethodKind::Unary).then(|| {
        let direct = format!("`Direct` and mocks reach no streams: use a link, {link}");
        let bound = format!(
            "or bound code by the methods it calls, such as `{prefix}Unary<method::X>`, \
             not by `{prefix}Reach`"
        );
        quote!(, note = #direct, note = #bound)
    });
    quote!(#[diagnostic::on_unimplemented(message = #message #notes)])
}

/// The trait of the core for this kind of method.
fn way(kind: MethodKind, prefix: &str) -> Ident {
    match kind {
        MethodKind::Unary => format_ident!("{prefix}Unary"),
        MethodKind::ServerStream => format_ident!("{prefix}ServerStreaming"),
        MethodKind::ClientStream => format_ident!("{prefix}ClientStreaming"),
        MethodKind::Bidi => format_ident!("{prefix}BidiStreaming"),
    }
}

fn function(m: &MethodNames<'_>, awaits: bool) -> TokenStream {
    let prefix = if awaits { "Async" } else { "" };
    let (docs, name, marker) = (&m.docs, &m.function, &m.marker);
    let (request, response) = (&m.request, &m.response);
    let way = way(m.method.kind, prefix);
    let bound = quote!(rpc::#way<method::#marker>);
    let opener = match m.method.kind {
        MethodKind::Unary => quote!(unary),
        MethodKind::ServerStream => quote!(server_stream),
        MethodKind::ClientStream => quote!(client_stream),
        MethodKind::Bidi => quote!(bidi),
    };
    let (parameter, argument) = match m.method.kind.client_streams() {
        true => (quote!(), quote!()),
        false => (quote!(, request: &#request), quote!(, request)),
    };
    let output = match m.method.kind {
        MethodKind::Unary => response.clone(),
        _ => quote!(<R as #bound>::Stream),
    };
    let (keyword, wait) = match awaits {
        true => (quote!(async), quote!(.await)),
        false => (quote!(), quote!()),
    };
    quote! {
        #docs
        pub #keyword fn #name(&mut self #parameter) -> Result<#output, rpc::CallError>
        where
            R: #bound,
        {
            rpc::#way::<method::#marker>::#opener(&mut self.0 #argument) #wait
        }
    }
}
