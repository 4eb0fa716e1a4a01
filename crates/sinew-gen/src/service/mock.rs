//! Mocks for tests: a service and a reach that play a script and record what came in.

use proc_macro2::TokenStream;
use quote::quote;
use sinew::rpc::MethodKind;

use super::server::signature;
use super::{MethodNames, Names};

pub(super) fn generate(names: &Names<'_>) -> TokenStream {
    let interface = &names.interface;
    let is_unary = |m: &&MethodNames<'_>| m.method.kind == MethodKind::Unary;
    let fields = names.methods.iter().map(field);
    let unary_fields = names.methods.iter().filter(is_unary).map(field);
    let handlers = names.methods.iter().map(handler);
    let reaches = names.methods.iter().filter(is_unary).map(reach);
    let polls: Vec<_> = names
        .methods
        .iter()
        .filter(|m| m.method.kind == MethodKind::ServerStream)
        .map(|m| &m.function)
        .collect();
    let poll = (!polls.is_empty()).then(|| {
        quote! {
            fn poll(&mut self, _now: ::sinew::time::Instant) -> bool {
                #(self.#polls.poll())|*
            }
        }
    });
    quote! {
        /// For tests: plays scripted answers and records requests, up to `N` for each method.
        pub mod mock {
            use ::sinew::rpc;

            /// A service with a script for each method.
            #[derive(Debug, Default)]
            pub struct Service<const N: usize> {
                #(#fields)*
            }

            impl<const N: usize> super::#interface for Service<N> {
                #(#handlers)*
                #poll
            }

            /// What a client of unary methods calls instead of a link.
            #[derive(Debug, Default)]
            pub struct Reach<const N: usize> {
                #(#unary_fields)*
            }

            #(#reaches)*
        }
    }
}

/// Paths were made for the service's module; this is one deeper.
fn types(m: &MethodNames<'_>) -> (TokenStream, TokenStream) {
    let deeper = |path: &TokenStream| match m.method.raw {
        Some(_) => path.clone(),
        None => quote!(super::#path),
    };
    (deeper(&m.request), deeper(&m.response))
}

fn field(m: &MethodNames<'_>) -> TokenStream {
    let function = &m.function;
    let doc = format!(" The script of `{}`.", m.method.name);
    let (request, response) = types(m);
    quote! {
        #[doc = #doc]
        pub #function: rpc::mock::Script<#request, #response, N>,
    }
}

fn handler(m: &MethodNames<'_>) -> TokenStream {
    let function = &m.function;
    let (request, response) = types(m);
    let deeper = MethodNames {
        request,
        response,
        marker: m.marker.clone(),
        function: m.function.clone(),
        id: m.id.clone(),
        docs: TokenStream::new(),
        method: m.method,
    };
    let signature = signature(&deeper);
    let body = match m.method.kind {
        MethodKind::Unary => quote! {
            let _ = cx;
            self.#function.unary(request)
        },
        MethodKind::ServerStream => quote!(self.#function.server_stream(request, cx)),
        MethodKind::ClientStream => quote!(self.#function.client_stream(input, cx)),
        MethodKind::Bidi => quote!(self.#function.bidi(input, cx)),
    };
    quote! { #signature { #body } }
}

fn reach(m: &MethodNames<'_>) -> TokenStream {
    let (marker, function) = (&m.marker, &m.function);
    let (request, response) = types(m);
    quote! {
        impl<const N: usize> rpc::Unary<super::method::#marker> for Reach<N> {
            fn unary(&mut self, request: &#request) -> Result<#response, rpc::CallError> {
                self.#function.call(request)
            }
        }

        impl<const N: usize> rpc::AsyncUnary<super::method::#marker> for Reach<N> {
            fn unary(
                &mut self,
                request: &#request,
            ) -> impl ::core::future::Future<Output = Result<#response, rpc::CallError>> + Send {
                ::core::future::ready(self.#function.call(request))
            }
        }
    }
}
