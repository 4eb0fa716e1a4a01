//! What is watched as one screen, of whatever size.
//!
//! Each kind of thing has a section of its own, with a line of titles. Where there is too little width, columns on the
//! right go first; where there is too little height, the longest section loses its last rows.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Row, Table};

use super::figures::{bar, place, presence, rate, short, shortened};
use super::lines::bound;
use super::model::{Channel, Device, MethodLoad, Model, Presence};
use crate::device::info::span;
use crate::output::counted;

/// How it looks.
#[derive(Clone, Copy)]
pub struct Look {
    pub has_colour: bool,
    pub every: Duration,
}

/// Cells of a bar.
const BAR: usize = 10;
/// The least cells that a name has before a column goes.
const NAME: u16 = 16;

/// Rows with the same columns, the first of which is a name and takes what the others leave.
struct Section {
    titles: Vec<&'static str>,
    /// Of the columns behind the first.
    widths: Vec<u16>,
    rows: Vec<(Vec<String>, Tone)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Tone {
    Plain,
    /// There is nothing to be seen at the moment.
    Quiet,
    /// It wants to be looked at.
    Loud,
}

pub fn draw(frame: &mut Frame<'_>, model: &Model, look: Look) {
    let area = frame.area();
    let mut sections = sections(model);
    let height = usize::from(area.height).saturating_sub(1);
    fit(&mut sections, height);
    let mut top = area.y;
    let mut put = |lines: usize| -> Option<Rect> {
        let left = area.bottom().saturating_sub(top);
        let height = (lines as u16).min(left);
        let place = Rect::new(area.x, top, area.width, height);
        top += height;
        (height > 0).then_some(place)
    };
    if let Some(place) = put(1) {
        frame.render_widget(headline(model, look, area.width), place);
    }
    let is_close = sections.iter().map(Section::height).sum::<usize>() + sections.len() > height;
    for section in sections {
        if !is_close {
            put(1);
        }
        if let Some(place) = put(section.height()) {
            frame.render_widget(section.table(area.width, look), place);
        }
    }
}

fn headline(model: &Model, look: Look, width: u16) -> Line<'static> {
    let is_here = |presence: &Presence| *presence == Presence::Here;
    let here = model
        .devices
        .iter()
        .filter(|device| is_here(&device.presence))
        .count();
    let mut words = vec![match (here, model.devices.len()) {
        (_, 0) => "no devices".into(),
        (here, all) if here == all => counted(all as u64, "device", "devices"),
        (here, all) => format!("{here} of {}", counted(all as u64, "device", "devices")),
    }];
    if !model.networks.is_empty() {
        words.push(counted(model.networks.len() as u64, "network", "networks"));
    }
    words.push(format!("every {}", humantime::format_duration(look.every)));
    let left = format!("sinew top · {}", words.join(" · "));
    let right = "q ends";
    let room = usize::from(width).saturating_sub(left.chars().count() + right.len());
    let end = match room {
        0 => String::new(),
        room => " ".repeat(room) + right,
    };
    Line::from(vec![
        Span::styled(left, Style::new().add_modifier(Modifier::BOLD)),
        Span::styled(end, Style::new().add_modifier(Modifier::DIM)),
    ])
}

fn sections(model: &Model) -> Vec<Section> {
    let mut sections = Vec::new();
    if !model.devices.is_empty() {
        sections.push(devices(model));
        sections.push(methods(model));
    }
    if !model.networks.is_empty() {
        sections.push(topics(model));
    }
    if model
        .devices
        .iter()
        .any(|device| !device.channels.is_empty() || device.blind.is_some())
    {
        sections.push(channels(model));
    }
    sections
}

/// With a number, where there are several.
fn of(model: &Model, index: usize, name: &str) -> String {
    match model.devices.len() {
        1 => name.into(),
        _ => format!("{} {name}", index + 1),
    }
}

