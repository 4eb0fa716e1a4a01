//! A server that tells of itself: what it serves, what it has to say, how it fares.

use std::error::Error;

use sinew_io::connect;
use sinew_services::{DescribeRequest, InfoRequest};

use super::home::lamp;
use super::service::LampService;

// ANCHOR: telling
use sinew_io::Server;
use sinew_io::serve::LinkCounters;
use sinew_services::device::{About, Observed, Show};
use sinew_services::log::{self, Clock, Logger};
use sinew_services::reflection::{self, Schemas};
use sinew_shm::StdLock;

const ABOUT: About = About {
    name: "lamp",
    version: env!("CARGO_PKG_VERSION"),
    build: "release",
};

/// The time since the start of the program.
struct Uptime;

impl Clock for Uptime {
    fn now() -> sinew::time::Instant {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        let start = START.get_or_init(std::time::Instant::now);
        sinew::time::Instant::START.after(start.elapsed())
    }
}

static LOG: Logger<StdLock, Uptime, 64> = Logger::new();

fn server() -> Result<Server<impl sinew::rpc::Service>, &'static str> {
    let records = LOG.records().ok_or("somebody serves it already")?;
    let services = (
        lamp::Serve(LampService::default()),
        log::Serve(records),
        reflection::Serve(Schemas(&[
            super::SCHEMA, // made by `.schema(true)` in build.rs
            sinew_services::log::SCHEMA,
            sinew_services::device::SCHEMA,
        ])),
    );
    let links = LinkCounters::default();
    // Up to 8 methods are counted.
    let services = Observed::<_, 8>::new(ABOUT, Uptime::now, services);
    let counted = links.clone();
    let server = Server::new(services.with_counters(move |show: &mut Show<'_>| counted.each(show)));
    server.count_links(links);
    Ok(server)
}
// ANCHOR_END: telling

#[test]
fn a_server_tells_what_it_is_and_what_it_serves() -> Result<(), Box<dyn Error>> {
    let listening = server()?.listen(&"tcp:127.0.0.1:0".parse()?)?;
    let client = connect(listening.endpoint())?;
    let info = sinew_services::device::Client(&client).info(&InfoRequest::default())?;
    assert_eq!(info.name, "lamp");
    let described = reflection::Client(&client).describe(&DescribeRequest { schema: 0 })?;
    assert_eq!((described.schemas, described.hash), (3, super::SCHEMA.hash));
    Ok(())
}
