//! The side that serves: the trait, its adapter to the engine, the direct call.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use sinew::rpc::MethodKind;

use super::{MethodNames, Names, docs};

pub(super) fn generate(names: &Names<'_>) -> TokenStream {
    let interface = &names.interface;
    let own_docs = docs(&names.service.docs);
    let blank = (!names.service.docs.is_empty()).then(|| quote!(#[doc = ""]));
    let implement = " Implement it; [`Serve`] makes a service of the engine from it.";
    let signatures = names.methods.iter().map(|m| {
        let (docs, signature) = (&m.docs, signature(m));
        quote! { #docs #signature; }
    });
    let forwards = names.methods.iter().map(|m| {
        let (function, signature, arguments) = (&m.function, signature(m), arguments(m));
        quote! { #signature { (**self).#function(#arguments) } }
    });
    let kinds = names.methods.iter().map(|m| {
        let (id, kind) = (&m.id, format_ident!("{}", format!("{:?}", m.method.kind)));
        quote! { (SERVICE_ID, id::#id) => Some(rpc::MethodKind::#kind), }
    });
    let dispatch = names.methods.iter().map(|m| {
        let (id, function, arguments) = (&m.id, &m.function, arguments(m));
        let kind = call_function(m.method.kind);
        quote! { id::#id => call.#kind(input, |#arguments| self.0.#function(#arguments)), }
    });
    let direct = names
        .methods
        .iter()
        .filter(|m| m.method.kind == MethodKind::Unary)
        .map(|m| direct(names, m));
    let handle = if names.methods.is_empty() {
        quote! {
            let _ = (call, input);
            false
        }
    } else {
        quote! {
            if call.service() != SERVICE_ID {
                return false;
            }
            match call.method() {
                #(#dispatch)*
                _ => false,
            }
        }
    };
    quote! {
        #own_docs
        #blank
        #[doc = #implement]
        pub trait #interface {
            #(#signatures)*

            /// Continues what is in hand: a bounded piece of work. `true` asks to be called again,
            /// as soon as the link has a place.
            fn poll(&mut self, now: ::sinew::time::Instant) -> bool {
                let _ = now;
                false
            }

            /// Wakes `waker` once when `poll` has something to do that no packet brings, at once where it has
            /// already.
            fn arm(&mut self, waker: &::core::task::Waker) {
                let _ = waker;
            }
        }

        impl<S: #interface + ?Sized> #interface for &mut S {
            #(#forwards)*

            fn poll(&mut self, now: ::sinew::time::Instant) -> bool {
                (**self).poll(now)
            }

            fn arm(&mut self, waker: &::core::task::Waker) {
                (**self).arm(waker);
            }
        }

        /// Serves an implementation, or a `&mut` of one, to the engine.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Serve<S>(pub S);

        impl<S: #interface> rpc::Service for Serve<S> {
            fn kind(&self, service: u32, method: u32) -> Option<rpc::MethodKind> {
                match (service, method) {
                    #(#kinds)*
                    _ => None,
                }
            }

            fn handle(&mut self, call: &mut rpc::Call<'_>, input: rpc::Input<'_>) -> bool {
                #handle
            }

            fn poll(&mut self, now: ::sinew::time::Instant) -> bool {
                self.0.poll(now)
            }

            fn arm(&mut self, waker: &::core::task::Waker) {
                self.0.arm(waker);
            }
        }

        #(#direct)*
    }
}

/// The handler of a method, without its body.
pub(super) fn signature(m: &MethodNames<'_>) -> TokenStream {
    let (function, request, response) = (&m.function, &m.request, &m.response);
    let input = match m.method.kind.client_streams() {
        true => quote!(input: rpc::StreamIn<'_, #request>),
        false => quote!(request: &#request),
    };
    let context = match m.method.kind.client_streams() {
        true => quote!(rpc::StreamCx),
        false => quote!(rpc::Cx),
    };
    let (way, result) = match m.method.kind.server_streams() {
        true => (quote!(rpc::Writer), quote!(())),
        false => (quote!(rpc::Responder), response.clone()),
    };
    quote! {
        fn #function(
            &mut self,
            #input,
            cx: #context<'_, #way<#response>>,
        ) -> Result<#result, rpc::Stop>
    }
}

pub(super) fn arguments(m: &MethodNames<'_>) -> TokenStream {
    match m.method.kind.client_streams() {
        true => quote!(input, cx),
        false => quote!(request, cx),
    }
}

fn call_function(kind: MethodKind) -> TokenStream {
    match kind {
        MethodKind::Unary => quote!(unary),
        MethodKind::ServerStream => quote!(server_stream),
        MethodKind::ClientStream => quote!(client_stream),
        MethodKind::Bidi => quote!(bidi),
    }
}

fn direct(names: &Names<'_>, m: &MethodNames<'_>) -> TokenStream {
    let interface = &names.interface;
    let (marker, function, request, response) = (&m.marker, &m.function, &m.request, &m.response);
    quote! {
        impl<S: #interface> rpc::Unary<method::#marker> for rpc::Direct<'_, S> {
            fn unary(&mut self, request: &#request) -> Result<#response, rpc::CallError> {
                rpc::direct(|cx| self.0.#function(request, cx))
            }
        }

        impl<S: #interface> rpc::AsyncUnary<method::#marker> for rpc::Direct<'_, S> {
            fn unary(
                &mut self,
                request: &#request,
            ) -> impl ::core::future::Future<Output = Result<#response, rpc::CallError>> + Send {
                ::core::future::ready(rpc::direct(|cx| self.0.#function(request, cx)))
            }
        }
    }
}
