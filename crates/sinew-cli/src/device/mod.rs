//! What a device says of itself by `sinew.Device`: asked for as often as wanted, in bounded memory and time.
//!
//! Nothing that comes is trusted: counts are bounded, and texts have nothing in them that a terminal would act upon.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use prost_reflect::DescriptorPool;
use sinew::rpc::packet::HEADER_MAX;
use sinew::rpc::{CallError, Method, Status, id};
use sinew_io::client::Caller;
use sinew_io::{AnyLink, Client, Endpoint, Link as _};
use sinew_services::device::WORDS;
use sinew_services::{IndexRequest, InfoRequest, Values, ValuesRequest, device};

use crate::failure::Failure;
use crate::output::plain;
use crate::reflect::{self, Waits};
use crate::silence::{self, Patience};

pub mod info;
pub mod times;

/// More than any device has: what says that it has more is mistaken.
const MOST_COUNTERS: u32 = 4096;
const MOST_METHODS: u32 = 1024;
/// How long one answer may take, and all that belong together.
const ANSWER: Duration = Duration::from_secs(2);
const ALL: Duration = Duration::from_secs(10);
/// Tag and length of values.
const VALUES_HEAD: usize = 3 + 6;
/// Bytes of values that any device sends in one packet: one value.
const LEAST: usize = 10;

/// Why a device cannot be asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// It has no `sinew.Device`, or too old a one.
    Silent,
    /// A call ended.
    Call(CallError),
    /// What it says cannot be.
    Wrong(&'static str),
}

impl Trouble {
    /// In a few words.
    pub fn text(&self) -> String {
        match self {
            Trouble::Silent => "has no sinew.Device".into(),
            Trouble::Call(CallError::DeadlineExceeded) => "does not answer".into(),
            Trouble::Call(CallError::Closed) => "closed the link".into(),
            Trouble::Call(error) => error.to_string(),
            Trouble::Wrong(what) => (*what).into(),
        }
    }
}

impl From<CallError> for Trouble {
    fn from(error: CallError) -> Self {
        match error {
            // What a server of pw_rpc answers to what it does not have.
            CallError::Status(Status::NOT_FOUND | Status::UNIMPLEMENTED) => Trouble::Silent,
            error => Trouble::Call(error),
        }
    }
}

/// Who a device is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct About {
    pub name: String,
    pub version: String,
    pub build: String,
}

/// A counter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counter {
    pub group: String,
    pub name: String,
    pub value: u64,
}

/// What a method has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Observed {
    /// `package.Service/Method`, or ids where nobody says the names.
    pub name: String,
    pub calls: u64,
    pub errors: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// How often its handler took how long, as `sinew_services::device` counts.
    pub times: times::Counts,
}

/// All of it, at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    pub at: Instant,
    pub about: About,
    pub uptime: Duration,
    pub counters: Vec<Counter>,
    pub methods: Vec<Observed>,
}

/// A device that is asked again and again. What stays the same is asked for once.
pub struct Device {
    client: Client<AnyLink>,
    endpoint: Endpoint,
    /// Bytes of values in one answer.
    limit: usize,
    uptime: u64,
    about: Option<About>,
    counters: Vec<(String, String)>,
    methods: Vec<(u32, u32)>,
    names: Names,
}

type Asked<'c> = device::Client<Caller<'c, AnyLink, 16, 8192>>;

impl Device {
    pub fn new(link: AnyLink, endpoint: &Endpoint) -> Device {
        let client = Client::new(link, endpoint.channel);
        let mtu = client.with_link(|link| link.halves().0.mtu());
        Device {
            client,
            endpoint: endpoint.clone(),
            limit: mtu.saturating_sub(HEADER_MAX + VALUES_HEAD).max(LEAST),
            uptime: 0,
            about: None,
            counters: Vec::new(),
            methods: Vec::new(),
            names: Names::default(),
        }
    }

