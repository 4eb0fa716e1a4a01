//! What the images `rpc_server` and `rpc_client` do, for packets of any size: they differ in nothing else.
//!
//! `demo.Cache`, a service of two methods, is served over a [`Line`]; a client on the same line calls that of
//! the other side. The engines are statics, as the buffers of the line are.

use core::time::Duration;

use sinew::rpc::packet::Packet;
use sinew::rpc::{Channels, Client, Decode, Method, Received, Server, Service, Slot, Status, Via};
use sinew::time::Instant;
use sinew_demo::cache::method::GetValue;
use sinew_demo::{CacheService, GetValueRequest, GetValueResponse, cache};
use static_cell::ConstStaticCell;

use crate::board;
use crate::line::Line;

/// Longer than an answer takes.
const PATIENCE: Duration = Duration::from_millis(500);

/// Calls that outlive their receive step, at a time: streams, and what is answered later.
const CALLS: usize = 1;

static SLOTS: [Slot; CALLS] = [const { Slot::new() }; CALLS];
static SERVER: ConstStaticCell<Server<CALLS>> = ConstStaticCell::new(Server::new(&SLOTS));
static CLIENT: ConstStaticCell<Client<1>> = ConstStaticCell::new(Client::new(1, 1));

/// The way back by a line: a constant, so that the compiler sees through it.
pub const fn via<const N: usize>(line: &'static Line<N>) -> Via {
    Via {
        link: 0,
        channels: Channels::Any,
        port: Some(line),
        bulk: None,
    }
}

/// Serves for ever; `None` where it is called twice.
#[inline(always)]
pub fn serve<const N: usize>(line: &'static Line<N>, via: &Via) -> Option<()> {
    let server = SERVER.try_take()?;
    let mut services = cache::Serve(CacheService::new());
    board::start();
    let mut clock = board::Clock::start();
    loop {
        board::acknowledge();
        let now = Instant::from_micros(clock.micros());
        let busy = line.turn(|packet, place| match packet {
            Some(packet) => server.handle(packet, via, place, &mut services, now),
            None => server.poll(via, place, &mut services, now).unwrap_or(0),
        });
        if !services.poll(now) && !busy {
            sinew_rt::sleep();
        }
    }
}

/// Serves, and calls in between: asks the other side for its value, again and again, and keeps it as its own.
#[inline(always)]
pub fn serve_and_call<const N: usize>(line: &'static Line<N>, via: &Via) -> Option<()> {
    let (server, client) = (SERVER.try_take()?, CLIENT.try_take()?);
    let mut services = cache::Serve(CacheService::new());
    board::start();
    let mut clock = board::Clock::start();
    loop {
        board::acknowledge();
        let now = Instant::from_micros(clock.micros());
        let busy = line.turn(|packet, place| match packet.map(Packet::decode) {
            Some(Ok(packet)) if packet.packet_type.is_for_server() => {
                server.handle_packet(&packet, via, place, &mut services, now)
            }
            Some(Ok(packet)) => {
                let (len, event) = client.handle_packet(&packet, place, now);
                if let Some(event) = event
                    && let Received::Completed(Status::OK, bytes) = event.received
                    && let Some(GetValueResponse { value }) = GetValueResponse::decode(bytes)
                {
                    services.0 = CacheService::with(value);
                }
                len
            }
            Some(Err(error)) => {
                server.refuse(error);
                0
            }
            None => match server.poll(via, place, &mut services, now) {
                Ok(len @ 1..) => len,
                // An answer that does not come: the other side may come later, or a packet be lost.
                _ => match client.expire(place, now) {
                    Some((_, len)) => len,
                    // Refused where a call is under way.
                    None => client
                        .open(GetValue::ID, PATIENCE, now)
                        .ok()
                        .and_then(|call| call.request(place, &GetValueRequest {}))
                        .unwrap_or(0),
                },
            },
        });
        if !services.poll(now) && !busy {
            sinew_rt::sleep();
        }
    }
}
