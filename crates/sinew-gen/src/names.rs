//! Names of Rust for names of a .proto.

use proc_macro2::{Ident, Span};

/// `GetValue` and `getValue` become `get_value`; `HTTPGet` becomes `http_get`.
pub(crate) fn snake(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 4);
    for (i, &c) in chars.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| chars.get(i));
        let after = chars.get(i + 1);
        let starts_word = c.is_uppercase()
            && match before {
                None | Some('_') => false,
                Some(b) if b.is_uppercase() => after.is_some_and(|a| a.is_lowercase()),
                Some(_) => true,
            };
        if starts_word {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// `get_value` becomes `GetValue`; a name that is in camel case stays as it is.
pub(crate) fn camel(name: &str) -> String {
    name.split('_')
        .filter(|part| !part.is_empty())
        .map(|part| {
            let mut chars = part.chars();
            let first = chars.next().map(|c| c.to_uppercase().to_string());
            first.unwrap_or_default() + chars.as_str()
        })
        .collect()
}

/// An identifier; a keyword becomes a raw one, and what cannot be raw gets an underscore.
pub(crate) fn ident(name: &str) -> Ident {
    match name {
        "self" | "super" | "crate" | "Self" | "_" => {
            Ident::new(&format!("{name}_"), Span::call_site())
        }
        _ if is_keyword(name) => Ident::new_raw(name, Span::call_site()),
        _ => Ident::new(name, Span::call_site()),
    }
}

/// Whether the name is a keyword in any edition; `syn` does not know the one of edition 2024.
pub(crate) fn is_keyword(name: &str) -> bool {
    name == "gen" || syn::parse_str::<Ident>(name).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_people_read_them() {
        for (name, expected) in [
            ("GetValue", "get_value"),
            ("getValue", "get_value"),
            ("HTTPGet", "http_get"),
            ("EchoAll", "echo_all"),
            ("Read2", "read2"),
            ("A_B", "a_b"),
        ] {
            assert_eq!(snake(name), expected);
        }
        assert_eq!(camel("get_value"), "GetValue");
        assert_eq!(camel("GetValue"), "GetValue");
    }

    #[test]
    fn keywords_become_raw() {
        assert_eq!(ident("move").to_string(), "r#move");
        assert_eq!(ident("gen").to_string(), "r#gen");
        assert_eq!(ident("self").to_string(), "self_");
        assert_eq!(ident("value").to_string(), "value");
    }
}
