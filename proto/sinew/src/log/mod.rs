//! `sinew.Log`: what a device has to say, in bounded memory, from any context.
//!
//! A [`Logger`] is a static. It keeps records until they are read: those that come when it is full are dropped and
//! counted, and the next one tells how many. [`Records`] is the service, which sends them to one reader.
//!
//! ```
//! use sinew::time::Instant;
//! use sinew_services::Severity;
//! use sinew_services::log::{Clock, Logger, Serve};
//! use sinew_shm::StdLock;
//!
//! struct Uptime;
//!
//! impl Clock for Uptime {
//!     fn now() -> Instant {
//!         Instant::START // of the board's timer
//!     }
//! }
//!
//! static LOG: Logger<StdLock, Uptime, 8> = Logger::new();
//!
//! let service = Serve(LOG.records().unwrap()); // beside the device's own services
//! LOG.write(Severity::Warn, "motor", format_args!("{} degrees", 81));
//! # let _ = service;
//! ```
//!
//! It may be written to wherever its lock excludes the others: with `CriticalSectionLock` also in interrupt handlers.
//! Whoever drives the service is woken by a record as by a packet, as far as it calls
//! [`Service::arm`](sinew::rpc::Service::arm).
//!
//! | what is logged with | how it comes here |
//! |---|---|
//! | nothing | [`Logger::write`] |
//! | the crate `log` | feature `log`: `log::set_logger(const { &&LOG })` |
//! | the crate `defmt` | [`Frame`], in the image's global logger; its texts stay out of the image |

use core::fmt::{self, Write as _};
use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize};
use core::task::Waker;

use sinew::rpc::{AnswerError, Cx, Status, Stop, Writer};
use sinew::time::Instant;
use sinew_shm::queue::{Receiver, Sender};
use sinew_shm::{Lock, Queue};

use self::kept::{DEFERRED, Kept, RECORD, SAID};
/// What this service and its messages look like, for [`reflection::Schemas`](crate::reflection::Schemas).
pub use crate::made_log::SCHEMA;
pub use crate::made_log::sinew::log::{Client, Log, Reach, Serve, method};
use crate::{Record, RecordsRequest, Severity};

mod kept;

/// The most bytes of a text, or of a deferred one.
pub const TEXT: usize = 128;
/// Records that one turn sends: the bound of its work.
const BURST: usize = 4;

/// The clock of a device. A type and no value, so that a [`Logger`] takes no room in an image.
pub trait Clock {
    /// The time since the start of the device, in any context that writes records.
    fn now() -> Instant;
}

/// Keeps up to `RECORDS` records until they are read. `RECORDS` is a power of two.
///
/// `L` excludes all contexts that write; see [`sinew_shm::lock`]. A static of it is all zero at the start.
pub struct Logger<L: Lock, C, const RECORDS: usize> {
    queue: Queue<L, RECORDS, RECORD>,
    clock: PhantomData<fn() -> C>,
    lock: L,
    /// Records that were dropped and that the queue did not count. Written under the lock.
    more: AtomicU32,
    /// Records that were dropped, as far as a reader was told. This and the next are the service's.
    told: AtomicU32,
    sent: AtomicU32,
}

impl<L: Lock, C: Clock, const RECORDS: usize> Logger<L, C, RECORDS> {
    /// A logger that keeps nothing before [`Logger::records`].
    pub const fn new() -> Self {
        Logger {
            queue: Queue::new(),
            clock: PhantomData,
            lock: L::NEW,
            more: AtomicU32::new(0),
            told: AtomicU32::new(0),
            sent: AtomicU32::new(0),
        }
    }

    /// The service; `None` while there is one. What the one before had not sent is dropped and counted.
    pub fn records(&'static self) -> Option<Records<L, C, RECORDS>> {
        let (open, waiting) = self.queue.split()?;
        Some(Records {
            log: self,
            _open: open,
            waiting,
            reader: None,
            leaving: None,
        })
    }

    /// Writes a record. What exceeds its capacity is cut off.
    pub fn write(&'static self, severity: Severity, module: &str, text: fmt::Arguments<'_>) {
        self.put(severity, module, SAID, |said| {
            let mut cut = Cut {
                place: said,
                len: 0,
            };
            let _ = cut.write_fmt(text);
            cut.len
        });
    }

    /// Writes a record whose text is made where it is read: a frame of `defmt` without an encoding around it, of
    /// [`TEXT`] bytes at most. A longer one is dropped and counted.
    pub fn write_deferred(&'static self, frame: &[u8]) {
        if frame.len() > TEXT {
            return self.drop_one();
        }
        self.put(Severity::Any, "", DEFERRED, |said| {
            for (place, byte) in said.iter_mut().zip(frame) {
                *place = *byte;
            }
            frame.len()
        });
    }

