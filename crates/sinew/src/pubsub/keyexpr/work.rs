//! How much work matching is at the most, in bytes looked at, against inputs made to be slow.

use std::cell::Cell;
use std::string::String;
use std::vec::Vec;

use super::super::KeyExpr;

std::thread_local! {
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

pub(super) fn count(bytes: usize) {
    LOOKS.set(LOOKS.get() + bytes as u64);
}

/// What both questions look at, whatever the answers; and that there are answers.
fn looks(a: &str, b: &str) -> u64 {
    let (a, b) = (KeyExpr::unchecked(a), KeyExpr::unchecked(b));
    LOOKS.set(0);
    a.intersects(b);
    let intersects = LOOKS.replace(0);
    a.includes(b);
    intersects.max(LOOKS.replace(0))
}

fn evil(n: usize) -> Vec<(String, String)> {
    let two = "**/a/".repeat(n);
    let wild = "$*a".repeat(n);
    std::vec![
        (std::format!("{two}b"), std::format!("{}c", "a/".repeat(n))),
        (std::format!("{two}b"), std::format!("{two}c")),
        (
            std::format!("{two}**"),
            std::format!("{}c", "x/".repeat(2 * n))
        ),
        (
            std::format!("**/{}b/**", "a/".repeat(n)),
            std::format!("{}c", "a/".repeat(2 * n))
        ),
        (
            std::format!("**/{}**/b", "*/".repeat(n)),
            std::format!("{}c", "**/x/".repeat(n))
        ),
        (std::format!("{wild}b"), std::format!("{}c", "a".repeat(n))),
        (std::format!("{wild}b"), std::format!("{wild}c")),
        (std::format!("$*{}b$*", "a".repeat(n)), "a".repeat(2 * n)),
        (
            std::format!("**/{}b", "$*a$*a$*b/".repeat(n)),
            std::format!("{}c", "aaaaaaa/".repeat(n))
        ),
        (
            std::format!("**/{}b", "$*a$*/".repeat(n)),
            std::format!("{}c", "$*aa/".repeat(n))
        ),
        (
            std::format!("{}b", "**/$*a$*b/".repeat(n)),
            std::format!("{}c", "aaa/**/".repeat(n))
        ),
        (
            std::format!("{}b", "**/@v/**/a/".repeat(n)),
            std::format!("{}c", "a/@v/a/a/".repeat(n))
        ),
    ]
}

#[test]
fn hostile_expressions_take_no_more_than_the_product_of_their_lengths() {
    for n in [1, 10, 100, 400] {
        for (a, b) in evil(n) {
            for (a, b) in [(&a, &b), (&b, &a), (&a, &a), (&b, &b)] {
                let product = (a.len() as u64 + 1) * (b.len() as u64 + 1);
                let looks = looks(a, b);
                assert!(
                    looks <= 8 * product,
                    "{looks} looks for {} and {} bytes: {a:.40} and {b:.40}",
                    a.len(),
                    b.len()
                );
            }
        }
    }
}

#[test]
fn usual_expressions_take_some_looks_at_each_byte() {
    for (a, b) in [
        ("demo/example/**", "demo/example/zenoh-python-pub"),
        ("robot/*/arm/**", "robot/7/arm/joint/2"),
        ("**", "a/b/c/d/e/f"),
        ("sensors/*/temperature", "sensors/roof/temperature"),
    ] {
        let looks = looks(a, b);
        assert!(
            looks <= 6 * (a.len() + b.len()) as u64,
            "{looks} for {a} {b}"
        );
    }
}
