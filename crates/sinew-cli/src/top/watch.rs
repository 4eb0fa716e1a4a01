//! Looks at what is watched, each thing in a thread of its own, so that one which does not answer holds nothing up.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sinew::pubsub::codec::WhatAmI;
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::rpc::CallError;
use sinew_io::endpoint::Carrier;
use sinew_io::pubsub::{Node, Options, Subscriber};
use sinew_io::{Address, AnyLink, ConnectError, Endpoint, pubsub, qemu};
use sinew_shm::domain::Kind;
use sinew_shm::domain::observe::Link;

use super::model::{Channel, News, Topic};
use crate::connection::explain;
use crate::device::{Device, Trouble};
use crate::failure::Failure;
use crate::output::plain;
use crate::shm::place::Place;
use crate::shm::report::{self, ROLES, Report};
use crate::shm::source;

/// Keys that are told apart, and how much of each is kept. What comes on others is counted together.
const MOST_KEYS: usize = 256;
const LONGEST_KEY: usize = 128;
/// Channels that are shown of one device.
const MOST_CHANNELS: usize = 256;
/// What is counted on other keys.
const OTHERS: &str = "(other keys)";

/// Where the memory of a device lies, as long as it is there.
type Memory = Arc<Mutex<Option<(Place, Option<OwnedFd>)>>>;

/// Starts to watch a device. The threads end with the process, or when nobody hears them any more.
pub fn device(
    index: usize,
    endpoint: &Endpoint,
    every: Duration,
    tell: &Sender<News>,
) -> Vec<JoinHandle<()>> {
    let memory: Memory = Arc::default();
    let mut threads = Vec::new();
    if is_shared(endpoint) {
        let (memory, tell) = (memory.clone(), tell.clone());
        threads.push(thread::spawn(move || {
            let mut before = Vec::new();
            loop {
                let seen = channels(&memory, &mut before);
                if seen.is_some_and(|seen| tell.send(News::Channels(index, seen)).is_err()) {
                    return;
                }
                thread::sleep(every);
            }
        }));
    }
    let (endpoint, tell) = (endpoint.clone(), tell.clone());
    threads.push(thread::spawn(move || {
        let mut device = None;
        loop {
            let look = look(&mut device, &endpoint, &memory);
            if tell.send(News::Device(index, look)).is_err() {
                return;
            }
            thread::sleep(every);
        }
    }));
    threads
}

/// Whether memory is shared with it that can be looked at.
fn is_shared(endpoint: &Endpoint) -> bool {
    match &endpoint.address {
        Address::Shm(_) => true,
        Address::Qemu(emulated) => {
            matches!(qemu::look(emulated), Ok((_, Carrier::Shm)))
        }
        _ => false,
    }
}

/// Asks the device, over a link that is opened where there is none.
fn look(
    device: &mut Option<Device>,
    endpoint: &Endpoint,
    memory: &Memory,
) -> Result<crate::device::State, String> {
    let asked = match device {
        Some(device) => device,
        None => {
            let link = open(endpoint, memory).map_err(|error| explain(endpoint, &error).0)?;
            device.insert(Device::new(link, endpoint))
        }
    };
    asked.ask().map_err(|trouble| {
        if trouble == Trouble::Call(CallError::Closed) {
            *device = None;
        }
        trouble.text()
    })
}

/// Opens the link, and notes where its memory lies.
fn open(endpoint: &Endpoint, memory: &Memory) -> Result<AnyLink, ConnectError> {
    let note = |place, file| {
        *memory.lock().unwrap_or_else(PoisonError::into_inner) = Some((place, file));
    };
    let place = |path: std::path::PathBuf, offset| Place {
        path,
        offset,
        image: None,
    };
    match &endpoint.address {
        Address::Shm(path) => {
            let offset = endpoint.doorbell.as_ref().map_or(0, |bell| bell.offset);
            // Before the link: what is in the memory is worth seeing also where nobody answers.
            note(place(path.clone(), offset), None);
            sinew_io::open(endpoint)
        }
        Address::Qemu(emulated) if is_shared(endpoint) => {
            let (link, file) = qemu::Shared::open(endpoint, emulated)?.into_parts();
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            note(place(path.into(), 0), Some(file));
            Ok(link)
        }
        _ => sinew_io::open(endpoint),
    }
}

