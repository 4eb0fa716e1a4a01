//! The records of one device.
//!
//! A device that begins again over a line without a connection (a UART, datagrams) knows nothing of its reader, and says
//! nothing. So who has heard nothing for a while asks again: a device that is there tells the call before that it is
//! over (ABORTED), by which it is known to be there, and one that has begun again goes on with the new one. Nothing is
//! lost by that: both calls are read until the first has ended.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use miette::Diagnostic as _;
use sinew::rpc::{CallError, Decode, Encode, Method, Status};
use sinew_io::client::{CallEvent, RawCall};
use sinew_io::{AnyLink, Client, Endpoint, open};
use sinew_services::{Record, RecordsRequest, log};

use crate::connection::unreachable;
use crate::failure::Failure;
use crate::silence::{self, Patience, Strays};

/// How often a thread looks whether it is to end.
pub const TICK: Duration = Duration::from_millis(100);
/// Who has heard nothing for so long asks again.
const RENEW: Duration = Duration::from_secs(3);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two attempts to connect.
const RETRY: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

/// What happens at a device.
pub enum What {
    /// It said something, which came here then.
    Record(Box<Record>, SystemTime),
    /// It said something that is no record.
    Unreadable,
    /// So many records did not arrive.
    Lost(u32),
    /// Its records begin again.
    Restarted,
    /// It does not answer: why.
    Silent(String),
    /// It has not been there yet: why.
    Absent(String),
    /// It cannot be reached any more: why.
    Gone(String),
    /// It answers again.
    Back,
}

/// Reads the records of one device.
pub struct Reader {
    pub endpoint: Endpoint,
    pub wants: RecordsRequest,
    /// It need not be there yet.
    pub wait: bool,
    pub stop: Arc<AtomicBool>,
    /// Something came from the device, whatever it is.
    pub heard: Cell<bool>,
}

/// Why a connection is not read any more.
enum Over {
    /// There is nothing more to read, or nobody wants it.
    Done,
    /// The link is gone: what was seen of it.
    Lost(Failure),
    Failed(Failure),
}

type Call<'c> = RawCall<'c, AnyLink, 16, 8192>;

impl Reader {
    /// Reads until it is to end, and tells what happens; `tell` is `false` where nobody listens.
    pub fn run(&self, mut tell: impl FnMut(What) -> bool) -> Result<(), Failure> {
        let mut order = Order::default();
        let mut is_gone = false;
        let mut pause = RETRY[0];
        let mut is_first = true;
        let mut never = None;
        while !self.stop.load(Ordering::Acquire) {
            let over = match open(&self.endpoint) {
                Ok(link) => {
                    let client = Client::new(link, self.endpoint.channel);
                    self.read(&client, &mut order, &mut is_gone, &mut tell)
                }
                Err(error) => Over::Lost(unreachable(&self.endpoint, None, &error)),
            };
            let failure = match over {
                Over::Done => return Ok(()),
                Over::Failed(failure) => return Err(failure),
                Over::Lost(failure) => failure,
            };
            let was_heard = self.heard.get();
            let is_new = std::mem::take(&mut is_first) && !was_heard;
            if !self.wait && (is_new || self.wants.until_empty) {
                return Err(failure);
            }
            match std::mem::replace(&mut is_gone, true) {
                true => pause = (pause * 2).min(RETRY[1]),
                false => {
                    pause = RETRY[0];
                    let why = why(&failure);
                    tell(match was_heard {
                        true => What::Gone(why),
                        false => What::Absent(why),
                    });
                }
            }
            never = Some(failure).filter(|_| !was_heard);
            let until = Instant::now() + pause;
            while Instant::now() < until && !self.stop.load(Ordering::Acquire) {
                thread::sleep(TICK.min(until.saturating_duration_since(Instant::now())));
            }
        }
        never.map_or(Ok(()), Err)
    }

