//! Handlers that are tasks: the owned enum of calls, and the adapter that hands them over.

use proc_macro2::TokenStream;
use quote::quote;
use sinew::rpc::MethodKind;

use super::server::signature;
use super::{MethodNames, Names};

pub(super) fn generate(names: &Names<'_>) -> TokenStream {
    let interface = &names.interface;
    let variants = names.methods.iter().map(variant);
    let handlers = names.methods.iter().map(handler);
    quote! {
        /// A step of a call, owned, with the way to answer it: for handlers that are tasks.
        #[derive(Debug)]
        pub enum Calls {
            #(#variants)*
        }

        /// Defers every call and hands it to a sink, for example the queue of a task.
        ///
        /// The sink gives back what it has no room for; such a call ends with RESOURCE_EXHAUSTED.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Defer<F>(pub F);

        impl<F: FnMut(Calls) -> Result<(), Calls>> #interface for Defer<F> {
            #(#handlers)*
        }
    }
}

fn variant(m: &MethodNames<'_>) -> TokenStream {
    let (docs, marker, request, response) = (&m.docs, &m.marker, &m.request, &m.response);
    let fields = match m.method.kind {
        MethodKind::Unary => quote! {
            /// The request.
            request: #request,
            /// Answers the call.
            responder: rpc::Responder<#response>,
        },
        MethodKind::ServerStream => quote! {
            /// The request.
            request: #request,
            /// Sends the items, then the final status.
            writer: rpc::Writer<#response>,
        },
        MethodKind::ClientStream => quote! {
            /// The number of the call, see [`rpc::StreamCx::slot`].
            slot: usize,
            /// What came in; opening it carries what answers the call.
            input: rpc::Handoff<#request, rpc::Responder<#response>>,
        },
        MethodKind::Bidi => quote! {
            /// The number of the call, see [`rpc::StreamCx::slot`].
            slot: usize,
            /// What came in; opening it carries what sends the items.
            input: rpc::Handoff<#request, rpc::Writer<#response>>,
        },
    };
    quote! { #docs #marker { #fields }, }
}

fn handler(m: &MethodNames<'_>) -> TokenStream {
    let (signature, marker) = (signature(m), &m.marker);
    let hand_over = quote! {
        match self.0(call) {
            Ok(()) => Err(later),
            Err(_) => Err(rpc::Status::RESOURCE_EXHAUSTED.into()),
        }
    };
    let body = match m.method.kind {
        MethodKind::Unary | MethodKind::ServerStream => {
            let way = match m.method.kind {
                MethodKind::Unary => quote!(responder),
                _ => quote!(writer),
            };
            quote! {
                let (#way, later) = cx.defer()?;
                let request = ::core::clone::Clone::clone(request);
                let call = Calls::#marker { request, #way };
                #hand_over
            }
        }
        MethodKind::ClientStream | MethodKind::Bidi => quote! {
            let slot = cx.slot();
            let (input, later) = match input {
                rpc::StreamIn::Open => {
                    let (way, later) = cx.defer()?;
                    (rpc::Handoff::Open(way), later)
                }
                rpc::StreamIn::Item(item) => (rpc::Handoff::Item(::core::clone::Clone::clone(item)), cx.wait()),
                rpc::StreamIn::End => (rpc::Handoff::End, cx.wait()),
                rpc::StreamIn::Closed(status) => (rpc::Handoff::Closed(status), cx.wait()),
            };
            let call = Calls::#marker { slot, input };
            #hand_over
        },
    };
    quote! { #signature { #body } }
}
