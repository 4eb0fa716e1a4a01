//! Two ends, the line between them, and the clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use core::time::Duration;

use sinew::link::{Port, SendError};
use sinew::rpc::{Channels, Server, Via};
use sinew::time::Instant;

use crate::app::App;
use crate::faults::{Faults, Line};
use crate::framing::{Receiver, frame};
use crate::prng::Prng;
use crate::service::{CALLS, Sim};
use crate::support::port::TestPort;
use crate::support::wire::{Seen, item, request, show};
use crate::support::{kinds::SUM, slots};

const MTU: usize = 64;
const LIFETIME: Duration = Duration::from_millis(100);

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Arrives {
    AtServer(Vec<u8>),
    AtClient(Vec<u8>),
    /// The line takes the next packet of the server's port.
    Pump,
    Open,
}

pub struct World {
    faults: Faults,
    prng: Prng,
    now: Instant,
    events: BinaryHeap<Reverse<(Instant, u64, Arrives)>>,
    order: u64,
    pub app: App,
    server: Server<CALLS>,
    pub service: Sim,
    port: &'static TestPort,
    via: Via,
    at_server: Receiver,
    at_client: Receiver,
    pub line: Line,
    pub server_counted: u64,
    pub client_counted: u64,
}

/// How many calls are opened in one run.
const OPENS: u32 = 24;

