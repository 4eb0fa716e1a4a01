//! Calls of all four kinds, with cancels in between: through the UART, where there is garbage as well,
//! and through shared memory.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use sinew::frame::hdlc::{self, Decoder, RPC_ADDRESS};
use sinew::rpc::packet::Packet;
use sinew::rpc::{
    Channels, Client, ClientCall, Encode, MethodId, MethodKind, Received, Server, Slot, Status,
    Via, id,
};
use sinew::time::Instant;
use sinew_demo::{CacheService, cache, exercise};

use crate::Result;
use crate::shared::Side;

/// The channel of the calls.
const CHANNEL: u32 = 1;
const TIMEOUT: Duration = Duration::from_secs(5);

const fn kinds(method: &str, kind: MethodKind) -> MethodId {
    MethodId {
        service: id("demo.Kinds"),
        method: id(method),
        kind,
    }
}
const fn cache_method(method: &str) -> MethodId {
    MethodId {
        service: id("demo.Cache"),
        method: id(method),
        kind: MethodKind::Unary,
    }
}
const DOUBLE: MethodId = kinds("Double", MethodKind::Unary);
const COUNT: MethodId = kinds("Count", MethodKind::ServerStream);
const SUM: MethodId = kinds("Sum", MethodKind::ClientStream);
const ECHO_ALL: MethodId = kinds("EchoAll", MethodKind::Bidi);
const SET_VALUE: MethodId = cache_method("SetValue");
const GET_VALUE: MethodId = cache_method("GetValue");

/// What came back for a call, with the payload copied out.
#[derive(PartialEq, Debug)]
enum Reply {
    Item(Vec<u8>),
    Completed(Status, Vec<u8>),
    Failed(Status),
}

/// What carries packets to the board and back.
trait Carrier {
    fn send(&mut self, packet: &[u8]) -> Result<()>;
    fn receive(&mut self) -> Result<Vec<u8>>;
}

/// HDLC on a UART.
struct Uart<'u> {
    uart: &'u UnixStream,
    decoder: Decoder,
    place: [u8; 256],
    input: Vec<u8>,
}

impl<'u> Uart<'u> {
    fn new(uart: &'u UnixStream) -> Uart<'u> {
        Uart {
            uart,
            decoder: Decoder::new(RPC_ADDRESS),
            place: [0; 256],
            input: Vec::new(),
        }
    }
}

impl Carrier for Uart<'_> {
    fn send(&mut self, packet: &[u8]) -> Result<()> {
        let mut frame = [0; 600];
        let len = hdlc::encode(RPC_ADDRESS, packet, &mut frame).ok_or("the frame does not fit")?;
        self.uart.write_all(frame.get(..len).unwrap_or_default())?;
        Ok(())
    }

    fn receive(&mut self) -> Result<Vec<u8>> {
        loop {
            let mut input = &self.input[..];
            let packet = self
                .decoder
                .decode(&mut self.place, &mut input)
                .map(<[u8]>::to_vec);
            let used = self.input.len() - input.len();
            self.input.drain(..used);
            if let Some(packet) = packet {
                return Ok(packet);
            }
            let mut bytes = [0; 256];
            let len = self
                .uart
                .read(&mut bytes)
                .map_err(|error| format!("no answer from the board: {error}"))?;
            if len == 0 {
                return Err("the board has closed its UART".into());
            }
            self.input
                .extend_from_slice(bytes.get(..len).unwrap_or_default());
        }
    }
}

/// One packet per block.
impl Carrier for Side {
    fn send(&mut self, packet: &[u8]) -> Result<()> {
        Side::send(self, packet)
    }

    fn receive(&mut self) -> Result<Vec<u8>> {
        Side::receive(self)
    }
}

struct Host<C> {
    carrier: C,
    client: Client<4>,
}

impl<C: Carrier> Host<C> {
    fn new(carrier: C) -> Host<C> {
        Host {
            carrier,
            client: Client::new(CHANNEL, 1),
        }
    }

    fn send(&mut self, encode: impl FnOnce(&mut [u8]) -> Option<usize>) -> Result<()> {
        let mut packet = [0; 256];
        let len = encode(&mut packet).ok_or("the packet does not fit")?;
        self.carrier.send(packet.get(..len).unwrap_or_default())
    }

    fn open(&mut self, method: MethodId) -> Result<ClientCall> {
        self.client
            .open(method, TIMEOUT, Instant::START)
            .map_err(|_| "no call slot of the client is free".into())
    }

    fn start<T: Encode + ?Sized>(&mut self, method: MethodId, request: &T) -> Result<ClientCall> {
        let call = self.open(method)?;
        self.send(|place| call.request(place, request))?;
        Ok(call)
    }

    fn item(&mut self, call: ClientCall, n: u32) -> Result<()> {
        self.send(|place| call.item(place, &num(n)[..]))
    }

    fn complete(&mut self, call: ClientCall) -> Result<()> {
        let mut packet = [0; 64];
        let len = self.client.complete(&call, &mut packet);
        self.send(|place| packet.get(..len)?.encode(place))
    }

