//! Key expressions: the vectors of the description of Zenoh's wire, and brute force against a naive
//! reading of the rules.

use proptest::prelude::*;
use sinew::pubsub::keyexpr::{KeyExpr, KeyExprError, canonize};

fn key(text: &str) -> KeyExpr<'_> {
    KeyExpr::new(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn what_is_no_key_expression_says_why() {
    use KeyExprError::*;
    for (text, error) in [
        ("", EmptyChunk),
        ("/", EmptyChunk),
        ("/a/b", EmptyChunk),
        ("a/b/", EmptyChunk),
        ("a//b", EmptyChunk),
        ("**/", EmptyChunk),
        ("a/b#c", Forbidden),
        ("a?b", Forbidden),
        ("a/**/#", Forbidden),
        ("$", Dollar),
        ("a/$/b", Dollar),
        ("$a", Dollar),
        ("$*$", Dollar),
        ("$$*", Dollar),
        ("a/b*", Star),
        ("*a", Star),
        ("***", Star),
        ("a/**b", Star),
        ("a/b/*$*", Star),
        ("a/b/**$*", Star),
        ("a/$**", Star),
        ("@*", Star),
        ("**/*/a*", Star),
    ] {
        assert_eq!(KeyExpr::new(text), Err(error), "{text}");
        assert_eq!(canonize(text, &mut [0; 32]), Err(error), "{text}");
    }
}

#[test]
fn what_is_not_canonical_has_one_canonical_form() {
    for (text, canonical) in [
        ("hello/foo$*$*/bar", "hello/foo$*/bar"),
        ("a/$*/b", "a/*/b"),
        ("$*$*", "*"),
        ("a/$*$*$*/b", "a/*/b"),
        ("a/**/**/b", "a/**/b"),
        ("hello/**/*", "hello/*/**"),
        ("**/*/**/$*/**", "*/*/**"),
        ("**/*/a", "*/**/a"),
        ("**/**/a/**/**", "**/a/**"),
        ("$*a$*$*$*$*$*b$*$*", "$*a$*b$*"),
        ("a/$*é$*$*/b", "a/$*é$*/b"),
        ("@a$*$*", "@a$*"),
    ] {
        assert_eq!(
            KeyExpr::new(text),
            Err(KeyExprError::NotCanonical),
            "{text}"
        );
        let mut place = [0; 64];
        assert_eq!(canonize(text, &mut place), Ok(key(canonical)));
        assert_eq!(canonize(canonical, &mut place), Ok(key(canonical)));
        let short = &mut place[..canonical.len() - 1];
        assert_eq!(canonize(text, short), Err(KeyExprError::TooLong));
    }
}

#[test]
fn a_constant_is_checked_by_the_compiler() {
    const KEY: KeyExpr = KeyExpr::from_static("demo/*/é/@v/$*a/**");
    assert_eq!(KEY.as_str(), "demo/*/é/@v/$*a/**");
    assert_eq!(format!("{KEY:>20}"), "  demo/*/é/@v/$*a/**");
}

#[test]
fn a_concrete_prefix_ends_before_the_first_wildcard_chunk() {
    for (text, prefix, rest) in [
        ("demo/**", "demo", "/**"),
        ("a/b/c$*/d", "a/b", "/c$*/d"),
        ("a/b/$*c/d", "a/b", "/$*c/d"),
        ("a/b", "a/b", ""),
        ("a", "a", ""),
        ("**", "", "**"),
        ("*/a", "", "*/a"),
        ("a$*", "", "a$*"),
        ("é/ü$*/x", "é", "/ü$*/x"),
    ] {
        assert_eq!(key(text).concrete_prefix(), (prefix, rest), "{text}");
        assert_eq!(key(text).is_wild(), text.contains('*'));
    }
}

/// left, right, whether they intersect, whether left includes right, whether right includes left
const RELATED: &[(&str, &str, bool, bool, bool)] = &[
    ("a/**/c/**/e", "a/c/e", true, true, false),
    ("a/**/c/**/e", "a/b/b/c/d/d/e", true, true, false),
    ("a/**/c/**/e", "a/b/b/c/d/d", false, false, false),
    ("ab/**", "ab", true, true, false),
    ("ab/*", "ab", false, false, false),
    ("x/*", "abc", false, false, false),
    ("*", "x/abc", false, false, false),
    ("*/*", "x/abc", true, true, false),
    ("ab$*cd", "abxxcxxd", false, false, false),
    ("ab$*cd", "abxxcxxcd", true, true, false),
    ("ab$*cd", "abcd", true, true, false),
    ("x/a$*d$*e", "x/a$*c$*e", true, false, false),
    ("x/a$*c", "x/a$*d", false, false, false),
    ("x/a$*", "x/abc$*", true, true, false),
    ("x/$*abc", "x/abc$*", true, false, false),
    ("x/abc$*", "x/*", true, false, true),
    ("@a/**", "@a/@b", false, false, false),
    ("@a/**/@b", "@a/@b", true, true, false),
    ("@a", "**/@a", true, false, true),
    ("@a", "*", false, false, false),
    ("@a", "$*a", false, false, false),
    ("@a/b", "*/b", false, false, false),
    ("**", "@a", false, false, false),
    ("**", "a/@b/c", false, false, false),
    ("@a$*", "@ab", false, false, false),
    ("@a$*", "@a$*", true, true, true),
    ("@a/*", "@b/*", false, false, false),
    ("@a/**/c", "@a/b/**", true, false, false),
    ("a/*", "*/a", true, false, false),
    ("a/*/c", "a/b/c", true, true, false),
    ("a/*/**", "a/b/**", true, true, false),
    ("a/**", "a/*/**", true, true, false),
    ("a/b/**/x/y", "a/**/y", true, false, true),
    ("a/**/x", "a/**/y", false, false, false),
    ("a/**/b/**", "c/**", false, false, false),
    ("**/a/**/b/**", "**/b/**/a/**", true, false, false),
    // Whatever ends in x has one chunk at least.
    ("*/**", "**/x", true, true, false),
    ("**/a/*/**", "**/a/**/b", true, true, false),
    ("**/a/b/**", "a/**/b", true, false, false),
    ("é$*", "è$*", false, false, false),
    ("$*é", "ü$*é", true, true, false),
];

#[test]
fn intersection_and_inclusion_of_the_vectors() {
    for &(left, right, intersect, includes, included) in RELATED {
        let (a, b) = (key(left), key(right));
        assert_eq!(a.intersects(b), intersect, "{left} meets {right}");
        assert_eq!(b.intersects(a), intersect, "{right} meets {left}");
        assert_eq!(a.includes(b), includes, "{left} includes {right}");
        assert_eq!(b.includes(a), included, "{right} includes {left}");
    }
}

/// The rules, read naively: whether a key (its chunks) matches.
fn matches(expression: &[&str], chunks: &[&str]) -> bool {
    match expression.split_first() {
        None => chunks.is_empty(),
        Some((&"**", rest)) => {
            matches(rest, chunks)
                || chunks.split_first().is_some_and(|(first, left)| {
                    !first.starts_with('@') && matches(expression, left)
                })
        }
        Some((chunk, rest)) => chunks
            .split_first()
            .is_some_and(|(first, left)| chunk_matches(chunk, first) && matches(rest, left)),
    }
}

fn chunk_matches(expression: &str, chunk: &str) -> bool {
    if expression.starts_with('@') || chunk.starts_with('@') {
        return expression == chunk;
    }
    expression == "*" || characters_match(expression, chunk)
}

fn characters_match(expression: &str, chunk: &str) -> bool {
    if let Some(rest) = expression.strip_prefix("$*") {
        return (0..=chunk.len()).any(|cut| characters_match(rest, &chunk[cut..]));
    }
    match expression.chars().next() {
        None => chunk.is_empty(),
        Some(first) => chunk
            .strip_prefix(first)
            .is_some_and(|left| characters_match(&expression[first.len_utf8()..], left)),
    }
}

/// All strings of up to so many tokens.
fn strings(tokens: &[&str], most: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut from = 0;
    for _ in 0..most {
        let to = all.len();
        for shorter in from..to {
            for token in tokens {
                all.push(format!("{}{token}", all[shorter]));
            }
        }
        from = to;
    }
    all
}

/// A set of keys, as bits.
type Keys = Vec<u64>;

/// Asks everything of all pairs of expressions, against sets of these keys, and returns how many
/// expressions there are. No key at all is among the keys, see the module's documentation.
fn brute_force(texts: &[String], keys: &[String]) -> usize {
    let keys: Vec<Vec<&str>> = std::iter::once(vec![])
        .chain(
            keys.iter()
                .filter(|key| KeyExpr::new(key).is_ok_and(|key| !key.is_wild()))
                .map(|key| key.split('/').collect()),
        )
        .collect();
    let set = |text: &str| -> Keys {
        let expression: Vec<&str> = text.split('/').collect();
        let mut bits = vec![0; keys.len().div_ceil(64)];
        for (n, key) in keys.iter().enumerate() {
            if matches(&expression, key) {
                bits[n / 64] |= 1_u64 << (n % 64);
            }
        }
        bits
    };
    let mut by_set = std::collections::HashMap::new();
    let mut canonical = Vec::new();
    for text in texts {
        match KeyExpr::new(text) {
            Ok(key) => {
                let keys = set(text);
                let other = by_set.insert(keys.clone(), text);
                assert_eq!(other, None, "the same keys as {text}");
                canonical.push((key, keys));
            }
            Err(KeyExprError::NotCanonical) => {
                let mut place = vec![0; text.len()];
                let key = canonize(text, &mut place).expect("room");
                assert_eq!(KeyExpr::new(&key), Ok(key), "of {text}");
                assert_eq!(set(&key), set(text), "{key} is another set than {text}");
            }
            Err(_) => {}
        }
    }
    for (a, a_keys) in &canonical {
        for (b, b_keys) in &canonical {
            let pairs = || a_keys.iter().zip(b_keys);
            let meet = pairs().any(|(a, b)| a & b != 0);
            let subset = pairs().all(|(a, b)| b & !a == 0);
            assert_eq!(a.intersects(*b), meet, "{a} meets {b}");
            assert_eq!(a.includes(*b), subset, "{a} includes {b}");
        }
    }
    canonical.len()
}

#[test]
fn chunks_agree_with_the_rules_for_all_short_expressions() {
    let joined = |tokens: &[&str], most| -> Vec<String> {
        strings(tokens, most)
            .iter()
            .map(|text| text.trim_start_matches('/').to_owned())
            .collect()
    };
    let texts = joined(&["/a", "/b", "/*", "/**", "/@v"], 4);
    let keys = joined(&["/a", "/b", "/z", "/@v"], 6);
    assert!(brute_force(&texts[1..], &keys) > 400);
    let texts = joined(&["/a", "/*", "/**"], 6);
    let keys = joined(&["/a", "/z"], 10);
    assert!(brute_force(&texts[1..], &keys) > 400);
}

#[test]
fn characters_agree_with_the_rules_for_all_short_chunks() {
    let texts = strings(&["a", "b", "$*"], 5);
    let keys = strings(&["a", "b", "z"], 8);
    assert!(brute_force(&texts[1..], &keys) > 100);
}

#[test]
fn strings_agree_with_the_rules_for_all_short_ones() {
    let texts = strings(&["a", "*", "$", "@", "/"], 5);
    // A verbatim chunk with a wildcard equals itself, which no key does.
    let texts: Vec<String> = texts
        .into_iter()
        .filter(|text| {
            !text
                .split('/')
                .any(|chunk| chunk.starts_with('@') && chunk.contains('$'))
        })
        .collect();
    let keys = strings(&["a", "z", "@", "/"], 7);
    assert!(brute_force(&texts[1..], &keys) > 200);
}

/// Expressions as users write them, canonical.
fn expression() -> impl Strategy<Value = String> {
    let chunk = prop_oneof![
        3 => "[abé]{1,3}",
        2 => Just("*".to_owned()),
        2 => Just("**".to_owned()),
        2 => r"([ab]|\$\*){1,4}",
        1 => "@[ab]",
    ];
    proptest::collection::vec(chunk, 1..7).prop_map(|chunks| {
        let text = chunks.join("/");
        canonize(&text, &mut vec![0; text.len()])
            .expect("valid")
            .as_str()
            .to_owned()
    })
}

proptest! {
    #[test]
    fn sets_behave_as_sets(a in expression(), b in expression(), c in expression()) {
        let (a, b, c) = (key(&a), key(&b), key(&c));
        prop_assert!(a.intersects(a) && a.includes(a));
        prop_assert_eq!(a.intersects(b), b.intersects(a));
        prop_assert!(!a.includes(b) || a.intersects(b));
        prop_assert_eq!(a.includes(b) && b.includes(a), a == b);
        prop_assert!(!(a.includes(b) && b.includes(c)) || a.includes(c));
        prop_assert!(!(a.includes(b) && b.intersects(c)) || a.intersects(c));
    }

    #[test]
    fn a_key_of_an_expression_is_included(text in expression(), fill in "[abz]{0,4}") {
        let concrete = text
            .replace("$*", &fill)
            .split('/')
            .map(|chunk| match chunk {
                "*" | "**" | "" => "z",
                chunk => chunk,
            })
            .collect::<Vec<_>>()
            .join("/");
        prop_assert!(key(&text).includes(key(&concrete)), "{} {}", text, concrete);
        prop_assert!(key(&text).intersects(key(&concrete)));
    }

    #[test]
    fn any_string_gets_an_answer(a in "[ab*$@/#é]{0,12}", b in "[ab*$@/é]{0,12}") {
        let mut place = [0; 64];
        match canonize(&a, &mut place) {
            Ok(canonical) => prop_assert_eq!(KeyExpr::new(&canonical), Ok(canonical)),
            Err(error) => prop_assert_eq!(KeyExpr::new(&a), Err(error)),
        }
        let (left, right) = (KeyExpr::unchecked(&a), KeyExpr::unchecked(&b));
        left.intersects(right);
        left.includes(right);
    }
}
