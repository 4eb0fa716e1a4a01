//! Key expressions against `zenoh-keyexpr`: the same strings are valid, with the same canonical
//! form, and the same ones meet. In two things that crate deviates from the rules, and we do not:
//!
//! * its canonizer panics, or makes what is not canonical by its own check, where several `$*` in
//!   a row stand behind other characters: `a$*$*` (a slice out of range), `a$*$*$*/b`;
//! * it does not see that what a `*` before a `**` asks for may be found behind a `**` of the other:
//!   `*/**` includes `**/x`, whose keys all have a chunk.

use proptest::prelude::*;
use sinew::pubsub::keyexpr::{KeyExpr, canonize};
use zenoh_keyexpr::{OwnedKeyExpr, keyexpr};

/// Where its canonizer fails.
fn row_in_chunk(text: &str) -> bool {
    text.split('/')
        .any(|chunk| chunk.contains("$*$*") && !chunk.split("$*").all(str::is_empty))
}

fn both_agree_on_one(text: &str) -> Result<(), TestCaseError> {
    let theirs = keyexpr::new(text).is_ok();
    prop_assert_eq!(KeyExpr::new(text).is_ok(), theirs, "validity of {}", text);
    let mut place = vec![0; text.len()];
    let ours = canonize(text, &mut place).map(KeyExpr::as_str).ok();
    if !row_in_chunk(text) {
        let theirs = OwnedKeyExpr::autocanonize(text.to_owned()).ok();
        prop_assert_eq!(ours, theirs.as_deref().map(keyexpr::as_str), "{}", text);
    }
    Ok(())
}

/// Whether both say the same of these two canonical expressions.
fn both_agree_on_two(a: &str, b: &str) -> Result<(), TestCaseError> {
    let (left, right) = (KeyExpr::new(a), KeyExpr::new(b));
    let (left, right) = (left.expect("canonical"), right.expect("canonical"));
    let (their_left, their_right) = (keyexpr::new(a), keyexpr::new(b));
    let their_left = their_left.expect("canonical for Zenoh too");
    let their_right = their_right.expect("canonical for Zenoh too");
    prop_assert_eq!(
        left.intersects(right),
        their_left.intersects(their_right),
        "{} {}",
        a,
        b
    );
    let (ours, theirs) = (left.includes(right), their_left.includes(their_right));
    let unseen = a.contains("*/**") && b.contains("**");
    prop_assert!(
        ours == theirs || (ours && unseen),
        "{} includes {}: {}",
        a,
        b,
        ours
    );
    Ok(())
}

fn expression() -> impl Strategy<Value = String> {
    let chunk = prop_oneof![
        3 => "[abé]{1,3}",
        2 => Just("*".to_owned()),
        2 => Just("**".to_owned()),
        3 => r"([ab]|\$\*){1,5}",
        1 => "@[ab]",
        1 => "@a\\$\\*",
    ];
    proptest::collection::vec(chunk, 1..6).prop_map(|chunks| {
        let text = chunks.join("/");
        let mut place = vec![0; text.len()];
        canonize(&text, &mut place)
            .expect("valid")
            .as_str()
            .to_owned()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn zenoh_finds_the_same_strings_valid_and_canonizes_them_alike(
        text in "[ab*$@/#?é]{0,10}",
        stars in r"(a|b|/|\*|\*\*|\$\*|@){1,10}",
    ) {
        both_agree_on_one(&text)?;
        both_agree_on_one(&stars)?;
    }

    #[test]
    fn zenoh_finds_the_same_intersections_and_inclusions(a in expression(), b in expression()) {
        both_agree_on_two(&a, &b)?;
        both_agree_on_two(&b, &a)?;
    }
}

#[test]
fn where_zenoh_deviates_from_the_rules() {
    let row = "a$*$*$*/b".to_owned();
    assert!(canonize(&row, &mut [0; 9]).is_ok());
    assert!(OwnedKeyExpr::autocanonize(row).is_err());
    let (all, some) = ("*/**", "**/x");
    assert!(
        !keyexpr::new(all)
            .unwrap()
            .includes(keyexpr::new(some).unwrap())
    );
    assert!(
        KeyExpr::new(all)
            .unwrap()
            .includes(KeyExpr::new(some).unwrap())
    );
}
