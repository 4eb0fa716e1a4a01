//! Accessors of micropb-gen that would hide what everybody can do, taken out.
//!
//! A field `clone` with presence would get an accessor that comes before `Clone::clone`. The field
//! is public anyway, so such an accessor goes, and the codec reads the field.

use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ImplItem, parse_quote};

/// What everybody can do, and what codecs call by method.
const METHODS: &[&str] = &[
    "clone",
    "compute_size",
    "decode",
    "decode_len_delimited",
    "default",
    "encode",
    "encode_len_delimited",
    "encoded_len",
    "eq",
    "fmt",
    "into",
];

/// Drops them from the own functions of a message.
pub(crate) fn drop_hiding(block: &mut syn::ItemImpl) {
    block
        .items
        .retain(|item| !matches!(item, ImplItem::Fn(function) if hides(&function.sig.ident)));
}

/// Makes a codec read the fields instead.
pub(crate) fn read_fields(block: &mut syn::ItemImpl) {
    Fields.visit_item_impl_mut(block);
}

fn hides(name: &syn::Ident) -> bool {
    METHODS.iter().any(|method| name == method)
}

struct Fields;

impl VisitMut for Fields {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        visit_mut::visit_expr_mut(self, expr);
        let Expr::MethodCall(call) = expr else {
            return;
        };
        let is_own = matches!(&*call.receiver, Expr::Path(path) if path.path.is_ident("self"));
        if is_own && call.args.is_empty() && hides(&call.method) {
            let field = &call.method;
            *expr = parse_quote!(self.#field.as_ref());
        }
    }
}
