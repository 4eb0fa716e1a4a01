//! A service with a server's stream and one with a client's, whole.

use std::error::Error;

use sinew_io::{Server, loopback};

sinew::include_proto!("weather");

// ANCHOR: server_stream
use sinew::rpc::{AnswerError, Cx, Status, Stop, Writer};
use sinew::time::Instant;
use weather::{Reading, WatchRequest, sensor};

/// Streams that may be open at the same time.
const WATCHERS: usize = 8;

#[derive(Default)]
struct Sensor {
    celsius: i32,
    watchers: [Option<Watcher>; WATCHERS],
}

struct Watcher {
    writer: Writer<Reading>,
    next: u32,
    readings: u32,
}

impl sensor::Sensor for Sensor {
    fn watch(&mut self, request: &WatchRequest, cx: Cx<'_, Writer<Reading>>) -> Result<(), Stop> {
        let mut free = self.watchers.iter_mut().filter(|place| place.is_none());
        let place = free.next().ok_or(Status::RESOURCE_EXHAUSTED)?;
        let (writer, later) = cx.defer()?;
        *place = Some(Watcher {
            writer,
            next: 0,
            readings: request.readings,
        });
        Err(later) // the stream stays open
    }

    /// The driver calls it after each packet, and when a place became free.
    fn poll(&mut self, _: Instant) -> bool {
        let mut more = false;
        for place in &mut self.watchers {
            let Some(watcher) = place else { continue };
            match watcher.step(self.celsius) {
                // After `Full` nothing has left: the same item is sent in the next turn.
                Ok(true) | Err(AnswerError::Full) => more = true,
                // Finished, cancelled, or the link is gone: the writer is dropped.
                Ok(false) | Err(_) => *place = None,
            }
        }
        more
    }
}

impl Watcher {
    /// Sends one reading; `Ok(false)` where it was the end.
    fn step(&mut self, celsius: i32) -> Result<bool, AnswerError> {
        if self.next == self.readings {
            self.writer.finish(Status::OK)?;
            return Ok(false);
        }
        let number = self.next;
        self.writer.send(&Reading { number, celsius })?;
        self.next += 1;
        Ok(true)
    }
}
// ANCHOR_END: server_stream

// ANCHOR: client_stream
use sinew::rpc::{Responder, StreamCx, StreamIn};
use weather::{Summary, archive};

/// Call slots of the server; `sinew_io::Server` has 64 unless told otherwise.
const CALLS: usize = 64;

struct Archive {
    /// What each open call has stored so far, by its slot.
    summaries: [Summary; CALLS],
}

impl archive::Archive for Archive {
    fn store(
        &mut self,
        input: StreamIn<'_, Reading>,
        cx: StreamCx<'_, Responder<Summary>>,
    ) -> Result<Summary, Stop> {
        let summary = self.summaries.get_mut(cx.slot());
        let summary = summary.ok_or(Status::RESOURCE_EXHAUSTED)?;
        match input {
            // A slot is used again: start afresh.
            StreamIn::Open => {
                *summary = Summary {
                    readings: 0,
                    highest: i32::MIN,
                }
            }
            StreamIn::Item(reading) => {
                summary.readings += 1;
                summary.highest = summary.highest.max(reading.celsius);
            }
            StreamIn::End => return Ok(*summary),
            // Cancelled, expired, or the link is gone: nobody hears an answer.
            StreamIn::Closed(_) => {}
        }
        Err(cx.wait()) // more is expected
    }
}
// ANCHOR_END: client_stream

fn server() -> Server<(sensor::Serve<Sensor>, archive::Serve<Archive>)> {
    let sensor = Sensor {
        celsius: 21,
        ..Sensor::default()
    };
    let summaries = std::array::from_fn(|_| Summary::default());
    let archive = Archive { summaries };
    Server::new((sensor::Serve(sensor), archive::Serve(archive)))
}

#[test]
fn a_server_streams_more_items_than_the_link_takes_at_once() -> Result<(), Box<dyn Error>> {
    let server = server();
    let client = loopback::connect(&server).ok_or("too many links")?;
    let mut sensor = sensor::Client(&client);
    let mut watch = sensor.watch(&WatchRequest { readings: 100 })?;
    for number in 0..100 {
        let expected = Reading {
            number,
            celsius: 21,
        };
        assert_eq!(watch.next()?, Some(expected));
    }
    assert_eq!(watch.next()?, None);
    Ok(())
}

#[test]
fn two_client_streams_are_kept_apart() -> Result<(), Box<dyn Error>> {
    let server = server();
    let client = loopback::connect(&server).ok_or("too many links")?;
    let reading = |celsius| Reading { number: 0, celsius };
    let (mut first, mut second) = (archive::Client(&client), archive::Client(&client));
    let (mut first, mut second) = (first.store()?, second.store()?);
    first.send(&reading(-7))?;
    second.send(&reading(30))?;
    first.send(&reading(-3))?;
    let summary = first.finish_and_wait()?;
    assert_eq!((summary.readings, summary.highest), (2, -3));
    let summary = second.finish_and_wait()?;
    assert_eq!((summary.readings, summary.highest), (1, 30));
    Ok(())
}
