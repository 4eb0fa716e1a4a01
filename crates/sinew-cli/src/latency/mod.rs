//! How long a call takes: `ping` one after another, `bench` as many as the server and the link take.
//!
//! What is called is `pw.rpc.Benchmark/UnaryEcho`. A server that does not have it answers that it does not,
//! and that way is timed as well.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use sinew::rpc::{CallError, Encode, Method, MethodId, Status};
use sinew_demo::pw::rpc::{Payload, benchmark};
use sinew_io::{AnyLink, Client, Endpoint};

use crate::failure::Failure;
use crate::interrupt::at_ctrl_c;
use crate::output;
use crate::silence::{self, Patience, Strays};

pub mod bench;
pub mod ping;
mod times;

const ECHO: MethodId = <benchmark::method::UnaryEcho as Method>::ID;
/// The most bytes of an echo.
const MOST: usize = 256;

/// How many bytes are to go there and come back.
fn size(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(size) if size <= MOST => Ok(size),
        Ok(_) => Err(format!(
            "an echo has room for {MOST} bytes: give 0 to {MOST}"
        )),
        Err(error) => Err(format!("{error}: give 0 to {MOST}")),
    }
}

/// The request of so many bytes, encoded.
fn request(size: usize) -> Result<Vec<u8>, Failure> {
    let bytes: Vec<u8> = (0..size).map(|at| at as u8).collect();
    let cannot = || Failure::usage("the echo has too many bytes", "give --size 0 to 256");
    let payload = Payload {
        payload: bytes.as_slice().try_into().map_err(|_| cannot())?,
    };
    let mut encoded = vec![0; payload.encoded_len()];
    payload.encode(&mut encoded).ok_or_else(cannot)?;
    Ok(encoded)
}

/// What came of one call.
enum Came {
    /// The echo.
    Back,
    /// The server's word that it has no such method.
    Refused,
    /// Nothing in time.
    Nothing,
}

fn came<const CALLS: usize, const INBOX: usize>(
    result: Result<(), CallError>,
    client: &Client<AnyLink, CALLS, INBOX>,
    endpoint: &Endpoint,
) -> Result<Came, Failure> {
    match result {
        Ok(()) => Ok(Came::Back),
        Err(CallError::Status(Status::NOT_FOUND | Status::UNIMPLEMENTED)) => Ok(Came::Refused),
        Err(CallError::DeadlineExceeded) => Ok(Came::Nothing),
        Err(CallError::Closed) => Err(silence::lost(endpoint, &client.traffic())),
        Err(error) => Err(Failure::outcome(
            error.status(),
            format!("the echo of {} ended: {error}", endpoint.address),
            "give a smaller --size or --in-flight, or look at the server",
        )),
    }
}

/// Not one call was answered in this time.
fn nobody<const CALLS: usize, const INBOX: usize>(
    client: &Client<AnyLink, CALLS, INBOX>,
    endpoint: &Endpoint,
    timeout: Duration,
) -> Failure {
    let strays = Strays::of(client);
    let patience = Patience::Option(timeout);
    silence::no_answer(endpoint, patience, &strays, &client.traffic())
}

/// Says once that the server does not echo.
fn tell_refused(endpoint: &Endpoint) {
    output::note(&format!(
        "{} has no pw.rpc.Benchmark: what is timed is its word that it has none",
        endpoint.address
    ));
}

/// Ctrl-C.
fn interrupted() -> Result<Receiver<()>, Failure> {
    let (send, receive): (Sender<()>, _) = channel();
    at_ctrl_c(move || {
        let _ = send.send(());
    })?;
    Ok(receive)
}
