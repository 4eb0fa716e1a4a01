//! `sinew.Device`: what a device is and how it fares.
//!
//! [`Observed`] stands around the services of a device: it serves `sinew.Device` beside them, and counts what their
//! methods do on the way. Nothing else has to know of it, and a device without it pays nothing.
//!
//! ```
//! use sinew::time::Instant;
//! use sinew_demo::{CacheService, KindsService, cache, kinds};
//! use sinew_services::device::{About, Observed};
//!
//! const ABOUT: About = About {
//!     name: "lamp",
//!     version: env!("CARGO_PKG_VERSION"),
//!     build: "release",
//! };
//! let services = (
//!     cache::Serve(CacheService::new()),
//!     kinds::Serve(KindsService::<4>::new()),
//! );
//! // Up to 8 methods; the clock gives the time since the start of the device.
//! let services = Observed::<_, 8>::new(ABOUT, || Instant::START, services);
//! # let _ = services;
//! ```
//!
//! | what | where it comes from |
//! |---|---|
//! | group `server` | the engine that handles the question ([`ServerStats`]) |
//! | group `observed` | calls of methods for which there was no room |
//! | other groups | [`Counters`], given by [`Observed::with_counters`]: links, queues, decoders of frames |
//! | methods | [`Observed`] itself, see there for what it sees |

use core::task::Waker;

use sinew::heapless::{String, Vec};
use sinew::rpc::{Call, Cx, Input, MethodKind, Responder, ServerStats, Service, Status, Stop};
use sinew::time::Instant;

use crate::made_device::sinew::device::SERVICE_ID;
use crate::{Counter, IndexRequest, Info, InfoRequest, ObservedMethod, Values, ValuesRequest};

mod methods;

pub use crate::made_device::SCHEMA;
pub use crate::made_device::sinew::device::{Client, Device, Reach, Serve, method};
use methods::Methods;
pub use methods::{BUCKETS, WORDS, bucket};

/// Who a device is. What exceeds the capacity in `device.options` is cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct About {
    /// What it is called, for people.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Which build of that version it is: a profile, a date, a commit.
    pub build: &'static str,
}

/// Takes in a counter: the group that it belongs to, its name there, and its value. `device.proto` says by which names
/// tools know what was lost.
pub type Show<'s> = dyn FnMut(&str, &str, u64) + 's;

/// What a device counts beside its engine and its methods. A closure is one as well.
pub trait Counters {
    /// Shows every counter. A counter keeps its position as long as the device runs: new ones come behind the last.
    ///
    /// A server of `sinew-io` is locked meanwhile, so this must not ask it for anything.
    fn each(&self, show: &mut Show<'_>);
}

/// None.
impl Counters for () {
    fn each(&self, _: &mut Show<'_>) {}
}

impl<F: Fn(&mut Show<'_>)> Counters for F {
    fn each(&self, show: &mut Show<'_>) {
        self(show);
    }
}

/// Services `S` with `sinew.Device` beside them, and what up to `METHODS` of their methods have done: 104 bytes each.
/// With 0 methods nothing is measured.
///
/// Of a method it sees what the seam between engine and service shows:
///
/// * Calls: requests that a service took. An unknown method is none; the engine counts it.
/// * Errors: calls that their handler, the engine or the link ended with a status other than OK. A call that its
///   client cancels is none.
/// * Bytes: of requests and items that came, of answers and items that left in the same step. What leaves later, by a
///   responder or a writer, passes nothing but the link, whose counters have it.
/// * Times: of steps, each from the moment a request or an item reaches the service until its handler returns; that
///   is how long a link of this server was held up. A deferred answer comes later than that.
pub struct Observed<S, const METHODS: usize = 0, C = ()> {
    /// What is observed.
    pub services: S,
    /// What is counted besides.
    pub counters: C,
    about: About,
    clock: fn() -> Instant,
    methods: Methods<METHODS>,
}

impl<S, const METHODS: usize> Observed<S, METHODS> {
    /// These services, observed. `clock` gives the time since the start of the device.
    pub const fn new(about: About, clock: fn() -> Instant, services: S) -> Self {
        Observed {
            services,
            counters: (),
            about,
            clock,
            methods: Methods::NONE,
        }
    }

    /// With these counters besides.
    pub fn with_counters<C: Counters>(self, counters: C) -> Observed<S, METHODS, C> {
        Observed {
            services: self.services,
            counters,
            about: self.about,
            clock: self.clock,
            methods: self.methods,
        }
    }
}

impl<S: Service, const METHODS: usize, C: Counters> Service for Observed<S, METHODS, C> {
    fn kind(&self, service: u32, method: u32) -> Option<MethodKind> {
        match service {
            // It asks nothing but the ids.
            SERVICE_ID => Serve(self.told(ServerStats::default())).kind(service, method),
            _ => self.services.kind(service, method),
        }
    }