impl World {
    pub fn new(faults: Faults, seed: u64) -> World {
        let mut prng = Prng::new(seed);
        let port = TestPort::leak(MTU, 4);
        let strict = faults.name == "none";
        let mut world = World {
            faults,
            now: Instant::START,
            events: BinaryHeap::new(),
            order: 0,
            app: App::new(prng.next(), strict),
            server: server(),
            service: Sim::new(prng.next()),
            port,
            via: Via {
                link: 0,
                channels: Channels::Only(1),
                port: Some(port as &'static dyn Port),
                bulk: None,
            },
            at_server: Receiver::new(),
            at_client: Receiver::new(),
            line: Line::default(),
            server_counted: 0,
            client_counted: 0,
            prng,
        };
        let mut at = 0;
        for _ in 0..OPENS {
            at += world.prng.below(4_000);
            world.schedule(at, Arrives::Open);
        }
        world.schedule(0, Arrives::Pump);
        world
    }

    fn schedule(&mut self, delay: u64, what: Arrives) {
        let at = self.now.after(Duration::from_micros(delay));
        self.order += 1;
        self.events.push(Reverse((at, self.order, what)));
    }

    fn send_to_server(&mut self, packet: &[u8]) {
        let arrivals = self
            .faults
            .carry(frame(packet), &mut self.prng, &mut self.line);
        for (delay, frame) in arrivals {
            self.schedule(delay, Arrives::AtServer(frame));
        }
    }

    fn send_to_client(&mut self, packet: &[u8]) {
        let arrivals = self
            .faults
            .carry(frame(packet), &mut self.prng, &mut self.line);
        for (delay, frame) in arrivals {
            self.schedule(delay, Arrives::AtClient(frame));
        }
    }

    /// Runs until nothing is left to happen, then checks that nothing was leaked.
    pub fn run(&mut self) {
        loop {
            let next = self
                .events
                .peek()
                .map_or(Instant::FAR, |Reverse((at, ..))| *at);
            let idle = self.app.is_idle() && self.only_pump_left();
            let timers = self
                .app
                .due()
                .min(self.service.due())
                .min(self.server.deadline());
            if idle && timers == Instant::FAR && self.port.len() == 0 {
                break;
            }
            self.now = self.now.max(next.min(timers));
            assert!(self.now < Instant::from_micros(10_000_000), "the run ends");
            if next <= self.now {
                let Some(Reverse((_, _, what))) = self.events.pop() else {
                    continue;
                };
                self.arrive(what);
            }
            self.work();
        }
        self.settle();
    }

    fn only_pump_left(&self) -> bool {
        self.events
            .iter()
            .all(|Reverse((_, _, what))| *what == Arrives::Pump)
    }

    fn arrive(&mut self, what: Arrives) {
        match what {
            Arrives::Open => {
                if self.prng.chance(self.faults.client_reboot) {
                    self.client_counted += counted(self.app.client.stats().iter());
                    self.app.reboot();
                }
                if self.prng.chance(self.faults.server_reboot) {
                    self.reboot_server();
                }
                let mut out = Vec::new();
                self.app.open(self.now, &mut out);
                out.iter().for_each(|packet| self.send_to_server(packet));
            }
            Arrives::Pump => {
                if let Some(packet) = self.port.take() {
                    self.send_to_client(&packet);
                }
                self.schedule(500, Arrives::Pump);
            }
            Arrives::AtServer(bytes) => {
                for packet in self.at_server.packets(&bytes) {
                    self.line.delivered += 1;
                    self.serve(&packet);
                }
            }
            Arrives::AtClient(bytes) => {
                for packet in self.at_client.packets(&bytes) {
                    self.line.delivered += 1;
                    self.receive(&packet);
                }
            }
        }
    }

    fn reboot_server(&mut self) {
        self.server_counted += counted(self.server.stats().iter());
        self.server = server();
        self.service.answers.clear();
        self.service.streams.clear();
        while self.port.take().is_some() {}
    }

    fn serve(&mut self, packet: &[u8]) {
        let before = counted(self.server.stats().iter()) + self.service.steps;
        let mut place = [0; MTU];
        let (server, service) = (&mut self.server, &mut self.service);
        let len = server.handle(packet, &self.via, &mut place, service, self.now);
        let after = counted(server.stats().iter()) + service.steps;
        // A repeated completion is ignored by rule; everything else is handled or counted.
        let completion = packet.starts_with(&[0x08, 8]);
        assert!(
            after > before || completion,
            "a packet is handled or counted"
        );
        if len > 0 {
            assert!(!Seen::of(&place[..len]).packet_type.is_for_server());
            self.send_to_client(&place[..len]);
        }
    }

    fn receive(&mut self, packet: &[u8]) {
        let before = counted(self.app.client.stats().iter());
        let mut place = [0; MTU];
        let (len, event) = self.app.client.handle(packet, &mut place, self.now);
        let after = counted(self.app.client.stats().iter());
        assert!(
            after > before || event.is_some(),
            "a packet is handled or counted"
        );
        if let Some(event) = event {
            self.app.receive(event, self.now);
        }
        if len > 0 {
            assert!(Seen::of(&place[..len]).packet_type.is_for_server());
            self.send_to_server(&place[..len]);
        }
    }

    /// What the tasks of both sides do at this time.
    fn work(&mut self) {
        self.service.work(self.now);
        let mut place = [0; MTU];
        loop {
            match self
                .server
                .poll(&self.via, &mut place, &mut self.service, self.now)
            {
                Ok(0) => break,
                Ok(len) => self.send_to_client(&place[..len]),
                Err(SendError::Full) => {
                    // The pump makes room; nothing is due before it does.
                    self.service.met_full += 1;
                    let packet = self.port.take().expect("a full port holds a packet");
                    self.send_to_client(&packet);
                }
                Err(error) => panic!("{error:?}"),
            }
        }
        let mut out = Vec::new();
        self.app.act(self.now, &mut out);
        out.iter().for_each(|packet| self.send_to_server(packet));
    }

    /// Nothing is open on either side, and every slot can be used again.
    fn settle(&mut self) {
        assert_eq!(self.app.client.deadline(), Instant::FAR);
        assert_eq!(
            self.app.ends.calls,
            self.app.ends.ended(),
            "every call ends once"
        );
        assert_eq!(self.service.mixed_up, 0, "no item in another call");
        assert!(self.server.is_quiet(0));
        self.server_counted += counted(self.server.stats().iter());
        self.client_counted += counted(self.app.client.stats().iter());
        let mut place = [0; MTU];
        let mut give = |packet: &[u8]| {
            let len =
                self.server
                    .handle(packet, &self.via, &mut place, &mut self.service, self.now);
            (len > 0).then(|| Seen::of(&place[..len]))
        };
        for call in 0..CALLS as u32 {
            let answer = give(&request(SUM, 20_000 + call, 0).bytes());
            assert_eq!(show(&answer), "-", "slot {call} of {CALLS} was leaked");
        }
        let one_more = give(&request(SUM, 30_000, 0).bytes());
        assert_eq!(show(&one_more), "SERVER_ERROR RESOURCE_EXHAUSTED #30000");
        let known = give(&item(SUM, 20_000, &[]).bytes());
        assert_eq!(show(&known), "-");
        let frames = self.line.sent - self.line.lost + self.line.duplicated;
        let bad = self.at_server.bad() + self.at_client.bad();
        assert!(
            frames <= self.line.delivered + self.line.corrupted,
            "whole frames arrive"
        );
        assert!(
            bad <= 2 * self.line.corrupted,
            "only damaged frames are refused"
        );
    }
}

fn server() -> Server<CALLS> {
    let mut server = Server::new(slots());
    server.set_lifetime(LIFETIME);
    server
}

fn counted(stats: impl Iterator<Item = (&'static str, u32)>) -> u64 {
    stats.map(|(_, count)| u64::from(count)).sum()
}
