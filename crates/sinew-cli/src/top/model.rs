//! What is watched, from one look to the next: rates, percentiles, and who is not there.
//!
//! It knows neither links nor screens: looks go in, rows come out. What it keeps is one look before and one now.

use std::time::{Duration, Instant};

use crate::device::times::{Bound, Counts, percentile};
use crate::device::{Counter, State};

/// News of something that is watched, by its number among those of its kind.
#[derive(Debug)]
pub enum News {
    /// A device was asked, or why it could not be.
    Device(usize, Result<State, String>),
    /// The channels of a device's memory were looked at, or why they could not be.
    Channels(usize, Result<Vec<Channel>, String>),
    /// What has come on each key so far, or why no session is open.
    Topics(usize, Instant, Vec<Topic>, Option<String>),
}

/// One direction of a channel over shared memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channel {
    /// Its name, with the number of its link where there are several.
    pub name: String,
    /// The side that sends: 1 or 2.
    pub from: u8,
    pub blocks: u32,
    /// Blocks, or messages, that wait for the receiver.
    pub queued: u32,
    /// Blocks that the receiver has.
    pub held: u32,
    /// How often there was no block.
    pub full: u32,
    /// Packets each second, rounded.
    pub per_second: Option<u64>,
}

/// What has come on a key since the beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topic {
    pub key: String,
    pub samples: u64,
    pub bytes: u64,
}

/// Everything that is watched.
#[derive(Debug)]
pub struct Model {
    pub devices: Vec<Device>,
    pub networks: Vec<Network>,
}

/// Whether something is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Presence {
    /// Nothing was heard yet.
    Awaited,
    Here,
    /// And why.
    Away(String),
}

/// One endpoint that is called.
#[derive(Debug)]
pub struct Device {
    pub endpoint: String,
    pub presence: Presence,
    /// How often it was seen to have started again, or to have come back.
    pub returns: u32,
    before: Option<State>,
    now: Option<State>,
    pub channels: Vec<Channel>,
    /// Why its channels cannot be seen, where it should have some.
    pub blind: Option<String>,
}

/// One session of Zenoh.
#[derive(Debug)]
pub struct Network {
    pub endpoint: String,
    pub presence: Presence,
    before: Option<(Instant, Vec<Topic>)>,
    now: Option<(Instant, Vec<Topic>)>,
}

/// What a device does, over its methods and links.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Load {
    pub calls_per_s: Option<f64>,
    pub errors_per_s: Option<f64>,
    pub in_per_s: Option<f64>,
    pub out_per_s: Option<f64>,
    pub drops_per_s: Option<f64>,
    /// All that was lost.
    pub drops: u64,
    /// Links that have been there.
    pub links: usize,
    pub uptime: Duration,
}

/// What a method does.
#[derive(Clone, PartialEq, Debug)]
pub struct MethodLoad {
    pub name: String,
    /// As the device counts them.
    pub calls: u64,
    pub errors: u64,
    pub calls_per_s: Option<f64>,
    pub errors_per_s: Option<f64>,
    pub in_per_s: Option<f64>,
    pub out_per_s: Option<f64>,
    /// Of the handlers that returned between the two looks; of all where there was one look.
    pub times: [Option<Bound>; 3],
}

/// The shares of [`MethodLoad::times`].
pub const SHARES: [f64; 3] = [0.5, 0.9, 0.99];

/// What comes on a key.
#[derive(Clone, PartialEq, Debug)]
pub struct TopicLoad {
    pub key: String,
    pub samples: u64,
    pub bytes: u64,
    pub samples_per_s: Option<f64>,
    pub bytes_per_s: Option<f64>,
}

impl Model {
    pub fn new(devices: &[String], networks: &[String]) -> Model {
        let devices = devices.iter().map(|endpoint| Device {
            endpoint: endpoint.clone(),
            presence: Presence::Awaited,
            returns: 0,
            before: None,
            now: None,
            channels: Vec::new(),
            blind: None,
        });
        let networks = networks.iter().map(|endpoint| Network {
            endpoint: endpoint.clone(),
            presence: Presence::Awaited,
            before: None,
            now: None,
        });
        Model {
            devices: devices.collect(),
            networks: networks.collect(),
        }
    }

