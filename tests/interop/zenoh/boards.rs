//! A sensor on an emulated board, whose packets a relay carries to a router: over its UART, and over
//! memory that it shares.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use sinew_io::endpoint::{Endpoint, Use};
use sinew_io::relay::Relay;

use crate::alone;
use crate::driver::links::router;
use crate::node::*;
use crate::peer::{Peer, Real};

/// A router's lease is 10 s, and Zenoh tries again after up to 4 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// The endpoint of an image, which is built where it is not yet.
fn image(name: &str) -> Endpoint {
    let firmware = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../firmware"));
    let make = Command::new("make")
        .arg("-sC")
        .arg(firmware)
        .arg("images")
        .status();
    assert!(make.expect("make").success(), "the images do not build");
    let path = firmware.join("target/thumbv7m-none-eabi/node").join(name);
    Endpoint::parse(&format!("qemu:{}", path.display()), Use::Any).expect("an endpoint")
}

fn relay(board: &Endpoint, router: &At) -> Relay {
    let far = Endpoint::parse(&format!("{}?frame=zenoh", router.sinew()), Use::Any);
    Relay::start(board, &far.expect("an endpoint"), |_| ()).expect("a relay")
}

/// Waits for the next count and the next temperature. The samples of before have been taken.
fn samples(real: &mut dyn Node) -> (u32, f32) {
    let (mut count, mut temperature) = (None, None);
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        let event = real.event(Duration::from_secs(1)).expect("an event");
        let Some(Happened::Sample(sample)) = event.map(|event| event.what) else {
            continue;
        };
        let text = sample
            .payload
            .whole
            .and_then(|it| String::from_utf8(it).ok());
        let text = text.expect("text");
        match sample.key.as_str() {
            "sensor/count" => count = text.parse().ok(),
            "sensor/temperature" => temperature = text.parse().ok(),
            key => panic!("{key}"),
        }
        if let (Some(count), Some(temperature)) = (count, temperature) {
            return (count, temperature);
        }
    }
    panic!("no samples in {PATIENCE:?}");
}

/// Takes what is on its way.
fn drain(real: &mut dyn Node) {
    while let Ok(Some(_)) = real.event(Duration::from_millis(500)) {}
}

fn comes_through_again_and_again(name: &str) {
    let board = image(name);
    let _turn = alone();
    let (old, at) = router();
    let mut real = Real.client(&at).expect("a session");
    real.subscribe("in", "sensor/*").expect("a subscriber");
    let first = relay(&board, &at);

    let (before, temperature) = samples(real.as_mut());
    assert!((20.0..=25.0).contains(&temperature), "{temperature}");
    let (next, _) = samples(real.as_mut());
    assert!(next > before, "{next} after {before}");

    let started = Instant::now();
    old.kill();
    drain(real.as_mut());
    let _new = Peer::router(&at).expect("a router");
    let (next, _) = samples(real.as_mut());
    assert!(next > before, "the board has not started again");
    println!(
        "{name}: again {:?} after the router ended",
        started.elapsed()
    );

    let totals = first.stop();
    assert_eq!((totals.forth.too_large, totals.bad_frames), (0, 0));
    drain(real.as_mut());
    let started = Instant::now();
    let _second = relay(&board, &at);
    let (count, _) = samples(real.as_mut());
    assert!(count < next, "it begins anew: {count} after {next}");
    println!(
        "{name}: again {:?} after the board ended",
        started.elapsed()
    );
}

#[test]
fn sensor_reaches_a_router_through_its_uart() {
    comes_through_again_and_again("sensor_uart");
}

#[test]
fn sensor_reaches_a_router_through_shared_memory() {
    comes_through_again_and_again("sensor");
}
