//! One side of a link under a script: its own calls, the calls of an honest peer, and writes of
//! anything into the peer's memory, in any order. Whatever the script says, the books of the side
//! are right after each step, it writes nothing into the peer's memory, and once an honest peer is
//! there again the link works with every block.
//!
//! The same scripts serve as random tests and as the inputs of a fuzzer.

use std::cell::OnceCell;
use std::rc::Rc;
use std::task::Waker;

use sinew_shm::Unshared;
use sinew_shm::domain::{
    Area, Block, Channel, Coherent, Config, End, Guard, LockError, Messages, Options, Packet,
    Parts, Place, Platform, Pool, Predicate, Receiver, Refused, Role, Sender, Silent, Slot, State,
    Status,
};

use super::raw::{self, Pair, Raw};

#[path = "play_messages.rs"]
mod messages;
use messages::{BLOCKS, CHANNEL, INDEX, MESSAGES};

/// Without trust: few small blocks, and blocks above the size from which returns are preferred.
const NONE: Config = Config::new(&[
    Channel::new(1, "small", Pool::new(3, 24)).pools(Pool::new(2, 40), Pool::new(3, 24)),
    Channel::new(2, "large", Pool::new(1, 8))
        .pools(Pool::new(2, 2048), Pool::new(1, 8))
        .priority(1),
    VALUES,
    CHANNEL,
    SHARED,
]);
/// With trust: answers in the lent block, and a channel without them.
const MUTUAL: Config = Config::new(&[
    Channel::new(1, "answers", Pool::new(3, 24)).with_replies(),
    Channel::new(2, "plain", Pool::new(2, 16)).priority(1),
    VALUES,
    CHANNEL.with_replies(),
    SHARED,
])
.mutual();
const CHANNELS: usize = 2;
/// A state channel behind them.
const STATE: u16 = 3;
type Value = [u8; 20];
const VALUES: Channel = Channel::of::<Value>(STATE, "state");
/// A lock channel behind all.
const LOCK: u16 = 5;
const SHARED: Channel = Channel::lock(LOCK, "lock", 30);
const SLOTS: usize = CHANNELS + 3;
/// Books on the blocks of the queues, and on the message channel's places.
const BOOKS: usize = 12 + BLOCKS;
/// So many sets of handles in one life.
const RENEWALS: usize = 8;
/// So many things in hand.
const HANDS: usize = 8;

struct Solo;

impl Platform for Solo {
    type Lock = Unshared;
    type Doorbell = Silent;
    type Cache = Coherent;
    type Slots = [Slot; SLOTS];
    type Blocks = [Block; BOOKS];
}

type Side = Rc<End<Solo>>;

/// Memory for any number of plays, one after another.
pub struct Stage {
    none: Pair,
    mutual: Pair,
}

impl Stage {
    pub fn new() -> Stage {
        Stage {
            none: Pair::new(&[NONE]),
            mutual: Pair::new(&[MUTUAL]),
        }
    }

    /// Plays a script on fresh memory. Its first byte says which link it is, the rest are steps.
    pub fn play(&mut self, script: &[u8]) {
        let mut script = Script(script);
        let setup = script.byte().unwrap_or_default();
        let (pair, config) = match setup & 1 {
            0 => (self.none, NONE),
            _ => (self.mutual, MUTUAL),
        };
        pair.clear();
        let role = match setup & 2 {
            0 => Role::First,
            _ => Role::Second,
        };
        let options = Options {
            heartbeat: 10,
            silence: if setup & 8 == 0 { 0 } else { 50 },
            faults: setup & 4 == 0,
        };
        let mut world = World {
            pair,
            config,
            role,
            options,
            now: 0,
            peer: None,
            theirs: Vec::new(),
            places: [raw::Places::default(); SLOTS],
            with_messages: setup & 32 != 0,
            in_peers_hands: messages::Hands::default(),
        };
        world.peer = Some(world.open(role.peer()));
        world.places = [0, 1, 2, 3, 4].map(|index| world.foreign().places(index));
        let mut is_settled = setup & 16 != 0;
        while world.life(&mut script, is_settled) {
            is_settled = world.with_messages;
        }
    }
}

struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    /// The next byte, 0 behind the end.
    fn arg(&mut self) -> u32 {
        self.byte().unwrap_or_default().into()
    }

    /// A number that is worth trying.
    fn value(&mut self) -> u32 {
        let byte = self.arg();
        match byte {
            0..64 => byte,
            64..128 => u32::MAX - (byte - 64),
            128..160 => 1 << (byte - 128),
            160..192 => (1u32 << (byte - 160)).wrapping_sub(1),
            _ => {
                let bytes = [self.arg(), self.arg(), self.arg(), byte];
                bytes.iter().fold(0, |value, byte| value << 8 | byte)
            }
        }
    }
}

