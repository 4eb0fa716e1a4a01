//! Paths of message code that no name of a .proto can hide.
//!
//! A message may be named `Result`, and its type stands beside those of others. So what micropb-gen
//! takes from the prelude is named from the root here. A type of a .proto is told apart by its
//! shape: it has no generic arguments, and an enum is built from a number by `Name(n as _)` only.
//!
//! Modules of services are left as they are: nothing of a .proto but the trait is in their scope,
//! and the trait evades these names, see `service`.

use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, Item, Pat, parse_quote};

/// Names from the root what the code of messages takes from the prelude.
pub(crate) fn absolute(file: &mut syn::File) {
    Absolute.visit_file_mut(file);
}

struct Absolute;

impl VisitMut for Absolute {
    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if !is_service(module) {
            visit_mut::visit_item_mod_mut(self, module);
        }
    }

    fn visit_path_mut(&mut self, path: &mut syn::Path) {
        visit_mut::visit_path_mut(self, path);
        if path.leading_colon.is_some() {
            return;
        }
        let mut segments = path.segments.iter();
        let (Some(first), second) = (segments.next(), segments.next()) else {
            return;
        };
        match second {
            Some(second)
                if first.ident == "core"
                    && ["convert", "default", "fmt"]
                        .map(|m| second.ident == m)
                        .contains(&true) =>
            {
                path.leading_colon = Some(Default::default());
            }
            None if has_arguments(first) => {
                if first.ident == "Result" {
                    *path = parse_quote!(::core::result::#first);
                } else if first.ident == "Option" {
                    *path = parse_quote!(::core::option::#first);
                }
            }
            _ => {}
        }
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        visit_mut::visit_expr_mut(self, expr);
        match expr {
            Expr::Call(call) if !is_from_number(call) => {
                if let Expr::Path(function) = &mut *call.func {
                    variant(&mut function.path);
                }
            }
            Expr::Path(value) if value.path.is_ident("None") => variant(&mut value.path),
            _ => {}
        }
    }

    fn visit_pat_mut(&mut self, pattern: &mut Pat) {
        visit_mut::visit_pat_mut(self, pattern);
        match pattern {
            Pat::TupleStruct(pattern) => variant(&mut pattern.path),
            Pat::Ident(name) if name.ident == "None" => {
                *pattern = parse_quote!(::core::option::Option::None);
            }
            _ => {}
        }
    }

    fn visit_use_tree_mut(&mut self, tree: &mut syn::UseTree) {
        visit_mut::visit_use_tree_mut(self, tree);
        // Traits are there for their methods; their names would hide messages.
        if let syn::UseTree::Name(name) = tree {
            let name = &name.ident;
            *tree = parse_quote!(#name as _);
        }
    }
}

/// Names a bare variant of `Option` or `Result` from the root.
fn variant(path: &mut syn::Path) {
    let Some(name) = path.get_ident() else {
        return;
    };
    if name == "Some" || name == "None" {
        *path = parse_quote!(::core::option::Option::#name);
    } else if name == "Ok" || name == "Err" {
        *path = parse_quote!(::core::result::Result::#name);
    }
}

/// `Name<>` has none.
fn has_arguments(segment: &syn::PathSegment) -> bool {
    matches!(&segment.arguments, syn::PathArguments::AngleBracketed(list) if !list.args.is_empty())
}

/// `Name(n as _)`
fn is_from_number(call: &syn::ExprCall) -> bool {
    matches!(call.args.first(), Some(Expr::Cast(_)))
}

/// Whether it is the module of a service.
fn is_service(module: &syn::ItemMod) -> bool {
    let items = module.content.iter().flat_map(|(_, items)| items);
    items.into_iter().any(|item| {
        matches!(item, Item::Use(found)
            if found.to_token_stream().to_string() == "use :: sinew :: rpc ;")
    })
}
