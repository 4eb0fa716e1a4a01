//! A device says what it is and what it has counted, in parts as small as wanted, and counts each call once.

use std::cell::Cell;
use std::task::Waker;

use sinew::rpc::{Call, CallError, Input, Method, MethodKind, Service, Status};
use sinew::time::Instant;
use sinew_demo::{KindsService, Num, kinds};
use sinew_io::loopback::{self, Loopback};
use sinew_io::{Client, Server};
use sinew_services::device::{self, About, BUCKETS, Counters, Observed, Show, WORDS, bucket};
use sinew_services::{IndexRequest, InfoRequest, ValuesRequest};

const ABOUT: About = About {
    name: "lamp",
    version: "1.2.3",
    build: "a build that is longer than sixty-four bytes, with an umlaut at 63: \u{e4}",
};

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
    /// What passes from one look at the clock to the next.
    static STEP: Cell<u64> = const { Cell::new(0) };
}

fn clock() -> Instant {
    let now = NOW.get();
    NOW.set(now + STEP.get());
    Instant::from_micros(now)
}

type Kinds = kinds::Serve<KindsService<64>>;
type Near<const METHODS: usize, C> = Client<Loopback<Observed<Kinds, METHODS, C>>>;

fn connect<const METHODS: usize, C: Counters + Send + 'static>(counters: C) -> Near<METHODS, C> {
    let services = kinds::Serve(KindsService::new());
    let observed = Observed::new(ABOUT, clock, services).with_counters(counters);
    loopback::connect(&Server::new(observed)).unwrap()
}

/// All values, from pages of at most so many bytes.
fn all(mut page: impl FnMut(&ValuesRequest) -> sinew_services::Values, limit: u32) -> Vec<u64> {
    let mut values = Vec::new();
    loop {
        let from = values.len() as u32;
        let got = page(&ValuesRequest { from, limit });
        if got.values.is_empty() {
            assert_eq!(values.len() as u32, got.count);
            return values;
        }
        values.extend_from_slice(&got.values);
    }
}

fn counters<const METHODS: usize, C: Counters>(
    near: &Near<METHODS, C>,
    limit: u32,
) -> Vec<(String, u64)> {
    let mut device = device::Client(near);
    let values = all(|wanted| device.counters(wanted).unwrap(), limit);
    let named = values.into_iter().zip(0..).map(|(value, index)| {
        let counter = device.counter(&IndexRequest { index }).unwrap();
        (format!("{}/{}", counter.group, counter.name), value)
    });
    named.collect()
}

fn words<const METHODS: usize, C: Counters>(near: &Near<METHODS, C>) -> Vec<u64> {
    let mut device = device::Client(near);
    all(|wanted| device.methods(wanted).unwrap(), 100)
}

#[test]
fn device_says_who_it_is_and_since_when_it_runs() {
    let near = connect::<0, _>(());
    let mut device = device::Client(&near);
    NOW.set(5_000_000);
    let info = device.info(&InfoRequest { field: 0 }).unwrap();
    assert_eq!((&*info.name, &*info.version), ("lamp", "1.2.3"));
    assert_eq!(info.build, ABOUT.build[..64]);
    assert_eq!(info.uptime, 5_000_000);
}

#[test]
fn each_field_can_be_asked_for_alone() {
    let near = connect::<0, _>(());
    let mut device = device::Client(&near);
    NOW.set(7);
    let mut asked = |field| {
        let info = device.info(&InfoRequest { field }).unwrap();
        let texts = [&*info.name, &info.version, &info.build].map(|text| !text.is_empty());
        (texts, info.uptime)
    };
    assert_eq!(asked(1), ([true, false, false], 0));
    assert_eq!(asked(2), ([false, true, false], 0));
    assert_eq!(asked(3), ([false, false, true], 0));
    assert_eq!(asked(4), ([false; 3], 7));
    assert_eq!(asked(5), ([false; 3], 0));
}

#[test]
fn counters_are_those_of_the_engine_and_those_that_were_given() {
    let near = connect::<0, _>(|show: &mut Show<'_>| {
        show("link 0", "bytes_in", u64::MAX);
        show("link 0", "bytes_out", 300);
    });
    let unknown = sinew_demo::cache::Client(&near).get_value(&Default::default());
    assert_eq!(unknown.map(drop), Err(CallError::Status(Status::NOT_FOUND)));
    for limit in [0, 1, 2, 3, 20, u32::MAX] {
        let counters = counters(&near, limit);
        assert!(
            counters.contains(&("server/unknown_method".into(), 1)),
            "{limit} {counters:?}"
        );
        assert!(counters.contains(&("server/malformed".into(), 0)));
        assert!(counters.contains(&("link 0/bytes_in".into(), u64::MAX)));
        assert_eq!(counters.last(), Some(&("link 0/bytes_out".into(), 300)));
    }
}

#[test]
fn values_of_a_page_take_no_more_bytes_than_wanted() {
    let near = connect::<0, _>(|show: &mut Show<'_>| {
        for bits in 0..64 {
            show("powers", "of_two", 1 << bits);
        }
    });
    let mut device = device::Client(&near);
    for (from, limit) in (0..70).flat_map(|from| (0..30).map(move |limit| (from, limit))) {
        let values = device
            .counters(&ValuesRequest { from, limit })
            .unwrap()
            .values;
        let lens = values.iter().map(|value| {
            let mut bytes = Vec::new();
            prost_reflect::prost::encoding::encode_varint(*value, &mut bytes);
            bytes.len() as u32
        });
        let taken: u32 = lens.sum();
        assert!(
            values.len() == 1 || taken <= limit,
            "{from} {limit} {values:?}"
        );
    }
}

