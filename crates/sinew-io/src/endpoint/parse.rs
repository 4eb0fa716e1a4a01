//! An endpoint from its text, and why a text is none.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sinew::frame::Framing;

use super::{Address, Carrier, DEFAULT_BAUD, Emulated, Endpoint, MAX_SPIN, MIN_MTU, Use};

impl FromStr for Endpoint {
    type Err = EndpointError;

    /// An endpoint for calls.
    fn from_str(text: &str) -> Result<Self, EndpointError> {
        Endpoint::parse(text, Use::Calls)
    }
}

impl Endpoint {
    /// The endpoint of this text, with the defaults and limits of a use.
    pub fn parse(text: &str, usage: Use) -> Result<Endpoint, EndpointError> {
        let (place, options) = text.rsplit_once('?').unwrap_or((text, ""));
        let (kind, rest) = place
            .split_once(':')
            .ok_or_else(|| EndpointError::Kind(place.to_string()))?;
        let path = || {
            if rest.is_empty() {
                Err(EndpointError::Empty)
            } else {
                Ok(rest)
            }
        };
        let address = match kind {
            "tcp" => host_port(rest).map(|(host, port)| Address::Tcp(host, port))?,
            "udp" => host_port(rest).map(|(host, port)| Address::Udp(host, port))?,
            "unix" => Address::Unix(path()?.into()),
            "serial" => Address::Serial(path()?.into(), DEFAULT_BAUD),
            "exec" => Address::Exec(path()?.into()),
            "stdio" if rest.is_empty() => Address::Stdio,
            "stdio" => return Err(EndpointError::NotEmpty(rest.to_string())),
            "shm" => Address::Shm(path()?.into()),
            "qemu" => Address::Qemu(Box::new(Emulated {
                image: path()?.into(),
                machine: None,
                carrier: None,
            })),
            _ => return Err(EndpointError::Kind(place.to_string())),
        };
        let mut endpoint = Endpoint::new(address, usage);
        let mut mtu = None;
        let mut seen = Vec::new();
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match name {
                // What it may be depends on the others.
                "mtu" => mtu = Some(value),
                _ => endpoint.set(option)?,
            }
            if seen.contains(&name) {
                return Err(EndpointError::Twice(name.to_string()));
            }
            seen.push(name);
        }
        endpoint.set_mtu(mtu)?;
        match &endpoint.doorbell {
            // Between processes there is no file to be offset in.
            Some(bell) if bell.socket.as_os_str().is_empty() => {
                return Err(EndpointError::Needs("offset", "doorbell"));
            }
            _ => {}
        }
        match &endpoint.queue {
            Some(queue) if queue.config.as_os_str().is_empty() => {
                Err(EndpointError::Needs("queue", "config"))
            }
            // The blocks of the channel say how large a packet is.
            Some(_) if seen.contains(&"mtu") => Err(EndpointError::Beside("mtu", "config")),
            _ => Ok(endpoint),
        }
    }

    /// After every other option.
    fn set_mtu(&mut self, value: Option<&str>) -> Result<(), EndpointError> {
        let Some(value) = value else {
            self.mtu = self.usage.mtu(&self.address, self.framing);
            return Ok(());
        };
        let max = self.usage.max_mtu(&self.address);
        let mtu = value.parse().ok();
        let mtu = mtu.filter(|mtu| (MIN_MTU..=max).contains(mtu));
        self.mtu = mtu.ok_or_else(|| EndpointError::Mtu(value.to_string(), max))?;
        Ok(())
    }

    fn set(&mut self, option: &str) -> Result<(), EndpointError> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let bad = |name| EndpointError::Value(name, value.to_string());
        match name {
            "frame" if !self.address.is_stream() => return Err(EndpointError::Misplaced("frame")),
            "frame" => self.framing = Framing::from_name(value).ok_or_else(|| bad("frame"))?,
            "channel" => {
                self.channel = value
                    .parse()
                    .ok()
                    .filter(|&id| id > 0)
                    .ok_or_else(|| bad("channel"))?;
            }
            "baud" => match &mut self.address {
                Address::Serial(_, baud) => {
                    *baud = value
                        .parse()
                        .ok()
                        .filter(|&baud| baud > 0)
                        .ok_or_else(|| bad("baud"))?;
                }
                _ => return Err(EndpointError::Misplaced("baud")),
            },
            "machine" | "link" => {
                let Address::Qemu(emulated) = &mut self.address else {
                    return Err(misplaced(name, &["machine", "link"]));
                };
                match name {
                    "machine" if value.is_empty() => return Err(bad("machine")),
                    "machine" => emulated.machine = Some(value.into()),
                    _ => {
                        let carrier = Carrier::from_name(value);
                        emulated.carrier = Some(carrier.ok_or_else(|| bad("link"))?);
                    }
                }
            }
            "doorbell" | "offset" if !matches!(self.address, Address::Shm(_)) => {
                return Err(misplaced(name, &["doorbell", "offset"]));
            }
            "spin" | "config" | "queue"
                if !matches!(self.address, Address::Shm(_) | Address::Qemu(_)) =>
            {
                return Err(misplaced(name, &["spin", "config", "queue"]));
            }
            "doorbell" if value.is_empty() => return Err(bad("doorbell")),
            "doorbell" => self.doorbell.get_or_insert_default().socket = value.into(),
            "config" if value.is_empty() => return Err(bad("config")),
            "config" => self.queue.get_or_insert_default().config = value.into(),
            "queue" if value.is_empty() => return Err(bad("queue")),
            "queue" => self.queue.get_or_insert_default().name = Some(value.into()),
            "offset" => {
                let offset = value.parse().ok();
                let offset = offset.filter(|offset: &u64| offset.is_multiple_of(4096));
                let offset = offset.ok_or_else(|| bad("offset"))?;
                self.doorbell.get_or_insert_default().offset = offset;
            }
            "spin" => {
                let spin = value.parse().ok().map(Duration::from_micros);
                let spin = spin.filter(|&spin| spin <= MAX_SPIN);
                self.spin = Some(spin.ok_or_else(|| bad("spin"))?);
            }
            _ => return Err(EndpointError::Option(option.to_string())),
        }
        Ok(())
    }
}