    pub fn take(&mut self, news: News) {
        match news {
            News::Device(index, look) => {
                if let Some(device) = self.devices.get_mut(index) {
                    device.take(look);
                }
            }
            News::Channels(index, look) => {
                if let Some(device) = self.devices.get_mut(index) {
                    (device.channels, device.blind) = match look {
                        Ok(channels) => (channels, None),
                        Err(why) => (Vec::new(), Some(why)),
                    };
                }
            }
            News::Topics(index, at, topics, away) => {
                if let Some(network) = self.networks.get_mut(index) {
                    network.presence = away.map_or(Presence::Here, Presence::Away);
                    network.before = network.now.replace((at, topics));
                }
            }
        }
    }
}

impl Device {
    fn take(&mut self, look: Result<State, String>) {
        match look {
            Ok(state) => {
                let has_restarted = self
                    .now
                    .as_ref()
                    .is_some_and(|now| state.uptime < now.uptime);
                let was_away = matches!(self.presence, Presence::Away(_)) && self.now.is_some();
                self.returns += u32::from(has_restarted || was_away);
                let before = self.now.replace(state);
                // What was counted before is of another run.
                self.before = before.filter(|_| !has_restarted);
                self.presence = Presence::Here;
            }
            Err(why) => {
                self.presence = Presence::Away(why);
                self.before = None;
            }
        }
    }

    fn is_here(&self) -> bool {
        self.presence == Presence::Here
    }

    /// The last look.
    pub fn state(&self) -> Option<&State> {
        self.now.as_ref()
    }

    /// Seconds between the two looks.
    fn span(&self) -> Option<f64> {
        let (before, now) = (self.before.as_ref()?, self.now.as_ref()?);
        let span = now.at.saturating_duration_since(before.at).as_secs_f64();
        (span > 0.0).then_some(span)
    }

    pub fn load(&self) -> Load {
        let Some(now) = &self.now else {
            return Load::default();
        };
        // Not known where it counts no such thing.
        let of = |is_it: fn(&Counter) -> bool| -> Option<f64> {
            let (before, span) = (self.before.as_ref()?, self.span()?);
            let all = now.counters.iter().enumerate().filter(|(_, it)| is_it(it));
            let counted = all.map(|(at, counter)| {
                let is_it = |old: &&Counter| old.group == counter.group && old.name == counter.name;
                let old = before.counters.get(at).filter(is_it);
                let old = old.or_else(|| before.counters.iter().find(is_it));
                since(old.map_or(0, |old| old.value), counter.value)
            });
            let counted = counted.reduce(u64::saturating_add)?;
            Some(counted as f64 / span)
        };
        let methods = self.methods();
        let sum = |per_s: fn(&MethodLoad) -> Option<f64>| -> Option<f64> {
            self.span()?;
            // The sum of nothing is -0.
            Some(
                methods
                    .iter()
                    .filter_map(per_s)
                    .fold(0.0, |sum, it| sum + it),
            )
        };
        let drops = now.counters.iter().filter(|counter| is_drop(counter));
        let mut links: Vec<&str> = now
            .counters
            .iter()
            .filter(|it| is_link(it))
            .map(|it| &*it.group)
            .collect();
        links.dedup();
        Load {
            calls_per_s: sum(|method| method.calls_per_s),
            errors_per_s: sum(|method| method.errors_per_s),
            in_per_s: of(|counter| is_link(counter) && counter.name == "bytes_in"),
            out_per_s: of(|counter| is_link(counter) && counter.name == "bytes_out"),
            drops_per_s: of(is_drop),
            drops: drops.fold(0, |sum, counter| sum.saturating_add(counter.value)),
            links: links.len(),
            uptime: now.uptime,
        }
    }

