//! The page of `sinew shm status`, at most 79 columns wide.

use std::fmt::Write;

use sinew_shm::domain::Kind;
use sinew_shm::domain::observe::{Channel, NoSide, Side};

use super::place::Place;
use super::report::{self, ROLES, Report};
use super::source::Slot;
use crate::output::thousands;

/// How a page looks.
#[derive(Clone, Copy)]
pub struct Style {
    pub has_colour: bool,
    /// There are looks before and after this one.
    pub is_watched: bool,
}

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

/// From the first side to the second, and back.
const WAYS: [&str; 2] = ["1→2", "2→1"];

/// Everything about all links at a place.
pub fn page(place: &Place, links: &[Report], more: u32, style: Style) -> String {
    let mut page = style.paint(&place.to_string(), BOLD) + "\n";
    if links.is_empty() {
        page += "no links\n";
    }
    let slots = links.iter().filter_map(|link| link.slot);
    if slots.clone().next().is_some() {
        let taken = slots.clone().filter(|slot| slot.is_taken[1] == Some(true));
        page += &format!("{} slots, {} taken\n", slots.count(), taken.count());
    }
    for (index, link) in links.iter().enumerate() {
        if let Some(slot) = link.slot {
            page += &format!("\n{}\n", style.paint(&slot_title(slot), BOLD));
        } else if links.len() > 1 {
            let title = format!("link {} of {}", index + 1, links.len() as u32 + more);
            page += &format!("\n{}\n", style.paint(&title, BOLD));
        }
        page += &one(link, style);
    }
    if more > 0 {
        page += &format!("\nand {more} links more\n");
    }
    page
}

fn slot_title(slot: Slot) -> String {
    let [first, second] = slot.is_taken.map(|is_taken| match is_taken {
        Some(true) => "a process",
        Some(false) => "no process",
        None => "unknown",
    });
    let number = slot.number;
    format!("slot {number} · first side: {first} · second side: {second}")
}

fn one(link: &Report, style: Style) -> String {
    let mut text = headline(link, style);
    text += &sides(link, style);
    let count = |kind| {
        let is_one = |channel: &&Channel| channel.kind() == Some(kind);
        link.channels.iter().filter(is_one).count()
    };
    let (states, locks) = (count(Kind::State), count(Kind::Lock));
    let messages = count(Kind::Message);
    if states + locks + messages < link.channels.len() {
        text += &blocks(link, style);
        text += &traffic(link, style);
    }
    if messages > 0 {
        text += &message_channels(link, style);
    }
    if states > 0 {
        text += &values(link, style);
    }
    if locks > 0 {
        text += &areas(link, style);
    }
    text += &notes(link, style);
    text
}

fn headline(link: &Report, style: Style) -> String {
    let (state, why) = link.verdict();
    let colour = match state {
        "up" => GREEN,
        "fault" | "refused" => RED,
        _ => YELLOW,
    };
    let mut parts = vec![style.paint(state, colour)];
    if let Some(side) = link.sides.iter().find_map(|side| side.as_ref().ok()) {
        let count = match side.channels {
            1 => "1 channel".into(),
            channels => format!("{channels} channels"),
        };
        parts.extend([
            count,
            format!("trust {}", report::trust(side.trust)),
            format!("configuration {:#010x}", side.hash),
            format!("layout {}.{}", side.version.0, side.version.1),
        ]);
    }
    let mut text = parts.join(" · ") + "\n";
    if let Some(why) = why {
        text += &why;
        text.push('\n');
    }
    text
}

fn sides(link: &Report, style: Style) -> String {
    let mut table = Table::new(
        &[
            "side",
            "state",
            "session",
            "acknowledged",
            "segment",
            "signs of life",
        ],
        &[-6, -10, 10, 12, 8, 18],
    );
    for (index, (side, name)) in link.sides.iter().zip(["first", "second"]).enumerate() {
        table.row(&match side {
            Ok(side) => side_cells(link, index, side, name),
            Err(error) => [name, absent(error), "", "", "", ""].map(String::from),
        });
    }
    table.text(style)
}

fn side_cells(link: &Report, index: usize, side: &Side, name: &str) -> [String; 6] {
    let life = match link.silence(index) {
        None => thousands(side.heartbeat.into()),
        Some(silence) if silence.is_zero() => "alive".into(),
        Some(silence) => format!("silent for {} s", silence.as_secs().max(1)),
    };
    [
        name.into(),
        report::state(side.state),
        side.session.to_string(),
        match side.acknowledged {
            0 => "nobody".into(),
            session => session.to_string(),
        },
        bytes(side.length.into()),
        life,
    ]
}

