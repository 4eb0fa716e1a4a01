//! Key expressions that a user wrote: what is wrong with one, and how it is written well.

use sinew::pubsub::keyexpr::{KeyExpr, KeyExprError, canonize};

use crate::output::thousands;

/// The longest one that the wire carries.
const LONGEST: usize = u16::MAX as usize;

/// Checks one.
pub fn parse(text: &str) -> Result<String, String> {
    if text.len() > LONGEST {
        let (long, longest) = (thousands(text.len() as u64), thousands(LONGEST as u64));
        return Err(format!(
            "it has {long} bytes, a key has {longest} at most: write it shorter"
        ));
    }
    match KeyExpr::new(text) {
        Ok(_) => Ok(text.into()),
        Err(error) => Err(match better(text) {
            Some(better) => format!("{error}: write `{better}`"),
            None => format!("{error}; {}", remedy(error)),
        }),
    }
}

/// Checks a key expression and its parameters, `KEY?parameters`.
pub fn parse_selector(text: &str) -> Result<(String, String), String> {
    let (key, parameters) = text.split_once('?').unwrap_or((text, ""));
    Ok((parse(key)?, parameters.into()))
}

/// The same without empty chunks and in canonical form, if that is all that it lacks.
fn better(text: &str) -> Option<String> {
    let chunks: Vec<&str> = text.split('/').filter(|chunk| !chunk.is_empty()).collect();
    let mut place = vec![0; text.len()];
    let better = canonize(&chunks.join("/"), &mut place).ok()?;
    Some(better.as_str().into())
}

fn remedy(error: KeyExprError) -> &'static str {
    match error {
        KeyExprError::EmptyChunk => "write a key, as in demo/lamp, or ** for all",
        KeyExprError::Forbidden => {
            "take other characters (parameters stand behind a ? in `sinew get` alone)"
        }
        KeyExprError::Dollar => "take another character, or write $* for some characters",
        KeyExprError::Star => "as in demo/$*_left; * and ** stand alone between slashes",
        KeyExprError::NotCanonical | KeyExprError::TooLong => "write it shorter",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_mended_is_shown_mended() {
        for (text, better) in [
            ("/demo//lamp/", "demo/lamp"),
            ("demo/**/**", "demo/**"),
            ("demo/**/*", "demo/*/**"),
            ("a/$*", "a/*"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.ends_with(&format!("write `{better}`")), "{said}");
            assert_eq!(parse(better), Ok(better.into()));
        }
    }

    #[test]
    fn what_cannot_be_mended_is_explained() {
        for (text, word) in [
            ("", "** for all"),
            ("a#b", "# or ?"),
            ("a$b", "$*"),
            ("a*", "$*"),
            (
                &"a".repeat(65_536),
                "it has 65,536 bytes, a key has 65,535 at most",
            ),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.contains(word), "{text}: {said}");
        }
    }

    #[test]
    fn parameters_stand_behind_the_first_question_mark() {
        let parsed = parse_selector("demo/*?a=1;b=?").unwrap();
        assert_eq!(parsed, ("demo/*".into(), "a=1;b=?".into()));
        assert_eq!(parse_selector("demo").unwrap().1, "");
    }
}
