//! What the images `rpc_*` are made of, for packets of any size.
//!
//! `demo.Cache`, a service of two methods, is served over UART0; a client on the same line calls that of the other
//! side. All memory is one static, apart from the slots that calls share with tasks.

use core::time::Duration;

pub use sinew::rpc::Slot;
use sinew::rpc::packet::Packet;
use sinew::rpc::{Channels, Client, Decode, Method, Received, Server, Service, Status, Via};
use sinew::time::Instant;
use sinew_demo::cache::method::GetValue;
use sinew_demo::{CacheService, GetValueRequest, GetValueResponse, cache};
use sinew_drive::bytes::Bare;
use sinew_drive::frames::Direct;
use sinew_drive::{Line, Serving};
use static_cell::StaticCell;

use crate::board::{self, UART, Uart0};

/// Longer than an answer takes.
const PATIENCE: Duration = Duration::from_millis(500);

/// An image that is a [`Role`] with its memory: of how many bytes the largest packet is, and how many calls can
/// outlive their receive step at a time (streams, and what is answered later): `role!(Serves<512, 1>);`.
#[macro_export]
macro_rules! role {
    ($role:ident<$size:literal, $calls:literal>) => {
        #[unsafe(no_mangle)]
        extern "C" fn main() -> ! {
            use $crate::rpc::{Memory, Slot, play, slots, $role};
            static SLOTS: [Slot; $calls] = slots();
            static MEMORY: Memory<$role<$size, $calls>> = Memory::new();
            play(&MEMORY, &SLOTS);
            sinew_rt::exit(3)
        }
    };
}

/// Free slots.
pub const fn slots<const CALLS: usize>() -> [Slot; CALLS] {
    [const { Slot::new() }; CALLS]
}

/// What an image does.
pub trait Role<const CALLS: usize> {
    /// At its start.
    fn new(slots: &'static [Slot; CALLS]) -> Self;
    /// One turn of its loop; whether there was anything to do.
    fn turn(&mut self, now: Instant) -> bool;
}

/// Where a [`Role`] lives.
pub type Memory<R> = StaticCell<R>;

/// Plays a role for ever; returns where it is called twice.
#[inline(always)]
pub fn play<R: Role<CALLS>, const CALLS: usize>(
    memory: &'static Memory<R>,
    slots: &'static [Slot; CALLS],
) {
    let Some(role) = memory.try_init_with(|| R::new(slots)) else {
        return;
    };
    board::start();
    let mut clock = board::Clock::start();
    loop {
        board::acknowledge();
        if !role.turn(Instant::from_micros(clock.micros())) {
            sinew_rt::sleep();
        }
    }
}

type Uart<const N: usize> = Line<'static, Uart0, N>;
type Services = cache::Serve<CacheService>;

/// [`UART`] at the start of the stream.
const fn line<const N: usize>() -> Uart<N> {
    Line::new(UART, via::<N>())
}

/// The way back for what is answered later.
const fn via<const N: usize>() -> &'static Via {
    const {
        &Via {
            link: 0,
            channels: Channels::Any,
            port: Some(&Direct::<_, N>(Bare(UART))),
            bulk: None,
        }
    }
}

/// Serves `demo.Cache`.
pub type Serves<const N: usize, const CALLS: usize> = Serving<Uart<N>, Services, CALLS>;

impl<const N: usize, const CALLS: usize> Role<CALLS> for Serves<N, CALLS> {
    #[inline(always)]
    fn new(slots: &'static [Slot; CALLS]) -> Self {
        Serving::new(slots, cache::Serve(CacheService::new()), line())
    }

    #[inline(always)]
    fn turn(&mut self, now: Instant) -> bool {
        Serving::turn(self, now)
    }
}

/// Serves it, and calls in between: asks the other side for its value, again and again, and keeps it as its own.
pub struct ServesAndCalls<const N: usize, const CALLS: usize> {
    line: Uart<N>,
    server: Server<CALLS>,
    client: Client<1>,
    services: Services,
}

impl<const N: usize, const CALLS: usize> Role<CALLS> for ServesAndCalls<N, CALLS> {
    #[inline(always)]
    fn new(slots: &'static [Slot; CALLS]) -> Self {
        ServesAndCalls {
            line: line(),
            server: Server::new(slots),
            client: Client::new(1, 1),
            services: cache::Serve(CacheService::new()),
        }
    }

    #[inline(always)]
    fn turn(&mut self, now: Instant) -> bool {
        let ServesAndCalls {
            line,
            server,
            client,
            services,
        } = self;
        let via = via::<N>();
        let busy = line.turn(|packet, place| match packet.map(Packet::decode) {
            Some(Ok(packet)) if packet.packet_type.is_for_server() => {
                server.handle_packet(&packet, via, place, services, now)
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
            None => match server.poll(via, place, services, now) {
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
        services.poll(now) || busy
    }
}
