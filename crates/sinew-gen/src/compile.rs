//! .proto files to descriptors, by protox, with every mistake of every file.

use std::path::{Path, PathBuf};

use miette::Diagnostic;
use protox::Compiler;
use protox::file::{
    ChainFileResolver, File, FileResolver, GoogleFileResolver, IncludeFileResolver,
};

use crate::report::Mistake;
use crate::sources::{self, Sources};

/// What was read.
pub(crate) struct Compiled {
    pub compiler: Compiler,
    pub sources: Sources,
}

/// Compiles the files that can be; mistakes of the others go to `mistakes`.
pub(crate) fn compile(
    protos: &[PathBuf],
    includes: &[PathBuf],
    mistakes: &mut Vec<Mistake>,
) -> Compiled {
    let mut sources = Sources::default();
    let mut good = Vec::new();
    for proto in protos {
        // One compiler each: after a mistake a compiler knows nothing of the files behind it.
        match new_compiler(includes).open_file(proto) {
            Ok(_) => good.push(proto),
            Err(error) => explain(&error, proto, includes, &mut sources, mistakes),
        }
    }
    let mut compiler = new_compiler(includes);
    for proto in good {
        if let Err(error) = compiler.open_file(proto) {
            explain(&error, proto, includes, &mut sources, mistakes);
            // For example a type that two files define: the rest would only be noise.
            compiler = new_compiler(includes);
            break;
        }
    }
    for file in compiler.files() {
        // A file that was read without its mark has no path of its own.
        let found = || {
            let paths = includes.iter().map(|folder| folder.join(file.name()));
            paths.into_iter().find(|path| path.is_file())
        };
        if let Some(path) = file.path().map(Path::to_owned).or_else(found) {
            sources.add(file.name(), &path);
        }
    }
    Compiled { compiler, sources }
}

fn new_compiler(includes: &[PathBuf]) -> Compiler {
    let mut chain = ChainFileResolver::new();
    for include in includes {
        chain.add(Folder {
            folder: include.clone(),
            resolver: IncludeFileResolver::new(include.clone()),
        });
    }
    chain.add(OwnFiles);
    chain.add(GoogleFileResolver::new());
    let mut compiler = Compiler::with_file_resolver(chain);
    compiler.include_source_info(true).include_imports(true);
    compiler
}

/// The files of an include folder.
struct Folder {
    folder: PathBuf,
    resolver: IncludeFileResolver,
}

impl FileResolver for Folder {
    fn resolve_path(&self, path: &Path) -> Option<String> {
        self.resolver.resolve_path(path)
    }

    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match std::fs::read(self.folder.join(name)) {
            // The parser does not know the mark that some editors put before a text.
            Ok(bytes) if bytes.starts_with(b"\xef\xbb\xbf") => {
                match sources::read(&self.folder.join(name)) {
                    Ok(text) => File::from_source(name, &text),
                    Err(_) => self.resolver.open_file(name),
                }
            }
            _ => self.resolver.open_file(name),
        }
    }
}

/// The files that come with the generator.
struct OwnFiles;

impl FileResolver for OwnFiles {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match name {
            "sinew/options.proto" => {
                File::from_source(name, include_str!("../proto/sinew/options.proto"))
            }
            _ => Err(protox::Error::file_not_found(name)),
        }
    }
}

/// Turns an error of protox, and all that came with it, into mistakes.
fn explain(
    error: &protox::Error,
    proto: &Path,
    includes: &[PathBuf],
    sources: &mut Sources,
    mistakes: &mut Vec<Mistake>,
) {
    let name = error.file().map(str::to_owned);
    let name = name.unwrap_or_else(|| proto.display().to_string());
    let on_disk = includes.iter().map(|folder| folder.join(&name));
    if let Some(path) = on_disk.into_iter().find(|path| path.is_file()) {
        sources.add(&name, &path);
    }
    let outer: &dyn Diagnostic = error;
    for diagnostic in std::iter::once(outer).chain(outer.related().into_iter().flatten()) {
        let label = diagnostic.labels().and_then(|mut labels| labels.next());
        let message = diagnostic.to_string();
        let mut mistake = match &label {
            Some(label) => sources.at_offset(&name, label.offset(), label.len(), message),
            None => Mistake::of_file(proto.display().to_string(), message),
        };
        if let Some(help) = diagnostic.help() {
            mistake.remedy = help.to_string();
        } else if error.is_file_not_found() {
            mistake.remedy = "check the name and the include folders".into();
        }
        // Two files that import a broken third one report the same.
        if !mistakes.contains(&mistake) {
            mistakes.push(mistake);
        }
        if let (true, Some(label)) = (error.is_parse(), label) {
            further_syntax(&name, label.offset(), sources, mistakes);
        }
    }
}

/// The syntax errors behind the first one, where the parser stopped: the statement with the error
/// is blanked out and the rest is read again.
fn further_syntax(name: &str, first: usize, sources: &Sources, mistakes: &mut Vec<Mistake>) {
    let Some(mut text) = sources.get(name).map(|source| source.text().to_owned()) else {
        return;
    };
    let mut at = first;
    // Each round moves on; a file with more errors than this is no .proto.
    for _ in 0..100 {
        let (Some(before), Some(behind)) = (text.get(..at), text.get(at..)) else {
            return;
        };
        let start = before.rfind([';', '{', '}']).map_or(0, |i| i + 1);
        // A brace is structure: without it the rest would mean something else.
        let end = match behind.find([';', '{', '}']) {
            Some(i) if behind.get(i..=i) == Some(";") => at + i + 1,
            _ => return,
        };
        let blank = |c: char| {
            if c == '\n' {
                "\n".into()
            } else {
                " ".repeat(c.len_utf8())
            }
        };
        let blanked: String = text
            .get(start..end)
            .unwrap_or("")
            .chars()
            .map(blank)
            .collect();
        text.replace_range(start..end, &blanked);
        let Err(error) = File::from_source(name, &text) else {
            return;
        };
        let Some(label) = error.labels().and_then(|mut labels| labels.next()) else {
            return;
        };
        if label.offset() < end {
            return;
        }
        at = label.offset();
        let mistake = sources.at_offset(name, at, label.len(), error.to_string());
        if !mistakes.contains(&mistake) {
            mistakes.push(mistake);
        }
    }
}