    fn cancel(&mut self, call: ClientCall) -> Result<()> {
        let mut packet = [0; 64];
        let len = self.client.cancel(&call, Status::CANCELLED, &mut packet);
        self.send(|place| packet.get(..len)?.encode(place))
    }

    /// The next reply for any open call; what comes for an ended one is dropped, as the engine
    /// does it.
    fn next(&mut self) -> Result<(u32, Reply)> {
        loop {
            let packet = self.carrier.receive()?;
            let mut answer = [0; 64];
            let (_, event) = self.client.handle(&packet, &mut answer, Instant::START);
            if let Some(event) = event {
                let reply = match event.received {
                    Received::Item(bytes) => Reply::Item(bytes.to_vec()),
                    Received::Completed(status, bytes) => Reply::Completed(status, bytes.to_vec()),
                    Received::Failed(status) => Reply::Failed(status),
                };
                return Ok((event.call.call_id(), reply));
            }
        }
    }

    fn expect(&mut self, call: ClientCall, reply: Reply) -> Result<()> {
        let got = self.next()?;
        let expected = (call.call_id(), reply);
        if got == expected {
            Ok(())
        } else {
            Err(format!("expected {expected:?}, got {got:?}").into())
        }
    }
}

/// The encoded message `Num`.
fn num(n: u32) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    let len = sinew::wire::varint::write32(&mut bytes, 1, n).unwrap_or(0);
    bytes.truncate(len);
    bytes[0] = 8;
    if n == 0 { Vec::new() } else { bytes }
}

/// What an image serves.
#[derive(Clone, Copy)]
pub struct Services {
    kinds: bool,
    cache: bool,
}

impl Services {
    pub const KINDS: Services = Services {
        kinds: true,
        cache: false,
    };
    pub const CACHE: Services = Services {
        kinds: false,
        cache: true,
    };
    pub const BOTH: Services = Services {
        kinds: true,
        cache: true,
    };
}

/// Calls all methods of the services, with garbage in between, and returns how many calls were made.
pub fn through_uart(uart: &UnixStream, services: Services) -> Result<u32> {
    let mut host = Host::new(Uart::new(uart));
    let mut calls = 0;
    for garbage in garbage() {
        host.carrier.uart.write_all(&garbage)?;
        if services.kinds {
            calls += each_kind(&mut host)?;
        }
        if services.cache {
            calls += cache(&mut host)?;
        }
    }
    if services.kinds {
        calls += many(&mut host)?;
    }
    Ok(calls)
}

/// Calls `demo.Cache` of an image that calls it here, and returns how many calls were made by both sides. What
/// this side has is what the other then has.
pub fn both_ways(uart: &UnixStream) -> Result<u32> {
    let mut host = Host::new(Serving {
        carrier: Uart::new(uart),
        server: Server::new(&SLOTS),
        services: cache::Serve(CacheService::with(HERE)),
        served: 0,
    });
    let mut calls = 0;
    while host.carrier.served < 20 {
        let served = host.carrier.served;
        let call = host.start(GET_VALUE, &[][..])?;
        let (id, reply) = host.next()?;
        // It had 0 before it was answered the first time.
        let is_right = matches!(&reply, Reply::Completed(Status::OK, bytes)
            if *bytes == num(HERE as u32) || (served == 0 && bytes.is_empty()));
        if id != call.call_id() || !is_right {
            return Err(format!("the image has {reply:?}, not {HERE}").into());
        }
        calls += 1;
    }
    Ok(calls + host.carrier.served)
}

/// The value that this side has.
const HERE: i32 = 4711;

static SLOTS: [Slot; 1] = [const { Slot::new() }; 1];

/// A carrier that serves what the other side calls.
struct Serving<C> {
    carrier: C,
    server: Server<1>,
    services: cache::Serve<CacheService>,
    served: u32,
}

impl<C: Carrier> Carrier for Serving<C> {
    fn send(&mut self, packet: &[u8]) -> Result<()> {
        self.carrier.send(packet)
    }

    fn receive(&mut self) -> Result<Vec<u8>> {
        let via = Via {
            link: 0,
            channels: Channels::Any,
            port: None,
            bulk: None,
        };
        loop {
            let packet = self.carrier.receive()?;
            match Packet::decode(&packet) {
                Ok(request) if request.packet_type.is_for_server() => {
                    let (mut place, services) = ([0; 256], &mut self.services);
                    let server = &mut self.server;
                    let len =
                        server.handle_packet(&request, &via, &mut place, services, Instant::START);
                    if len > 0 {
                        self.carrier.send(place.get(..len).unwrap_or_default())?;
                        self.served += 1;
                    }
                }
                _ => return Ok(packet),
            }
        }
    }
}

/// The same through memory, where there is no garbage between packets.
pub fn through_memory(side: Side) -> Result<u32> {
    let mut host = Host::new(side);
    Ok(each_kind(&mut host)? + cache(&mut host)? + many(&mut host)?)
}

/// All kinds once.
pub fn few_through_memory(side: Side) -> Result<()> {
    each_kind(&mut Host::new(side)).map(drop)
}

