//! From text to a configuration.

use core::ops::Range;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::check::ConfigError;
use super::super::config::{Channel, Kind, MAX_BLOCKS, MAX_CALLS, MAX_SIZE, Name, Pool, Trust};
use super::{LinkFile, Problem};

/// What is wrong, and in which line.
pub(super) type Error = (Option<usize>, Problem);

pub(super) const LINK: &[&str] = &["trust", "line", "channel"];
const CHANNEL: &[&str] = &[
    "id",
    "kind",
    "name",
    "priority",
    "blocks",
    "size",
    "first",
    "second",
    "requests",
    "calls",
    "semaphore",
    "replies",
    "uuid",
    "type",
];
const POOL: &[&str] = &["blocks", "size"];

pub(super) fn parse(text: &str) -> Result<LinkFile, Error> {
    let document = DeTable::parse(text).map_err(|error| {
        let line = error.span().map(|span| line_of(text, span));
        (line, Problem::Syntax(error.message().to_string()))
    })?;
    let table = Table::new(text, document.get_ref(), document.span(), LINK)?;
    link(text, &table).map_err(|mut errors| errors.swap_remove(0))
}

/// The link that a table describes by the keys of [`LINK`]; every mistake, of which there is one.
pub(super) fn link(text: &str, link: &Table<'_, '_>) -> Result<LinkFile, Vec<Error>> {
    let trust = match link.get("trust", "\"none\" or \"mutual\"", |value| {
        Some(match value.as_str()? {
            "none" => Trust::None,
            "mutual" => Trust::Mutual,
            _ => return None,
        })
    }) {
        Ok(trust) => trust.unwrap_or(Trust::None),
        Err(error) => return Err(vec![error]),
    };
    let line = link.get("line", "32, 64, 128 or 256", |value| {
        let line: u16 = integer(value)?;
        (line.is_power_of_two() && (32..=256).contains(&line)).then(|| line.ilog2() as u8)
    });
    let line = line.map_err(|error| vec![error])?;
    let tables = link.tables("channel", "tables: write each as [[channel]]");
    let mut channels = Vec::new();
    let mut lines = Vec::new();
    let mut errors = Vec::new();
    for value in tables.map_err(|error| vec![error])? {
        match channel(text, value) {
            Ok(channel) => {
                lines.push(line_of(text, value.span()));
                channels.push(channel);
            }
            Err(error) => errors.push(error),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let file = LinkFile {
        trust,
        line_log2: line.unwrap_or(6),
        channels,
    };
    file.config().check().map_err(|error| {
        let blamed = match error {
            ConfigError::DuplicateId(id)
            | ConfigError::Pool(id)
            | ConfigError::State(id)
            | ConfigError::Lock(id)
            | ConfigError::Messages(id)
            | ConfigError::RepliesNeedTrust(id) => {
                file.channels.iter().rposition(|channel| channel.id == id)
            }
            ConfigError::Channels | ConfigError::Line | ConfigError::TooLarge => None,
        };
        let line = blamed.and_then(|at| lines.get(at).copied());
        vec![(line, Problem::Config(error))]
    })?;
    Ok(file)
}

fn channel(text: &str, value: &Spanned<DeValue<'_>>) -> Result<Channel, Error> {
    let table = Table::of(text, "channel", value, CHANNEL)?;
    let kind = table
        .get(
            "kind",
            "\"queue\", \"state\", \"lock\" or \"message\"",
            |value| match value.as_str()? {
                "queue" => Some(Kind::Queue),
                "state" => Some(Kind::State),
                "lock" => Some(Kind::Lock),
                "message" => Some(Kind::Message),
                _ => None,
            },
        )?
        .unwrap_or_default();
    let pool = |table: &Table<'_, '_>| pool(table, kind);
    let both = table.has("blocks") || table.has("size");
    let each = table.has("first") || table.has("second");
    let (first, second) = match (both, each) {
        (true, true) => return Err((Some(table.line), Problem::TwoPools)),
        (true, false) => (pool(&table)?, pool(&table)?),
        (false, true) => {
            let of = |key| match table.value(key) {
                Some(value) => pool(&Table::of(text, key, value, POOL)?),
                None => Ok(Pool::default()),
            };
            (of("first")?, of("second")?)
        }
        (false, false) if kind == Kind::Message => Default::default(),
        (false, false) => return Err((Some(table.line), Problem::MissingKey("blocks"))),
    };
    let messages = |key| {
        let number = table.get(key, "a number from 0 to 4096", |value| {
            integer(value).filter(|&number| number <= MAX_CALLS)
        })?;
        Ok(number.unwrap_or(0))
    };
    Ok(Channel {
        kind,
        id: table.need("id", "a number from 0 to 65535", integer)?,
        name: table.need("name", "a text of at most 16 bytes", |value| {
            Name::new(value.as_str()?)
        })?,
        uuid: table
            .get(
                "uuid",
                "a text like \"3f2504e0-4f89-11d3-9a0c-0305e82c3301\"",
                |value| uuid(value.as_str()?),
            )?
            .unwrap_or(0),
        priority: table
            .get(
                "priority",
                "a number from 0, the most urgent, to 255",
                integer,
            )?
            .unwrap_or(128),
        type_hash: table
            .get("type", "a number from 0 to 0xffff_ffff", integer)?
            .unwrap_or(0),
        first,
        second,
        requests: messages("requests")?,
        calls: messages("calls")?,
        semaphore: table
            .get("semaphore", "a number from 0 to 65534", |value| {
                integer::<u16>(value)?.checked_add(1)
            })?
            .unwrap_or(0),
        replies: table
            .get("replies", "true or false", DeValue::as_bool)?
            .unwrap_or(false),
    })
}

fn pool(table: &Table<'_, '_>, kind: Kind) -> Result<Pool, Error> {
    let blocks = match kind {
        Kind::Queue | Kind::Message => {
            table.need("blocks", "a number from 0 to 32768", |value| {
                integer(value).filter(|&blocks| blocks <= MAX_BLOCKS)
            })?
        }
        // One value, or one area.
        Kind::State | Kind::Lock => table
            .get("blocks", "0 or 1", |value| {
                integer(value).filter(|&blocks| blocks <= 1)
            })?
            .unwrap_or(1),
    };
    let size = table.need("size", "a number of bytes from 1 to 268435456", |value| {
        integer(value).filter(|&size| (1..=MAX_SIZE).contains(&size))
    })?;
    Ok(Pool::new(blocks, size))
}

pub(super) fn integer<N: TryFrom<i64>>(value: &DeValue<'_>) -> Option<N> {
    let integer = value.as_integer()?;
    let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok()?;
    N::try_from(number).ok()
}

/// 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12.
fn uuid(text: &str) -> Option<u128> {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let digits: String = groups.concat();
    let is_one = lengths == [8, 4, 4, 4, 12] && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| u128::from_str_radix(&digits, 16).ok())?
}

/// A table whose keys are known, with its line.
pub(super) struct Table<'a, 'i> {
    pub(super) text: &'a str,
    pub(super) table: &'a DeTable<'i>,
    pub(super) line: usize,
}

impl<'a, 'i> Table<'a, 'i> {
    fn new(
        text: &'a str,
        table: &'a DeTable<'i>,
        span: Range<usize>,
        known: &'static [&'static str],
    ) -> Result<Self, Error> {
        let table = Table::any(text, table, span);
        match table.unknown(known).next() {
            Some(error) => Err(error),
            None => Ok(table),
        }
    }

    /// A table, whatever its keys are.
    pub(super) fn any(text: &'a str, table: &'a DeTable<'i>, span: Range<usize>) -> Self {
        Table {
            text,
            table,
            line: line_of(text, span),
        }
    }

    /// The keys that nobody knows, as mistakes.
    pub(super) fn unknown(
        &self,
        known: &'static [&'static str],
    ) -> impl Iterator<Item = Error> + use<'a, 'i> {
        let text = self.text;
        self.table.keys().filter_map(move |key| {
            let name: &str = key.get_ref();
            let problem = Problem::UnknownKey {
                key: name.to_string(),
                known,
            };
            let line = Some(line_of(text, key.span()));
            (!known.contains(&name)).then_some((line, problem))
        })
    }

    /// The table that is the value of a key.
    fn of(
        text: &'a str,
        key: &'static str,
        value: &'a Spanned<DeValue<'i>>,
        known: &'static [&'static str],
    ) -> Result<Self, Error> {
        let takes = "a table, as in { blocks = 8, size = 64 }";
        let wrong = || {
            (
                Some(line_of(text, value.span())),
                Problem::Value { key, takes },
            )
        };
        let table = value.get_ref().as_table().ok_or_else(wrong)?;
        Table::new(text, table, value.span(), known)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    pub(super) fn value(&self, key: &str) -> Option<&'a Spanned<DeValue<'i>>> {
        self.table.get(key)
    }

    /// The value of a key, if it stands there.
    pub(super) fn get<T>(
        &self,
        key: &'static str,
        takes: &'static str,
        read: impl FnOnce(&DeValue<'i>) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        let line = line_of(self.text, value.span());
        let wrong = (Some(line), Problem::Value { key, takes });
        read(value.get_ref()).map(Some).ok_or(wrong)
    }

    /// The value of a key that must be there.
    pub(super) fn need<T>(
        &self,
        key: &'static str,
        takes: &'static str,
        read: impl FnOnce(&DeValue<'i>) -> Option<T>,
    ) -> Result<T, Error> {
        let missing = (Some(self.line), Problem::MissingKey(key));
        self.get(key, takes, read)?.ok_or(missing)
    }

    /// The values of a key that is an array; none where it is not there.
    pub(super) fn tables(
        &self,
        key: &'static str,
        takes: &'static str,
    ) -> Result<impl Iterator<Item = &'a Spanned<DeValue<'i>>>, Error> {
        let array = match self.value(key) {
            None => None,
            Some(value) => {
                let line = line_of(self.text, value.span());
                let wrong = (Some(line), Problem::Value { key, takes });
                Some(value.get_ref().as_array().ok_or(wrong)?)
            }
        };
        Ok(array.into_iter().flatten())
    }
}

/// The line of a place, from 1 on.
pub(super) fn line_of(text: &str, span: Range<usize>) -> usize {
    let before = text.as_bytes().get(..span.start).unwrap_or_default();
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}
