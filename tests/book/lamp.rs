use std::error::Error;
use std::time::Duration;

use sinew_io::apart;
use sinew_io::pubsub::{self, Options, Overflow};

/// How long anything may take here.
const SOON: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    // Two peers, which would be two programs elsewhere: one waits, the other connects to it.
    let mut listener = apart::listen(&pubsub::endpoint("tcp:127.0.0.1:0")?)?;
    let near = pubsub::open(listener.endpoint(), Options::peer());
    let link = listener.accept_within(Some(SOON)).ok_or("nobody came")?;
    let far = pubsub::accept(link, Options::peer());

    let samples = far.samples("demo/*", 16, Overflow::Wait)?;
    let lamp = near.publisher("demo/lamp")?;
    lamp.wait_heard(SOON);
    println!("{}", lamp.put(b"on")?);

    let sample = samples.next_within(Some(SOON)).ok_or("nothing came")?;
    println!("{}: {}", sample.key, sample.payload.escape_ascii());
    Ok(())
}
