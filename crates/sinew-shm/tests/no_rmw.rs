//! Shared memory is reached by plain loads and stores only, through one layer.
#![cfg(not(miri))]

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

/// Whether a file belongs to the one layer that may use atomics: `word.rs` and the folder `word`.
fn is_word_layer(path: &Path) -> bool {
    let layer = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/word");
    path.starts_with(layer)
}

/// The code of a file, without its comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| line.split("//").next().unwrap())
        .collect::<Vec<_>>()
        .join("\n")
}

fn all() -> Vec<PathBuf> {
    let mut found = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut found,
    );
    assert!(
        found.iter().any(|path| is_word_layer(path)),
        "looks at the right folder"
    );
    found
}

#[test]
fn atomics_are_used_in_the_word_layer_only() {
    for path in all().iter().filter(|path| !is_word_layer(path)) {
        let code = code(path);
        for word in ["atomic", "Ordering", "asm!"] {
            assert!(!code.contains(word), "{word} in {}", path.display());
        }
    }
}

#[test]
fn word_layer_has_no_read_modify_write() {
    let layer: Vec<_> = all()
        .into_iter()
        .filter(|path| is_word_layer(path))
        .collect();
    let code: String = layer.iter().map(|path| code(path)).collect();
    assert!(code.contains(".load(") && code.contains(".store("));
    for call in ["fetch_", "compare_", "swap(", "AcqRel"] {
        assert!(!code.contains(call), "{call} in {layer:?}");
    }
}

#[test]
fn the_observer_only_reads() {
    let is_observer = |path: &Path| path.components().any(|part| part.as_os_str() == "observe");
    let files: Vec<_> = all().into_iter().filter(|path| is_observer(path)).collect();
    let code: String = files.iter().map(|path| code(path)).collect();
    assert!(code.contains(".load("));
    for call in [".set(", ".store(", "unsafe", "Cache"] {
        assert!(!code.contains(call), "{call} in {files:?}");
    }
}
