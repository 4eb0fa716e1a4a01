//! Where a peer is: the one syntax that names a link everywhere.
//!
//! ```text
//! tcp:HOST:PORT    udp:HOST:PORT    unix:PATH    serial:PATH    exec:COMMAND    stdio:    shm:PATH
//! qemu:IMAGE
//! ```
//! Options follow the last `?`, joined by `&`:
//!
//! | option | for | default |
//! |---|---|---|
//! | `frame=hdlc`, `len`, `cobs` or `zenoh` | byte streams: tcp, unix, serial, exec, stdio, and the UART of qemu | `hdlc`; [`Use`] |
//! | `channel=N` | all; 1 to 4,294,967,295 | 1 |
//! | `mtu=N` | all, but not beside `config`; 64 to 4,096 bytes per packet, for [other uses](Use) than calls more | 1,024; [`Use`]; of qemu what the image says |
//! | `baud=N` | serial | 115,200 |
//! | `doorbell=SOCKET` | shm, in memory that an emulator or another core shares: a unix socket, on which one byte rings | none: a process serves at PATH |
//! | `offset=N` | the same: where the link begins in the file, in bytes, a multiple of 4,096 | 0 |
//! | `config=FILE` | shm, qemu: a link file (`sinew_shm::domain::file`), one channel of which carries the calls | a link with one channel, of `mtu` |
//! | `queue=NAME` | with `config`: which channel, by its name or id | `rpc`, or the only one |
//! | `spin=N` | shm, qemu; 0 to 1,000 microseconds of looking before a sleep | 50 |
//! | `machine=NAME` | qemu: a machine of [`qemu::MACHINES`](crate::qemu::MACHINES) | what the image says |
//! | `link=uart` or `shm` | qemu: whether the image talks by its UART, or by memory and a doorbell | what the image says |
//!
//! IPv6 addresses stand in brackets: `tcp:[::1]:4000`. A path or command that contains a `?` ends
//! in one more. `stdio:` is the other end of `exec:`: the own standard input and output.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use sinew::frame::Framing;

/// The packet size where an endpoint names none: room for Pigweed's 512-byte packets and more.
pub const DEFAULT_MTU: usize = 1024;
/// The smallest packet size that an endpoint may name.
pub const MIN_MTU: usize = 64;
/// The largest packet size that an endpoint for calls may name.
pub const MAX_MTU: usize = 4096;
/// The largest packet size that any endpoint may name: the longest batch of Zenoh.
pub const MAX_BATCH: usize = 65_535;
/// The same over udp: the longest datagram, under either version of IP.
const MAX_DATAGRAM: usize = 65_487;
/// A batch that fits into one frame of an Ethernet.
const UDP_BATCH: usize = 1450;
/// The speed of a serial line where an endpoint names none.
pub const DEFAULT_BAUD: u32 = 115_200;
/// The packet size of an endpoint that leaves it to its image.
const AS_THE_IMAGE_SAYS: usize = 0;
/// The longest time to look before a sleep that an endpoint may name.
pub const MAX_SPIN: Duration = Duration::from_millis(1);

/// What the packets of a link are. It decides what an endpoint means where its text does not say,
/// and how large a packet may be.
///
/// | use | framing of a stream | bytes per packet | at most |
/// |---|---|---|---|
/// | calls | `hdlc` | 1,024 | 4,096 |
/// | batches | `zenoh` on tcp and unix, else `hdlc` | 65,535 on shm, and with `zenoh` or `len`; 1,450 on udp; else 1,024 | 65,535; on udp 65,487 |
/// | any | `hdlc` | 65,535 with `zenoh`; else 1,024 | as for batches |
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Use {
    /// Packets of calls, what [`FromStr`] assumes.
    #[default]
    Calls,
    /// Batches of Zenoh.
    Batches,
    /// Packets that others make, carried on as they are.
    Any,
}

impl Use {
    fn framing(self, address: &Address) -> Framing {
        match (self, address) {
            (Use::Batches, Address::Tcp(..) | Address::Unix(_)) => Framing::Zenoh,
            _ => Framing::HDLC,
        }
    }

    fn mtu(self, address: &Address, framing: Framing) -> usize {
        let on_stream = address.is_stream().then_some(framing);
        match (self, on_stream) {
            _ if matches!(address, Address::Qemu(_)) => AS_THE_IMAGE_SAYS,
            (Use::Batches | Use::Any, Some(Framing::Zenoh)) => MAX_BATCH,
            (Use::Batches, Some(Framing::Length)) => MAX_BATCH,
            (Use::Batches, None) if matches!(address, Address::Shm(_)) => MAX_BATCH,
            (Use::Batches, None) => UDP_BATCH,
            _ => DEFAULT_MTU,
        }
    }

    fn max_mtu(self, address: &Address) -> usize {
        match (self, address) {
            (Use::Calls, _) => MAX_MTU,
            (_, Address::Udp(..)) => MAX_DATAGRAM,
            _ => MAX_BATCH,
        }
    }
}