    fn handle(&mut self, call: &mut Call<'_>, input: Input<'_>) -> bool {
        if call.service() == SERVICE_ID {
            return Serve(self.told(*call.stats())).handle(call, input);
        }
        if METHODS == 0 {
            return self.services.handle(call, input);
        }
        let start = (self.clock)();
        let is_served = self.services.handle(call, input);
        if is_served {
            let took = (self.clock)().as_micros().saturating_sub(start.as_micros());
            self.methods.count(call, &input, took);
        }
        is_served
    }

    fn poll(&mut self, now: Instant) -> bool {
        self.services.poll(now)
    }

    fn arm(&mut self, waker: &Waker) {
        self.services.arm(waker);
    }
}

impl<S, const METHODS: usize, C: Counters> Observed<S, METHODS, C> {
    fn told(&self, engine: ServerStats) -> Told<'_, C> {
        Told {
            about: &self.about,
            uptime: (self.clock)(),
            engine,
            counters: &self.counters,
            methods: self.methods.view(),
        }
    }
}

/// What there is to tell when a question comes.
struct Told<'d, C> {
    about: &'d About,
    uptime: Instant,
    engine: ServerStats,
    counters: &'d C,
    methods: methods::View<'d>,
}

impl<C: Counters> Told<'_, C> {
    fn each(&self, show: &mut Show<'_>) {
        for (name, value) in self.engine.iter() {
            show("server", name, value.into());
        }
        show("observed", "no_room", self.methods.no_room.into());
        self.counters.each(show);
    }
}

impl<C: Counters> Device for Told<'_, C> {
    fn info(&mut self, request: &InfoRequest, _: Cx<'_, Responder<Info>>) -> Result<Info, Stop> {
        let is_wanted = |field| request.field == 0 || request.field == field;
        let text = |field, text| if is_wanted(field) { text } else { "" };
        let uptime = is_wanted(4).then_some(self.uptime.as_micros());
        Ok(Info {
            name: cut(text(1, self.about.name)),
            version: cut(text(2, self.about.version)),
            build: cut(text(3, self.about.build)),
            uptime: uptime.unwrap_or_default(),
        })
    }

    fn counter(
        &mut self,
        request: &IndexRequest,
        _: Cx<'_, Responder<Counter>>,
    ) -> Result<Counter, Stop> {
        let (mut index, mut found) = (0, None);
        self.each(&mut |group, name, _| {
            if index == request.index {
                found = Some(Counter {
                    group: cut(group),
                    name: cut(name),
                });
            }
            index += 1;
        });
        Ok(found.ok_or(Status::OUT_OF_RANGE)?)
    }

    fn counters(
        &mut self,
        request: &ValuesRequest,
        _: Cx<'_, Responder<Values>>,
    ) -> Result<Values, Stop> {
        let mut page = Page::new(request);
        self.each(&mut |_, _, value| page.add(value));
        Ok(page.values)
    }

    fn method(
        &mut self,
        request: &IndexRequest,
        _: Cx<'_, Responder<ObservedMethod>>,
    ) -> Result<ObservedMethod, Stop> {
        let index = usize::try_from(request.index).map_err(|_| Status::OUT_OF_RANGE)?;
        let (service, method) = self.methods.ids(index).ok_or(Status::OUT_OF_RANGE)?;
        Ok(ObservedMethod { service, method })
    }

    fn methods(
        &mut self,
        request: &ValuesRequest,
        _: Cx<'_, Responder<Values>>,
    ) -> Result<Values, Stop> {
        let mut page = Page::new(request);
        self.methods.each(&mut |word| page.add(word.into()));
        Ok(page.values)
    }
}

/// A part of a list of values.
struct Page {
    from: u32,
    /// Bytes that may still be taken.
    room: u32,
    values: Values,
}

impl Page {
    fn new(request: &ValuesRequest) -> Page {
        Page {
            from: request.from,
            room: request.limit,
            values: Values::default(),
        }
    }

    /// The next value of the list, of which the page takes those from its first on until it is full.
    fn add(&mut self, value: u64) {
        let Values { values, count } = &mut self.values;
        let next = self.from.checked_add(values.len() as u32);
        if next == Some(*count) {
            let len = varint_len(value);
            if values.is_empty() || len <= self.room {
                let _ = values.push(value); // a full page takes no more
                self.room = self.room.saturating_sub(len);
            } else {
                self.room = 0; // and no smaller one behind it either
            }
        }
        *count += 1;
    }
}

/// Bytes of the value as a varint.
fn varint_len(value: u64) -> u32 {
    (64 - (value | 1).leading_zeros()).div_ceil(7)
}

/// As much of the text as there is room for.
fn cut<const N: usize>(text: &str) -> String<N> {
    let mut end = N.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut kept = String::new();
    let _ = kept.push_str(text.get(..end).unwrap_or_default());
    kept
}

const _: fn() = || {
    // What device.proto says of the page.
    let _: Vec<u64, WORDS> = Values::default().values;
};
