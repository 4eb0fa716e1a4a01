//! What is watched as plain lines, each of which says what it is about, and as JSON.

use serde_json::{Value, json};

use super::figures::{presence, rate, short};
use super::model::{Device, MethodLoad, Model, Network, Presence, SHARES};
use crate::device::info::span;
use crate::device::times::Bound;
use crate::output::{counted, thousands};

/// One look: a line for each device, method, channel and topic.
pub fn text(model: &Model) -> String {
    let mut lines = Vec::new();
    for device in &model.devices {
        lines.push(device_line(device));
        let at = &device.endpoint;
        for method in device.methods() {
            let [p50, p90, p99] = method.times.map(bound);
            lines.push(format!(
                "method {at} {}: {} calls/s, {} errors/s, p50 {p50}, p90 {p90}, p99 {p99}, in {} B/s, out {} B/s, \
                 {}, {}",
                method.name,
                rate(method.calls_per_s),
                rate(method.errors_per_s),
                rate(method.in_per_s),
                rate(method.out_per_s),
                counted(method.calls, "call", "calls"),
                counted(method.errors, "error", "errors"),
            ));
        }
        for channel in &device.channels {
            lines.push(format!(
                "channel {at} {} from side {}: {} queued, {} held of {} blocks, {} packets/s, {} full",
                channel.name,
                channel.from,
                channel.queued,
                channel.held,
                channel.blocks,
                channel.per_second.map_or("-".into(), short),
                thousands(channel.full.into()),
            ));
        }
        if let Some(why) = &device.blind {
            lines.push(format!("channels {at}: {why}"));
        }
    }
    for network in &model.networks {
        lines.push(format!(
            "topics {}: {}",
            network.endpoint,
            presence(&network.presence)
        ));
        for topic in network.topics() {
            lines.push(format!(
                "topic {} {}: {} samples/s, {} B/s, {}",
                network.endpoint,
                topic.key,
                rate(topic.samples_per_s),
                rate(topic.bytes_per_s),
                counted(topic.samples, "sample", "samples"),
            ));
        }
    }
    lines.join("\n")
}

fn device_line(device: &Device) -> String {
    let at = &device.endpoint;
    if device.presence != Presence::Here {
        return format!("device {at}: {}", presence(&device.presence));
    }
    let load = device.load();
    let name = device.state().map_or("", |state| &state.about.name);
    format!(
        "device {at}: {name}, up {}, {} calls/s, {} errors/s, in {} B/s, out {} B/s, {} drops/s, {}",
        span(load.uptime),
        rate(load.calls_per_s),
        rate(load.errors_per_s),
        rate(load.in_per_s),
        rate(load.out_per_s),
        rate(load.drops_per_s),
        counted(load.drops, "drop", "drops"),
    )
}

pub fn bound(bound: Option<Bound>) -> String {
    bound.map_or("-".into(), |bound| bound.to_string())
}

/// One look, `at` so many seconds after the first.
pub fn json(model: &Model, at: f64) -> Value {
    let devices: Vec<Value> = model.devices.iter().map(device_json).collect();
    let networks: Vec<Value> = model.networks.iter().map(network_json).collect();
    json!({ "at_s": at, "devices": devices, "networks": networks })
}

/// `null`, or why it is not there.
fn away(presence: &Presence) -> Value {
    match presence {
        Presence::Here => Value::Null,
        Presence::Awaited => "opening".into(),
        Presence::Away(why) => why.as_str().into(),
    }
}

fn device_json(device: &Device) -> Value {
    let load = device.load();
    let about = device.state().map(|state| &state.about);
    let method = |method: MethodLoad| {
        let mut value = json!({
            "name": method.name,
            "calls": method.calls,
            "errors": method.errors,
            "calls_per_s": method.calls_per_s,
            "errors_per_s": method.errors_per_s,
            "bytes_in_per_s": method.in_per_s,
            "bytes_out_per_s": method.out_per_s,
        });
        for (share, bound) in SHARES.into_iter().zip(method.times) {
            let name = format!("p{}_below_us", (share * 100.0).round());
            value[name] = json!(bound.and_then(Bound::micros));
        }
        value
    };
    let channels: Vec<Value> = device
        .channels
        .iter()
        .map(|channel| {
            json!({
                "name": channel.name,
                "from": channel.from,
                "blocks": channel.blocks,
                "queued": channel.queued,
                "held": channel.held,
                "full": channel.full,
                "packets_per_s": channel.per_second,
            })
        })
        .collect();
    json!({
        "endpoint": device.endpoint,
        "away": away(&device.presence),
        "returns": device.returns,
        "name": about.map(|about| &about.name),
        "version": about.map(|about| &about.version),
        "build": about.map(|about| &about.build),
        "uptime_s": device.state().map(|state| state.uptime.as_secs_f64()),
        "calls_per_s": load.calls_per_s,
        "errors_per_s": load.errors_per_s,
        "bytes_in_per_s": load.in_per_s,
        "bytes_out_per_s": load.out_per_s,
        "drops_per_s": load.drops_per_s,
        "drops": load.drops,
        "links": load.links,
        "methods": device.methods().into_iter().map(method).collect::<Vec<_>>(),
        "channels": channels,
        "channels_away": device.blind,
    })
}

fn network_json(network: &Network) -> Value {
    let topics = network.topics().into_iter().map(|topic| {
        json!({
            "key": topic.key,
            "samples": topic.samples,
            "bytes": topic.bytes,
            "samples_per_s": topic.samples_per_s,
            "bytes_per_s": topic.bytes_per_s,
        })
    });
    json!({
        "endpoint": network.endpoint,
        "away": away(&network.presence),
        "topics": topics.collect::<Vec<_>>(),
    })
}