    /// Without a place there is nothing to fill.
    fn put(
        &'static self,
        severity: Severity,
        module: &str,
        field: u8,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) {
        let Some(queue) = self.queue.handle(0) else {
            return self.drop_one();
        };
        let Ok(mut place) = queue.place(RECORD) else {
            return; // counted by the queue
        };
        let record = Kept {
            severity,
            micros: C::now().as_micros(),
            module: module.as_bytes(),
            field,
            said: &[],
            // So many ever; the service sends how many more these are.
            dropped: self.dropped(),
            number: 0,
            age: 0,
        };
        let len = record.keep(&mut place, fill);
        let _ = place.commit(len);
    }

    /// How many records were dropped. Wraps.
    pub fn dropped(&self) -> u32 {
        let stats = self.queue.stats();
        let more = self.more.load(Relaxed);
        stats.full.wrapping_add(stats.discarded).wrapping_add(more)
    }

    fn drop_one(&self) {
        self.lock.with(|| {
            let more = self.more.load(Relaxed);
            self.more.store(more.wrapping_add(1), Relaxed);
        });
    }
}

impl<L: Lock, C: Clock, const RECORDS: usize> Default for Logger<L, C, RECORDS> {
    fn default() -> Self {
        Self::new()
    }
}

/// Text that is cut off where it is full.
struct Cut<'p> {
    place: &'p mut [u8],
    len: usize,
}

impl fmt::Write for Cut<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let rest = self.place.get_mut(self.len..).unwrap_or_default();
        let fits = cut(text.as_bytes(), rest.len());
        for (place, byte) in rest.iter_mut().zip(fits) {
            *place = *byte;
        }
        self.len += fits.len();
        match fits.len() == text.len() {
            true => Ok(()),
            false => Err(fmt::Error), // nothing of what follows either
        }
    }
}

/// As much of a text as so many bytes hold, in whole characters.
fn cut(text: &[u8], room: usize) -> &[u8] {
    let mut end = room.min(text.len());
    // The bytes of a character behind its first.
    while text.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(feature = "log")]
impl<L, C, const RECORDS: usize> ::log::Log for &'static Logger<L, C, RECORDS>
where
    L: Lock + Send + Sync,
    C: Clock + Send + Sync,
{
    fn enabled(&self, _: &::log::Metadata<'_>) -> bool {
        true // by `log::set_max_level`
    }

    fn log(&self, record: &::log::Record<'_>) {
        let severity = match record.level() {
            ::log::Level::Error => Severity::Error,
            ::log::Level::Warn => Severity::Warn,
            ::log::Level::Info => Severity::Info,
            ::log::Level::Debug => Severity::Debug,
            ::log::Level::Trace => Severity::Trace,
        };
        self.write(severity, record.target(), *record.args());
    }

    fn flush(&self) {}
}

/// A frame of `defmt` while it is written: what the global logger of an image calls, between `acquire` and `release`.
///
/// One context at a time, as `defmt` has it.
#[derive(Debug)]
pub struct Frame {
    /// Of the frame so far, also of what has no room.
    len: AtomicUsize,
    bytes: [AtomicU8; TEXT],
}

impl Frame {
    /// An empty frame.
    pub const fn new() -> Self {
        Frame {
            len: AtomicUsize::new(0),
            bytes: [const { AtomicU8::new(0) }; TEXT],
        }
    }

    /// In `write`: what belongs to the frame.
    pub fn write(&self, bytes: &[u8]) {
        let len = self.len.load(Relaxed);
        for (place, byte) in self.bytes.iter().skip(len).zip(bytes) {
            place.store(*byte, Relaxed);
        }
        self.len.store(len.saturating_add(bytes.len()), Relaxed);
    }

    /// In `release`: the frame is whole, and a record. The next one is empty.
    pub fn end<L: Lock, C: Clock, const RECORDS: usize>(
        &self,
        log: &'static Logger<L, C, RECORDS>,
    ) {
        let len = self.len.load(Relaxed);
        self.len.store(0, Relaxed);
        if len > TEXT {
            return log.drop_one();
        }
        log.put(Severity::Any, "", DEFERRED, |said| {
            for (byte, place) in said.iter_mut().zip(&self.bytes).take(len) {
                *byte = place.load(Relaxed);
            }
            len
        });
    }
}

impl Default for Frame {
    fn default() -> Self {
        Self::new()
    }
}

