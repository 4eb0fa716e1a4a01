//! A typed RPC call from one context to the other, `demo.Kinds.Double`: generated code, both engines,
//! and a queue of a link each way.
#![no_std]
#![no_main]

use core::hint::black_box;

use sinew::rpc::packet::HEADER_MAX;
use sinew::rpc::{
    Channels, Client, DEFAULT_TIMEOUT, Decode, Method, Received, Server, Slot, Status, Via,
};
use sinew::time::Instant;
use sinew_demo::{KindsService, Num, kinds, kinds::method::Double};
use sinew_shm::domain::{Channel, Config, End, EndRef, Pool, Receiver, Role, Sender};
use vexriscv::link::{Context, meet, open};
use vexriscv::{Part, begin, measure, switch};

/// The largest packet.
const MTU: usize = 64;
const CALLS: usize = 4;
const QUEUE: u16 = 1;
const CHANNELS: &[Channel] = &[Channel::new(QUEUE, "rpc", Pool::new(4, MTU as u32))];
const LINK: Config = Config::new(CHANNELS);
const BLOCKS: usize = LINK.blocks();
const _: () = assert!(LINK.check().is_ok());

static SLOTS: [Slot; CALLS] = [const { Slot::new() }; CALLS];
const VIA: Via = Via {
    link: 0,
    channels: Channels::Any,
    port: None,
    bulk: None,
};
const NOW: Instant = Instant::from_micros(1);

/// The queues of one side.
struct Queues<R: EndRef> {
    tx: Sender<R>,
    rx: Receiver<R>,
}

impl<R: EndRef> Queues<R> {
    fn new(end: &R) -> Option<Queues<R>> {
        Some(Queues {
            tx: Sender::new(end, QUEUE)?,
            rx: Receiver::new(end, QUEUE)?,
        })
    }

    #[inline(always)]
    fn send(&self, packet: &[u8]) -> Option<()> {
        self.tx.send(packet).ok().map(drop)
    }

    #[inline(always)]
    fn receive<'p>(&self, place: &'p mut [u8; MTU]) -> Option<&'p [u8]> {
        let len = self.rx.receive_into(place).ok()??;
        place.get(..len)
    }
}

/// Where packets are written.
struct Places {
    request: [u8; MTU],
    answer: [u8; MTU],
    reply: [u8; HEADER_MAX],
}

impl Places {
    const NEW: Places = Places {
        request: [0; MTU],
        answer: [0; MTU],
        reply: [0; HEADER_MAX],
    };
}

type Side<'e> = Queues<&'e End<Context<BLOCKS, false>>>;

#[inline(never)]
#[unsafe(link_section = ".text.hot.client")]
fn call(client: &mut Client<CALLS>, queues: &Side<'_>, places: &mut Places) -> Option<()> {
    let n = black_box(21);
    begin(Part::Client);
    let call = client.open(Double::ID, DEFAULT_TIMEOUT, NOW).ok()?;
    let len = call.request(&mut places.request, &Num { n })?;
    begin(Part::Channel);
    queues.send(places.request.get(..len)?)?;
    begin(Part::Switch);
    switch();
    begin(Part::Channel);
    let packet = queues.receive(&mut places.answer)?;
    begin(Part::Client);
    let (_, event) = client.handle(packet, &mut places.reply, NOW);
    let doubled = match event?.received {
        Received::Completed(Status::OK, bytes) => Num::decode(bytes)?.n,
        _ => return None,
    };
    begin(Part::Pause);
    (doubled == 2 * n).then_some(())
}

fn run() -> Option<()> {
    let end = open::<BLOCKS, false>(LINK, Role::First)?;
    meet(&end)?;
    let queues = Queues::new(&&end)?;
    let mut client = Client::new(1, 1);
    let mut places = Places::NEW;
    measure("rpc", &mut |_| call(&mut client, &queues, &mut places))
}

fn serve() -> Option<()> {
    let end = open::<BLOCKS, false>(LINK, Role::Second)?;
    meet(&end)?;
    answer_all(&Queues::new(&&end)?)
}

#[inline(never)]
#[unsafe(link_section = ".text.hot.server")]
fn answer_all(queues: &Side<'_>) -> Option<()> {
    let mut server = Server::new(&SLOTS);
    let mut services = kinds::Serve(KindsService::<CALLS>::new());
    let mut places = Places::NEW;
    loop {
        begin(Part::Channel);
        let packet = queues.receive(&mut places.request)?;
        begin(Part::Server);
        let len = server.handle(packet, &VIA, &mut places.answer, &mut services, NOW);
        begin(Part::Channel);
        queues.send(places.answer.get(..len)?)?;
        begin(Part::Switch);
        switch();
    }
}

vexriscv::contexts!(run, serve);
