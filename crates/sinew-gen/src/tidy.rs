//! What micropb-gen wrote, made readable and reachable through `sinew` alone.

use crate::names::is_keyword;
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::quote;
use syn::visit_mut::{self, VisitMut};

use crate::{accessors, mend};

/// Points paths of micropb at its re-export, so that a crate with generated code needs `sinew`
/// only, and drops the `r#` of names that are no keywords.
///
/// It works on tokens: text and comments are literals there and stay as they are.
pub(crate) fn retarget(tokens: TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut out = TokenStream::new();
    for (i, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), retarget(group.stream()));
                inner.set_span(group.span());
                out.extend([TokenTree::Group(inner)]);
            }
            TokenTree::Ident(ident) if ident == "micropb" && is_root_path(&tokens, i) => {
                out.extend(quote!(sinew::micropb));
            }
            TokenTree::Ident(ident) => out.extend([TokenTree::Ident(plain(ident))]),
            other => out.extend([other.clone()]),
        }
    }
    out
}

/// Whether the identifier follows a `::` that nothing precedes.
fn is_root_path(tokens: &[TokenTree], at: usize) -> bool {
    let colon = |back: usize| {
        at.checked_sub(back)
            .and_then(|i| tokens.get(i))
            .is_some_and(|token| matches!(token, TokenTree::Punct(p) if p.as_char() == ':'))
    };
    let before = at.checked_sub(3).and_then(|i| tokens.get(i));
    let continues =
        matches!(before, Some(TokenTree::Ident(ident)) if !is_keyword(&ident.to_string()));
    colon(1) && colon(2) && !continues
}

fn plain(ident: &Ident) -> Ident {
    match ident.to_string().strip_prefix("r#") {
        Some(name) if !is_keyword(name) => Ident::new(name, Span::call_site()),
        _ => ident.clone(),
    }
}

/// Drops empty impls and adds the message traits.
pub(crate) fn polish(file: &mut syn::File) {
    Polish.visit_file_mut(file);
    file.items = messages(std::mem::take(&mut file.items));
    for item in &mut file.items {
        let attrs = match item {
            syn::Item::Mod(item) => &mut item.attrs,
            syn::Item::Struct(item) => &mut item.attrs,
            syn::Item::Enum(item) => &mut item.attrs,
            syn::Item::Impl(item) => &mut item.attrs,
            syn::Item::Const(item) => &mut item.attrs,
            _ => continue,
        };
        // Stable under every formatter configuration, the user's too.
        attrs.push(syn::parse_quote!(#[rustfmt::skip]));
        // Nobody uses everything; a .proto need not comment everything; its names are as they are.
        attrs.push(syn::parse_quote! {
            #[allow(dead_code, missing_docs, nonstandard_style, clippy::all, rustdoc::all)]
        });
    }
}

/// A codec is for compilers: long and regular.
fn codec_attributes() -> [syn::Attribute; 1] {
    [syn::parse_quote!(#[allow(unused, nonstandard_style, clippy::all)])]
}

fn doc_text(attribute: &syn::Attribute) -> Option<String> {
    match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

fn doc(line: String) -> syn::Attribute {
    syn::parse_quote!(#[doc = #line])
}

struct Polish;

impl VisitMut for Polish {
    fn visit_attributes_mut(&mut self, attributes: &mut Vec<syn::Attribute>) {
        let split = |attribute: syn::Attribute| match doc_text(&attribute) {
            Some(text) => text.trim_end().lines().map(doc_line).map(doc).collect(),
            None => vec![attribute],
        };
        *attributes = std::mem::take(attributes)
            .into_iter()
            .flat_map(split)
            .collect();
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        visit_mut::visit_item_mod_mut(self, module);
        if let Some((_, items)) = &mut module.content {
            *items = messages(std::mem::take(items));
        }
    }
}

fn messages(items: Vec<syn::Item>) -> Vec<syn::Item> {
    let mut out = Vec::with_capacity(items.len());
    for item in items {
        let syn::Item::Impl(mut block) = item else {
            out.push(item);
            continue;
        };
        if block.trait_.is_none() {
            accessors::drop_hiding(&mut block);
        }
        let codec = block
            .trait_
            .as_ref()
            .and_then(|(path, _)| path.segments.last())
            .map(|segment| segment.ident.to_string());
        match codec.as_deref() {
            None if block.items.is_empty() => {}
            Some("MessageDecode") => {
                mend::decoder(&mut block);
                block.attrs.extend(codec_attributes());
                out.push(syn::Item::Impl(block));
            }
            Some("MessageEncode") => {
                mend::encoder(&mut block);
                accessors::read_fields(&mut block);
                block.attrs.extend(codec_attributes());
                let message = block.self_ty.clone();
                out.push(syn::Item::Impl(block));
                out.push(syn::parse_quote! {
                    impl ::sinew::rpc::Encode for #message {
                        const MAX_LEN: usize = ::sinew::rpc::micropb::max_len::<Self>();

                        fn encoded_len(&self) -> usize {
                            ::sinew::micropb::MessageEncode::compute_size(self)
                        }

                        fn encode(&self, out: &mut [u8]) -> Option<usize> {
                            ::sinew::rpc::micropb::encode(self, out)
                        }
                    }
                });
                out.push(syn::parse_quote! {
                    impl ::sinew::rpc::Decode for #message {
                        fn decode(bytes: &[u8]) -> Option<Self> {
                            ::sinew::rpc::micropb::decode(bytes)
                        }
                    }
                });
            }
            _ => out.push(syn::Item::Impl(block)),
        }
    }
    out
}

/// The text of a file, with an empty line between items.
pub(crate) fn print(file: &syn::File) -> String {
    let mut out = String::new();
    let mut before = "";
    for line in prettyplease::unparse(file).lines() {
        let indent = |line: &str| line.len() - line.trim_start().len();
        let text = line.trim_start();
        let ends = ["}", "pub struct", "pub const", "use "]
            .iter()
            .any(|end| before.trim_start().starts_with(end));
        let starts = ["///", "#[", "pub ", "impl", "fn ", "const "]
            .iter()
            .any(|start| text.starts_with(start));
        let one_group =
            text.starts_with("pub const") && before.trim_start().starts_with("pub const");
        if ends && starts && !one_group && indent(line) == indent(before) {
            out.push('\n');
        }
        out.push_str(line);
        out.push('\n');
        before = line;
    }
    out
}

/// A line of a comment as one of documentation.
///
/// What rustdoc would take for code (an indented block, a fence) it would also compile and run.
pub(crate) fn doc_line(line: &str) -> String {
    match line.trim() {
        line if line.is_empty() || line.starts_with("```") || line.starts_with("~~~") => {
            String::new()
        }
        line => format!(" {line}"),
    }
}