    /// Reads over one connection. `is_gone`: what was told of it.
    fn read(
        &self,
        client: &Client<AnyLink>,
        order: &mut Order,
        is_gone: &mut bool,
        tell: &mut impl FnMut(What) -> bool,
    ) -> Over {
        let start = Instant::now();
        // Who comes asks twice at once: the first call's end says that somebody is there.
        let asked = match self.wants.until_empty {
            true => self.ask(client, PATIENCE).map(|call| (call, None)),
            false => self.ask(client, PATIENCE).and_then(|before| {
                let call = self.ask(client, RENEW + PATIENCE)?;
                Ok((call, Some(before)))
            }),
        };
        let mut calls = match asked {
            Ok((call, before)) => Calls::new(call, before),
            Err(over) => return over,
        };
        let mut is_silent = false;
        let mut heard = start;
        loop {
            if self.stop.load(Ordering::Acquire) {
                calls.call.cancel();
                if self.heard.get() {
                    return Over::Done;
                }
                return Over::Failed(self.silence(client, start.elapsed()));
            }
            let took = calls.next();
            if matches!(took, Took::Item(_) | Took::Answered) {
                heard = Instant::now();
                self.heard.set(true);
                if std::mem::take(is_gone) | std::mem::take(&mut is_silent) {
                    tell(What::Back);
                }
            }
            match took {
                Took::Nothing | Took::Answered => {}
                Took::Item(bytes) => {
                    for what in order.take(&bytes) {
                        if !tell(what) {
                            calls.call.cancel();
                            return Over::Done;
                        }
                    }
                }
                Took::Unanswered if heard.elapsed() < PATIENCE => {}
                Took::Unanswered => {
                    if !std::mem::replace(&mut is_silent, true) {
                        let why = match self.heard.get() {
                            true => "the device is off, busy, or out of reach".into(),
                            false => help(&self.silence(client, start.elapsed())),
                        };
                        tell(What::Silent(why));
                    }
                }
                Took::Done if self.wants.until_empty => return Over::Done,
                // Its service has another life now.
                Took::Done | Took::Ended(CallError::Closed) => return self.lost(client),
                // This process was stopped for a while.
                Took::Ended(CallError::DeadlineExceeded) if !self.wants.until_empty => {
                    match self.ask(client, RENEW + PATIENCE) {
                        Ok(next) => calls.call = next,
                        Err(over) => return over,
                    }
                }
                Took::Ended(error) => return Over::Failed(self.refused(client, error)),
            }
            let must_ask = heard.elapsed() >= RENEW && calls.before.is_none();
            if must_ask && !self.wants.until_empty {
                match self.ask(client, RENEW + PATIENCE) {
                    Ok(next) => calls.before = Some(std::mem::replace(&mut calls.call, next)),
                    Err(over) => return over,
                }
            }
        }
    }

    /// Begins a call.
    fn ask<'c>(&self, client: &'c Client<AnyLink>, patience: Duration) -> Result<Call<'c>, Over> {
        let mut request = [0; RecordsRequest::MAX_LEN];
        let len = self.wants.encode(&mut request).unwrap_or(0);
        let request = request.get(..len).unwrap_or_default();
        let id = <log::method::Records as Method>::ID;
        client
            .start(id, request, patience)
            .map_err(|error| match error {
                CallError::Closed | CallError::DeadlineExceeded | CallError::Full => {
                    self.lost(client)
                }
                error => Over::Failed(self.refused(client, error)),
            })
    }

    fn lost(&self, client: &Client<AnyLink>) -> Over {
        Over::Lost(silence::lost(&self.endpoint, &client.traffic()))
    }

    /// Nothing came for so long.
    fn silence(&self, client: &Client<AnyLink>, span: Duration) -> Failure {
        let patience = Patience::Fixed(Duration::from_millis(span.as_millis() as u64 / 100 * 100));
        let (strays, traffic) = (Strays::of(client), client.traffic());
        silence::no_answer(&self.endpoint, patience, &strays, &traffic)
    }

    fn refused(&self, client: &Client<AnyLink>, error: CallError) -> Failure {
        let at = &self.endpoint.address;
        match error {
            CallError::Status(status @ (Status::NOT_FOUND | Status::UNIMPLEMENTED)) => {
                Failure::outcome(
                    status,
                    format!("{at} keeps no log: it has no sinew.Log"),
                    "serve sinew_services::log beside its other services (the book has a page on it)",
                )
            }
            CallError::Status(status @ Status::ABORTED) => Failure::outcome(
                status,
                format!("another reader has taken the log of {at} over"),
                "end the other one: a device has one reader at a time",
            ),
            CallError::DeadlineExceeded => self.silence(client, PATIENCE),
            error => Failure::outcome(
                error.status(),
                format!("the log of {at} ended: {error}"),
                "look at the device and the line, then ask again",
            ),
        }
    }
}

/// In a few words why it is not there.
fn why(failure: &Failure) -> String {
    match failure {
        Failure::NoConnection { cause, .. } => cause.clone(),
        Failure::ConnectionLost { endpoint, .. } if endpoint.starts_with("udp:") => {
            "nobody listens on that port".into()
        }
        _ => "the connection was lost".into(),
    }
}

fn help(failure: &Failure) -> String {
    failure
        .help()
        .map(|help| help.to_string())
        .unwrap_or_default()
}