struct World {
    pair: Pair,
    config: Config<'static>,
    /// Of the side under test.
    role: Role,
    options: Options,
    now: u32,
    peer: Option<Side>,
    /// The peer's memory, as it was before the step.
    theirs: Vec<u32>,
    /// Where the parts of the peer's channels lie, whatever its directory says by now.
    places: [raw::Places; SLOTS],
    /// What would go to the queues goes to the message channel.
    with_messages: bool,
    in_peers_hands: messages::Hands<Solo>,
}

struct Handles {
    senders: [Sender<Side>; CHANNELS],
    receivers: [Receiver<Side>; CHANNELS],
    state: State<Side, Value>,
    messages: Messages<Side>,
    area: Area<Side>,
}

impl Handles {
    fn new(end: &Side) -> Handles {
        Handles {
            senders: [1, 2].map(|id| Sender::new(end, id).expect("a channel")),
            receivers: [1, 2].map(|id| Receiver::new(end, id).expect("a channel")),
            state: State::new(end, STATE).expect("a channel"),
            messages: Messages::new(end, MESSAGES).expect("a channel"),
            area: Area::new(end, LOCK).expect("a channel"),
        }
    }
}

/// What the user of the side has in hand.
#[derive(Default)]
struct Hands<'a> {
    places: Vec<Place<'a, Side>>,
    packets: Vec<Packet<'a, Side>>,
    guard: Option<Guard<'a, Side>>,
    messages: messages::Hands<Solo>,
}

impl World {
    fn open(&self, role: Role) -> Side {
        // SAFETY: the end of this role that was there before is dropped: `life` and `peer_acts`
        // keep one each.
        let memory = unsafe { self.pair.memory(role) };
        let parts = Parts {
            doorbell: Silent,
            cache: Coherent,
            platform: Solo,
            slots: [Slot::EMPTY; SLOTS],
            blocks: [Block::NEW; BOOKS],
        };
        let options = if role == self.role {
            self.options
        } else {
            Options::default()
        };
        let end = End::open(memory, self.config, role, parts, options);
        Rc::new(end.expect("the configuration is one"))
    }

    fn mine(&self) -> Raw {
        self.pair.of(self.role)
    }

    fn foreign(&self) -> Raw {
        self.pair.of(self.role.peer())
    }

    /// One life of the side under test; whether it is to have another.
    fn life(&mut self, script: &mut Script<'_>, is_settled: bool) -> bool {
        let end = self.open(self.role);
        let cells = [const { OnceCell::new() }; RENEWALS];
        let mut hands = Hands::default();
        let mut generation = 0;
        if is_settled {
            self.settle(&end);
        }
        while let Some(step) = script.byte() {
            match step % 16 {
                // A message with memory takes many steps: what ends a link comes seldom.
                0 | 12 | 14 if self.with_messages && step & 0x30 != 0 => self.settle(&end),
                0..=8 => {
                    self.foreign().copy_into(&mut self.theirs);
                    let handles = cells[generation].get_or_init(|| Handles::new(&end));
                    if step % 16 == 8 && step >= 0x80 {
                        generation = (generation + 1).min(RENEWALS - 1);
                    } else {
                        self.act(step, script, &end, handles, &mut hands);
                    }
                    assert!(
                        self.foreign().is_like(&self.theirs),
                        "only the owner writes"
                    );
                }
                9 | 10 => self.peer_acts(script),
                11 => self.forge(script),
                12 => self.say(script),
                13 => {
                    let word = script.arg() << 8 | script.arg();
                    let word = word as usize % self.foreign().len();
                    self.foreign().set(word, script.value());
                }
                14 => self.spoil(script),
                _ if step < 0x40 => {
                    // A crash leaves the memory as it is; an orderly end says so.
                    let mut words = Vec::new();
                    self.mine().copy_into(&mut words);
                    drop(hands);
                    drop(cells);
                    drop(end);
                    if step < 0x20 {
                        (0..words.len()).for_each(|at| self.mine().set(at, words[at]));
                    }
                    return true;
                }
                _ => self.settle(&end),
            }
            assert!(end.check_books());
            assert!(self.options.faults || !matches!(end.status(), Status::Fault(_)));
        }
        drop(hands);
        self.assert_whole(end);
        false
    }

