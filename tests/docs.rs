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
fn the_page_on_microcontrollers_shows_the_files_of_the_board() {
    let folder = root().join("examples/board");
    let shown = shown(&read(&root().join("docs/src/firmware.md")));
    let names: Vec<&str> = shown.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "Cargo.toml",
            ".cargo/config.toml",
            "build.rs",
            "link.x",
            "src/main.rs"
        ]
    );
    for (name, code) in shown {
        let file = read(&folder.join(&name));
        // The reader's folder lies beside the clone.
        let file = match name.as_str() {
            "Cargo.toml" => file.replace("../../", "../sinew/"),
            _ => file,
        };
        assert_eq!(code, file, "{name}");
    }
}

/// What a page shows of a file: behind a comment that names the file, or one section of it as
/// `file:section`.
fn samples(page: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let name = line
            .strip_prefix("<!-- ")
            .and_then(|it| it.strip_suffix(" -->"));
        // Other comments are sentences.
        let Some(name) = name.filter(|name| !name.contains(' ')) else {
            continue;
        };
        let fence = lines.next().unwrap_or_default();
        assert!(fence.starts_with("```"), "no block behind {name}");
        let code: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        found.push((name.to_owned(), code.join("\n") + "\n"));
    }
    found
}

/// A file, or its section `file:section`, without the indent that all of it has.
fn original(name: &str) -> String {
    let (path, section) = name.split_once(':').unwrap_or((name, ""));
    let text = read(&root().join(path));
    if section.is_empty() {
        return text;
    }
    let (start, end) = (
        format!("// ANCHOR: {section}"),
        format!("// ANCHOR_END: {section}"),
    );
    let lines = text.lines().skip_while(|line| line.trim() != start).skip(1);
    let lines: Vec<&str> = lines.take_while(|line| line.trim() != end).collect();
    assert!(!lines.is_empty(), "{path} has no section {section}");
    let full = lines.iter().filter(|line| !line.trim().is_empty());
    let indents = full.map(|line| line.len() - line.trim_start().len());
    let indent = indents.min().unwrap_or(0);
    lines
        .iter()
        .map(|line| line.get(indent..).unwrap_or_default().to_owned() + "\n")
        .collect()
}

#[test]
fn samples_in_pages_are_the_code_that_is_tested() {
    let mut checked = 0;
    for page in pages() {
        let text = read(&page);
        assert!(!text.contains("{{#include"), "{}", page.display());
        for (name, code) in samples(&text) {
            let page = page.display();
            assert_eq!(
                code,
                original(&name),
                "{page} does not show {name} as it is"
            );
            checked += 1;
        }
    }
    assert!(checked > 15, "only {checked} samples were found");
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut checked = 0;
    for page in pages() {
        // Code has brackets of its own.
        let text: String = read(&page).split("```").step_by(2).collect();
        let folder = page.parent().expect("a folder");
        let targets = text
            .split("](")
            .skip(1)
            .filter_map(|it| it.split(')').next());
        for target in targets {
            if target.contains("://") {
                continue;
            }
            checked += 1;
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let there = if path.is_empty() {
                page.clone()
            } else {
                folder.join(path)
            };
            let page = page.display();
            assert!(there.exists(), "{page}: {target} does not exist");
            let found = heading.is_empty() || headings(&read(&there)).any(|it| it == heading);
            assert!(found, "{page}: {target} has no such heading");
        }
    }
    assert!(checked > 20, "only {checked} links were found");
}

/// The names by which links find the headings of a page.
fn headings(page: &str) -> impl Iterator<Item = String> {
    let titles = page.lines().filter(|line| line.starts_with('#'));
    titles.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = |it: &char| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_');
        title
            .chars()
            .filter(kept)
            .collect::<String>()
            .replace(' ', "-")
    })
}

#[test]
fn paths_in_pages_exist() {
    let root = root();
    let folders = [
        ".ci/",
        "bench/",
        "crates/",
        "docs/",
        "examples/",
        "firmware/",
        "fuzz/",
        "proto/",
        "tests/",
    ];
    let mut checked = 0;
    for page in pages() {
        let text = read(&page);
        let prose = text.split("```").step_by(2).collect::<String>();
        for path in prose.split('`').skip(1).step_by(2) {
            if !folders.iter().any(|folder| path.starts_with(folder)) {
                continue;
            }
            // A name with a star stands for several in one folder.
            let fixed = path.split('*').next().unwrap_or_default();
            let fixed = match path.contains('*') {
                true => fixed.rsplit_once('/').map_or("", |(folder, _)| folder),
                false => fixed,
            };
            assert!(
                root.join(fixed).exists(),
                "{}: {path} does not exist",
                page.display()
            );
            checked += 1;
        }
    }
    assert!(checked > 30, "only {checked} paths were found");
}