/// The call, and the one before it, until that has ended.
struct Calls<'c> {
    call: Call<'c>,
    before: Option<Call<'c>>,
    /// A record of `call` that came before `before` was read to its end.
    kept: Option<Vec<u8>>,
}

/// What came of a look at the calls.
enum Took {
    Nothing,
    Item(Vec<u8>),
    /// The call before has been told that it is over: the device is there.
    Answered,
    /// It was not told so in time.
    Unanswered,
    /// The call is complete, with OK.
    Done,
    Ended(CallError),
}

impl<'c> Calls<'c> {
    fn new(call: Call<'c>, before: Option<Call<'c>>) -> Self {
        Calls {
            call,
            before,
            kept: None,
        }
    }

    /// What is next: first all that was sent to the call before.
    fn next(&mut self) -> Took {
        if let Some(before) = &self.before {
            match take(before, Duration::ZERO) {
                Took::Nothing => {}
                Took::Item(bytes) => return Took::Item(bytes),
                Took::Ended(CallError::Closed) => return Took::Ended(CallError::Closed),
                ended => {
                    self.before = None;
                    return match ended {
                        Took::Ended(CallError::DeadlineExceeded) => Took::Unanswered,
                        _ => Took::Answered,
                    };
                }
            }
        }
        if let Some(kept) = self.kept.take() {
            return Took::Item(kept);
        }
        match take(&self.call, TICK) {
            Took::Item(bytes) if self.before.is_some() => {
                self.kept = Some(bytes);
                Took::Nothing
            }
            took => took,
        }
    }
}

/// What a call has, or has within this time.
fn take(call: &Call<'_>, patience: Duration) -> Took {
    let mut bytes = Vec::new();
    match call.next_event(&mut bytes, patience) {
        Ok(None) => Took::Nothing,
        Ok(Some(CallEvent::Item(()))) => Took::Item(bytes),
        Ok(Some(CallEvent::Completed(Status::OK, ()))) => Took::Done,
        Ok(Some(CallEvent::Completed(status, ()))) => Took::Ended(CallError::Status(status)),
        Err(error) => Took::Ended(error),
    }
}

/// Whether records follow one another.
#[derive(Default)]
struct Order {
    last: Option<(u32, u64)>,
}

impl Order {
    /// What a record tells.
    fn take(&mut self, bytes: &[u8]) -> Vec<What> {
        let Some(record) = Record::decode(bytes) else {
            return vec![What::Unreadable];
        };
        let mut all = Vec::new();
        if let Some((number, micros)) = self.last {
            let missing = record.number.wrapping_sub(number).wrapping_sub(1);
            // Contexts that interrupt one another may have their times in another order, by little.
            let is_earlier = record.micros.saturating_add(1_000_000) < micros;
            match missing {
                _ if is_earlier || missing > u32::MAX / 2 => all.push(What::Restarted),
                0 => {}
                _ => all.push(What::Lost(missing)),
            }
        }
        self.last = Some((record.number, record.micros));
        all.push(What::Record(Box::new(record), SystemTime::now()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tells(order: &mut Order, number: u32, micros: u64) -> String {
        let record = Record {
            number,
            micros,
            ..Record::default()
        };
        let mut bytes = [0; Record::MAX_LEN];
        let len = record.encode(&mut bytes).unwrap();
        let told = order.take(&bytes[..len]);
        let words = told.iter().map(|what| match what {
            What::Record(..) => "record".into(),
            What::Lost(count) => format!("lost {count}"),
            What::Restarted => "restarted".into(),
            _ => "other".into(),
        });
        words.collect::<Vec<String>>().join(", ")
    }

    #[test]
    fn numbers_tell_what_was_lost_and_when_it_began_again() {
        let mut order = Order::default();
        assert_eq!(tells(&mut order, 7, 5_000_000), "record");
        assert_eq!(tells(&mut order, 8, 4_999_990), "record");
        assert_eq!(tells(&mut order, 11, 5_000_010), "lost 2, record");
        assert_eq!(tells(&mut order, 1, 30), "restarted, record");
        assert_eq!(tells(&mut order, 1, 5_000_000), "restarted, record");
        assert_eq!(tells(&mut order, 9, 20), "restarted, record");
        let mut order = Order::default();
        assert_eq!(tells(&mut order, u32::MAX, 5), "record");
        assert_eq!(tells(&mut order, 0, 6), "record");
    }

    #[test]
    fn what_is_no_record_is_said() {
        let mut order = Order::default();
        assert!(matches!(order.take(&[0xff; 9])[..], [What::Unreadable]));
    }
}
