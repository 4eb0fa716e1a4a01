//! Placements in this process.

use std::thread;

use indicatif::ProgressBar;
use sinew::rpc::Direct;
use sinew_demo::{CacheService, cache};
use sinew_io::{Client, Link, shm, threads};

use super::Outcome;
use super::measure::exercises;
use crate::serve;

/// The service is borrowed and called: no link, no bytes.
pub fn direct(calls: u64, bar: &ProgressBar) -> Result<Outcome, String> {
    let mut service = CacheService::new();
    let times = exercises(&mut cache::Client(Direct(&mut service)), calls, bar)?;
    Ok(Outcome { times, bytes: 0 })
}

/// A server in another thread, joined by queues.
pub fn threads(calls: u64, bar: &ProgressBar) -> Result<Outcome, String> {
    served(threads::link(), calls, bar)
}

/// A server in another thread, joined by a link over memory that each side writes a half of.
pub fn shared_memory(calls: u64, bar: &ProgressBar) -> Result<Outcome, String> {
    let link = shm::threads::link().map_err(|error| error.to_string())?;
    served(link, calls, bar)
}

/// A server at the far end of a link, in a thread of its own.
fn served<L: Link + Send + 'static>(
    (near, mut far): (L, L),
    calls: u64,
    bar: &ProgressBar,
) -> Result<Outcome, String> {
    let server = serve::server();
    let thread = thread::spawn(move || server.serve(&mut far, 1));
    let outcome = over(near, calls, bar);
    thread
        .join()
        .map_err(|_| "the server's thread panicked".to_string())?;
    outcome
}

/// Any link to a server of the services.
pub fn over(link: impl Link, calls: u64, bar: &ProgressBar) -> Result<Outcome, String> {
    let client = Client::new(link, 1);
    let times = exercises(&mut cache::Client(&client), calls, bar)?;
    let traffic = client.traffic();
    Ok(Outcome {
        times,
        bytes: traffic.bytes_in + traffic.bytes_out,
    })
}