fn devices(model: &Model) -> Section {
    let row = |(index, device): (usize, &Device)| {
        let name = match device.state() {
            Some(state) if !state.about.name.is_empty() => {
                format!("{} {}", state.about.name, place(&device.endpoint))
            }
            _ => place(&device.endpoint),
        };
        let name = of(model, index, &name);
        let load = device.load();
        if let Presence::Away(why) = &device.presence {
            return (
                vec![format!(
                    "{}: {why}",
                    of(model, index, &place(&device.endpoint))
                )],
                Tone::Loud,
            );
        }
        let figures = vec![
            name,
            match device.presence {
                Presence::Awaited => "opening".into(),
                _ => span(load.uptime),
            },
            rate(load.calls_per_s),
            rate(load.errors_per_s),
            rate(load.in_per_s),
            rate(load.out_per_s),
            short(load.drops),
        ];
        let is_dropping = load.drops_per_s.is_some_and(|rate| rate > 0.0);
        (figures, if is_dropping { Tone::Loud } else { Tone::Plain })
    };
    Section {
        titles: vec![
            "device", "up", "calls/s", "err/s", "in B/s", "out B/s", "drops",
        ],
        widths: vec![11, 7, 7, 7, 7, 7],
        rows: model.devices.iter().enumerate().map(row).collect(),
    }
}

/// The busiest first.
fn methods(model: &Model) -> Section {
    let mut all: Vec<(usize, MethodLoad)> = Vec::new();
    for (index, device) in model.devices.iter().enumerate() {
        all.extend(device.methods().into_iter().map(|method| (index, method)));
    }
    let busy = |method: &MethodLoad| method.calls_per_s.unwrap_or(0.0);
    all.sort_by(|(_, a), (_, b)| busy(b).total_cmp(&busy(a)).then(b.calls.cmp(&a.calls)));
    let row = |(index, method): (usize, MethodLoad)| {
        let [p50, p90, p99] = method.times.map(bound);
        let sum = method.in_per_s.zip(method.out_per_s).map(|(a, b)| a + b);
        let tone = match (method.errors_per_s, method.calls_per_s) {
            (Some(errors), _) if errors > 0.0 => Tone::Loud,
            (_, None | Some(0.0)) => Tone::Quiet,
            _ => Tone::Plain,
        };
        let cells = vec![
            of(model, index, &method.name),
            rate(method.calls_per_s),
            rate(method.errors_per_s),
            p50,
            p90,
            p99,
            rate(sum),
        ];
        (cells, tone)
    };
    let mut section = Section {
        titles: vec!["method", "calls/s", "err/s", "p50", "p90", "p99", "B/s"],
        widths: vec![7, 7, 8, 8, 8, 7],
        rows: all.into_iter().map(row).collect(),
    };
    section.says("no calls yet");
    section
}

fn topics(model: &Model) -> Section {
    let mut rows = Vec::new();
    for network in &model.networks {
        if network.presence != Presence::Here {
            let why = presence(&network.presence);
            rows.push((
                vec![format!("{}: {why}", place(&network.endpoint))],
                Tone::Loud,
            ));
        }
        for topic in network.topics() {
            let tone = match topic.samples_per_s {
                Some(rate) if rate > 0.0 => Tone::Plain,
                _ => Tone::Quiet,
            };
            let cells = vec![
                topic.key,
                rate(topic.samples_per_s),
                rate(topic.bytes_per_s),
                short(topic.samples),
            ];
            rows.push((cells, tone));
        }
    }
    let mut section = Section {
        titles: vec!["topic", "samples/s", "B/s", "samples"],
        widths: vec![9, 7, 7],
        rows,
    };
    section.says("no samples yet");
    section
}

fn channels(model: &Model) -> Section {
    let mut rows = Vec::new();
    for (index, device) in model.devices.iter().enumerate() {
        if let Some(why) = &device.blind {
            rows.push((
                vec![of(
                    model,
                    index,
                    &format!("{}: {why}", place(&device.endpoint)),
                )],
                Tone::Loud,
            ));
        }
        for channel in &device.channels {
            let Channel {
                queued,
                held,
                blocks,
                ..
            } = *channel;
            let way = if channel.from == 1 { "1→2" } else { "2→1" };
            let tone = match (queued + held >= blocks, channel.per_second) {
                (true, _) => Tone::Loud,
                (_, Some(0) | None) if queued + held == 0 => Tone::Quiet,
                _ => Tone::Plain,
            };
            let cells = vec![
                of(model, index, &format!("{} {way}", channel.name)),
                bar(queued + held, blocks, BAR),
                format!("{queued}"),
                format!("{held}"),
                format!("{blocks}"),
                channel.per_second.map_or("-".into(), short),
                short(channel.full.into()),
            ];
            rows.push((cells, tone));
        }
    }
    Section {
        titles: vec![
            "channel",
            "fill",
            "queued",
            "held",
            "of",
            "packets/s",
            "full",
        ],
        widths: vec![BAR as u16, 6, 5, 5, 9, 7],
        rows,
    }
}

