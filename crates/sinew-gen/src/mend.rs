//! Points in which codecs of micropb-gen 0.7 differ from protobuf, put right.
//!
//! | micropb | here |
//! |---|---|
//! | an explicit default does not replace an earlier value | the last one counts |
//! | an empty string or byte string does not, either | the last one counts |
//! | a map entry without its key or value is dropped | the missing one has its default |
//! | the wire type of a oneof field or a map part is not looked at | a wrong one is an error |
//! | -0.0 is taken for the default and not sent | it is sent |
//!
//! Every rewrite looks for one exact shape; the tests against prost find a shape that changed.

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, Stmt, parse_quote};

/// Mends one implementation of `MessageDecode`.
pub(crate) fn decoder(block: &mut syn::ItemImpl) {
    Mend.visit_item_impl_mut(block);
}

/// Mends one implementation of `MessageEncode`.
pub(crate) fn encoder(block: &mut syn::ItemImpl) {
    MendZero.visit_item_impl_mut(block);
}

struct MendZero;

impl VisitMut for MendZero {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        visit_mut::visit_expr_mut(self, expr);
        if expr.to_token_stream().to_string() == "* val_ref != 0.0" {
            *expr = parse_quote!(val_ref.to_bits() != 0);
        }
    }
}

struct Mend;

impl VisitMut for Mend {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        visit_mut::visit_expr_mut(self, expr);
        let replacement: Option<Expr> = match expr {
            // `if *val_ref != 0 { *mut_ref = val as _; }`
            Expr::If(branch) if branch.else_branch.is_none() => assignment(branch),
            Expr::MethodCall(call) if call.method == "decode_map_elem" => map_entry(call),
            _ => None,
        };
        if let Some(replacement) = replacement {
            *expr = replacement;
        }
    }

    fn visit_expr_method_call_mut(&mut self, call: &mut syn::ExprMethodCall) {
        visit_mut::visit_expr_method_call_mut(self, call);
        let is_sized = call.method == "decode_string" || call.method == "decode_bytes";
        if let (true, Some(presence)) = (is_sized, call.args.last_mut()) {
            *presence = parse_quote!(::sinew::micropb::Presence::Explicit);
        }
    }

    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        visit_mut::visit_arm_mut(self, arm);
        let is_field = matches!(&arm.pat, syn::Pat::Lit(_));
        let is_checked = arm.body.to_token_stream().to_string().contains("wire_type");
        if !is_field || is_checked {
            return;
        }
        let (Some(wire_type), Expr::Block(body)) = (wire_type(&arm.body), &mut *arm.body) else {
            return;
        };
        let check: Stmt = parse_quote! {
            if tag.wire_type() != #wire_type {
                return Err(::sinew::micropb::DecodeError::WrongWireType);
            }
        };
        body.block.stmts.insert(0, check);
    }
}

/// The one assignment of an `if`, without the `if`.
fn assignment(branch: &syn::ExprIf) -> Option<Expr> {
    let [Stmt::Expr(Expr::Assign(assign), Some(_))] = branch.then_branch.stmts.as_slice() else {
        return None;
    };
    let target = assign.left.to_token_stream().to_string();
    (target == "* mut_ref").then(|| Expr::Assign(assign.clone()))
}

fn map_entry(call: &syn::ExprMethodCall) -> Option<Expr> {
    let decoder = &call.receiver;
    let mut parts = call.args.iter();
    let (key, value) = (parts.next()?, parts.next()?);
    let (key_type, value_type) = (wire_type(key)?, wire_type(value)?);
    Some(parse_quote! {
        ::sinew::rpc::micropb::map_entry(#decoder, (#key_type, #key), (#value_type, #value))
    })
}

/// The wire type that the first decoding call inside reads.
fn wire_type(expr: &Expr) -> Option<syn::LitInt> {
    struct First(Option<&'static str>);
    impl<'ast> Visit<'ast> for First {
        fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
            visit::visit_expr_method_call(self, call);
            let found = match call.method.to_string().as_str() {
                "decode_varint32" | "decode_varint64" | "decode_int32" | "decode_int64"
                | "decode_sint32" | "decode_sint64" | "decode_bool" => "0u8",
                "decode_fixed64" | "decode_sfixed64" | "decode_double" => "1u8",
                "decode_string" | "decode_bytes" | "decode_submessage_delimited" => "2u8",
                "decode_fixed32" | "decode_sfixed32" | "decode_float" => "5u8",
                _ => return,
            };
            self.0.get_or_insert(found);
        }
    }
    let mut first = First(None);
    first.visit_expr(expr);
    let text = first.0?;
    Some(syn::LitInt::new(text, proc_macro2::Span::call_site()))
}
