//! A typed call, `demo.Kinds.Double`: client and server engine, protobuf, the link's checks and the copy that
//! an untrusted peer costs.

use sinew::rpc::{Client, DEFAULT_TIMEOUT, Decode, Method, Received, Server, Slot};
use sinew::time::Instant;
use sinew_demo::kinds::Serve;
use sinew_demo::kinds::method::Double;
use sinew_demo::{KindsService, Num};
use sinew_shm::domain::{Channel, Incoming, Outgoing, Pool, Receiver, Sender, Trust};
use sinew_shm::linux::exchange::DoorbellKind;

use super::link::{CHANNEL, Handle, Link, told};
use crate::Result;
use crate::cases::VIA;
use crate::shm::contender::{End, Opening};

const BELL: DoorbellKind = DoorbellKind::Socket;
const CALLS: usize = 8;
/// The packets of these calls take less, so the copy too is of one line.
const BLOCK: usize = 64;

/// The two halves of a channel, and who they serve.
pub struct TypedCall {
    out: Outgoing<Handle>,
    back: Incoming<Handle, [u8; BLOCK]>,
    client: Client<CALLS>,
    server: Server<CALLS>,
    services: Serve<KindsService<CALLS>>,
    called: u32,
    link: Link,
}

impl TypedCall {
    fn new(link: Link) -> Result<Self> {
        let sender = Sender::new(&link.end, CHANNEL).ok_or("no channel")?;
        let receiver = Receiver::new(&link.end, CHANNEL).ok_or("no channel")?;
        Ok(TypedCall {
            out: Outgoing::new(sender),
            back: Incoming::new(receiver, [0; BLOCK]).ok_or("the buffer is too small")?,
            client: Client::new(1, 7),
            server: Server::new(Box::leak(Box::new([const { Slot::new() }; CALLS]))),
            services: Serve(KindsService::new()),
            called: 0,
            link,
        })
    }
}

fn channel(opening: &Opening<'_>) -> Channel {
    let pool = Pool::new(opening.depth as u16, BLOCK as u32);
    Channel::new(CHANNEL, "bench", pool)
}

impl End for TypedCall {
    const NAME: &'static str = "sinew, typed call";
    const NOTE: &'static str =
        "demo.Kinds.Double by client and server engine, trust none, packets of about 25 B";
    const ONE_WAY: bool = false;
    const CHECKS_ITSELF: bool = true;

    fn near(opening: &Opening<'_>) -> Result<Self> {
        TypedCall::new(Link::near(opening, Trust::None, channel(opening), BELL)?)
    }

    fn far(opening: &Opening<'_>) -> Result<Self> {
        TypedCall::new(Link::far(opening, Trust::None, channel(opening), BELL)?)
    }

    /// A request.
    #[inline]
    fn send(&mut self, seed: u64) -> Result<bool> {
        let n = seed as u32 >> 1;
        let call = self
            .client
            .open(Double::ID, DEFAULT_TIMEOUT, Instant::START);
        let call = call.map_err(told)?;
        let place = self.out.place(BLOCK).map_err(told)?;
        let len = call.request(place, &Num { n }).ok_or("too long")?;
        self.out.commit(len).map_err(told)?;
        self.out.flush();
        self.called = n;
        Ok(true)
    }

    /// An answer, which is checked.
    #[inline]
    fn receive(&mut self) -> Result<Option<u64>> {
        let Some(packet) = self.back.peek().map_err(told)? else {
            return Ok(None);
        };
        let (_, event) = self.client.handle(packet, &mut [], Instant::START);
        let Some(Received::Completed(status, payload)) = event.map(|event| event.received) else {
            return Err("no response".into());
        };
        let answer = <Double as Method>::Response::decode(payload).ok_or("no message")?;
        if !status.is_ok() || answer.n != 2 * self.called {
            return Err(format!("{status:?} {answer:?} for {}", self.called).into());
        }
        self.back.release();
        Ok(Some(0))
    }

    #[inline]
    fn answer(&mut self) -> Result<u64> {
        loop {
            if let Some(packet) = self.back.peek().map_err(told)? {
                let place = self.out.place(BLOCK).map_err(told)?;
                let now = Instant::START;
                let len = self
                    .server
                    .handle(packet, &VIA, place, &mut self.services, now);
                self.out.commit(len).map_err(told)?;
                self.back.release();
                self.out.flush();
                return Ok(0);
            }
            self.pause()?;
        }
    }

    #[inline]
    fn pause(&mut self) -> Result<()> {
        let back = &mut self.back;
        self.link.pause(|waker| back.arm(waker));
        Ok(())
    }
}