/// Has the longest sections lose rows until all have room.
fn fit(sections: &mut [Section], height: usize) {
    while sections.iter().map(Section::height).sum::<usize>() > height {
        let longest = sections.iter_mut().max_by_key(|section| section.rows.len());
        match longest {
            Some(section) if section.rows.len() > 1 => section.shorten(),
            _ => return, // what is below the screen is not seen
        }
    }
}

impl Section {
    fn height(&self) -> usize {
        1 + self.rows.len()
    }

    /// What an empty section says.
    fn says(&mut self, text: &str) {
        if self.rows.is_empty() {
            self.rows.push((vec![text.into()], Tone::Quiet));
        }
    }

    /// Loses its last row, and says how many it has lost.
    fn shorten(&mut self) {
        let lost = self
            .rows
            .pop()
            .map_or(0, |(cells, _)| more(&cells).unwrap_or(1));
        let lost = lost + self.rows.pop().map_or(0, |_| 1);
        self.rows
            .push((vec![format!("… and {lost} more")], Tone::Quiet));
    }

    fn table(self, width: u16, look: Look) -> Table<'static> {
        // A line of one cell is as wide as the screen.
        let mut columns = self.widths.len();
        let taken = |columns: usize| -> u16 {
            self.widths
                .iter()
                .take(columns)
                .map(|width| width + 1)
                .sum()
        };
        while columns > 0 && taken(columns) + NAME > width {
            columns -= 1;
        }
        let name = width.saturating_sub(taken(columns));
        let mut widths = vec![Constraint::Length(name)];
        widths.extend(
            self.widths
                .iter()
                .take(columns)
                .map(|width| Constraint::Length(*width)),
        );
        let cells = |texts: Vec<String>, names: &[&'static str]| {
            let cells = texts.into_iter().zip(names).take(columns + 1).enumerate();
            cells
                .map(|(at, (text, title))| match (at, *title) {
                    (0, _) => Cell::new(shortened(&text, name.into())),
                    (_, "fill") => Cell::new(text),
                    _ => Cell::new(Line::from(text).right_aligned()),
                })
                .collect::<Vec<_>>()
        };
        let titles: Vec<String> = self.titles.iter().map(|&title| title.into()).collect();
        let head = match look.has_colour {
            true => Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD),
            false => Style::new().add_modifier(Modifier::BOLD),
        };
        let header = Row::new(cells(titles, &self.titles)).style(head);
        let rows = self.rows.into_iter().map(|(texts, tone)| {
            let style = match tone {
                Tone::Plain => Style::new(),
                Tone::Quiet => Style::new().add_modifier(Modifier::DIM),
                Tone::Loud if look.has_colour => Style::new().fg(Color::Yellow),
                Tone::Loud => Style::new().add_modifier(Modifier::BOLD),
            };
            let row = match texts.len() {
                1 => Row::new(
                    texts
                        .into_iter()
                        .map(|text| Cell::new(text).column_span(columns as u16 + 1)),
                ),
                _ => Row::new(cells(texts, &self.titles)),
            };
            row.style(style)
        });
        Table::new(rows.collect::<Vec<_>>(), widths)
            .header(header)
            .column_spacing(1)
    }
}

/// How many rows a line of [`Section::shorten`] stands for.
fn more(cells: &[String]) -> Option<usize> {
    let [text] = cells else {
        return None;
    };
    text.strip_prefix("… and ")?
        .strip_suffix(" more")?
        .parse()
        .ok()
}