fn absent(error: &NoSide) -> &'static str {
    match error {
        NoSide::Absent => "absent",
        NoSide::Short => "missing",
        NoSide::Magic(_) | NoSide::ByteOrder | NoSide::Version(_) => "unreadable",
    }
}

fn blocks(link: &Report, style: Style) -> String {
    let mut table = Table::new(
        &[
            "channel", "id", "prio", "way", "blocks", "queued", "held", "free", "lent",
        ],
        &[-16, 5, 4, -3, 13, 6, 5, 5, 5],
    );
    for channel in &link.channels {
        let mut label = channel.any_side().map_or_else(Default::default, |side| {
            [
                report::name(side),
                side.id.to_string(),
                side.priority.to_string(),
            ]
        });
        for (role, way) in ROLES.into_iter().zip(WAYS) {
            let Some(flow) = channel.flow(role) else {
                continue;
            };
            let [name, id, priority] = std::mem::take(&mut label);
            table.row(&[
                name,
                id,
                priority,
                way.into(),
                format!("{} × {}", flow.blocks, bytes(flow.size.into())),
                flow.queued.to_string(),
                flow.held.to_string(),
                flow.free.to_string(),
                flow.lent.to_string(),
            ]);
        }
    }
    table.text(style)
}

fn traffic(link: &Report, style: Style) -> String {
    let mut table = match style.is_watched {
        true => Table::new(
            &[
                "channel",
                "way",
                "sent",
                "per s",
                "full",
                "filtered",
                "rung",
                "suppressed",
            ],
            &[-16, -3, 7, 7, 7, 8, 7, 10],
        ),
        false => Table::new(
            &[
                "channel",
                "way",
                "sent",
                "full",
                "filtered",
                "rung",
                "suppressed",
            ],
            &[-16, -3, 7, 7, 8, 7, 10],
        ),
    };
    for (index, channel) in link.channels.iter().enumerate() {
        let mut name = channel.any_side().map(report::name);
        for (side, role) in ROLES.into_iter().enumerate() {
            let (Some(flow), Some(from)) = (channel.flow(role), channel.side(role)) else {
                continue;
            };
            let mut cells = vec![
                name.take().unwrap_or_default(),
                WAYS[side].into(),
                count(flow.sent.into()),
            ];
            if style.is_watched {
                let rate = link.rate(index, side);
                cells.push(rate.map_or("-".into(), |rate| count(rate as u64)));
            }
            cells.extend([
                count(flow.full.into()),
                count(flow.filtered.into()),
                count(from.counts.rung.into()),
                count(from.counts.suppressed().into()),
            ]);
            table.row(&cells);
        }
    }
    table.text(style)
}

/// What may be under way on message channels, and what is.
fn message_channels(link: &Report, style: Style) -> String {
    let mut table = Table::new(
        &[
            "messages", "id", "prio", "way", "memory", "calls", "waiting", "sent",
        ],
        &[-16, 5, 4, -3, 14, 5, 11, 7],
    );
    for channel in &link.channels {
        let mut label = channel.any_side().map_or_else(Default::default, |side| {
            [
                report::name(side),
                side.id.to_string(),
                side.priority.to_string(),
            ]
        });
        for (role, way) in ROLES.into_iter().zip(WAYS) {
            let Some(flow) = channel.messages(role) else {
                continue;
            };
            let [name, id, priority] = std::mem::take(&mut label);
            let memory = match flow.memory.blocks {
                0 => "none".into(),
                blocks => format!("{blocks} × {}", bytes(flow.memory.size.into())),
            };
            table.row(&[
                name,
                id,
                priority,
                way.into(),
                memory,
                flow.calls.to_string(),
                format!("{} of {}", flow.waiting, flow.requests),
                count(flow.sent.into()),
            ]);
        }
    }
    table.text(style)
}

/// The values of state channels.
fn values(link: &Report, style: Style) -> String {
    let mut table = Table::new(
        &["state", "id", "side", "size", "version"],
        &[-16, 5, -6, 8, 10],
    );
    for channel in &link.channels {
        let mut label = channel.any_side().map_or_else(Default::default, |side| {
            [report::name(side), side.id.to_string()]
        });
        for (role, side) in ROLES.into_iter().zip(["first", "second"]) {
            let Some(value) = channel.value(role) else {
                continue;
            };
            let [name, id] = std::mem::take(&mut label);
            let version = value.version.map(|version| thousands(version.into()));
            table.row(&[
                name,
                id,
                side.into(),
                bytes(value.size.into()),
                version.unwrap_or("none".into()),
            ]);
        }
    }
    table.text(style)
}

