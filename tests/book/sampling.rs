//! A streaming sensor: the readings come from a context of their own, in its own time.

use std::error::Error;
use std::sync::mpsc::sync_channel;

use sinew_io::{Server, connect};

sinew::include_proto!("weather");

// ANCHOR: service
use std::sync::mpsc::{Receiver, SyncSender};

use sinew::rpc::{AnswerError, Cx, Status, Stop, Writer};
use weather::{Reading, WatchRequest, sensor};

/// The service only hands the streams over to whoever samples.
struct Sensor {
    readers: SyncSender<Writer<Reading>>,
}

impl sensor::Sensor for Sensor {
    fn watch(&mut self, _: &WatchRequest, cx: Cx<'_, Writer<Reading>>) -> Result<(), Stop> {
        let (writer, later) = cx.defer()?;
        match self.readers.try_send(writer) {
            Ok(()) => Err(later),
            Err(_) => Err(Status::RESOURCE_EXHAUSTED.into()), // too many at once
        }
    }
}

/// Samples as long as there is something to measure, and sends each reading to every reader.
fn sample(readers: &Receiver<Writer<Reading>>, mut measure: impl FnMut() -> Option<i32>) {
    let mut streams = Vec::new();
    let mut number = 0;
    while let Some(celsius) = measure() {
        streams.extend(readers.try_iter());
        let reading = Reading { number, celsius };
        streams.retain_mut(|stream: &mut Writer<Reading>| match stream.send(&reading) {
            Ok(()) => true,
            // This reader is slow, and misses this reading: it sees the gap in the numbers.
            Err(AnswerError::Full) => true,
            // It has cancelled, or its link is gone.
            Err(_) => false,
        });
        number += 1;
    }
}
// ANCHOR_END: service

#[test]
fn every_reader_gets_readings_in_order_and_sees_gaps() -> Result<(), Box<dyn Error>> {
    let (readers, waiting) = sync_channel(4);
    let server: Server<_> = Server::new(sensor::Serve(Sensor { readers }));
    let listening = server.listen(&"tcp:127.0.0.1:0".parse()?)?;
    let endpoint = listening.endpoint();
    let (done, is_done) = sync_channel::<()>(0);
    let sampler = std::thread::spawn(move || {
        sample(&waiting, || {
            std::thread::sleep(std::time::Duration::from_millis(1));
            is_done
                .try_recv()
                .is_err_and(|it| it == std::sync::mpsc::TryRecvError::Empty)
                .then_some(21)
        });
    });
    // ANCHOR: client
    let client = connect(endpoint)?;
    let mut sensor = sensor::Client(&client);
    let mut readings = sensor.watch(&WatchRequest::default())?;
    let mut expected = None;
    let mut missed = 0;
    for _ in 0..50 {
        let Some(reading) = readings.next()? else {
            break;
        };
        missed += reading.number - expected.unwrap_or(reading.number);
        expected = Some(reading.number + 1);
    }
    drop(readings); // cancels: the sensor stops sending
    // ANCHOR_END: client
    assert!(expected.is_some_and(|next| next >= 50 + missed));
    drop(done);
    sampler.join().unwrap();
    Ok(())
}
