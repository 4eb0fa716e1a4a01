//! What two sessions have said to each other, damaged and played to sessions of other kinds: no panic, few
//! steps for each packet, and the next link works.

#[path = "support/node.rs"]
#[allow(dead_code)]
mod node;

use std::sync::LazyLock;
use std::time::Duration;

use node::{Node, Out, Told, join, node as new_node, settle, zid};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use sinew::pubsub::codec::Body;
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::{
    Ask, Config, Fixed, Opens, PublisherOptions, Put, PutError, Session, State, Tables,
};
use sinew::time::Instant;

const MTU: usize = 200;
const NOW: Instant = Instant::START;

fn config(name: &str) -> Config {
    let mut config = Config::peer(zid(name));
    config.seed = 7;
    config
}

/// The packets for the side that opens, and for the one that accepts.
static RECORDED: LazyLock<[Vec<Vec<u8>>; 2]> = LazyLock::new(record);

/// A session from its beginning to its end, with something of everything.
fn record() -> [Vec<Vec<u8>>; 2] {
    let mut sides = [config("one"), config("other")].map(|config| new_node(config, MTU, 1000));
    let mut said = [Vec::new(), Vec::new()];
    let [one, other] = &mut sides;
    join(one, other, NOW);
    for side in [&mut *one, &mut *other] {
        let session = &mut side.session;
        session.subscriber("demo/**").unwrap();
        session.queryable("demo/*/x", true).unwrap();
    }
    let publish = |side: &mut Node, key: &str, payload: &[u8]| {
        let filter = PublisherOptions {
            filter: true,
            ..PublisherOptions::DEFAULT
        };
        let id = side.session.publisher(key, filter).unwrap();
        let put = side.session.put(&mut side.tx, id, payload, NOW);
        assert!(matches!(put, Ok(Put::Sent | Put::Heard)), "{put:?}");
        id
    };
    for round in 0..8 {
        for _ in 0..20 {
            // As `settle` does, with a look at what is on its way.
            for (side, said) in [&mut *one, &mut *other].into_iter().zip(&mut said) {
                said.extend(side.rx.borrow().packets.iter().cloned());
                side.turn(NOW);
            }
        }
        for side in [&mut *one, &mut *other] {
            let (session, tx) = (&mut side.session, &mut side.tx);
            match round {
                1 => {
                    let id = publish(side, "demo/k", b"short");
                    side.session.withdraw_publisher(id);
                }
                2 => {
                    publish(side, "demo/k", &[7; 700]);
                }
                3 => {
                    let ask = Ask::new(KeyExpr::new("demo/a/x").unwrap());
                    session.ask(tx, &ask, NOW).unwrap();
                }
                4 => {
                    for told in side.take() {
                        let Told::Query(_, request, ..) = told else {
                            continue;
                        };
                        let key = KeyExpr::new("demo/a/x").ok();
                        let (session, tx) = (&mut side.session, &mut side.tx);
                        let body = Body::put(b"answer");
                        session.reply(tx, request, key, &body, NOW).unwrap();
                        session.finish(tx, request, NOW).unwrap();
                    }
                }
                5 => {
                    let best_effort = PublisherOptions {
                        reliable: false,
                        ..PublisherOptions::DEFAULT
                    };
                    let key = KeyExpr::new("demo/b").unwrap();
                    let put = session.publish_on(tx, key, best_effort, &Body::del(), NOW);
                    assert_eq!(put, Ok(Put::Heard));
                    let id = session.subscriber("demo/k$*").unwrap();
                    session.withdraw_subscriber(id);
                }
                6 => session.close(tx, NOW),
                _ => {}
            }
        }
    }
    assert!(said.iter().all(|said| said.len() > 8), "{said:02x?}");
    said
}

