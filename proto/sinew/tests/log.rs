//! Records leave in order and whole, or are counted: whatever the reader, the link and who writes.

#[path = "../../demo/tests/support/mod.rs"]
#[allow(dead_code)]
mod support;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use sinew::rpc::packet::PacketType as P;
use sinew::rpc::{Service, Status};
use sinew::time::Instant;
use sinew_services::log::{Clock, Frame, Logger, Records, Serve, TEXT, method};
use sinew_services::record::Said;
use sinew_services::{Record, RecordsRequest, Severity};
use sinew_shm::StdLock;
use support::{Bench, PLACES};

const ROOM: usize = 8;
const ALL: RecordsRequest = RecordsRequest {
    least: Severity::Any,
    module: sinew::heapless::String::new(),
    until_empty: false,
};

type Log = &'static Logger<StdLock, Ticks, ROOM>;
type Device = Bench<Serve<Records<StdLock, Ticks, ROOM>>>;

/// Each look is a microsecond later.
struct Ticks;

impl Clock for Ticks {
    fn now() -> Instant {
        static MICROS: AtomicU64 = AtomicU64::new(0);
        Instant::from_micros(MICROS.fetch_add(1, Ordering::Relaxed))
    }
}

fn logger() -> Log {
    Box::leak(Box::default())
}

fn device() -> (Log, Device) {
    let log = logger();
    (log, Bench::new(Serve(log.records().unwrap())))
}

fn info(log: Log, text: &str) {
    log.write(Severity::Info, "test", format_args!("{text}"));
}

/// A new reader.
fn read(device: &mut Device, call: u32, wants: &RecordsRequest) {
    assert_eq!(
        device.step::<method::Records>(P::REQUEST, call, Some(wants)),
        None
    );
}

/// What leaves as long as the link is emptied; the records of this reader.
fn records(device: &mut Device, call: u32) -> Vec<Record> {
    let mut records = Vec::new();
    loop {
        let is_busy = device.poll();
        let sent = device.sent::<method::Records>();
        if sent.is_empty() {
            assert!(!is_busy);
            return records;
        }
        for said in sent {
            let (P::SERVER_STREAM, of, Status::OK, Some(record)) = said else {
                panic!("{said:?}");
            };
            assert_eq!(of, call);
            records.push(record);
        }
    }
}

