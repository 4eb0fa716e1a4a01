//! A record that is written between packets leaves at once, whichever link its reader is on.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use sinew::time::Instant;
use sinew_demo::{KindsService, Num, kinds};
use sinew_io::serve::Listening;
use sinew_io::{AnyLink, Client, Server, connect};
use sinew_services::log::{self, Clock, Logger, Records, Serve};
use sinew_services::record::Said;
use sinew_services::{RecordsRequest, Severity};
use sinew_shm::StdLock;

type Log = &'static Logger<StdLock, Stopped, 16>;

type Services = (
    Serve<Records<StdLock, Stopped, 16>>,
    kinds::Serve<KindsService<64>>,
);

/// A clock that stands still.
struct Stopped;

impl Clock for Stopped {
    fn now() -> Instant {
        Instant::START
    }
}

/// Longer than anything takes here: who waits for it, hangs.
const HANGS: Duration = Duration::from_secs(60);

fn device(endpoint: &str) -> (Log, Listening) {
    let log: Log = Box::leak(Box::default());
    let server: Server<Services> = Server::new((
        Serve(log.records().unwrap()),
        kinds::Serve(KindsService::new()),
    ));
    let listening = server.listen(&endpoint.parse().unwrap()).unwrap();
    (log, listening)
}

fn client(device: &Listening) -> Client<AnyLink> {
    let mut client = connect(device.endpoint()).unwrap();
    client.set_timeout(HANGS);
    client
}

/// Reads records that are written one by one, each when the one before has been read.
fn reads(log: Log, client: &Client<AnyLink>) {
    let mut stream = log::Client(client)
        .records(&RecordsRequest::default())
        .unwrap();
    for n in 0..100 {
        log.write(Severity::Info, "test", format_args!("{n}"));
        let record = stream.next().unwrap().unwrap();
        let Some(Said::Text(text)) = record.said else {
            panic!("{record:?}");
        };
        assert_eq!(text.as_str(), n.to_string());
    }
    stream.cancel();
    // The server has seen that when it answers this.
    let doubled = kinds::Client(client).double(&Num { n: 2 });
    assert_eq!(doubled, Ok(Num { n: 4 }));
}

fn socket(name: &str) -> String {
    let folder = env!("CARGO_TARGET_TMPDIR");
    format!("{folder}/{name}-{}.sock", std::process::id())
}

#[test]
fn record_leaves_between_packets_on_every_kind_of_link() {
    let shm = format!("shm:{}", socket("log-shm"));
    for endpoint in ["tcp:127.0.0.1:0", "udp:127.0.0.1:0", &shm] {
        let (log, device) = device(endpoint);
        reads(log, &client(&device));
    }
}

#[test]
fn readers_come_and_go_on_links_that_come_and_go() {
    let (log, device) = device("tcp:127.0.0.1:0");
    let mut others = Vec::new();
    for _ in 0..20 {
        let reader = client(&device);
        reads(log, &reader);
        // The link that was here before the reader is gone when the next one reads.
        others.clear();
        others.push(reader);
    }
}

#[test]
fn link_that_is_stuck_does_not_hold_up_the_reader_of_another() {
    let (log, device) = device("tcp:127.0.0.1:0");
    // It asks for more than its socket takes, and reads nothing.
    let text = device.endpoint().to_string();
    let mut stuck = TcpStream::connect(text.strip_prefix("tcp:").unwrap()).unwrap();
    let mut request = Vec::new();
    endless(&mut request);
    stuck.write_all(&request).unwrap();
    reads(log, &client(&device));
    drop(stuck);
    reads(log, &client(&device));
}

/// A frame that asks for an endless stream.
fn endless(frame: &mut Vec<u8>) {
    use sinew::frame::hdlc::{RPC_ADDRESS, put_frame};
    use sinew::rpc::packet::{PacketType, Route, encode};
    use sinew::rpc::{Method, Status};
    let id = <kinds::method::Count as Method>::ID;
    let route = Route::new(1, id, 1);
    let mut packet = [0; 128];
    let all = Num { n: u32::MAX };
    let len = encode(&mut packet, PacketType::REQUEST, &route, &all, Status::OK);
    put_frame(RPC_ADDRESS, &packet[..len.unwrap()], &mut |byte| {
        frame.push(byte)
    });
}