fn misplaced(name: &str, known: &[&'static str]) -> EndpointError {
    let name = known.iter().find(|known| **known == name);
    EndpointError::Misplaced(name.copied().unwrap_or_default())
}

fn host_port(text: &str) -> Result<(String, u16), EndpointError> {
    let bad = || EndpointError::HostPort(text.to_string());
    let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').ok_or_else(bad)?,
        None if host.contains(':') => return Err(bad()),
        None => host,
    };
    let port = port.parse().map_err(|_| bad())?;
    if host.is_empty() {
        return Err(bad());
    }
    Ok((host.to_string(), port))
}

/// Why a text is no endpoint.
#[derive(Clone, PartialEq, Eq)]
pub enum EndpointError {
    /// There is no such kind, or no `:` behind it.
    Kind(String),
    /// Host and port are not of the form `HOST:PORT`.
    HostPort(String),
    /// The path or command is missing.
    Empty,
    /// Something follows `stdio:`.
    NotEmpty(String),
    /// There is no such option.
    Option(String),
    /// The option does not apply to this kind of endpoint.
    Misplaced(&'static str),
    /// The option says nothing without another one.
    Needs(&'static str, &'static str),
    /// The option does not apply where another one stands.
    Beside(&'static str, &'static str),
    /// The option stands there more than once.
    Twice(String),
    /// The option's value is out of its range.
    Value(&'static str, String),
    /// The packet size is out of its range, which ends here.
    Mtu(String, usize),
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EndpointError::Kind(text) => match of_zenoh(text) {
                Some((kind, rest)) => {
                    write!(f, "`{text}` is how Zenoh writes it: write {kind}:{rest}")
                }
                None => write!(
                    f,
                    "`{text}` is no endpoint: write tcp:HOST:PORT, udp:HOST:PORT, unix:PATH, \
                     serial:PATH, shm:PATH, qemu:IMAGE, exec:COMMAND or stdio:"
                ),
            },
            EndpointError::HostPort(text) => write!(
                f,
                "`{text}` is not HOST:PORT with a port from 0 to 65535; an IPv6 address stands \
                 in brackets, as in [::1]:4000"
            ),
            EndpointError::Empty => f.write_str("a path or a command must follow the colon"),
            EndpointError::NotEmpty(text) => {
                write!(f, "`{text}` after `stdio:` has no meaning: leave it out")
            }
            EndpointError::Option(text) => write!(
                f,
                "there is no option `{text}`: known are frame, channel, mtu, baud, config, queue, \
                 spin, doorbell, offset, machine and link; a path or command that contains a `?` must end in one more"
            ),
            EndpointError::Misplaced(option) => {
                write!(
                    f,
                    "the option `{option}` does not apply to this kind of endpoint: leave it out"
                )
            }
            EndpointError::Needs(option, other) => {
                write!(f, "the option `{option}` needs `{other}` beside it: add it")
            }
            EndpointError::Beside(option, other) => write!(
                f,
                "the option `{option}` does not apply beside `{other}`: leave one out"
            ),
            EndpointError::Twice(option) => {
                write!(f, "the option `{option}` stands there twice: leave one out")
            }
            EndpointError::Value(option, value) => {
                let range = match *option {
                    "frame" => "hdlc, len, cobs or zenoh",
                    "channel" => "1 to 4294967295",
                    "spin" => "0 to 1000 microseconds",
                    "doorbell" => "the path of a unix socket",
                    "config" => "the path of a link file",
                    "queue" => "the name or the id of a channel in the link file",
                    "offset" => "bytes, a multiple of 4096",
                    "machine" => "the name of a machine of QEMU",
                    "link" => "uart or shm",
                    _ => "a speed in baud, for example 115200",
                };
                write!(
                    f,
                    "`{value}` is no value for the option `{option}`: it takes {range}"
                )
            }
            EndpointError::Mtu(value, max) => write!(
                f,
                "`{value}` is no value for the option `mtu`: it takes {MIN_MTU} to {max} bytes here"
            ),
        }
    }
}