    /// Asks for everything.
    pub fn ask(&mut self) -> Result<State, Trouble> {
        let until = Instant::now() + ALL;
        let uptime = self.asked().info(&InfoRequest { field: UPTIME })?.uptime;
        if uptime < self.uptime {
            // It has started again, perhaps as another one.
            self.about = None;
            self.counters.clear();
            self.methods.clear();
        }
        self.uptime = uptime;
        let about = match self.about.take() {
            Some(about) => about,
            None => self.who()?,
        };
        self.about = Some(about.clone());
        let values = self.values(MOST_COUNTERS, until, |device, wanted| {
            device.counters(wanted)
        })?;
        let at = Instant::now();
        // New ones come behind the last. Where it is another one now, a device does not keep to that.
        if let Some(last) = self.counters.len().checked_sub(1)
            && values.len() != self.counters.len()
            && self.counter(last)? != self.counters[last]
        {
            self.counters.clear();
        }
        for index in self.counters.len()..values.len() {
            in_time(until)?;
            let names = self.counter(index)?;
            self.counters.push(names);
        }
        let named = self.counters.iter().zip(&values);
        let counters = named
            .map(|((group, name), &value)| Counter {
                group: group.clone(),
                name: name.clone(),
                value,
            })
            .collect();
        let most = MOST_METHODS * WORDS as u32;
        let words = self.values(most, until, |device, wanted| device.methods(wanted))?;
        let rows = words.as_chunks::<WORDS>().0;
        for index in self.methods.len()..rows.len() {
            in_time(until)?;
            let index = index as u32;
            let method = self.asked().method(&IndexRequest { index })?;
            self.methods.push((method.service, method.method));
        }
        let mut methods = Vec::new();
        for (&ids, row) in self.methods.iter().zip(rows) {
            let [calls, errors, bytes_in, bytes_out, times @ ..] = *row;
            methods.push(Observed {
                name: self.names.get(ids, &self.client, &self.endpoint),
                calls,
                errors,
                bytes_in,
                bytes_out,
                times,
            });
        }
        Ok(State {
            at,
            about,
            uptime: Duration::from_micros(uptime),
            counters,
            methods,
        })
    }

    /// Why nothing came, where that is the trouble.
    pub fn silence(&self, trouble: &Trouble) -> Option<Failure> {
        match trouble {
            Trouble::Call(error) => {
                let patience = Patience::Fixed(ANSWER);
                silence::explain(&self.client, &self.endpoint, patience, *error)
            }
            _ => None,
        }
    }