/// Looks at the memory; `None` where nothing is known of it yet.
fn channels(memory: &Memory, before: &mut Vec<Report>) -> Option<Result<Vec<Channel>, String>> {
    // The file stays open while it is read.
    let memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
    let (place, _) = memory.as_ref()?;
    let found = match source::open(place, None) {
        Ok(found) => found,
        Err(Failure::NoConnection { cause, .. }) => return Some(Err(cause)),
        Err(failure) => return Some(Err(failure.to_string())),
    };
    let links = found.links.into_iter().enumerate();
    let reports: Vec<Report> = links
        .map(|(index, [first, second])| {
            let slot = found.slots.get(index).copied();
            Report::new(&Link::new(first, second), slot, before.get(index))
        })
        .collect();
    let mut rows = Vec::new();
    for (number, link) in reports.iter().enumerate() {
        for (index, channel) in link.channels.iter().enumerate() {
            let name = channel.any_side().map(report::name).unwrap_or_default();
            let name = match reports.len() {
                1 => name,
                _ => format!("{name} ({})", number + 1),
            };
            for (side, from) in [(0, 1), (1, 2)] {
                let fill = match channel.kind() {
                    Some(Kind::Queue) => channel.flow(ROLES[side]).map(|flow| {
                        let (queued, held) = (flow.queued.into(), flow.held.into());
                        (flow.blocks.into(), queued, held, flow.full)
                    }),
                    Some(Kind::Message) => channel
                        .messages(ROLES[side])
                        .map(|flow| (u32::from(flow.requests), u32::from(flow.waiting), 0, 0)),
                    _ => None,
                };
                let Some((blocks, queued, held, full)) = fill else {
                    continue;
                };
                rows.push(Channel {
                    name: name.clone(),
                    from,
                    blocks,
                    queued,
                    held,
                    full,
                    per_second: link.rate(index, side).map(|rate| rate.round() as u64),
                });
            }
        }
    }
    rows.truncate(MOST_CHANNELS);
    *before = reports;
    Some(Ok(rows))
}

/// A session of Zenoh that counts what comes on some keys. It comes back by itself.
pub struct Network {
    node: Node,
    endpoint: Endpoint,
    tally: Arc<Mutex<Tally>>,
    _subscribers: Vec<Subscriber>,
}

/// Samples and bytes of each key.
#[derive(Default)]
struct Tally {
    keys: HashMap<String, (u64, u64)>,
    others: (u64, u64),
}

impl Tally {
    fn count(&mut self, key: &str, bytes: usize) {
        let has_room = self.keys.len() < MOST_KEYS && key.len() <= LONGEST_KEY;
        let counts = match self.keys.get_mut(key) {
            Some(counts) => counts,
            None if has_room => self.keys.entry(key.into()).or_default(),
            None => &mut self.others,
        };
        counts.0 += 1;
        counts.1 += bytes as u64;
    }
}

impl Network {
    pub fn open(endpoint: &Endpoint, keys: &[String]) -> Result<Network, Failure> {
        let mut options = Options::client();
        if matches!(endpoint.address, Address::Qemu(_)) {
            options.whatami = WhatAmI::Peer; // an image asks for the session, as a peer
        }
        options.backoff.max = Duration::from_secs(1); // short enough for whoever looks on
        let node = pubsub::open(endpoint, options);
        let tally: Arc<Mutex<Tally>> = Arc::default();
        let mut subscribers = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            let (tally, before) = (
                tally.clone(),
                keys.iter().take(at).cloned().collect::<Vec<_>>(),
            );
            let subscriber =
                node.subscriber(key, move |sample: &sinew::pubsub::session::Sample<'_>| {
                    let key = KeyExpr::unchecked(sample.key);
                    if before
                        .iter()
                        .any(|before| KeyExpr::unchecked(before).intersects(key))
                    {
                        return; // counted already
                    }
                    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
                    tally.count(sample.key, sample.body.payload.len());
                });
            subscribers
                .push(subscriber.map_err(|error| Failure::internal("cannot subscribe", error))?);
        }
        Ok(Network {
            node,
            endpoint: endpoint.clone(),
            tally,
            _subscribers: subscribers,
        })
    }

    /// What has come so far.
    pub fn look(&self, index: usize) -> News {
        let away = match self.node.wait_open(Duration::ZERO) {
            Ok(_) => None,
            Err(_) => Some(self.why()),
        };
        let tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let topic = |(key, &(samples, bytes)): (&String, &(u64, u64))| Topic {
            key: plain(key),
            samples,
            bytes,
        };
        let mut topics: Vec<Topic> = tally.keys.iter().map(topic).collect();
        if tally.others.0 > 0 {
            topics.extend([topic((&OTHERS.to_owned(), &tally.others))]);
        }
        News::Topics(index, Instant::now(), topics, away)
    }

    fn why(&self) -> String {
        match self.node.status().trouble {
            Some(pubsub::Trouble::Link(error)) => explain(&self.endpoint, &error).0,
            Some(pubsub::Trouble::Session(closed)) => closed.to_string(),
            None => "no session yet".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_end_are_counted_together() {
        let mut tally = Tally::default();
        for number in 0..10_000 {
            tally.count(&format!("key/{number}"), 3);
        }
        tally.count(&"long".repeat(1_000), 7);
        tally.count("key/0", 1);
        assert_eq!(tally.keys.len(), MOST_KEYS);
        assert_eq!(tally.keys["key/0"], (2, 4));
        let others = 10_000 - MOST_KEYS as u64;
        assert_eq!(tally.others, (others + 1, 3 * others + 7));
    }
}