/// Calls as a program makes them, with nothing but the name of the endpoint.
pub fn by_endpoint(endpoint: &str) -> Result<u32> {
    let client = sinew_io::connect(&endpoint.parse()?)?;
    let calls = 100;
    for value in 0..calls / 2 {
        let answer = exercise(&mut cache::Client(&client), value)?;
        if answer != value {
            return Err(format!("{answer} instead of {value}").into());
        }
    }
    Ok(calls as u32)
}

/// One call of `Double(n)`; how often it was sent again, at most `repeats` times, as it was not answered in time.
pub fn double(uart: &UnixStream, n: u32, repeats: u32) -> Result<u32> {
    if repeats > 0 {
        uart.set_read_timeout(Some(Duration::from_millis(300)))?;
    }
    let mut again = 0;
    loop {
        let mut host = Host::new(Uart {
            uart,
            decoder: Decoder::new(RPC_ADDRESS),
            place: [0; 256],
            input: Vec::new(),
        });
        // Each attempt has a call id of its own, so that a late answer is not taken for this one.
        host.client = Client::new(CHANNEL, 1 + n * (1 + repeats) + again);
        match unary(&mut host, n) {
            Ok(()) => return Ok(again),
            Err(error) if again == repeats => return Err(error),
            Err(_) => again += 1,
        }
    }
}

fn many(host: &mut Host<impl Carrier>) -> Result<u32> {
    let calls = 500;
    for n in 0..calls {
        unary(host, n)?;
    }
    Ok(calls)
}

fn unary(host: &mut Host<impl Carrier>, n: u32) -> Result<()> {
    let call = host.start(DOUBLE, &num(n)[..])?;
    host.expect(call, Reply::Completed(Status::OK, num(2 * n)))
}

fn cache(host: &mut Host<impl Carrier>) -> Result<u32> {
    // Both messages have one number as field 1, as `Num` has.
    for value in [7, 0, 1 << 30] {
        let call = host.start(SET_VALUE, &num(value)[..])?;
        host.expect(call, Reply::Completed(Status::OK, vec![]))?;
        let call = host.start(GET_VALUE, &[][..])?;
        host.expect(call, Reply::Completed(Status::OK, num(value)))?;
    }
    Ok(6)
}

fn each_kind(host: &mut Host<impl Carrier>) -> Result<u32> {
    unary(host, 21)?;

    let call = host.start(DOUBLE, &num(u32::MAX)[..])?;
    host.expect(call, Reply::Completed(Status::OUT_OF_RANGE, vec![]))?;

    let call = host.start(COUNT, &num(20)[..])?;
    for n in 0..20 {
        host.expect(call, Reply::Item(num(n)))?;
    }
    host.expect(call, Reply::Completed(Status::OK, vec![]))?;

    // Two streams from the client at a time: each has its own state.
    let (first, second) = (host.open(SUM)?, host.open(SUM)?);
    for call in [first, second] {
        host.send(|place| call.open_stream(place))?;
    }
    for n in 1..=10 {
        host.item(first, n)?;
        host.item(second, 100 * n)?;
    }
    host.complete(first)?;
    host.expect(first, Reply::Completed(Status::OK, num(55)))?;
    host.complete(second)?;
    host.expect(second, Reply::Completed(Status::OK, num(5500)))?;

    let call = host.open(ECHO_ALL)?;
    host.send(|place| call.open_stream(place))?;
    for n in [7, 0, u32::MAX] {
        host.item(call, n)?;
        host.expect(call, Reply::Item(num(n)))?;
    }
    host.complete(call)?;
    host.expect(call, Reply::Completed(Status::OK, vec![]))?;

    // A stream without an end, cancelled: the next items are nobody's, and its slot is free again.
    for _ in 0..6 {
        let call = host.start(COUNT, &num(u32::MAX)[..])?;
        host.expect(call, Reply::Item(num(0)))?;
        host.cancel(call)?;
        unary(host, 4)?;
    }
    let call = host.open(ECHO_ALL)?;
    host.send(|place| call.open_stream(place))?;
    host.cancel(call)?;

    let unknown = host.start(kinds("NoSuchMethod", MethodKind::Unary), &num(1)[..])?;
    host.expect(unknown, Reply::Failed(Status::NOT_FOUND))?;

    let undecodable = host.start(DOUBLE, &[0x0f][..])?;
    host.expect(undecodable, Reply::Failed(Status::DATA_LOSS))?;
    Ok(21)
}

/// What a damaged line may bring; the next good frame must be served.
fn garbage() -> Vec<Vec<u8>> {
    let mut good = [0; 64];
    let len = hdlc::encode(RPC_ADDRESS, b"no packet", &mut good).unwrap_or(0);
    let good = good.get(..len).unwrap_or_default();
    let (half, _) = good.split_at(len / 2);
    let mut wrong_crc = good.to_vec();
    wrong_crc[4] ^= 1;
    vec![
        vec![],
        b"text of a boot loader\r\n".to_vec(),
        good.to_vec(),
        half.to_vec(),
        wrong_crc,
        [&[0x7e][..], &[0x55; 3000]].concat(),
        vec![0x7e, 0x7d, 0x7e, 0x7d, 0x7d],
        vec![0x7e; 40],
    ]
}