/// Sends the records of a logger to who reads.
pub struct Records<L: Lock + 'static, C: 'static, const RECORDS: usize> {
    log: &'static Logger<L, C, RECORDS>,
    /// The queue is open as long as it lives.
    _open: Sender<L, RECORDS, RECORD>,
    waiting: Receiver<L, RECORDS, RECORD>,
    reader: Option<Reader>,
    /// The one before, until its link has room for the word that it is.
    leaving: Option<Writer<Record>>,
}

struct Reader {
    writer: Writer<Record>,
    wants: RecordsRequest,
}

/// What became of a record.
enum Sent {
    Whole,
    Unwanted,
    /// It is larger than a packet of the reader's link.
    TooLarge,
    /// The link has no room now.
    Full,
    /// The reader has gone.
    Gone,
}

impl<L: Lock, C: Clock, const RECORDS: usize> Records<L, C, RECORDS> {
    /// Sends a few records; `true` where there are more to send.
    fn advance(&mut self) -> bool {
        let Some(reader) = self.reader.as_mut().filter(|it| it.writer.is_open()) else {
            self.reader = None;
            return false;
        };
        for _ in 0..BURST {
            let Ok(Some(bytes)) = self.waiting.peek() else {
                return reader.wants.until_empty && self.finish();
            };
            let Some(mut record) = Kept::read(bytes) else {
                self.waiting.release(); // never: it was written here
                continue;
            };
            let told = self.log.told.load(Relaxed);
            record.dropped = record.dropped.wrapping_sub(told);
            // A record that another context wrote meanwhile has told of more already.
            if record.dropped > u32::MAX / 2 {
                record.dropped = 0;
            }
            record.age = C::now().as_micros().saturating_sub(record.micros);
            record.number = self.log.sent.load(Relaxed).wrapping_add(1);
            match reader.send(&mut record) {
                Sent::Whole => {
                    self.log.sent.store(record.number, Relaxed);
                    let told = told.wrapping_add(record.dropped);
                    self.log.told.store(told, Relaxed);
                }
                Sent::Unwanted => {}
                Sent::TooLarge => self.log.drop_one(),
                Sent::Full => return true,
                Sent::Gone => {
                    self.reader = None;
                    return false;
                }
            }
            self.waiting.release();
        }
        true
    }

    /// There is nothing more for a reader that does not wait; `true` where its link has no room for this word now.
    fn finish(&mut self) -> bool {
        if let Some(reader) = &mut self.reader
            && reader.writer.finish(Status::OK) == Err(AnswerError::Full)
        {
            return true;
        }
        self.reader = None;
        false
    }

    /// Tells the reader before that it is; `true` where its link has no room now.
    fn dismiss(&mut self) -> bool {
        let Some(before) = &mut self.leaving else {
            return false;
        };
        if before.finish(Status::ABORTED) == Err(AnswerError::Full) {
            return true;
        }
        self.leaving = None;
        false
    }
}

impl Reader {
    fn wants(&self, record: &Kept<'_>) -> bool {
        // Of a deferred record only the reader knows.
        record.field == DEFERRED
            || record.severity.0 >= self.wants.least.0
                && record.module.starts_with(self.wants.module.as_bytes())
    }

    /// Sends a record, with less of its text where a packet does not hold it.
    fn send(&mut self, record: &mut Kept<'_>) -> Sent {
        if !self.wants(record) {
            return Sent::Unwanted;
        }
        loop {
            return match self.writer.send_as(record) {
                Ok(()) => Sent::Whole,
                Err(AnswerError::Full) => Sent::Full,
                Err(AnswerError::Cancelled | AnswerError::Closed) => Sent::Gone,
                Err(AnswerError::TooLarge) if record.field == SAID && !record.said.is_empty() => {
                    record.said = cut(record.said, record.said.len() / 2);
                    continue;
                }
                Err(AnswerError::TooLarge) => Sent::TooLarge,
            };
        }
    }
}

impl<L: Lock, C: Clock, const RECORDS: usize> Log for Records<L, C, RECORDS> {
    fn records(
        &mut self,
        request: &RecordsRequest,
        cx: Cx<'_, Writer<Record>>,
    ) -> Result<(), Stop> {
        let (writer, later) = cx.defer()?;
        let wants = request.clone();
        if let Some(before) = self.reader.replace(Reader { writer, wants }) {
            self.leaving = Some(before.writer);
        }
        Err(later)
    }

    fn poll(&mut self, _: Instant) -> bool {
        self.dismiss() | self.advance()
    }

    fn arm(&mut self, waker: &Waker) {
        // What nobody reads is nothing to go on with.
        if self.reader.is_some() {
            self.waiting.arm(waker);
        }
    }
}