    /// Both begin again after a fault, and look until both have seen what the other wrote.
    fn settle(&mut self, end: &Side) {
        end.recover();
        for _ in 0..3 {
            self.now += 1;
            end.look(self.now);
            if let Some(peer) = &self.peer {
                peer.look(self.now);
            }
        }
    }

    /// One call at the side under test.
    fn act<'a>(
        &mut self,
        step: u8,
        script: &mut Script<'_>,
        end: &Side,
        handles: &'a Handles,
        hands: &mut Hands<'a>,
    ) {
        if self.with_messages && matches!(step % 16, 1..8) {
            let what = u32::from(step % 16 - 1) << 4 | u32::from(step >> 4);
            return hands.messages.act(what % 11, script, &handles.messages);
        }
        let channel = usize::from(step >= 0x80);
        let (sender, receiver) = (&handles.senders[channel], &handles.receivers[channel]);
        let at = usize::from(step >> 4 & 7);
        match step % 16 {
            0 => {
                self.now = self.now.wrapping_add(script.arg());
                end.look(self.now);
            }
            1 => {
                let _ = sender.send(&[0x5A; 64][..at * 9]);
            }
            2 if hands.places.len() < HANDS => {
                if let Ok(mut place) = sender.place(at * 8) {
                    assert_eq!(place.len(), sender.size());
                    place.fill(0xA5);
                    hands.places.push(place);
                }
            }
            3 if at < hands.places.len() => {
                let place = hands.places.swap_remove(at);
                let _ = match script.arg() {
                    len @ 0..128 => place.publish(len as usize),
                    _ => place.send(1),
                };
            }
            4 if at < hands.places.len() => drop(hands.places.swap_remove(at)),
            5 if script.arg() & 1 == 0 => {
                let mut copy = [0xEE; 48];
                if let Ok(Some(len)) = receiver.receive_into(&mut copy) {
                    assert!(len <= receiver.size());
                    assert!(copy.iter().skip(len).all(|byte| *byte == 0xEE));
                }
            }
            5 if hands.packets.len() < HANDS => {
                if let Ok(Some(packet)) = receiver.receive() {
                    assert!(packet.len() <= receiver.size());
                    hands.packets.push(packet);
                }
            }
            6 if at < hands.packets.len() => {
                let mut copy = [0; 48];
                let packet = &hands.packets[at];
                if let Ok(copied) = packet.copy_to(&mut copy) {
                    assert_eq!(copied, packet.len().min(copy.len()));
                }
                assert!(packet.words().count() <= 2048 / size_of::<usize>());
                if let Some(bytes) = packet.trusted() {
                    assert_eq!(bytes.len(), packet.len());
                }
                drop(hands.packets.swap_remove(at));
            }
            7 if at < hands.packets.len() => {
                let mut packet = hands.packets.swap_remove(at);
                let room = packet.place().map(|place| {
                    place.fill(0x3C);
                    place.len()
                });
                let len = script.arg() as usize;
                let is_sent = packet.reply(len);
                assert_eq!(is_sent, room.is_some_and(|room| len <= room));
            }
            7 if hands.places.len() < HANDS => {
                if let Ok(Some(reply)) = sender.reply() {
                    assert!(reply.len() <= sender.size());
                    hands.places.push(reply.into_place());
                }
            }
            8 if at == 7 => match script.arg() {
                0 => end.close(),
                1..64 => drop(handles.state.set(&[step; 20])),
                64..128 => drop(handles.state.get_with_version()),
                128..160 => sender.flush(),
                160..192 => hands.guard = lock(&handles.area),
                192..208 => hands.guard = None,
                208..212 => std::mem::forget(hands.guard.take()),
                _ => use_area(script, hands.guard.as_mut()),
            },
            8 => self.act_rarely(at, script, end, sender, receiver),
            _ => {}
        }
    }

    fn act_rarely(
        &mut self,
        which: usize,
        script: &mut Script<'_>,
        end: &Side,
        sender: &Sender<Side>,
        receiver: &Receiver<Side>,
    ) {
        match which {
            0 if script.arg() & 1 == 0 => end.peer_is_gone(),
            0 => end.peer_has_ended(),
            1 => end.recover(),
            2 => end.drain(),
            3 => drop(end.is_drained()),
            4 => {
                let next = end.next();
                assert!(next.is_none_or(|id| [1, 2, MESSAGES].contains(&id)));
            }
            5 => receiver.set_filter(predicate(script)),
            6 => {
                receiver.arm_at(script.arg(), Waker::noop());
                sender.arm(Waker::noop());
                sender.arm_reply(Waker::noop());
                let _ = (receiver.ring_at(script.arg()), sender.ring_at_return());
            }
            _ => {}
        }
    }

    /// One call at the peer, which is honest about everything that it does itself.
    fn peer_acts(&mut self, script: &mut Script<'_>) {
        let act = script.arg();
        let id = if act & 0x80 == 0 { 1 } else { 2 };
        let Some(peer) = &self.peer else {
            self.peer = Some(self.open(self.role.peer()));
            return;
        };
        if self.with_messages && act < 0xF0 {
            let messages = Messages::new(peer, MESSAGES).expect("a channel");
            peer.look(self.now);
            return self.in_peers_hands.act(act % 11, script, &messages);
        }
        let sender = Sender::new(peer, id).expect("a channel");
        let receiver = Receiver::new(peer, id).expect("a channel");
        match act & 0xF {
            0..3 => drop(peer.look(self.now)),
            3..6 => drop(sender.send(&[0xC3; 16][..script.arg() as usize % 17])),
            6..8 => drop(receiver.receive()),
            8 => {
                if let Ok(Some(mut packet)) = receiver.receive() {
                    packet.place();
                    packet.reply(script.arg() as usize);
                }
            }
            9 => {
                // It keeps the block.
                if let Ok(Some(packet)) = receiver.receive() {
                    std::mem::forget(packet);
                }
            }
            10 => {
                let state = State::<_, Value>::new(peer, STATE).expect("a channel");
                let _ = (state.get(), state.set(&[script.arg() as u8; 20]));
                receiver.set_filter(predicate(script));
                let area = Area::new(peer, LOCK).expect("a channel");
                let mut guard = lock(&area);
                use_area(script, guard.as_mut());
                if script.arg() == 0 {
                    // It keeps the lock.
                    std::mem::forget(guard);
                }
            }
            11 => {
                receiver.arm(Waker::noop());
                sender.arm(Waker::noop());
            }
            12 => peer.drain(),
            13 => peer.peer_is_gone(),
            14 => peer.recover(),
            _ => {
                drop((sender, receiver));
                self.end_peer();
            }
        }
    }

    fn end_peer(&mut self) {
        self.in_peers_hands = messages::Hands::default();
        self.peer = None;
    }

    /// An entry that is, but for what the script changes, the next one that the side expects.
    fn forge(&self, script: &mut Script<'_>) {
        let (kind, position) = (script.arg(), script.arg());
        let index = (kind & 1) as usize;
        if self.with_messages {
            let theirs = self.places[INDEX];
            return messages::forge(script, self.mine(), self.foreign(), theirs);
        }
        let (own, theirs) = (self.mine().places(index), self.places[index]);
        let count = |word| self.mine().get(own.statistics + word);
        let is_return = kind & 2 != 0;
        let (ring, capacity, next, owner) = if is_return {
            let next = count(raw::RECLAIMED);
            (theirs.returns, theirs.returns_capacity, next, self.mine())
        } else {
            let next = count(raw::RECEIVED);
            (theirs.ring, theirs.capacity, next, self.foreign())
        };
        // Mostly the next one, sometimes others around it.
        let position = next.wrapping_add(if position < 0xC0 { 0 } else { position & 7 });
        let at = ring + 4 * (position % capacity) as usize;
        let tag = owner.get(raw::SESSION) & 0xFFFF;
        let role = if is_return {
            self.role
        } else {
            self.role.peer()
        };
        let blocks = u32::from(self.config.channels[index].pool(role).blocks);
        let block = match script.arg() {
            block @ 0..0xF0 => block % blocks,
            block => block,
        };
        let mut entry = [position.wrapping_add(1), block | tag << 16, 4, 0];
        if kind & 4 != 0 {
            entry[raw::LEN] = script.value();
        }
        if kind & 8 != 0 {
            entry[raw::FLAGS] = script.value();
        }
        if kind & 0xF0 == 0xF0 {
            entry[raw::SEQUENCE] = entry[raw::SEQUENCE].wrapping_add(script.value());
        }
        if kind & 0xF0 == 0x10 {
            entry[raw::BLOCK] = script.value();
        }
        for (word, value) in entry.into_iter().enumerate() {
            self.foreign().set(at + word, value);
        }
    }

    /// Session words as a peer might have them.
    fn say(&self, script: &mut Script<'_>) {
        let foreign = self.foreign();
        let step = script.arg();
        if step & 1 != 0 {
            let session = foreign.get(raw::SESSION).wrapping_add(step >> 4);
            foreign.set(raw::SESSION, session);
        }
        if step & 2 != 0 {
            foreign.set(raw::ACKNOWLEDGED, self.mine().get(raw::SESSION));
        }
        if step & 4 != 0 {
            foreign.set(raw::STATE, script.arg() % 6);
        }
        if step & 8 != 0 {
            let word = script.arg() as usize % 9;
            let value = match word {
                raw::MAGIC => u32::from_le_bytes(*b"Sinw"),
                raw::HASH => self.mine().get(raw::HASH),
                _ => script.value(),
            };
            foreign.set(word, value);
        }
    }

    /// The whole segment, or a whole channel, at once.
    fn spoil(&self, script: &mut Script<'_>) {
        let (kind, seed) = (script.arg(), script.arg());
        let mut random = seed << 8 | kind | 1;
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            random
        };
        let foreign = self.foreign();
        match kind % 4 {
            0 => foreign.fill(|| 0),
            1 => foreign.fill(|| u32::MAX),
            2 => foreign.fill(next),
            _ => {
                for _ in 0..seed {
                    let word = next() as usize % foreign.len();
                    foreign.set(word, next());
                }
            }
        }
        if let Some(exchange) = &self.pair.exchange {
            let word = seed as usize % exchange.len();
            exchange.set(word, kind);
        }
    }

    /// With an honest peer the link comes up, every block can be taken, and packets go both ways.
    fn assert_whole(&mut self, mut end: Side) {
        self.end_peer();
        end.peer_is_gone();
        end.recover();
        assert!(end.check_books());
        if end.status() == Status::Closed {
            drop(end);
            end = self.open(self.role);
        }
        let peer = self.open(self.role.peer());
        for _ in 0..3 {
            self.now += 1;
            end.look(self.now);
            peer.look(self.now);
        }
        assert_eq!((end.status(), peer.status()), (Status::Up, Status::Up));
        let (here, there) = (Handles::new(&end), Handles::new(&peer));
        for receiver in &here.receivers {
            receiver.set_filter(Predicate::All);
        }
        for (channel, sender) in here.senders.iter().enumerate() {
            let blocks = self.config.channels[channel].pool(self.role).blocks;
            let taken: Vec<_> = (0..blocks).map(|_| sender.place(1)).collect();
            assert!(taken.iter().all(Result::is_ok), "every own block is there");
            assert!(matches!(sender.place(1), Err(Refused::Full)));
            drop(taken);
            for _ in 0..blocks + 1 {
                assert_eq!(sender.send(b"there"), Ok(true));
                let packet = there.receivers[channel].receive();
                assert_eq!(packet.expect("up").expect("a packet").len(), 5);
            }
            assert_eq!(there.senders[channel].send(b"back"), Ok(true));
            let packet = here.receivers[channel].receive();
            assert_eq!(packet.expect("up").expect("a packet").len(), 4);
        }
        messages::assert_whole(&here.messages, &there.messages);
        // What the peer's memory says of versions may be none; it is not a peer then.
        if let Some(mut guard) = lock(&here.area) {
            guard.write(3, b"whole").expect("it is this side's");
            drop(guard);
            if let Some(guard) = lock(&there.area) {
                let mut found = [0; 5];
                guard.read(3, &mut found).expect("it is the other side's");
                assert_eq!(&found, b"whole");
            }
        }
        assert_eq!((here.state.get(), there.state.get()), (Ok(None), Ok(None)));
        for number in 1..6 {
            for (from, to) in [(&here, &there), (&there, &here)] {
                assert_eq!(from.state.set(&[number; 20]), Ok(true));
                let expected = ([number; 20], number.into());
                assert_eq!(to.state.get_with_version(), Ok(Some(expected)));
            }
        }
        assert!(end.check_books() && peer.check_books());
    }
}

/// Takes a lock, if it can be had.
fn lock(area: &Area<Side>) -> Option<Guard<'_, Side>> {
    match area.try_lock() {
        Ok(guard) => Some(guard),
        Err(LockError::Poisoned(poisoned)) => Some(poisoned.accept()),
        Err(_) => None,
    }
}

/// Reads and writes, mostly inside of it.
fn use_area(script: &mut Script<'_>, guard: Option<&mut Guard<'_, Side>>) {
    if let Some(guard) = guard {
        let mut bytes = [0; 12];
        let at = script.value() as usize;
        let _ = guard.read(at % 40, &mut bytes);
        let _ = guard.write(at, &bytes[..script.arg() as usize % 13]);
    }
}

fn predicate(script: &mut Script<'_>) -> Predicate {
    match script.arg() {
        0..64 => Predicate::All,
        n @ 64..128 => Predicate::Every(n - 64),
        _ => Predicate::Matches {
            offset: script.value(),
            mask: script.value(),
            value: script.value(),
        },
    }
}
