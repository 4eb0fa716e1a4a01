//! What the user says: files, include folders, where to; and the run itself.

use std::collections::HashMap;
use std::env;
use std::path::{Path, PathBuf};

use crate::bounds::Rules;
use crate::check::Checker;
use crate::compile::{Compiled, compile};
use crate::embed::Schema;
use crate::options::Options;
use crate::output::{self, Stale};
use crate::report::{Mistake, Report};
use crate::select::Selection;
use crate::{messages, schema, tidy};

/// Generates code for these .proto files in a build script, see [`Builder::build`].
pub fn build(protos: &[impl AsRef<Path>]) {
    Builder::new().protos(protos).build();
}

/// A run of the generator: one Rust file from one or more .proto files and what they import.
///
/// Files that import each other belong into one run, so that they share their types.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    protos: Vec<PathBuf>,
    includes: Vec<PathBuf>,
    options: Vec<PathBuf>,
    name: Option<String>,
    mocks: bool,
    schema: bool,
    comments: bool,
}

/// What a run made.
struct Output {
    text: String,
    /// Every file that was read.
    inputs: Vec<PathBuf>,
}

impl Builder {
    /// A run without files.
    pub fn new() -> Self {
        Builder::default()
    }

    /// Adds .proto files.
    pub fn protos(mut self, protos: &[impl AsRef<Path>]) -> Self {
        let paths = protos.iter().map(|path| path.as_ref().to_owned());
        self.protos.extend(paths);
        self
    }

    /// Adds a folder in which imports are looked up. Without any it is the folder of each file.
    pub fn include(mut self, folder: impl AsRef<Path>) -> Self {
        self.includes.push(folder.as_ref().to_owned());
        self
    }

    /// Adds an .options file for all .proto files: bounds of files that are not yours to change.
    /// `name.options` beside `name.proto` is found by itself.
    pub fn options(mut self, path: impl AsRef<Path>) -> Self {
        self.options.push(path.as_ref().to_owned());
        self
    }

    /// Names the Rust file: `name.rs`. Without it, it is named after the first .proto.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Makes a module `mock` for each service as well: a scripted service and a scripted reach.
    pub fn mocks(mut self, yes: bool) -> Self {
        self.mocks = yes;
        self
    }

    /// Makes a constant `SCHEMA` as well, for reflection: a [`sinew::rpc::Schema`] without comments.
    pub fn schema(mut self, yes: bool) -> Self {
        self.schema = yes;
        self
    }

    /// Keeps the comments in `SCHEMA`: who asks the device what it serves can read them, and they take
    /// flash.
    pub fn comments(mut self, yes: bool) -> Self {
        self.comments = yes;
        self
    }

    /// The text of the Rust file, or every mistake.
    pub fn generate(&self) -> Result<String, Report> {
        self.run().map(|output| output.text)
    }

    /// The name of the Rust file.
    pub fn file_name(&self) -> String {
        let stem = || {
            let first = self.protos.first()?.file_stem()?;
            Some(first.to_string_lossy().into_owned())
        };
        let name = self.name.clone().or_else(stem);
        format!("{}.rs", name.unwrap_or_else(|| "proto".into()))
    }

    /// Writes the Rust file into `folder` and returns its path.
    pub fn generate_to(&self, folder: impl AsRef<Path>) -> Result<PathBuf, Report> {
        let output = self.run()?;
        self.write(folder.as_ref(), &output)
    }

    /// The generated files in `folder` that are not what a run would write there.
    pub fn check(&self, folder: impl AsRef<Path>) -> Result<Vec<Stale>, Report> {
        let text = self.generate()?;
        let path = folder.as_ref().join(self.file_name());
        Ok(Stale::of(&path, &text).into_iter().collect())
    }

    /// For build scripts: writes the Rust file into `OUT_DIR` and tells cargo when to run again.
    ///
    /// Mistakes end the build script, with all of them on standard error.
    pub fn build(&self) {
        let no_folder = || {
            let message = "OUT_DIR is not set: `build` is for build scripts";
            Report::one(Mistake::of_file("build.rs", message))
        };
        let done = env::var_os("OUT_DIR")
            .ok_or_else(no_folder)
            .and_then(|folder| {
                let output = self.run()?;
                self.write(Path::new(&folder), &output)?;
                Ok(output.inputs)
            });
        match done {
            Ok(inputs) => {
                for input in inputs {
                    println!("cargo::rerun-if-changed={}", input.display());
                }
            }
            Err(report) => {
                eprintln!("{report}");
                std::process::exit(1);
            }
        }
    }