fn text(record: &Record) -> &str {
    match &record.said {
        Some(Said::Text(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn texts(records: &[Record]) -> Vec<&str> {
    records.iter().map(text).collect()
}

#[test]
fn records_wait_for_a_reader_and_leave_in_order() {
    let (log, mut device) = device();
    info(log, "before");
    assert!(!device.poll());
    read(&mut device, 1, &ALL);
    let before = records(&mut device, 1);
    assert_eq!(texts(&before), ["before"]);
    log.write(Severity::Warn, "motor", format_args!("{} degrees", 81));
    info(log, "after");
    let after = records(&mut device, 1);
    assert_eq!(texts(&after), ["81 degrees", "after"]);
    assert_eq!(after[0].severity, Severity::Warn);
    assert_eq!(after[0].module, "motor");
    assert!(before[0].micros < after[0].micros && after[0].micros < after[1].micros);
    let numbers: Vec<_> = before.iter().chain(&after).map(|it| it.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert!(before.iter().chain(&after).all(|it| it.dropped == 0));
}

#[test]
fn what_exceeds_its_capacity_is_cut_between_two_characters() {
    let (log, mut device) = device();
    let long = "ä".repeat(TEXT);
    log.write(Severity::Info, &long, format_args!("{long}{long}"));
    log.write(
        Severity::Info,
        &format!("x{long}"),
        format_args!("y{long}never this"),
    );
    read(&mut device, 1, &ALL);
    let records = records(&mut device, 1);
    assert_eq!(text(&records[0]), "ä".repeat(TEXT / 2));
    assert_eq!(records[0].module.as_str(), "ä".repeat(12));
    assert_eq!(text(&records[1]), format!("y{}", "ä".repeat(TEXT / 2 - 1)));
    assert_eq!(records[1].module.as_str(), format!("x{}", "ä".repeat(11)));
}

#[test]
fn what_has_no_room_is_counted_where_it_is_missing() {
    let log = logger();
    info(log, "no service yet");
    let mut device = Bench::new(Serve(log.records().unwrap()));
    for n in 0..ROOM + 3 {
        info(log, &n.to_string());
    }
    assert_eq!(log.dropped(), 4);
    read(&mut device, 1, &ALL);
    let first = records(&mut device, 1);
    assert_eq!(texts(&first), ["0", "1", "2", "3", "4", "5", "6", "7"]);
    let told: Vec<_> = first.iter().map(|it| it.dropped).collect();
    assert_eq!(
        told,
        [1, 0, 0, 0, 0, 0, 0, 0],
        "the three came behind these"
    );
    // The next reader is told what the first was not.
    read(&mut device, 2, &ALL);
    info(log, "next");
    device.poll();
    let sent = device.sent::<method::Records>();
    assert_eq!(sent[0], (P::RESPONSE, 1, Status::ABORTED, None));
    let next = sent[1].3.as_ref().unwrap();
    assert_eq!((text(next), next.dropped, next.number), ("next", 3, 9));
    info(log, "last");
    assert_eq!(records(&mut device, 2)[0].dropped, 0);
}

#[test]
fn second_reader_takes_the_place_of_the_first_as_soon_as_its_link_has_room() {
    let (log, mut device) = device();
    read(&mut device, 1, &ALL);
    for n in 0..PLACES + 1 {
        info(log, &n.to_string());
    }
    // The link is full, and one record waits.
    assert!(device.poll());
    read(&mut device, 2, &ALL);
    assert!(device.poll(), "the first is still to be told");
    let sent = device.sent::<method::Records>();
    assert!(sent.iter().all(|said| said.1 == 1));
    assert_eq!(sent.len(), PLACES);
    assert!(!device.poll());
    let sent = device.sent::<method::Records>();
    assert_eq!(sent[0], (P::RESPONSE, 1, Status::ABORTED, None));
    assert_eq!(sent[1].1, 2);
    assert_eq!(text(sent[1].3.as_ref().unwrap()), "3");
    assert_eq!(sent.len(), 2);
}

#[test]
fn reader_gets_what_it_wants_and_deferred_records() {
    let (log, mut device) = device();
    let wants = RecordsRequest {
        least: Severity::Warn,
        module: "motor".try_into().unwrap(),
        until_empty: false,
    };
    read(&mut device, 1, &wants);
    log.write(Severity::Info, "motor", format_args!("too low"));
    log.write(Severity::Error, "pump", format_args!("another module"));
    log.write(Severity::Warn, "motor::left", format_args!("this"));
    log.write(Severity::Error, "motor", format_args!("and this"));
    log.write_deferred(&[1, 2, 3]);
    let records = records(&mut device, 1);
    assert_eq!(texts(&records[..2]), ["this", "and this"]);
    let Some(Said::Deferred(frame)) = &records[2].said else {
        panic!("{records:?}");
    };
    assert_eq!(frame.as_slice(), [1, 2, 3]);
    let numbers: Vec<_> = records.iter().map(|it| it.number).collect();
    assert_eq!(numbers, [1, 2, 3], "what was not wanted is not missing");
}

#[test]
fn link_without_room_goes_on_where_it_was() {
    let (log, mut device) = device();
    read(&mut device, 1, &ALL);
    let mut written = 0;
    let mut seen = Vec::new();
    while seen.len() < 100 {
        while written < 100 && written - seen.len() < ROOM {
            info(log, &written.to_string());
            written += 1;
        }
        device.poll();
        // Twice: a turn that finds no room changes nothing.
        device.poll();
        let sent = device.sent::<method::Records>();
        assert!(!sent.is_empty() && sent.len() <= PLACES);
        seen.extend(sent.into_iter().map(|said| said.3.unwrap()));
    }
    for (n, record) in seen.iter().enumerate() {
        assert_eq!(text(record), n.to_string());
        assert_eq!((record.number, record.dropped), (n as u32 + 1, 0));
    }
}

#[test]
fn packets_smaller_than_a_record_take_less_of_its_text() {
    let log = logger();
    let mut device = Bench::with_mtu(Serve(log.records().unwrap()), 64);
    read(&mut device, 1, &ALL);
    info(log, &"ü".repeat(60));
    log.write_deferred(&[7; TEXT]);
    log.write_deferred(&[7; 9]);
    let records = records(&mut device, 1);
    let cut = text(&records[0]);
    assert!(cut.len() >= 4 && "ü".repeat(60).starts_with(cut), "{cut}");
    assert!(matches!(&records[1].said, Some(Said::Deferred(frame)) if frame.len() == 9));
    assert_eq!((records[1].number, records.len()), (2, 2));
    assert_eq!(log.dropped(), 1, "half a frame is of no use");
    info(log, "next");
    assert_eq!(self::records(&mut device, 1)[0].dropped, 1);
}

#[test]
fn reader_that_cancels_leaves_the_rest_to_the_next() {
    let (log, mut device) = device();
    read(&mut device, 1, &ALL);
    device.step::<method::Records>(P::CLIENT_ERROR, 1, None);
    info(log, "kept");
    assert!(!device.poll());
    assert!(device.sent::<method::Records>().is_empty());
    read(&mut device, 2, &ALL);
    assert_eq!(texts(&records(&mut device, 2)), ["kept"]);
}

#[test]
fn reader_that_does_not_wait_is_told_the_end() {
    let (log, mut device) = device();
    for n in 0..PLACES {
        info(log, &n.to_string());
    }
    let wants = RecordsRequest {
        until_empty: true,
        ..ALL
    };
    read(&mut device, 1, &wants);
    assert!(device.poll(), "the end has no room yet");
    let sent = device.sent::<method::Records>();
    assert_eq!(sent.len(), PLACES);
    let ages: Vec<_> = sent
        .iter()
        .map(|said| said.3.as_ref().unwrap().age)
        .collect();
    assert!(ages.iter().all(|age| *age > 0), "{ages:?}");
    assert!(!device.poll());
    let end = (P::RESPONSE, 1, Status::OK, None);
    assert_eq!(device.sent::<method::Records>(), [end]);
    info(log, "for the next");
    assert!(!device.poll());
    assert!(device.sent::<method::Records>().is_empty());
    read(&mut device, 2, &ALL);
    assert_eq!(texts(&records(&mut device, 2)), ["for the next"]);
}

#[test]
fn service_begins_again_where_the_one_before_is_gone() {
    let log = logger();
    let first = log.records().unwrap();
    assert!(log.records().is_none());
    info(log, "of the first");
    drop(first);
    info(log, "nowhere to go");
    let mut device = Bench::new(Serve(log.records().unwrap()));
    info(log, "of the second");
    read(&mut device, 1, &ALL);
    let records = records(&mut device, 1);
    assert_eq!(texts(&records), ["of the second"]);
    assert_eq!(records[0].dropped, 2);
}

struct Rung(AtomicUsize);

impl Wake for Rung {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn record_wakes_the_driver_once_where_somebody_reads() {
    let (log, mut device) = device();
    let rung = Arc::new(Rung(AtomicUsize::new(0)));
    let waker = Waker::from(rung.clone());
    let count = || rung.0.load(Ordering::SeqCst);
    info(log, "a");
    device.services.arm(&waker);
    info(log, "b");
    assert_eq!(count(), 0, "nobody reads");
    read(&mut device, 1, &ALL);
    device.services.arm(&waker);
    assert_eq!(count(), 1, "at once, where records wait");
    assert_eq!(records(&mut device, 1).len(), 2);
    device.services.arm(&waker);
    assert_eq!(count(), 1);
    info(log, "c");
    info(log, "d");
    assert_eq!(count(), 2);
}

/// Something that writes records while it is formatted, as an interrupt handler would in the middle of it. Were the
/// lock held then, it would wait for itself.
struct Interrupts(&'static Logger<StdLock, Ticks, 4>, usize);

impl fmt::Display for Interrupts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for n in 0..self.1 {
            self.0.write(Severity::Warn, "irq", format_args!("{n}"));
        }
        f.write_str("done")
    }
}

#[test]
fn handler_writes_in_the_middle_of_a_record() {
    let log: &'static Logger<StdLock, Ticks, 4> = Box::leak(Box::default());
    let mut device = Bench::new(Serve(log.records().unwrap()));
    log.write(
        Severity::Info,
        "main",
        format_args!("{}", Interrupts(log, 5)),
    );
    log.write(Severity::Info, "main", format_args!("no room"));
    assert_eq!(
        device.step::<method::Records>(P::REQUEST, 1, Some(&ALL)),
        None
    );
    device.poll();
    device.poll();
    let mut seen: Vec<_> = device.sent::<method::Records>();
    device.poll();
    seen.extend(device.sent::<method::Records>());
    let seen: Vec<_> = seen.into_iter().map(|said| said.3.unwrap()).collect();
    assert_eq!(texts(&seen), ["0", "1", "2", "done"]);
    assert!(seen.iter().all(|record| record.dropped == 0));
    log.write(
        Severity::Info,
        "main",
        format_args!("{}", Interrupts(log, 1)),
    );
    device.poll();
    let seen = device.sent::<method::Records>();
    let seen: Vec<_> = seen.into_iter().map(|said| said.3.unwrap()).collect();
    assert_eq!(texts(&seen), ["0", "done"]);
    // Two in the handler, and one behind.
    assert_eq!([seen[0].dropped, seen[1].dropped], [3, 0]);
}

#[test]
fn threads_lose_nothing_uncounted() {
    const EACH: u32 = 500;
    let (log, mut device) = device();
    read(&mut device, 1, &ALL);
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            std::thread::spawn(move || {
                for n in 0..EACH {
                    log.write(Severity::Info, "t", format_args!("{thread} {n}"));
                }
            })
        })
        .collect();
    let mut seen = Vec::new();
    while threads.iter().any(|thread| !thread.is_finished()) {
        seen.extend(records(&mut device, 1));
    }
    for thread in threads {
        thread.join().unwrap();
    }
    seen.extend(records(&mut device, 1));
    info(log, "9 0");
    seen.extend(records(&mut device, 1));
    let told: u32 = seen.iter().map(|record| record.dropped).sum();
    assert_eq!(seen.len() as u32 + told, 4 * EACH + 1);
    let mut next = [0; 10];
    for (at, record) in seen.iter().enumerate() {
        assert_eq!(record.number, at as u32 + 1);
        let (thread, n) = text(record).split_once(' ').unwrap();
        let (thread, n): (usize, u32) = (thread.parse().unwrap(), n.parse().unwrap());
        assert!(n >= next[thread], "out of order");
        next[thread] = n + 1;
    }
}

#[test]
fn frame_is_a_record_of_its_bytes() {
    let (log, mut device) = device();
    let frame = Frame::new();
    frame.write(&[1]);
    frame.write(&[]);
    frame.write(&[2, 3]);
    frame.end(log);
    for _ in 0..TEXT {
        frame.write(&[4, 5]);
    }
    frame.end(log);
    frame.write(&[6; TEXT]);
    frame.end(log);
    read(&mut device, 1, &ALL);
    let records = records(&mut device, 1);
    let frames: Vec<_> = records
        .iter()
        .map(|record| match &record.said {
            Some(Said::Deferred(frame)) => frame.as_slice(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(frames, [&[1, 2, 3][..], &[6; TEXT]]);
    assert_eq!([records[0].dropped, records[1].dropped], [0, 1]);
}

#[test]
fn what_the_crate_log_is_given_goes_into_the_stream() {
    static LOG: Logger<StdLock, Ticks, ROOM> = Logger::new();
    let mut device = Bench::new(Serve(LOG.records().unwrap()));
    log::set_logger(const { &&LOG }).unwrap();
    log::set_max_level(log::LevelFilter::Debug);
    log::error!("{}", 1);
    log::warn!(target: "motor", "{}", 2);
    log::info!("3");
    log::debug!("4");
    log::trace!("not this");
    read(&mut device, 1, &ALL);
    let records = records(&mut device, 1);
    assert_eq!(texts(&records), ["1", "2", "3", "4"]);
    let severities: Vec<_> = records.iter().map(|record| record.severity).collect();
    let (error, warn) = (Severity::Error, Severity::Warn);
    assert_eq!(severities, [error, warn, Severity::Info, Severity::Debug]);
    assert_eq!([&*records[0].module, &*records[1].module], ["log", "motor"]);
}
