//! From a configuration to text.

use core::fmt::Write;
use std::format;
use std::string::String;

use super::super::config::{Channel, Config, Kind, Pool, Trust};

pub(super) fn to_toml(config: &Config<'_>) -> String {
    let trust = match config.trust {
        Trust::None => "none",
        Trust::Mutual => "mutual",
    };
    let line = 1u32.checked_shl(config.line_log2.into()).unwrap_or(0);
    let mut text = format!("trust = \"{trust}\"\nline = {line}\n");
    for channel in config.channels {
        text.push_str("\n[[channel]]\n");
        // A string takes whatever is written.
        let _ = write_channel(&mut text, channel);
    }
    text
}

fn write_channel(text: &mut String, channel: &Channel) -> core::fmt::Result {
    writeln!(text, "id = {}", channel.id)?;
    text.push_str("name = \"");
    for letter in channel.name.as_str().chars() {
        match letter {
            '"' | '\\' => write!(text, "\\{letter}")?,
            control if control.is_control() => write!(text, "\\u{:04x}", u32::from(control))?,
            other => text.push(other),
        }
    }
    text.push_str("\"\n");
    match channel.kind {
        Kind::Queue => {}
        Kind::State => text.push_str("kind = \"state\"\n"),
        Kind::Lock => text.push_str("kind = \"lock\"\n"),
        Kind::Message => text.push_str("kind = \"message\"\n"),
    }
    writeln!(text, "priority = {}", channel.priority)?;
    if channel.kind == Kind::Message {
        let Channel {
            requests, calls, ..
        } = channel;
        writeln!(text, "requests = {requests}\ncalls = {calls}")?;
    }
    write_pools(text, channel)?;
    if let Some(number) = channel.semaphore.checked_sub(1) {
        writeln!(text, "semaphore = {number}")?;
    }
    if channel.replies {
        writeln!(text, "replies = true")?;
    }
    if channel.uuid != 0 {
        let uuid = channel.uuid;
        let group = |shift: u32, digits: u32| (uuid >> shift) & ((1 << (4 * digits)) - 1);
        writeln!(
            text,
            "uuid = \"{:08x}-{:04x}-{:04x}-{:04x}-{:012x}\"",
            group(96, 8),
            group(80, 4),
            group(64, 4),
            group(48, 4),
            group(0, 12)
        )?;
    }
    if channel.type_hash != 0 {
        writeln!(text, "type = {:#x}", channel.type_hash)?;
    }
    Ok(())
}

fn write_pools(text: &mut String, channel: &Channel) -> core::fmt::Result {
    let is_empty = channel.first == Pool::default() && channel.second == Pool::default();
    if channel.kind == Kind::Message && is_empty {
        return Ok(());
    }
    if channel.first == channel.second {
        let Pool { blocks, size } = channel.first;
        return writeln!(text, "blocks = {blocks}\nsize = {size}");
    }
    for (key, pool) in [("first", channel.first), ("second", channel.second)] {
        // Without blocks the size may be 0, which is none; leaving the pool out means the same.
        if pool != Pool::default() {
            let Pool { blocks, size } = pool;
            writeln!(text, "{key} = {{ blocks = {blocks}, size = {size} }}")?;
        }
    }
    Ok(())
}
