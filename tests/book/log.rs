//! A program of a host with a log, and one that reads it.

use std::error::Error;
use std::time::Duration;

use sinew_io::{AnyLink, Client, Server, connect};

// ANCHOR: host
use sinew::time::Instant;
use sinew_services::log::{Clock, Logger, Serve};
use sinew_shm::StdLock;

/// The time since the start of the program.
struct Uptime;

impl Clock for Uptime {
    fn now() -> Instant {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        let start = START.get_or_init(std::time::Instant::now);
        Instant::START.after(start.elapsed())
    }
}

/// Up to 64 records wait for somebody who reads them.
static LOG: Logger<StdLock, Uptime, 64> = Logger::new();

/// From now on, what any crate logs goes there. The service is served beside the others.
fn log_service() -> Result<impl sinew::rpc::Service, &'static str> {
    let records = LOG.records().ok_or("somebody serves it already")?;
    log::set_logger(const { &&LOG }).map_err(|_| "there is another logger already")?;
    log::set_max_level(log::LevelFilter::Info);
    Ok(Serve(records))
}
// ANCHOR_END: host

/// The texts of another's log.
fn texts(client: &Client<AnyLink>) -> Result<Vec<String>, sinew::rpc::CallError> {
    // ANCHOR: reader
    use sinew_services::record::Said;
    use sinew_services::{RecordsRequest, Severity, log};

    let wants = RecordsRequest {
        least: Severity::Info,
        until_empty: true, // what there is; without it, also what comes
        ..RecordsRequest::default()
    };
    let mut texts = Vec::new();
    let mut records = log::Client(client).records(&wants)?;
    while let Some(record) = records.next()? {
        if let Some(Said::Text(text)) = &record.said {
            texts.push(format!("{}: {text}", record.module));
        }
    }
    // ANCHOR_END: reader
    Ok(texts)
}

#[test]
fn what_a_program_logs_is_read_by_another() -> Result<(), Box<dyn Error>> {
    let server = Server::new((
        sinew_demo::cache::Serve(sinew_demo::CacheService::new()),
        log_service()?,
    ));
    let listening = server.listen(&"tcp:127.0.0.1:0".parse()?)?;
    log::warn!(target: "motor", "{} degrees", 81);
    log::debug!("too much");
    let mut client = connect(listening.endpoint())?;
    client.set_timeout(Duration::from_secs(60));
    assert_eq!(texts(&client)?, ["motor: 81 degrees"]);
    Ok(())
}