/// A place to connect to or to serve at, with its options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// What and where.
    pub address: Address,
    /// What it was made for.
    pub usage: Use,
    /// How packets are framed on a byte stream; of no meaning for udp and shm.
    pub framing: Framing,
    /// The channel id of calls.
    pub channel: u32,
    /// The largest packet in bytes. Both sides should agree; a larger packet is counted and
    /// dropped. Over shared memory both sides must have the same. 0 for an image in an emulator: what
    /// the image says.
    pub mtu: usize,
    /// Over shared memory: how long a thread that waits looks for a packet before it sleeps, in
    /// whole microseconds, at most [`MAX_SPIN`]; `None` is 50. Whoever else needs the processor gets
    /// it meanwhile.
    pub spin: Option<Duration>,
    /// Over memory that another core shares, and not another process: how it is rung.
    pub doorbell: Option<Box<Doorbell>>,
    /// Over shared memory: the channel of a larger link that carries the calls. Its blocks say how
    /// large a packet is, and `mtu` has no meaning.
    pub queue: Option<Box<Queue>>,
}

/// A channel of a link that a file describes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Queue {
    /// The link file. Its path has no `&`.
    pub config: PathBuf,
    /// The channel's name or id; `None` is the one named `rpc`, or the only one.
    pub name: Option<String>,
}

/// How the two sides of a shared file ring each other, and where in it their link lies.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Doorbell {
    /// A unix socket to which this side connects; one byte is one ring. Its path has no `&`.
    pub socket: PathBuf,
    /// Where the link begins in the file, in bytes: a multiple of 4,096.
    pub offset: u64,
}

/// The carrier of an [`Endpoint`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// A TCP socket: host name or address (IPv6 without its brackets) and port.
    Tcp(String, u16),
    /// A UDP socket, one packet per datagram.
    Udp(String, u16),
    /// A unix stream socket.
    Unix(PathBuf),
    /// A serial line or pseudo-terminal, and its speed in baud.
    Serial(PathBuf, u32),
    /// A command for the shell; its standard input and output are the link.
    Exec(String),
    /// The own standard input and output: what a command under `exec:` serves.
    Stdio,
    /// Memory shared with another process or processor.
    Shm(PathBuf),
    /// An image on a board that QEMU emulates, which is started for the link and ends with it.
    Qemu(Box<Emulated>),
}

/// An image, and what is to hold in place of what it says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Emulated {
    /// The ELF file.
    pub image: PathBuf,
    /// The machine of QEMU on which it runs; `None`: as it says.
    pub machine: Option<String>,
    /// By what it talks; `None`: as it says.
    pub carrier: Option<Carrier>,
}

/// By what a board talks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carrier {
    /// Frames on its UART.
    Uart,
    /// Memory, with a doorbell in both directions.
    Shm,
}

impl Carrier {
    /// The one of this name: `uart` or `shm`.
    pub fn from_name(name: &str) -> Option<Carrier> {
        let known = [Carrier::Uart, Carrier::Shm];
        known.into_iter().find(|carrier| carrier.name() == name)
    }

    /// Its name in endpoints, and in what images say of themselves.
    pub fn name(self) -> &'static str {
        match self {
            Carrier::Uart => "uart",
            Carrier::Shm => "shm",
        }
    }
}

impl Address {
    /// Whether packets are framed on a byte stream here, or may be: an image says only when it is read.
    pub fn is_stream(&self) -> bool {
        !matches!(self, Address::Udp(..) | Address::Shm(_))
    }
}

impl From<Address> for Endpoint {
    /// The address with the default options of calls.
    fn from(address: Address) -> Self {
        Endpoint::new(address, Use::Calls)
    }
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

impl FromStr for Endpoint {
    type Err = EndpointError;

    /// An endpoint for calls.
    fn from_str(text: &str) -> Result<Self, EndpointError> {
        Endpoint::parse(text, Use::Calls)
    }
}

impl Endpoint {
    /// The address with the default options of a use.
    pub fn new(address: Address, usage: Use) -> Endpoint {
        let framing = usage.framing(&address);
        Endpoint {
            mtu: usage.mtu(&address, framing),
            address,
            usage,
            framing,
            channel: 1,
            spin: None,
            doorbell: None,
            queue: None,
        }
    }

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

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = |host: &String| match host.contains(':') {
            true => format!("[{host}]"),
            false => host.clone(),
        };
        match self {
            Address::Tcp(name, port) => write!(f, "tcp:{}:{port}", host(name)),
            Address::Udp(name, port) => write!(f, "udp:{}:{port}", host(name)),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Serial(path, _) => write!(f, "serial:{}", path.display()),
            Address::Exec(command) => write!(f, "exec:{command}"),
            Address::Stdio => f.write_str("stdio:"),
            Address::Shm(path) => write!(f, "shm:{}", path.display()),
            Address::Qemu(emulated) => write!(f, "qemu:{}", emulated.image.display()),
        }
    }
}

