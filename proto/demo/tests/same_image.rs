//! The demo services in one image: by direct calls, and through the engine without a link.

use sinew::rpc::{Channels, Direct, Server, Slot, Via};
use sinew::time::Instant;
use sinew_demo::pw::rpc::benchmark;
use sinew_demo::{BenchmarkService, CacheService, KindsService, cache, exercise, kinds};

#[test]
fn a_direct_client_needs_no_bytes() {
    let mut service = CacheService::new();
    let mut client = cache::Client(Direct(&mut service));
    assert_eq!(exercise(&mut client, -7), Ok(-7));
}

#[test]
fn worked_frame_f1_is_answered_by_f2() {
    static SLOTS: [Slot; 1] = [const { Slot::new() }; 1];
    let mut server = Server::new(&SLOTS);
    let mut cache = CacheService::new();
    let mut services = (
        cache::Serve(&mut cache),
        kinds::Serve(KindsService::<1>::new()),
    );
    let via = Via {
        link: 0,
        channels: Channels::Any,
        port: None,
        bulk: None,
    };
    // F1 and F2 (wire reference, section Worked frames), without address, control and CRC.
    let request = b"\x10\x01\x1d\xbe\x5f\x6b\x23\x25\xd7\xae\xaf\x54\x2a\x02\x08\x15\x38\x01";
    let response =
        b"\x08\x01\x10\x01\x1d\xbe\x5f\x6b\x23\x25\xd7\xae\xaf\x54\x2a\x02\x08\x2a\x38\x01";
    let mut place = [0; 64];
    let len = server.handle(request, &via, &mut place, &mut services, Instant::START);
    assert_eq!(&place[..len], response);
}

#[test]
fn worked_frame_f10_is_echoed() {
    static SLOTS: [Slot; 1] = [const { Slot::new() }; 1];
    let via = Via {
        link: 0,
        channels: Channels::Any,
        port: None,
        bulk: None,
    };
    // F10 without its HDLC frame, and its answer in field order.
    let request = b"\x10\x01\x1d\x1d\x0c\xd7\xd7\x25\x55\x8b\x4e\x02\x2a\x05\x0a\x03~}~\x38\x01";
    let response = [b"\x08\x01", &request[..]].concat();
    let mut place = [0; 64];
    let len = Server::new(&SLOTS).handle(
        request,
        &via,
        &mut place,
        &mut benchmark::Serve(BenchmarkService),
        Instant::START,
    );
    assert_eq!(&place[..len], response);
}
