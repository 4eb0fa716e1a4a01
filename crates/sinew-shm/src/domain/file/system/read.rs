//! From text to what it says, with every mistake of it.

use std::path::{Path, PathBuf};
use std::string::{String, ToString};
use std::vec::Vec;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::read::{self, Error, LINK as LINK_KEYS, Table, integer, line_of};
use super::super::{FileError, LinkFile, Problem};
use super::{Domain, Mistake, SystemProblem};
use crate::domain::region::Region;
use crate::word::Segment;

const SYSTEM: &[&str] = &["domain", "region", "link"];
const DOMAIN: &[&str] = &["name", "bits"];
const REGION: &[&str] = &["name", "len", "align", "base"];
const LINK: &[&str] = &[
    "name", "region", "first", "second", "offset", "config", "trust", "line", "channel",
];
const OFFSETS: &[&str] = &["first", "second", "exchange"];

/// What cannot be the name of a module, or is the name of another one.
const TAKEN: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "channels", "const", "continue",
    "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if",
    "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub",
    "ref", "regions", "return", "self", "static", "struct", "super", "trait", "true", "try",
    "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Bytes of a region, at most: what 32 bits count.
const MAX_LEN: u64 = 1 << 32;

/// A value, and its line.
#[derive(Clone)]
pub(super) struct At<T> {
    pub value: T,
    pub line: usize,
}

/// What a file says. What is missing in it is a mistake already.
pub(super) struct Raw {
    pub domains: Vec<At<Domain>>,
    pub regions: Vec<At<RawRegion>>,
    pub links: Vec<At<RawLink>>,
}

pub(super) struct RawRegion {
    pub name: String,
    pub len: Option<u64>,
    pub align: Option<u64>,
    pub bases: Vec<At<(String, u64)>>,
}

pub(super) struct RawLink {
    pub name: String,
    pub region: Option<At<String>>,
    pub sides: [Option<At<String>>; 2],
    pub offset: Option<Offset>,
    pub file: Option<LinkFile>,
}

/// Where a link is to lie.
pub(super) enum Offset {
    /// Where there is room.
    Anywhere,
    /// All of it from here on.
    Whole(At<u64>),
    /// Each segment from here on.
    Each([Option<At<u64>>; 3]),
}

struct Reader<'a> {
    file: &'a Path,
    text: &'a str,
    mistakes: Vec<Mistake>,
}

/// Reads a file; what it names is not looked up yet.
pub(super) fn read(
    file: &Path,
    text: &str,
    mut load: impl FnMut(&str) -> Result<LinkFile, FileError>,
) -> (Raw, Vec<Mistake>) {
    let mut reader = Reader {
        file,
        text,
        mistakes: Vec::new(),
    };
    let mut raw = Raw {
        domains: Vec::new(),
        regions: Vec::new(),
        links: Vec::new(),
    };
    match DeTable::parse(text) {
        Ok(document) => {
            let top = Table::any(text, document.get_ref(), document.span());
            reader.known(&top, SYSTEM);
            raw.domains = reader.each(&top, "domain", |reader, table| reader.domain(table));
            raw.regions = reader.each(&top, "region", |reader, table| reader.region(table));
            raw.links = reader.each(&top, "link", |reader, table| reader.link(table, &mut load));
        }
        Err(error) => {
            let line = error.span().map(|span| line_of(text, span));
            reader.wrong((line, Problem::Syntax(error.message().to_string())));
        }
    }
    (raw, reader.mistakes)
}