/// The areas of lock channels.
fn areas(link: &Report, style: Style) -> String {
    let mut table = Table::new(
        &[
            "lock",
            "id",
            "size",
            "owner",
            "wanted by",
            "version",
            "area",
        ],
        &[-16, 5, 8, -6, -9, 10, -8],
    );
    for channel in &link.channels {
        let (Some(side), Some(lock)) = (channel.any_side(), channel.lock()) else {
            continue;
        };
        let version = lock.versions.into_iter().flatten().max();
        table.row(&[
            report::name(side),
            side.id.to_string(),
            bytes(lock.size.into()),
            report::owner(lock.owner).unwrap_or("nobody").into(),
            match lock.wanted {
                [true, true] => "both",
                [true, false] => "first",
                [false, true] => "second",
                [false, false] => "nobody",
            }
            .into(),
            version.map_or("none".into(), thousands),
            if lock.is_poisoned { "poisoned" } else { "good" }.into(),
        ]);
    }
    table.text(style)
}

/// What should not be there.
fn notes(link: &Report, style: Style) -> String {
    let mut text = String::new();
    for channel in &link.channels {
        let name = channel.any_side().map(report::name).unwrap_or_default();
        for note in notes_on(channel) {
            let note = style.paint(&format!("{name} (id {}) {note}", channel.id()), YELLOW);
            let _ = writeln!(text, "{note}");
        }
    }
    match text.is_empty() {
        true => text,
        false => format!("\n{text}"),
    }
}

fn notes_on(channel: &Channel) -> Vec<String> {
    let mut notes = Vec::new();
    for (role, side) in ROLES.into_iter().zip(["first", "second"]) {
        let way = WAYS[usize::from(side == "second")];
        if let Some(flow) = channel.flow(role) {
            if flow.too_large > 0 {
                let packets = thousands(flow.too_large.into());
                notes.push(format!("{way}: packets larger than a block: {packets}"));
            }
            if !flow.is_consistent {
                notes.push(format!(
                    "{way}: the counts contradict each other: look again"
                ));
            }
        }
        if let Some(flow) = channel.messages(role)
            && !flow.is_consistent
        {
            notes.push(format!(
                "{way}: the counts contradict each other: look again"
            ));
        }
        let violations = channel.side(role).map_or(0, |side| side.counts.violations);
        if violations > 0 {
            let times = thousands(violations.into());
            notes.push(format!(
                "protocol violations seen by the {side} side: {times}"
            ));
        }
    }
    notes
}

/// Columns that line up. A negative width is for text, which stands left.
struct Table<'a> {
    heads: &'a [&'a str],
    widths: &'a [i32],
    rows: Vec<String>,
}

impl<'a> Table<'a> {
    fn new(heads: &'a [&'a str], widths: &'a [i32]) -> Table<'a> {
        Table {
            heads,
            widths,
            rows: Vec::new(),
        }
    }

    fn row(&mut self, cells: &[String]) {
        let row = self.line(cells.iter().map(String::as_str));
        self.rows.push(row);
    }

    fn line<'b>(&self, cells: impl Iterator<Item = &'b str>) -> String {
        let cells = cells.zip(self.widths).map(|(cell, &width)| {
            let room = width.unsigned_abs() as usize;
            match width < 0 {
                true => format!("{cell:<room$}"),
                false => format!("{cell:>room$}"),
            }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        line.trim_end().to_string()
    }

    fn text(&self, style: Style) -> String {
        let widths = self
            .widths
            .iter()
            .map(|width| width.unsigned_abs() as usize);
        let width = widths.sum::<usize>() + 2 * (self.widths.len() - 1);
        let heads = self.line(self.heads.iter().copied());
        let mut text = format!(
            "\n{}\n{}\n",
            style.paint(&heads, BOLD),
            style.paint(&"─".repeat(width), DIM)
        );
        for row in &self.rows {
            text += row;
            text.push('\n');
        }
        text
    }
}

impl Style {
    fn paint(self, text: &str, style: &str) -> String {
        match self.has_colour {
            true => format!("\x1b[{style}m{text}\x1b[0m"),
            false => text.into(),
        }
    }
}

/// Exact up to a million, as block sizes are to be.
fn bytes(bytes: u64) -> String {
    let units = [(1 << 20, "MiB"), (1 << 10, "KiB")];
    let whole = units
        .into_iter()
        .find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit));
    match whole {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None if bytes < 1_000_000 => format!("{} B", thousands(bytes)),
        None => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    }
}

/// Seven characters at most.
fn count(number: u64) -> String {
    match number {
        0..1_000_000 => thousands(number),
        1_000_000..999_500_000 => format!("{:.1} M", number as f64 / 1e6),
        _ => format!("{:.2} G", number as f64 / 1e9),
    }
}
