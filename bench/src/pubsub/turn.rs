//! A contender in a case: its processes, and one round of it.

use std::thread::sleep;
use std::time::Duration;

use sinew_bench_party::Path;

use super::case::{Case, Cores, Measure};
use super::child::Party;
use super::contender::{Contender, zenoh};
use super::ports::free_port;
use super::proxy::Proxy;
use crate::Result;

/// How long nothing more may come before it is lost.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long it is quiet after a session is opened.
const QUIET: Duration = Duration::from_millis(300);

/// Figures of one round, in the order of [`Case::figures`].
pub struct Round {
    pub figures: Vec<f64>,
    /// Samples that never came, of all so far.
    pub lost: f64,
    /// Samples that came twice or out of order.
    pub late: f64,
}

/// All processes of a contender in a case. They are ended in this order.
pub struct Turn {
    case: &'static Case,
    /// Publishes or pings.
    active: Party,
    /// Subscribes or answers.
    passive: Party,
    _router: Option<Party>,
    proxy: Option<Proxy>,
}

impl Turn {
    /// Starts them.
    pub fn open(contender: &Contender, case: &'static Case) -> Result<Self> {
        let (passive, active) = match case.measure {
            Measure::RoundTrip => ("pong", "ping"),
            _ => ("subscribe", "publish"),
        };
        let port = free_port()?;
        let endpoint = match case.path {
            Path::Shm => format!("shm/sinew-bench-{}-{port}", std::process::id()),
            _ => format!("tcp/127.0.0.1:{port}"),
        };
        let core = |core: &'static str| match case.cores {
            Cores::Any => None,
            Cores::Two => Some(core),
            Cores::One => Some("0"),
        };
        let party = |role: &str, endpoint: &str, core: Option<&str>| {
            let mut command = contender.command()?;
            command.args([role, "--path", case.path.word(), "--endpoint", endpoint]);
            command.args(["--size", &case.size.to_string()]);
            command.args(["--batched", if case.batched { "yes" } else { "no" }]);
            command.args(core.map(|core| ["--core", core]).into_iter().flatten());
            command.args(contender.settings());
            Party::start(command)
        };
        let router = match case.path {
            Path::Router => {
                // The same one for all, which batches what it can, whatever the others do.
                let mut command = zenoh()?;
                command.args(["router", "--path", "router", "--endpoint", &endpoint]);
                command.args(contender.router());
                Some(Party::start(command)?)
            }
            _ => None,
        };
        let passive = party(passive, &endpoint, core("1"))?;
        let proxy = match case.measure {
            Measure::Wire => Some(Proxy::to(port)?),
            _ => None,
        };
        let active = match &proxy {
            Some(proxy) => party(active, &format!("tcp/127.0.0.1:{}", proxy.port), core("0"))?,
            None => party(active, &endpoint, core("0"))?,
        };
        Ok(Turn {
            case,
            active,
            passive,
            _router: router,
            proxy,
        })
    }

    /// One round of about this time.
    pub fn round(&mut self, time: Duration) -> Result<Round> {
        match self.case.measure {
            Measure::Rate => self.rate(time),
            Measure::Sustained => {
                let mut round = self.rate(Duration::from_secs(10))?;
                round.figures.push(round.lost);
                Ok(round)
            }
            Measure::RoundTrip => {
                let answer = self
                    .active
                    .ask(&format!("ping {}", time.as_millis()), time)?;
                Ok(Round {
                    figures: vec![answer.number("p50")?, answer.number("p99")?],
                    lost: 0.0,
                    late: 0.0,
                })
            }
            Measure::Latency(rate) => {
                // Ten samples, at least.
                let time = time.max(Duration::from_secs_f64(10.0 / f64::from(rate)));
                let order = format!("pace {rate} {}", time.as_millis());
                self.publish(&order, time, &["p50", "p99"])
            }
            Measure::Wire => self.wire(time),
        }
    }

    fn rate(&mut self, time: Duration) -> Result<Round> {
        let order = format!("publish {}", time.as_millis());
        self.publish(&order, time, &["rate"])
    }

    fn publish(&mut self, order: &str, time: Duration, figures: &[&str]) -> Result<Round> {
        self.passive.ask("begin", Duration::ZERO)?;
        let sent = self.active.ask(order, time)?.number("sent")?;
        let end = format!("end {sent} {}", PATIENCE.as_millis());
        let seen = self.passive.ask(&end, PATIENCE)?;
        let figures = figures.iter().map(|name| seen.number(name));
        Ok(Round {
            figures: figures.collect::<Result<_>>()?,
            lost: seen.number("lost")?,
            late: seen.number("late")?,
        })
    }

    fn wire(&mut self, time: Duration) -> Result<Round> {
        let bytes = || self.proxy.as_ref().map(Proxy::bytes).unwrap_or_default();
        sleep(QUIET);
        let (forth, back) = bytes();
        let open = forth + back;
        let sent = self
            .active
            .ask(&format!("publish {}", time.as_millis()), time)?;
        let sent = sent.number("sent")?;
        let end = format!("end {sent} {}", PATIENCE.as_millis());
        let seen = self.passive.ask(&end, PATIENCE)?;
        sleep(QUIET);
        let per_sample = (bytes().0 - forth) as f64 / sent - self.case.size as f64;
        Ok(Round {
            figures: vec![per_sample, open as f64],
            lost: seen.number("lost")?,
            late: seen.number("late")?,
        })
    }
}