/// What becomes of the packets.
#[derive(Clone, Debug)]
enum Damage {
    /// Bits of a byte are others.
    Flipped(Index, Index, u8),
    /// What follows is gone.
    Cut(Index, Index),
    /// Something follows.
    Longer(Index, Vec<u8>),
    /// Two have changed places.
    Swapped(Index, Index),
    /// It comes once more, at another time.
    Repeated(Index, Index),
    /// It does not come.
    Lost(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let index = any::<Index>;
    prop_oneof![
        4 => (index(), index(), 1..=u8::MAX).prop_map(|(p, at, bits)| Damage::Flipped(p, at, bits)),
        1 => (index(), index()).prop_map(|(p, at)| Damage::Cut(p, at)),
        1 => (index(), vec(any::<u8>(), 1..20)).prop_map(|(p, more)| Damage::Longer(p, more)),
        1 => (index(), index()).prop_map(|(p, q)| Damage::Swapped(p, q)),
        1 => (index(), index()).prop_map(|(p, at)| Damage::Repeated(p, at)),
        1 => index().prop_map(Damage::Lost),
    ]
}

impl Damage {
    fn done(&self, packets: &mut Vec<Vec<u8>>) {
        if packets.is_empty() {
            return;
        }
        let count = packets.len();
        match self {
            Damage::Flipped(p, at, bits) => {
                let packet = p.get_mut(packets);
                if !packet.is_empty() {
                    *at.get_mut(packet) ^= bits;
                }
            }
            Damage::Cut(p, at) => {
                let packet = p.get_mut(packets);
                packet.truncate(at.index(packet.len() + 1));
            }
            Damage::Longer(p, more) => p.get_mut(packets).extend(more),
            Damage::Swapped(p, q) => packets.swap(p.index(count), q.index(count)),
            Damage::Repeated(p, at) => packets.insert(at.index(count), p.get(packets).clone()),
            Damage::Lost(p) => drop(packets.remove(p.index(count))),
        }
    }
}

/// Packets of one side.
const HANDSHAKE: usize = 2;

/// How it is played.
#[derive(Clone, Debug)]
struct Play {
    damage: Vec<Damage>,
    /// Packets at the beginning to which that is not done.
    spared: usize,
    /// Places of the link, and after how many packets it carries away what is there.
    room: usize,
    carries: usize,
    /// Milliseconds between two packets.
    pause: u64,
}

fn play() -> impl Strategy<Value = Play> {
    let pause = prop_oneof![3 => Just(0), 1 => 1..4000u64];
    let damage = vec(damage(), 1..8);
    let spared = prop_oneof![1 => Just(0), 3 => Just(HANDSHAKE)];
    let room = prop_oneof![1 => 0..4usize, 3 => Just(1000)];
    let play = (damage, spared, room, 1..4usize, pause);
    play.prop_map(|(damage, spared, room, carries, pause)| Play {
        damage,
        spared,
        room,
        carries,
        pause,
    })
}

impl Play {
    fn run<T: Tables>(&self, node: &mut Node<T>, recorded: &[Vec<u8>]) -> Instant {
        let (spared, rest) = recorded.split_at(self.spared);
        let mut rest = rest.to_vec();
        for damage in &self.damage {
            damage.done(&mut rest);
        }
        let packets = spared.iter().cloned().chain(rest);
        let mut now = NOW;
        node.turn(now);
        node.tx.room = self.room;
        for (index, packet) in packets.enumerate() {
            if index % self.carries == 0 {
                node.tx.way.borrow_mut().packets.clear();
            }
            now = now.after(Duration::from_millis(self.pause));
            node.rx.borrow_mut().packets.push_back(packet);
            node.turn(now);
        }
        node.tx.room = 1000;
        now
    }

    /// To a session that opens.
    fn opens<T: Tables>(&self, tables: T, enter: impl FnOnce(&mut Session<T>)) {
        let mut node = Node::new(config("one"), tables, Out::new(MTU, 1000));
        enter(&mut node.session);
        node.session.open(NOW);
        let now = self.run(&mut node, &RECORDED[0]);
        node.session.link_lost();
        let mut fresh = new_node(config("fresh"), MTU, 1000);
        join(&mut node, &mut fresh, now);
        settle(&mut node, &mut fresh, now);
        assert_eq!(node.session.state(), State::Open);
        assert_eq!(fresh.session.stats().malformed, 0);
    }