    fn write(&self, folder: &Path, output: &Output) -> Result<PathBuf, Report> {
        let path = folder.join(self.file_name());
        output::write(&path, &output.text)
            .map_err(|error| {
                let name = path.display().to_string();
                Report::one(
                    Mistake::of_file(name, format!("cannot write: {error}"))
                        .remedy("check the folder, who may write there, and its room"),
                )
            })
            .map(|()| path)
    }

    fn run(&self) -> Result<Output, Report> {
        let mut mistakes = Vec::new();
        if self.protos.is_empty() {
            let message = "no .proto file is given";
            return Err(Report::one(Mistake::of_file("(none)", message)));
        }
        let Compiled { compiler, sources } =
            compile(&self.protos, &self.include_folders(), &mut mistakes);
        let all_compiled = mistakes.is_empty();
        let pool = compiler.descriptor_pool();
        let named: Vec<&str> = compiler
            .files()
            .filter(|file| !file.is_import())
            .map(|file| file.name())
            .collect();
        let selection = Selection::new(&pool, |file| named.contains(&file.name()));

        let mut inputs: Vec<PathBuf> = sources.paths().map(Path::to_owned).collect();
        let mut own = HashMap::new();
        for file in compiler.files() {
            let source = sources.get(file.name());
            let beside = source.map(|source| source.path.with_extension("options"));
            if let Some(path) = beside.filter(|path| path.is_file()) {
                own.insert(file.name().to_owned(), read_options(&path, &mut mistakes));
                inputs.push(path);
            }
        }
        let mut common = Vec::new();
        for path in &self.options {
            common.push(read_options(path, &mut mistakes));
            inputs.push(path.clone());
        }
        let rules = Rules::new(&pool, &sources, own, common);

        let mut bounds = Vec::new();
        for message in &selection.messages {
            for field in message.fields() {
                bounds.extend(rules.field(&field, &mut mistakes));
            }
        }
        let services: HashMap<_, _> = selection
            .services
            .iter()
            .map(|service| {
                let described = schema::describe(service, |method| rules.raw(method));
                (service.full_name().to_owned(), described)
            })
            .collect();
        let mut checker = Checker {
            sources: &sources,
            mistakes: &mut mistakes,
        };
        checker.services(&selection.services, &pool);
        selection.messages.iter().for_each(|m| checker.message(m));
        selection.enums.iter().for_each(|e| checker.enumeration(e));
        // A file that did not compile would leave rules without their fields.
        if all_compiled {
            mistakes.extend(rules.unused());
        }
        if !mistakes.is_empty() {
            mistakes.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
            mistakes.dedup();
            return Err(Report { mistakes });
        }

        let set = selection.prune(compiler.file_descriptor_set());
        let schema = self.schema.then(|| Schema::new(&set, self.comments));
        let file = messages::generate(&set, &bounds, services, self.mocks, schema)
            .map_err(|message| Report::one(Mistake::of_file(self.names(), message)))?;
        inputs.sort();
        Ok(Output {
            text: format!(
                "// Generated by sinew-gen from {}; do not edit.\n\n{}",
                self.names(),
                tidy::print(&file)
            ),
            inputs,
        })
    }

    fn include_folders(&self) -> Vec<PathBuf> {
        let mut folders = self.includes.clone();
        if folders.is_empty() {
            for proto in &self.protos {
                let folder = match proto.parent() {
                    Some(folder) if folder != Path::new("") => folder.to_owned(),
                    _ => PathBuf::from("."),
                };
                if !folders.contains(&folder) {
                    folders.push(folder);
                }
            }
        }
        folders
    }

    /// The named files, without their folders: the text does not depend on where it is made.
    fn names(&self) -> String {
        let names: Vec<_> = self
            .protos
            .iter()
            .filter_map(|path| path.file_name())
            .map(|name| name.to_string_lossy())
            .collect();
        names.join(", ")
    }
}

fn read_options(path: &Path, mistakes: &mut Vec<Mistake>) -> Options {
    Options::read(path, mistakes).unwrap_or_else(|error| {
        let name = path.display().to_string();
        mistakes.push(
            Mistake::of_file(name, format!("cannot read: {error}"))
                .remedy("check the path, and who may read it"),
        );
        Options::default()
    })
}