/// Every Rust file below a folder, but not what builds made.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn sections_of_the_wire_reference_that_comments_cite_exist() {
    let wire = read(&root().join("docs/src/wire.md"));
    let titles: Vec<&str> = wire
        .lines()
        .filter_map(|it| it.strip_prefix("## "))
        .collect();
    let mut files = Vec::new();
    for folder in ["crates", "proto"] {
        sources(&root().join(folder), &mut files);
    }
    let mut checked = 0;
    for file in files {
        // A citation may go on in the next line of the comment.
        let text = read(&file);
        let words = text.split_whitespace();
        assert!(!text.contains("specs/"), "{}", file.display());
        let words: Vec<&str> = words.filter(|word| !word.starts_with("//")).collect();
        let text = words.join(" ");
        for cited in text.split("wire reference, section ").skip(1) {
            let found = titles.iter().any(|title| cited.starts_with(title));
            let start: String = cited.chars().take(30).collect();
            assert!(found, "{}: no section {start}", file.display());
            checked += 1;
        }
    }
    assert!(checked > 10, "only {checked} citations were found");
}

#[test]
fn every_chapter_of_the_book_is_listed() {
    let folder = root().join("docs/src");
    let summary = read(&folder.join("SUMMARY.md"));
    for entry in fs::read_dir(&folder).expect("the folder") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_string_lossy();
        let listed = summary.contains(&format!("]({name})"));
        let is_page = name.ends_with(".md") && name != "SUMMARY.md";
        assert!(listed || !is_page, "{name} is in no list");
    }
}

/// The code of a test, without white space and the commas that formatting adds.
fn body_of(file: &str, test: &str) -> String {
    let start = format!("#[test]\nfn {test}() {{\n");
    let gated = format!("\nfn {test}() {{\n");
    let at = file.find(&start).or_else(|| file.find(&gated));
    let rest = &file[at.unwrap_or_else(|| panic!("there is no test {test}"))..];
    bare(rest.split("\n}\n").next().unwrap_or_default())
}

fn bare(code: &str) -> String {
    let code: String = code.split_whitespace().collect();
    code.replace(",)", ")").replace(",}", "}")
}

#[test]
fn every_call_of_mdcom_is_shown_with_a_line_of_its_test() {
    let page = read(&root().join("docs/src/mdcom.md"));
    let file = read(&root().join("crates/sinew-shm/tests/mdcom.rs"));
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let mut calls = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [call, _, code, test] = cells[..] else {
            panic!("four cells: {row}");
        };
        let quoted = |cell: &str| cell.trim_matches('`').to_owned();
        let (call, code, test) = (quoted(call), quoted(code), quoted(test));
        assert!(test.starts_with(&call), "{test} is the test of {call}");
        let is_there = body_of(&file, &test).contains(&bare(&code));
        assert!(is_there, "{test} has no {code}");
        calls.push(call);
    }
    calls.dedup();
    assert_eq!(
        calls,
        [
            "init",
            "term",
            "sense_process",
            "sense_fifo",
            "fifo_alloc",
            "fifo_free",
            "fifo_get",
            "fifo_enqueue",
            "fifo_dequeue",
            "fifo_notify",
            "fifo_wait",
            "filter_set",
            "fifo_init",
            "smemch_get",
            "smemch_trylock",
            "smemch_unlock",
        ]
    );
}

#[test]
fn every_fault_of_zenoh_pico_is_shown_with_its_test() {
    let page = read(&root().join("docs/src/zenoh-pico.md"));
    let file = read(&root().join("crates/sinew/tests/pico_faults.rs"));
    let faults = page.split('`').filter(|name| name.starts_with("fault_"));
    let faults: Vec<&str> = faults.collect();
    assert_eq!(faults.len(), 6);
    for fault in faults {
        body_of(&file, fault); // it is there
    }
}