    /// In the order in which the device has them.
    pub fn methods(&self) -> Vec<MethodLoad> {
        let Some(now) = &self.now else {
            return Vec::new();
        };
        let span = self.span().filter(|_| self.is_here());
        let methods = now.methods.iter().enumerate().map(|(at, method)| {
            let old = self
                .before
                .as_ref()
                .and_then(|before| before.methods.get(at));
            let more = |old: Option<u64>, now| since(old.unwrap_or(0), now);
            let rate = |more: u64| Some(more as f64 / span?);
            let times: Counts = match (old, span) {
                (_, None) => method.times,
                (old, Some(_)) => {
                    std::array::from_fn(|at| more(old.map(|old| old.times[at]), method.times[at]))
                }
            };
            MethodLoad {
                name: method.name.clone(),
                calls: method.calls,
                errors: method.errors,
                calls_per_s: rate(more(old.map(|old| old.calls), method.calls)),
                errors_per_s: rate(more(old.map(|old| old.errors), method.errors)),
                in_per_s: rate(more(old.map(|old| old.bytes_in), method.bytes_in)),
                out_per_s: rate(more(old.map(|old| old.bytes_out), method.bytes_out)),
                times: SHARES.map(|share| percentile(&times, share)),
            }
        });
        methods.collect()
    }
}

impl Network {
    /// Those on which most has come first.
    pub fn topics(&self) -> Vec<TopicLoad> {
        let Some((at, topics)) = &self.now else {
            return Vec::new();
        };
        let mut loads: Vec<TopicLoad> = topics
            .iter()
            .map(|topic| {
                let rate = |count: fn(&Topic) -> u64| {
                    let (since, before) = self.before.as_ref()?;
                    let old = before
                        .iter()
                        .find(|old| old.key == topic.key)
                        .map_or(0, count);
                    let span = at.saturating_duration_since(*since).as_secs_f64();
                    (span > 0.0).then(|| count(topic).saturating_sub(old) as f64 / span)
                };
                TopicLoad {
                    key: topic.key.clone(),
                    samples: topic.samples,
                    bytes: topic.bytes,
                    samples_per_s: rate(|topic| topic.samples),
                    bytes_per_s: rate(|topic| topic.bytes),
                }
            })
            .collect();
        loads.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.key.cmp(&b.key)));
        loads
    }
}

/// What was counted between two looks, by a counter that wraps at 32 bits or at 64.
fn since(before: u64, now: u64) -> u64 {
    let more = now.wrapping_sub(before);
    match now < before && before <= u32::MAX.into() {
        true => u64::from(more as u32),
        false => more,
    }
}

fn is_link(counter: &Counter) -> bool {
    counter.group.starts_with("link ")
}