    fn asked(&self) -> Asked<'_> {
        device::Client(self.client.with_timeout(ANSWER))
    }

    /// The group and the name of a counter.
    fn counter(&self, index: usize) -> Result<(String, String), Trouble> {
        let number = index as u32;
        match self.asked().counter(&IndexRequest { index: number }) {
            Ok(counter) => Ok((plain(&counter.group), plain(&counter.name))),
            Err(error) if is_too_much(&error) => Ok(("?".into(), number.to_string())),
            // There are fewer than before.
            Err(CallError::Status(Status::OUT_OF_RANGE)) => Ok(Default::default()),
            Err(error) => Err(error.into()),
        }
    }

    /// Field by field where a packet does not hold them all.
    fn who(&mut self) -> Result<About, Trouble> {
        let mut asked = self.asked();
        let mut field = |field| asked.info(&InfoRequest { field });
        let texts = match field(0) {
            Ok(info) => [
                info.name.to_string(),
                info.version.to_string(),
                info.build.to_string(),
            ],
            Err(error) if is_too_much(&error) => {
                let mut alone =
                    |number, text: fn(sinew_services::Info) -> String| match field(number) {
                        Ok(info) => Ok(text(info)),
                        Err(error) if is_too_much(&error) => Ok("?".into()),
                        Err(error) => Err(error),
                    };
                [
                    alone(1, |info| info.name.to_string())?,
                    alone(2, |info| info.version.to_string())?,
                    alone(3, |info| info.build.to_string())?,
                ]
            }
            Err(error) => return Err(error.into()),
        };
        let [name, version, build] = texts.map(|text| plain(&text));
        Ok(About {
            name,
            version,
            build,
        })
    }

    /// A whole list of values.
    fn values(
        &mut self,
        most: u32,
        until: Instant,
        page: impl Fn(&mut Asked<'_>, &ValuesRequest) -> Result<Values, CallError>,
    ) -> Result<Vec<u64>, Trouble> {
        let mut values: Vec<u64> = Vec::new();
        loop {
            in_time(until)?;
            let wanted = ValuesRequest {
                from: values.len() as u32,
                limit: self.limit as u32,
            };
            let got = match page(&mut self.asked(), &wanted) {
                Ok(got) => got,
                // The device's packets are smaller than this side's.
                Err(error) if is_too_much(&error) && self.limit > LEAST => {
                    self.limit = (self.limit / 2).max(LEAST);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if got.count > most {
                return Err(Trouble::Wrong(
                    "says that it counts more than any device does",
                ));
            }
            values.extend_from_slice(&got.values);
            let count = got.count as usize;
            if values.len() > count || (values.len() < count && got.values.is_empty()) {
                return Err(Trouble::Wrong(
                    "says how much it counts in a way that cannot be",
                ));
            }
            if values.len() == count {
                return Ok(values);
            }
        }
    }
}

/// The number of Info's field.
const UPTIME: u32 = 4;

fn in_time(until: Instant) -> Result<(), Trouble> {
    match Instant::now() > until {
        true => Err(Trouble::Wrong("takes too long to say what it counts")),
        false => Ok(()),
    }
}

/// Whether an answer did not fit into a packet of the device.
fn is_too_much(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Status(Status::INTERNAL | Status::RESOURCE_EXHAUSTED)
    )
}

/// The names of methods.
#[derive(Default)]
struct Names {
    known: HashMap<(u32, u32), String>,
    /// The device was asked what it serves.
    was_asked: bool,
}

impl Names {
    /// Asks the device, once, where it is not known.
    fn get(&mut self, ids: (u32, u32), client: &Client<AnyLink>, endpoint: &Endpoint) -> String {
        if !self.known.contains_key(&ids) && !std::mem::replace(&mut self.was_asked, true) {
            self.learn(client, endpoint);
        }
        let unknown = || format!("{:08x}/{:08x}", ids.0, ids.1);
        self.known.get(&ids).cloned().unwrap_or_else(unknown)
    }

    fn learn(&mut self, client: &Client<AnyLink>, endpoint: &Endpoint) {
        for method in own() {
            let (service, method_name) = method.split_once('/').unwrap_or_default();
            self.known
                .insert((id(service), id(method_name)), method.into());
        }
        // One that does not say it is shown by its ids.
        let until = Instant::now() + ALL;
        if let Ok(pool) = reflect::read(client, endpoint, Waits::Screen { until }) {
            self.learn_from(&pool);
        }
    }

    fn learn_from(&mut self, pool: &DescriptorPool) {
        for service in pool.services() {
            for method in service.methods() {
                let ids = (id(service.full_name()), id(method.name()));
                let name = plain(&format!("{}/{}", service.full_name(), method.name()));
                self.known.insert(ids, name);
            }
        }
    }
}

/// Services of ours that a device without reflection may have.
fn own() -> [&'static str; 10] {
    use sinew_demo::{cache, kinds, pw::rpc::benchmark};
    use sinew_services::{log, reflection};
    [
        cache::method::SetValue::NAME,
        cache::method::GetValue::NAME,
        kinds::method::Double::NAME,
        kinds::method::Count::NAME,
        kinds::method::Sum::NAME,
        kinds::method::EchoAll::NAME,
        benchmark::method::UnaryEcho::NAME,
        log::method::Records::NAME,
        reflection::method::Describe::NAME,
        reflection::method::Read::NAME,
    ]
}