/// The kind and the rest of an endpoint as Zenoh writes it.
fn of_zenoh(text: &str) -> Option<(&'static str, &str)> {
    let kinds = [
        ("tcp/", "tcp"),
        ("udp/", "udp"),
        ("unixsock-stream/", "unix"),
    ];
    let mut known = kinds.into_iter();
    known.find_map(|(theirs, ours)| Some((ours, text.strip_prefix(theirs)?)))
}

/// As [`fmt::Display`]: a program that returns the error from `main` then shows its cause and
/// remedy.
impl fmt::Debug for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for EndpointError {}

#[cfg(test)]
mod tests {
    use super::super::{MAX_BATCH, MAX_DATAGRAM, MAX_MTU};
    use super::*;

    #[test]
    fn packets_of_calls_stay_small_and_datagrams_fit_ip() {
        for (usage, text, max) in [
            (Use::Calls, "tcp:a:1?frame=zenoh&mtu=4097", MAX_MTU),
            (Use::Batches, "tcp:a:1?mtu=65536", MAX_BATCH),
            (Use::Any, "udp:a:1?mtu=65488", MAX_DATAGRAM),
        ] {
            let error = Endpoint::parse(text, usage).unwrap_err();
            assert!(matches!(error, EndpointError::Mtu(_, limit) if limit == max));
        }
    }

    #[test]
    fn bad_texts_are_refused_with_their_cause() {
        use EndpointError::*;
        let error = |text: &str| text.parse::<Endpoint>().unwrap_err();
        assert_eq!(error("localhost"), Kind("localhost".into()));
        assert_eq!(error("ftp:x"), Kind("ftp:x".into()));
        assert_eq!(error("tcp:localhost"), HostPort("localhost".into()));
        assert_eq!(error("tcp:::1:80"), HostPort("::1:80".into()));
        assert_eq!(error("tcp:[::1:80"), HostPort("[::1:80".into()));
        assert_eq!(error("tcp::80"), HostPort(":80".into()));
        assert_eq!(error("tcp:a:65536"), HostPort("a:65536".into()));
        assert_eq!(error("unix:"), Empty);
        assert_eq!(error("stdio:x"), NotEmpty("x".into()));
        assert_eq!(error("unix:/x?colour=red"), Option("colour=red".into()));
        assert_eq!(error("unix:/x?baud=9600"), Misplaced("baud"));
        assert_eq!(error("udp:a:1?frame=hdlc"), Misplaced("frame"));
        assert_eq!(error("unix:/x?frame=ppp"), Value("frame", "ppp".into()));
        assert_eq!(error("unix:/x?channel=0"), Value("channel", "0".into()));
        assert_eq!(error("unix:/x?mtu=9999"), Mtu("9999".into(), MAX_MTU));
        assert_eq!(error("unix:/x?spin=5"), Misplaced("spin"));
        assert_eq!(error("shm:/x?spin=1001"), Value("spin", "1001".into()));
        assert_eq!(error("tcp:x:1?doorbell=/y"), Misplaced("doorbell"));
        assert_eq!(error("shm:/x?offset=4096"), Needs("offset", "doorbell"));
        assert_eq!(error("shm:/x?doorbell="), Value("doorbell", "".into()));
        assert_eq!(error("unix:/x?config=y"), Misplaced("config"));
        assert_eq!(error("shm:/x?queue=rpc"), Needs("queue", "config"));
        assert_eq!(error("shm:/x?config=y&queue="), Value("queue", "".into()));
        assert_eq!(
            error("shm:/x?doorbell=/y&offset=1"),
            Value("offset", "1".into())
        );
        assert_eq!(error("shm:/x?mtu=64&config=y"), Beside("mtu", "config"));
        assert_eq!(error("shm:/x?config=y&mtu=64"), Beside("mtu", "config"));
        assert_eq!(error("shm:/x?mtu=64&mtu=512"), Twice("mtu".into()));
        assert_eq!(error("shm:/x?config=y&config=z"), Twice("config".into()));
        assert_eq!(error("qemu:"), Empty);
        assert_eq!(error("qemu:x?doorbell=/y"), Misplaced("doorbell"));
        assert_eq!(error("shm:/x?machine=virt"), Misplaced("machine"));
        assert_eq!(error("unix:/x?link=uart"), Misplaced("link"));
        assert_eq!(error("qemu:x?machine="), Value("machine", "".into()));
        assert_eq!(error("qemu:x?link=can"), Value("link", "can".into()));
        assert_eq!(error("serial:/x?baud=fast"), Value("baud", "fast".into()));
    }
}
