//! `unsafe` is in this crate only, and the book says how often and where.
#![cfg(not(any(loom, miri)))]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "../../docs/src/domain-links.md";

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // The exploration is a test, and ships nowhere.
        let is_test = path.ends_with("domain/explore");
        if path.is_dir() && !is_test {
            sources(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

/// Uses of the keyword in a file: blocks, and implementations and functions with a contract.
fn uses(path: &Path) -> [usize; 2] {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.fold([0, 0], |[blocks, contracts], line| {
        let count = |what: &str| line.matches(what).count();
        [
            blocks + count("unsafe {"),
            contracts + count("unsafe impl") + count("unsafe fn") + count("unsafe trait"),
        ]
    })
}

#[test]
fn the_book_says_how_often_and_where() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut parts: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for file in &files {
        let inner = file.strip_prefix(&root).unwrap();
        let part = inner.components().next().unwrap().as_os_str();
        let part = part.to_str().unwrap().trim_end_matches(".rs");
        let [blocks, contracts] = uses(file);
        let sum = parts.entry(part.to_string()).or_default();
        *sum = [sum[0] + blocks, sum[1] + contracts];
    }
    parts.retain(|_, sum| *sum != [0, 0]);
    let all = parts
        .values()
        .fold([0, 0], |a, b| [a[0] + b[0], a[1] + b[1]]);
    parts.insert("all".into(), all);

    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(page).unwrap();
    let missing: Vec<_> = parts
        .iter()
        .map(|(part, [blocks, contracts])| format!("| `{part}` | {blocks} | {contracts} |"))
        .filter(|row| !page.contains(row.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "{PAGE} is to say:\n{}",
        missing.join("\n")
    );
}

#[test]
fn every_other_crate_forbids_it() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for name in ["sinew", "sinew-io", "sinew-gen", "sinew-cli"] {
        let folder = crates.join(name).join("src");
        let roots = ["lib.rs", "main.rs"].map(|root| folder.join(root));
        for root in roots.iter().filter(|root| root.exists()) {
            let text = fs::read_to_string(root).unwrap();
            assert!(
                text.contains("#![forbid(unsafe_code)]"),
                "{}",
                root.display()
            );
        }
    }
}
