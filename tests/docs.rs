//! The words for users: what they show is what there is.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages for users and for whoever takes this over.
fn pages() -> Vec<PathBuf> {
    let root = root();
    let mut pages = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"]
        .map(|name| root.join(name))
        .to_vec();
    for folder in ["docs/src", "docs/notes"] {
        let entries = fs::read_dir(root.join(folder)).expect("the folder");
        pages.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    pages.retain(|page| page.extension().is_some_and(|it| it == "md"));
    pages
}

/// Files that a page shows whole: a line `path`: and a code block behind it.
fn shown(page: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let name = line.strip_prefix('`').and_then(|it| it.strip_suffix("`:"));
        let Some(name) = name else { continue };
        let mut block = lines.by_ref().skip_while(|line| line.is_empty());
        let fence = block.next().unwrap_or_default();
        assert!(fence.starts_with("```"), "no block behind `{name}`:");
        let code: Vec<&str> = block.take_while(|line| *line != "```").collect();
        found.push((name.to_owned(), code.join("\n") + "\n"));
    }
    found
}

#[test]
fn the_readme_shows_the_files_of_the_tutorial() {
    let folder = root().join("examples/tutorial");
    let shown = shown(&read(&root().join("README.md")));
    let names: Vec<&str> = shown.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "Cargo.toml",
            "build.rs",
            "lamp.proto",
            "lamp.options",
            "src/lib.rs",
            "src/service.rs",
            "src/client.rs",
            "src/main.rs",
        ]
    );
    for (name, code) in shown {
        let mut file = read(&folder.join(&name));
        if name == "Cargo.toml" {
            // The reader's folder lies beside the clone; what only our tests need is left out.
            file = file.replace("../../crates", "../sinew/crates");
            let end = file.find("\n[dev-dependencies]").expect("the tests' part");
            file.truncate(end);
        }
        assert_eq!(code, file, "{name}");
    }
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut checked = 0;
    for page in pages() {
        let text = read(&page);
        let folder = page.parent().expect("a folder");
        let targets = text
            .split("](")
            .skip(1)
            .filter_map(|it| it.split(')').next());
        let includes = text.split("{{#include ").skip(1);
        let includes = includes.filter_map(|it| it.split([':', '}']).next());
        for target in targets.chain(includes) {
            let path = target.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            checked += 1;
            let there = folder.join(path).exists();
            assert!(there, "{}: {target} does not exist", page.display());
        }
    }
    assert!(checked > 20, "only {checked} links were found");
}

#[test]
fn every_chapter_of_the_book_is_listed() {
    let folder = root().join("docs/src");
    let summary = read(&folder.join("SUMMARY.md"));
    for entry in fs::read_dir(&folder).expect("the folder") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_string_lossy();
        let listed = summary.contains(&format!("]({name})"));
        assert!(listed || name == "SUMMARY.md", "{name} is in no list");
    }
}