/// In the syntax that is parsed; options that have their default are left out.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut options = Vec::new();
        if self.address.is_stream() && self.framing != self.usage.framing(&self.address) {
            options.push(format!("frame={}", self.framing.name()));
        }
        if self.channel != 1 {
            options.push(format!("channel={}", self.channel));
        }
        let mtu = self.usage.mtu(&self.address, self.framing);
        if self.mtu != mtu && self.queue.is_none() {
            options.push(format!("mtu={}", self.mtu));
        }
        if let Address::Serial(_, baud) = self.address
            && baud != DEFAULT_BAUD
        {
            options.push(format!("baud={baud}"));
        }
        if let Address::Qemu(emulated) = &self.address {
            let machine = emulated.machine.iter();
            options.extend(machine.map(|machine| format!("machine={machine}")));
            let carrier = emulated.carrier.iter();
            options.extend(carrier.map(|carrier| format!("link={}", carrier.name())));
        }
        if let Some(spin) = self.spin {
            options.push(format!("spin={}", spin.as_micros()));
        }
        if let Some(bell) = &self.doorbell {
            let Doorbell { socket, offset } = &**bell;
            options.push(format!("doorbell={}", socket.display()));
            if *offset != 0 {
                options.push(format!("offset={offset}"));
            }
        }
        if let Some(queue) = &self.queue {
            options.push(format!("config={}", queue.config.display()));
            options.extend(queue.name.iter().map(|name| format!("queue={name}")));
        }
        let place = self.address.to_string();
        let mark = if options.is_empty() && !place.contains('?') {
            ""
        } else {
            "?"
        };
        write!(f, "{place}{mark}{}", options.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_parsed_and_written_back() {
        for text in [
            "tcp:localhost:4000",
            "tcp:[::1]:4000?channel=7",
            "udp:127.0.0.1:9?mtu=512",
            "unix:/run/sinew.sock?frame=len",
            "unix:/odd/na?me?",
            "serial:/dev/ttyUSB0?frame=cobs&channel=2&baud=9600",
            "exec:qemu -serial stdio 'a ? b'?channel=3",
            "stdio:",
            "shm:/dev/shm/x",
            "shm:/run/sinew.sock?mtu=512&spin=0",
            "shm:/dev/shm/board?mtu=64&doorbell=/run/bell&offset=8192",
            "shm:/run/sinew.sock?config=robot.toml",
            "shm:/run/sinew.sock?config=robot.toml&queue=calls",
            "qemu:target/board",
            "qemu:/odd/im?age?",
            "qemu:board?frame=cobs&channel=2&mtu=64&machine=mps2-an385&link=uart",
            "qemu:board?link=shm&spin=0&config=robot.toml",
        ] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint.to_string(), text);
        }
    }

    #[test]
    fn use_decides_what_a_text_leaves_open() {
        let of = |usage, text: &str| {
            let endpoint = Endpoint::parse(text, usage).unwrap();
            assert_eq!(endpoint.to_string(), text);
            (endpoint.framing, endpoint.mtu)
        };
        let hdlc = Framing::HDLC;
        assert_eq!(of(Use::Calls, "tcp:a:1?frame=zenoh").1, DEFAULT_MTU);
        assert_eq!(of(Use::Batches, "tcp:a:1"), (Framing::Zenoh, MAX_BATCH));
        assert_eq!(of(Use::Batches, "tcp:a:1?frame=hdlc"), (hdlc, DEFAULT_MTU));
        assert_eq!(of(Use::Batches, "serial:/x"), (hdlc, DEFAULT_MTU));
        assert_eq!(of(Use::Batches, "udp:a:1").1, UDP_BATCH);
        assert_eq!(of(Use::Batches, "shm:/x").1, MAX_BATCH);
        assert_eq!(of(Use::Any, "unix:/x"), (hdlc, DEFAULT_MTU));
        assert_eq!(of(Use::Any, "unix:/x?frame=zenoh").1, MAX_BATCH);
        assert_eq!(of(Use::Any, "unix:/x?frame=zenoh&mtu=64").1, 64);
        assert_eq!(of(Use::Any, "udp:a:1?mtu=65487").1, MAX_DATAGRAM);
        for usage in [Use::Calls, Use::Batches, Use::Any] {
            assert_eq!(of(usage, "qemu:x"), (hdlc, AS_THE_IMAGE_SAYS));
            assert_eq!(of(usage, "qemu:x?mtu=128"), (hdlc, 128));
        }
    }

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
    fn defaults_are_channel_1_hdlc_and_115200_baud() {
        let endpoint: Endpoint = "serial:/dev/ttyS0".parse().unwrap();
        assert_eq!(endpoint.channel, 1);
        assert_eq!(endpoint.framing, Framing::HDLC);
        assert_eq!(
            endpoint.address,
            Address::Serial("/dev/ttyS0".into(), 115_200)
        );
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