/// Whether it counts what was lost, by the words of `sinew.Device`.
fn is_drop(counter: &Counter) -> bool {
    let name = counter.name.as_str();
    match counter.group.as_str() {
        "server" => name != "cancelled",
        _ => {
            matches!(name, "dropped" | "lost")
                || name.starts_with("bad_")
                || name.starts_with("too_")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{About, Observed};

    fn state(at: Instant, uptime: u64, calls: u64, fast: u64) -> State {
        let mut times = [0; sinew_services::device::BUCKETS];
        times[1] = fast;
        times[8] = calls - fast;
        let counter = |group: &str, name: &str, value| Counter {
            group: group.into(),
            name: name.into(),
            value,
        };
        State {
            at,
            about: About::default(),
            uptime: Duration::from_secs(uptime),
            counters: vec![
                counter("server", "malformed", calls / 10),
                counter("server", "cancelled", 99),
                counter("link 0", "bytes_in", calls * 40),
                counter("link 0", "bytes_out", calls * 30),
            ],
            methods: vec![Observed {
                name: "a.B/C".into(),
                calls,
                errors: 2,
                bytes_in: 10 * calls,
                bytes_out: 20 * calls,
                times,
            }],
        }
    }

    fn model() -> (Model, Instant) {
        (Model::new(&["tcp:a:1".into()], &[]), Instant::now())
    }

    #[test]
    fn rates_are_between_two_looks() {
        let (mut model, start) = model();
        model.take(News::Device(0, Ok(state(start, 5, 100, 100))));
        let first = &model.devices[0].methods()[0];
        assert_eq!((first.calls, first.calls_per_s), (100, None));
        assert_eq!(first.times[0], Some(Bound::Below(2)));
        let later = start + Duration::from_secs(2);
        model.take(News::Device(0, Ok(state(later, 7, 300, 200))));
        let second = &model.devices[0].methods()[0];
        assert_eq!(second.calls_per_s, Some(100.0));
        assert_eq!(second.errors_per_s, Some(0.0));
        assert_eq!(
            (second.in_per_s, second.out_per_s),
            (Some(1_000.0), Some(2_000.0))
        );
        // Of the 200 between them, 100 took one time and 100 the other.
        assert_eq!(
            second.times,
            [2, 256, 256].map(|micros| Some(Bound::Below(micros)))
        );
        let load = model.devices[0].load();
        assert_eq!(load.calls_per_s, Some(100.0));
        assert_eq!(
            (load.in_per_s, load.out_per_s),
            (Some(4_000.0), Some(3_000.0))
        );
        assert_eq!((load.drops, load.drops_per_s), (30, Some(10.0)));
        assert_eq!(load.links, 1);
    }

    #[test]
    fn device_that_starts_again_begins_anew() {
        let (mut model, start) = model();
        model.take(News::Device(0, Ok(state(start, 50, 100, 100))));
        let later = start + Duration::from_secs(1);
        model.take(News::Device(0, Ok(state(later, 1, 7, 0))));
        let method = &model.devices[0].methods()[0];
        assert_eq!((method.calls, method.calls_per_s), (7, None));
        assert_eq!(model.devices[0].returns, 1);
    }

    #[test]
    fn device_that_is_away_keeps_what_it_said_and_has_no_rates() {
        let (mut model, start) = model();
        model.take(News::Device(0, Ok(state(start, 5, 100, 100))));
        model.take(News::Device(
            0,
            Ok(state(start + Duration::from_secs(1), 6, 200, 200)),
        ));
        model.take(News::Device(0, Err("no server listens there".into())));
        let device = &model.devices[0];
        assert_eq!(
            device.presence,
            Presence::Away("no server listens there".into())
        );
        assert_eq!(device.methods()[0].calls_per_s, None);
        assert_eq!(device.methods()[0].calls, 200);
        assert_eq!(device.load().calls_per_s, None);
        model.take(News::Device(
            0,
            Ok(state(start + Duration::from_secs(9), 14, 300, 300)),
        ));
        assert_eq!(model.devices[0].presence, Presence::Here);
        assert_eq!(model.devices[0].returns, 1);
    }

    #[test]
    fn what_is_lost_is_known_by_its_name() {
        let is_drop = |group: &str, name: &str| {
            super::is_drop(&Counter {
                group: group.into(),
                name: name.into(),
                value: 1,
            })
        };
        for name in ["malformed", "unknown_method", "exhausted", "dropped"] {
            assert!(is_drop("server", name), "{name}");
        }
        for name in ["dropped", "lost", "bad_crc", "too_large"] {
            assert!(is_drop("link 0", name) && is_drop("log", name), "{name}");
        }
        for name in [
            "bytes_in",
            "packets_out",
            "rung",
            "pairings",
            "cancelled",
            "full",
        ] {
            assert!(!is_drop("link 0", name), "{name}");
        }
        assert!(!is_drop("server", "cancelled"));
    }

    #[test]
    fn counters_that_wrap_go_on() {
        assert_eq!(since(u32::MAX.into(), 4), 5);
        assert_eq!(since(u64::MAX, 4), 5);
        assert_eq!(since(7, 9), 2);
        assert_eq!(since(1 << 40, (1 << 40) + 3), 3);
    }

    #[test]
    fn topics_have_rates_and_the_busiest_comes_first() {
        let mut model = Model::new(&[], &["tcp:a:1".into()]);
        let start = Instant::now();
        let topic = |key: &str, samples| Topic {
            key: key.into(),
            samples,
            bytes: samples * 8,
        };
        model.take(News::Topics(0, start, vec![topic("a", 4)], None));
        let later = start + Duration::from_secs(2);
        let topics = vec![topic("a", 6), topic("b", 10)];
        model.take(News::Topics(0, later, topics, Some("gone".into())));
        let loads = model.networks[0].topics();
        assert_eq!(loads[0].key, "b");
        assert_eq!(
            (loads[0].samples_per_s, loads[0].bytes_per_s),
            (Some(5.0), Some(40.0))
        );
        assert_eq!(loads[1].samples_per_s, Some(1.0));
        assert_eq!(model.networks[0].presence, Presence::Away("gone".into()));
    }
}