#[test]
fn what_there_is_not_is_out_of_range() {
    let near = connect::<2, _>(());
    let mut device = device::Client(&near);
    let out_of_range = Err(CallError::Status(Status::OUT_OF_RANGE));
    for index in [1_000, u32::MAX] {
        assert_eq!(
            device.counter(&IndexRequest { index }).map(drop),
            out_of_range
        );
        assert_eq!(
            device.method(&IndexRequest { index }).map(drop),
            out_of_range
        );
        let wanted = ValuesRequest {
            from: index,
            limit: 100,
        };
        assert!(device.counters(&wanted).unwrap().values.is_empty());
        assert!(device.methods(&wanted).unwrap().values.is_empty());
    }
}

#[test]
fn each_call_is_counted_once_with_its_bytes_and_the_time_of_its_handler() {
    let near = connect::<4, _>(());
    let mut kinds = kinds::Client(&near);
    STEP.set(5);
    for n in [1, 2, 3] {
        assert_eq!(kinds.double(&Num { n }).unwrap().n, 2 * n);
    }
    STEP.set(1_000_000);
    let refused = kinds.double(&Num { n: u32::MAX });
    assert_eq!(refused, Err(CallError::Status(Status::OUT_OF_RANGE)));
    STEP.set(0);
    let words = words(&near);
    assert_eq!(words.len(), WORDS);
    // Three requests of 2 bytes and one of 6; three answers of 2.
    assert_eq!(words[..4], [4, 1, 12, 6]);
    let mut times = [0; BUCKETS];
    times[bucket(5)] = 3;
    times[BUCKETS - 1] = 1;
    assert_eq!(words[4..], times);
    let mut device = device::Client(&near);
    let method = device.method(&IndexRequest { index: 0 }).unwrap();
    let double = kinds::method::Double::ID;
    assert_eq!(
        (method.service, method.method),
        (double.service, double.method)
    );
}

#[test]
fn items_of_a_stream_are_steps_of_one_call() {
    let near = connect::<4, _>(());
    let mut kinds = kinds::Client(&near);
    let mut sum = kinds.sum().unwrap();
    for n in [1, 2, 3] {
        sum.send(&Num { n }).unwrap();
    }
    assert_eq!(sum.finish_and_wait().unwrap().n, 6);
    let words = words(&near);
    assert_eq!(words[..4], [1, 0, 6, 2]);
    // The request, three items and the end.
    assert_eq!(words[4..].iter().sum::<u64>(), 5);
}

#[test]
fn call_that_its_client_cancels_is_no_error() {
    let near = connect::<4, _>(());
    let mut kinds = kinds::Client(&near);
    let sum = kinds.sum().unwrap();
    drop(sum);
    kinds.double(&Num { n: 1 }).unwrap();
    let words = words(&near);
    assert_eq!(words[..4], [1, 0, 0, 0]);
}

#[test]
fn methods_without_room_are_counted_together() {
    let near = connect::<1, _>(());
    let mut kinds = kinds::Client(&near);
    kinds.double(&Num { n: 1 }).unwrap();
    for _ in 0..3 {
        kinds.count(&Num { n: 1 }).unwrap();
    }
    assert_eq!(words(&near)[0], 1);
    assert!(counters(&near, 100).contains(&("observed/no_room".into(), 3)));
}

#[test]
fn questions_about_the_device_are_not_counted() {
    let near = connect::<4, _>(());
    counters(&near, 100);
    assert!(words(&near).is_empty());
}

#[test]
fn every_time_is_in_the_count_that_says_so() {
    for (micros, index) in [
        (0, 0),
        (1, 1),
        (2, 2),
        (3, 2),
        (4, 3),
        (1 << 18, 19),
        (u64::MAX, 19),
    ] {
        assert_eq!(bucket(micros), index, "{micros}");
    }
    for index in 0..BUCKETS - 1 {
        assert_eq!(bucket((1 << index) - 1), index);
        assert_eq!(bucket(1 << index), index + 1);
    }
}

/// Notes what it was asked to do.
#[derive(Default)]
struct Noted(Vec<&'static str>);

impl Service for Noted {
    fn kind(&self, service: u32, _: u32) -> Option<MethodKind> {
        (service == 1).then_some(MethodKind::Bidi)
    }

    fn handle(&mut self, _: &mut Call<'_>, _: Input<'_>) -> bool {
        false
    }

    fn poll(&mut self, _: Instant) -> bool {
        self.0.push("poll");
        true
    }

    fn arm(&mut self, _: &Waker) {
        self.0.push("arm");
    }
}

#[test]
fn what_is_observed_is_driven_as_before() {
    let mut observed = Observed::<_, 1>::new(ABOUT, clock, Noted::default());
    assert!(observed.poll(Instant::START));
    observed.arm(Waker::noop());
    assert_eq!(observed.services.0, ["poll", "arm"]);
    assert_eq!(observed.kind(1, 1), Some(MethodKind::Bidi));
    assert_eq!(observed.kind(2, 1), None);
    let info = device::method::Info::ID;
    assert_eq!(
        observed.kind(info.service, info.method),
        Some(MethodKind::Unary)
    );
}
