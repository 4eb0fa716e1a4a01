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
use std::time::Duration;

use sinew::frame::Framing;

mod parse;

pub use parse::EndpointError;

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
    /// Packets of calls, what [`FromStr`](std::str::FromStr) assumes.
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
}

impl From<Address> for Endpoint {
    /// The address with the default options of calls.
    fn from(address: Address) -> Self {
        Endpoint::new(address, Use::Calls)
    }
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
    fn defaults_are_channel_1_hdlc_and_115200_baud() {
        let endpoint: Endpoint = "serial:/dev/ttyS0".parse().unwrap();
        assert_eq!(endpoint.channel, 1);
        assert_eq!(endpoint.framing, Framing::HDLC);
        assert_eq!(
            endpoint.address,
            Address::Serial("/dev/ttyS0".into(), 115_200)
        );
    }
}
