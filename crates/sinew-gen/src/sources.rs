//! Where in which text an element stands.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use prost_reflect::FileDescriptor;

use crate::report::Mistake;

/// The texts of .proto files, by import name.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    files: HashMap<String, Source>,
}

#[derive(Debug)]
pub(crate) struct Source {
    pub path: PathBuf,
    text: String,
}

/// The text of a file, without the mark that some editors put before it.
pub(crate) fn read(path: &Path) -> std::io::Result<String> {
    let text = std::fs::read_to_string(path)?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(text) => text.to_owned(),
        None => text,
    })
}

impl Sources {
    /// Remembers a file; one that cannot be read has no lines to show.
    pub fn add(&mut self, name: &str, path: &Path) {
        if !self.files.contains_key(name) {
            let text = read(path).unwrap_or_default();
            let path = path.to_owned();
            self.files.insert(name.to_owned(), Source { path, text });
        }
    }

    pub fn get(&self, name: &str) -> Option<&Source> {
        self.files.get(name)
    }

    /// Every file that was read.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.values().map(|source| source.path.as_path())
    }

    /// A mistake at a byte offset.
    pub fn at_offset(&self, name: &str, offset: usize, len: usize, message: String) -> Mistake {
        let Some(source) = self.get(name) else {
            return Mistake::of_file(name, message);
        };
        let before = source.text.get(..offset).unwrap_or(&source.text);
        let line = before.matches('\n').count();
        let column = before.chars().rev().take_while(|&c| c != '\n').count();
        let width = source.text.get(offset..offset + len);
        source.mistake(
            line,
            column,
            width.map_or(1, |t| t.chars().count()),
            message,
        )
    }

    /// A mistake at an element of a file, by its path in the descriptor.
    ///
    /// Where the descriptor knows the place of the element's name, that is what is marked.
    pub fn at_element(&self, file: &FileDescriptor, path: &[i32], message: String) -> Mistake {
        let Some(source) = self.get(file.name()) else {
            return Mistake::of_file(file.name(), message);
        };
        let info = file.file_descriptor_proto().source_code_info.as_ref();
        let find = |path: &[i32]| {
            info.iter()
                .flat_map(|info| &info.location)
                .find(|location| location.path == path)
        };
        // Every descriptor has its name as field 1.
        let name = [path, &[1]].concat();
        let Some(location) = find(&name).or_else(|| find(path)) else {
            return Mistake::of_file(source.path.display().to_string(), message);
        };
        let number = |i: usize| usize::try_from(location.span.get(i).copied().unwrap_or(0));
        let (line, column) = (number(0).unwrap_or(0), number(1).unwrap_or(0));
        // Three numbers: the span ends on its line.
        let width = match location.span.len() {
            3 => number(2).unwrap_or(0).saturating_sub(column),
            _ => 1,
        };
        source.mistake(line, column, width, message)
    }
}

impl Source {
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column from 0.
    fn mistake(&self, line: usize, column: usize, width: usize, message: String) -> Mistake {
        let text = self.text.lines().nth(line).unwrap_or_default();
        Mistake {
            file: self.path.display().to_string(),
            line: line + 1,
            column: column + 1,
            // Not beyond the line.
            width: width
                .min(text.chars().count().saturating_sub(column))
                .max(1),
            source_line: text.to_owned(),
            message,
            remedy: String::new(),
        }
    }
}