    /// To a session that accepts.
    fn accepts<T: Tables>(&self, tables: T, enter: impl FnOnce(&mut Session<T>)) {
        let mut node = Node::new(config("other"), tables, Out::new(MTU, 1000));
        enter(&mut node.session);
        node.session.accept();
        let now = self.run(&mut node, &RECORDED[1]);
        node.session.link_lost();
        let mut fresh = new_node(config("fresh"), MTU, 1000);
        join(&mut fresh, &mut node, now);
        settle(&mut fresh, &mut node, now);
        assert_eq!(node.session.state(), State::Open);
        assert_eq!(fresh.session.stats().malformed, 0);
    }
}

fn nothing<T: Tables>(_: &mut Session<T>) {}

fn publishes<T: Tables<Key = KeyExpr<'static>>>(session: &mut Session<T>) {
    let filter = PublisherOptions {
        filter: true,
        ..PublisherOptions::DEFAULT
    };
    session.publisher("demo/k", filter).unwrap();
}

fn subscribes<T: Tables<Key = KeyExpr<'static>>>(session: &mut Session<T>) {
    session.subscriber("demo/**").unwrap();
    session.subscriber("demo/k").unwrap();
}

fn answers<T: Tables<Key = KeyExpr<'static>>>(session: &mut Session<T>) {
    session.queryable("demo/**", true).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_packets_leave_a_session_that_comes_back_whatever_it_can_hold(play in play()) {
        play.opens(Opens(Fixed::<0>::new()), nothing);
        play.opens(Opens(Fixed::<1>::new()), publishes);
        play.opens(Fixed::<1, 0, 0, 0, 4>::new(), publishes);
        play.opens(Fixed::<0, 2, 0, 0, 3>::new(), subscribes);
        play.opens(Fixed::<0, 0, 1, 1, 2, 64>::new(), answers);
        play.opens(Fixed::<1, 2, 1, 2, 10, 4096>::new(), |session: &mut Session<_>| {
            publishes(session);
            subscribes(session);
            answers(session);
        });
        play.accepts(Fixed::<0>::new(), nothing);
        play.accepts(Fixed::<1, 0, 0, 0, 4, 100>::new(), publishes);
        play.accepts(Fixed::<0, 2>::new(), subscribes);
        play.accepts(Fixed::<0, 0, 1>::new(), answers);
        play.accepts(Fixed::<1, 2, 1, 2, 10, 4096>::new(), |session: &mut Session<_>| {
            publishes(session);
            subscribes(session);
            answers(session);
        });
    }
}

#[test]
fn what_was_recorded_is_heard_where_it_is_not_damaged() {
    let whole = Play {
        damage: Vec::new(),
        spared: 0,
        room: 1000,
        carries: 1000,
        pause: 0,
    };
    for opens in [true, false] {
        let name = if opens { "one" } else { "other" };
        let tables = Fixed::<1, 2, 1, 2, 10, 4096>::new();
        let mut node = Node::new(config(name), tables, Out::new(MTU, 1000));
        subscribes(&mut node.session);
        match opens {
            true => node.session.open(NOW),
            false => node.session.accept(),
        }
        whole.run(&mut node, &RECORDED[usize::from(!opens)]);
        let told = node.take();
        let samples = |told: &&Told| matches!(told, Told::Sample(..));
        assert_eq!(told.iter().filter(samples).count(), 5, "{told:?}");
        assert!(told.contains(&Told::Opened));
        assert!(matches!(told.last(), Some(Told::Closed(_))));
        let put = node.session.publish_on(
            &mut node.tx,
            KeyExpr::new("demo/k").unwrap(),
            PublisherOptions::DEFAULT,
            &Body::put(b""),
            NOW,
        );
        assert_eq!(put, Err(PutError::NotOpen));
    }
}