impl Reader<'_> {
    fn wrong(&mut self, (line, problem): Error) {
        self.mistake(line, SystemProblem::Link(problem));
    }

    fn mistake(&mut self, line: Option<usize>, problem: SystemProblem) {
        self.mistakes.push(Mistake {
            file: PathBuf::from(self.file),
            line,
            problem,
        });
    }

    /// What is there; what is not is a mistake.
    fn take<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|error| self.wrong(error)).ok()
    }

    fn known(&mut self, table: &Table<'_, '_>, keys: &'static [&'static str]) {
        for error in table.unknown(keys) {
            self.wrong(error);
        }
    }

    /// The tables of a key, each read, of which those with a name count.
    fn each<'a, 'i, T>(
        &mut self,
        top: &Table<'a, 'i>,
        key: &'static str,
        mut read: impl FnMut(&mut Self, &Table<'a, 'i>) -> Option<T>,
    ) -> Vec<At<T>> {
        let takes = "tables: write each in double brackets, as [[link]]";
        let Some(values) = self.take(top.tables(key, takes)) else {
            return Vec::new();
        };
        let mut all = Vec::new();
        for value in values {
            let table = self.table(top, (key, takes), value);
            let Some(table) = table else { continue };
            if let Some(value) = read(self, &table) {
                let line = table.line;
                all.push(At { value, line });
            }
        }
        all
    }

    fn table<'a, 'i>(
        &mut self,
        around: &Table<'a, 'i>,
        (key, takes): (&'static str, &'static str),
        value: &'a Spanned<DeValue<'i>>,
    ) -> Option<Table<'a, 'i>> {
        let Some(table) = value.get_ref().as_table() else {
            let line = Some(line_of(self.text, value.span()));
            self.wrong((line, Problem::Value { key, takes }));
            return None;
        };
        Some(Table::any(around.text, table, value.span()))
    }

    fn name(&mut self, table: &Table<'_, '_>) -> Option<String> {
        let takes = "a name of small letters, digits and _, which begins with a letter and is no word \
                     of Rust's";
        let name = table.need("name", takes, |value| {
            let name = value.as_str()?;
            let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
            let letters =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            let is_name = begins && name.bytes().all(letters) && !TAKEN.contains(&name);
            is_name.then(|| name.to_string())
        });
        self.take(name)
    }

    /// A name of something else in the file, where it stands.
    fn reference(&mut self, table: &Table<'_, '_>, key: &'static str) -> Option<At<String>> {
        let line = self.line(table, key);
        let text = table.need(key, "a name", |value| value.as_str().map(str::to_string));
        let value = self.take(text)?;
        Some(At { value, line })
    }

    /// The line of a key, or of its table.
    fn line(&self, table: &Table<'_, '_>, key: &str) -> usize {
        let value = table.value(key);
        value.map_or(table.line, |value| line_of(self.text, value.span()))
    }

    fn domain(&mut self, table: &Table<'_, '_>) -> Option<Domain> {
        self.known(table, DOMAIN);
        let bits = table.get("bits", "32 or 64", |value| {
            integer(value).filter(|bits| [32, 64].contains(bits))
        });
        let bits = self.take(bits).flatten().unwrap_or(32);
        let name = self.name(table)?;
        Some(Domain { name, bits })
    }

    fn region(&mut self, table: &Table<'_, '_>) -> Option<RawRegion> {
        self.known(table, REGION);
        let len = table.need(
            "len",
            "a number of bytes from 1 to 0x1_0000_0000",
            |value| integer(value).filter(|len| (1..=MAX_LEN).contains(len)),
        );
        let align = table.get("align", "a power of two from 64 to 0x4000_0000", |value| {
            let align: u64 = integer(value)?;
            let is_one = align.is_power_of_two();
            (is_one && (Segment::ALIGN as u64..=1 << 30).contains(&align)).then_some(align)
        });
        let (len, align) = (self.take(len), self.take(align));
        let mut bases = Vec::new();
        let takes = "a table of addresses, as in { linux = 0x3000_0000, rtos = 0x2000_0000 }";
        match table.value("base") {
            None => self.wrong((Some(table.line), Problem::MissingKey("base"))),
            Some(value) => {
                if let Some(inner) = self.table(table, ("base", takes), value) {
                    for (key, value) in inner.table {
                        let line = line_of(self.text, value.span());
                        let name: &str = key.get_ref();
                        match integer(value.get_ref()) {
                            Some(base) => bases.push(At {
                                value: (name.to_string(), base),
                                line,
                            }),
                            None => {
                                let problem = Problem::Value { key: "base", takes };
                                self.wrong((Some(line), problem));
                            }
                        }
                    }
                }
            }
        }
        // In the order of the file, whatever that of the table is.
        bases.sort_by_key(|base| base.line);
        let name = self.name(table)?;
        Some(RawRegion {
            name,
            len,
            align: align.map(|align| align.unwrap_or(Region::ALIGN)),
            bases,
        })
    }

    fn link(
        &mut self,
        table: &Table<'_, '_>,
        load: &mut impl FnMut(&str) -> Result<LinkFile, FileError>,
    ) -> Option<RawLink> {
        self.known(table, LINK);
        let region = self.reference(table, "region");
        let sides = [
            self.reference(table, "first"),
            self.reference(table, "second"),
        ];
        let offset = self.offset(table);
        let file = self.config(table, load);
        let name = self.name(table)?;
        Some(RawLink {
            name,
            region,
            sides,
            offset,
            file,
        })
    }

    fn offset(&mut self, table: &Table<'_, '_>) -> Option<Offset> {
        let takes = "a number of bytes, or { first = 0, second = 0x1000, exchange = 0x2000 }";
        let Some(value) = table.value("offset") else {
            return Some(Offset::Anywhere);
        };
        let line = line_of(self.text, value.span());
        if let Some(value) = integer(value.get_ref()) {
            return Some(Offset::Whole(At { value, line }));
        }
        let each = self.table(table, ("offset", takes), value)?;
        self.known(&each, OFFSETS);
        let mut all = [None, None, None];
        for (offset, key) in all.iter_mut().zip(OFFSETS) {
            let line = self.line(&each, key);
            let value = self.take(each.get(key, "a number of bytes", integer))?;
            *offset = value.map(|value| At { value, line });
        }
        if all[..2].iter().any(Option::is_none) {
            self.wrong((
                Some(line),
                Problem::Value {
                    key: "offset",
                    takes,
                },
            ));
            return None;
        }
        Some(Offset::Each(all))
    }

    /// The link's configuration, of its own keys or of a link file.
    fn config(
        &mut self,
        table: &Table<'_, '_>,
        load: &mut impl FnMut(&str) -> Result<LinkFile, FileError>,
    ) -> Option<LinkFile> {
        if !table.has("config") {
            let found = read::link(self.text, table);
            let errors = match found {
                Ok(file) => return Some(file),
                Err(errors) => errors,
            };
            for (line, problem) in errors {
                self.wrong((line.or(Some(table.line)), problem));
            }
            return None;
        }
        if LINK_KEYS.iter().any(|key| table.has(key)) {
            let line = self.line(table, "config");
            self.mistake(Some(line), SystemProblem::TwoConfigs);
        }
        let name = self.reference(table, "config")?;
        match load(&name.value) {
            Ok(file) => Some(file),
            Err(FileError {
                file,
                line,
                problem,
            }) => {
                let problem = SystemProblem::Link(problem);
                self.mistakes.push(Mistake {
                    file,
                    line,
                    problem,
                });
                None
            }
        }
    }
}
