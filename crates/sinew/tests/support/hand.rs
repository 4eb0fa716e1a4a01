//! A session whose other side is played by hand, message by message.

use sinew::pubsub::codec::transport::{Fragment, Frame, Init, Open};
use sinew::pubsub::codec::{Decode, Priority, Reader, WhatAmI, Writer, transport};
use sinew::pubsub::session::{Config, State, Tables};
use sinew::time::Instant;

use crate::node::{Node, Out, Told, zid};

pub const NOW: Instant = Instant::START;

/// What the hand offers in its INIT.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    pub whatami: WhatAmI,
    pub resolution: u8,
    pub batch_size: u16,
    pub patch: u8,
    pub sn: u32,
}

pub const ROUTER: Offer = Offer {
    whatami: WhatAmI::Router,
    resolution: 0x0a,
    batch_size: 2048,
    patch: 1,
    sn: 100,
};

pub const PEER: Offer = Offer {
    whatami: WhatAmI::Peer,
    ..ROUTER
};

/// The bytes of some messages.
pub fn bytes(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut place = vec![0; 70_000];
    let mut writer = Writer::new(&mut place);
    write(&mut writer);
    let len = writer.finish().expect("room");
    place.truncate(len);
    place
}

pub fn init(offer: &Offer, ack: bool, cookie: &[u8]) -> Vec<u8> {
    let init = Init {
        ack,
        version: sinew::pubsub::codec::VERSION,
        whatami: offer.whatami,
        zid: zid("hand"),
        resolution: offer.resolution,
        batch_size: offer.batch_size,
        cookie,
        patch: offer.patch,
    };
    bytes(|w| init.encode(w))
}

pub fn open(offer: &Offer, ack: bool, cookie: &[u8]) -> Vec<u8> {
    let open = Open {
        ack,
        lease_ms: 10_000,
        initial_sn: offer.sn,
        cookie,
    };
    bytes(|w| open.encode(w))
}

/// A node, and the hand that plays its peer.
pub struct Hand<T: Tables> {
    pub node: Node<T>,
    pub offer: Offer,
    /// The next numbers: of the best-effort channel, of the reliable one.
    pub sn: [u32; 2],
    pub now: Instant,
}

impl<T: Tables> Hand<T> {
    /// With a node that opens.
    pub fn asked(config: Config, tables: T, mtu: usize, offer: Offer) -> Self {
        let mut hand = Hand::new(config, tables, mtu, offer);
        hand.node.session.open(NOW);
        hand.turn();
        hand.answer();
        hand
    }

    /// With a node that accepts.
    pub fn asking(config: Config, tables: T, mtu: usize, offer: Offer) -> Self {
        let mut hand = Hand::new(config, tables, mtu, offer);
        hand.node.session.accept();
        hand.ask();
        hand
    }

    pub fn new(config: Config, tables: T, mtu: usize, offer: Offer) -> Self {
        Hand {
            node: Node::new(config, tables, Out::new(mtu, 1000)),
            offer,
            sn: [offer.sn; 2],
            now: NOW,
        }
    }

    /// Answers the handshake of a node that has sent INIT.
    pub fn answer(&mut self) {
        let mut offer = self.offer;
        self.sn = [offer.sn; 2];
        let sent = self.sent();
        let asked = sent.last().expect("INIT");
        let asked = Init::decode(asked[0], &mut Reader::new(&asked[1..])).expect("INIT");
        offer.batch_size = offer.batch_size.min(asked.batch_size);
        self.give(&init(&offer, true, b"cookie"));
        let sent = self.sent();
        let mut reader = Reader::new(&sent[0][1..]);
        let asked = Open::decode(sent[0][0], &mut reader).expect("OPEN");
        assert_eq!(asked.cookie, b"cookie");
        self.give(&open(&offer, true, &[]));
        self.begun();
    }

    /// Asks a node that accepts.
    pub fn ask(&mut self) {
        let offer = self.offer;
        self.sn = [offer.sn; 2];
        self.give(&init(&offer, false, &[]));
        let cookie = self.cookie();
        self.give(&open(&offer, false, &cookie));
        self.begun();
    }

    /// Of the INIT_ACK that the node has sent.
    pub fn cookie(&mut self) -> Vec<u8> {
        let sent = self.sent();
        let answer = sent.last().expect("INIT_ACK");
        let answer = Init::decode(answer[0], &mut Reader::new(&answer[1..]));
        answer.expect("INIT_ACK").cookie.to_vec()
    }

    fn begun(&mut self) {
        assert_eq!(self.node.session.state(), State::Open);
        assert_eq!(self.node.take().last(), Some(&Told::Opened));
        self.sent();
    }

    pub fn turn(&mut self) {
        self.node.turn(self.now);
    }

    /// Hands a packet to the node.
    pub fn give(&mut self, packet: &[u8]) {
        self.node.rx.borrow_mut().packets.push_back(packet.to_vec());
        self.turn();
    }

    /// A frame with these messages.
    pub fn framed(&mut self, reliable: bool, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let sn = self.sn[usize::from(reliable)];
        self.sn[usize::from(reliable)] += 1;
        bytes(|w| {
            let priority = Priority::Data;
            Frame {
                reliable,
                sn,
                priority,
            }
            .encode(w);
            write(w);
        })
    }

    pub fn frame(&mut self, write: impl FnOnce(&mut Writer<'_>)) {
        let packet = self.framed(true, write);
        self.give(&packet);
    }

    /// A fragment of the reliable channel.
    pub fn fragment(&mut self, payload: &[u8], first: bool, more: bool) {
        let sn = self.sn[1];
        self.sn[1] += 1;
        let fragment = Fragment {
            reliable: true,
            more,
            sn,
            priority: Priority::Data,
            first,
            drop: false,
            payload,
        };
        self.give(&bytes(|w| fragment.encode(w)));
    }

    /// What the node has sent since the last time.
    pub fn sent(&mut self) -> Vec<Vec<u8>> {
        self.node.tx.way.borrow_mut().packets.drain(..).collect()
    }

    /// The network messages among that, without their frames.
    pub fn said(&mut self) -> Vec<Vec<u8>> {
        let mut said = Vec::new();
        for packet in self.sent() {
            let mut reader = Reader::new(&packet);
            let header = reader.byte().expect("a header");
            if header & 0x1f == transport::FRAME {
                Frame::decode(header, &mut reader).expect("a frame");
                said.push(reader.rest().to_vec());
            }
        }
        said
    }
}
