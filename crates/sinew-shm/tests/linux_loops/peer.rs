//! One side: comes up as often as it must, and keeps both directions busy.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use sinew_shm::domain::{self, Config, End, Kind, Refused, Role, Status};
use sinew_shm::linux::exchange::{DoorbellKind, ExchangeError};
use sinew_shm::linux::link::{
    Area, Link, LinkError, Listener, Options, Receiver, RegionBell, Sender, WaitError,
};
use sinew_shm::linux::process::Process;
use sinew_shm::linux::{Deadline, Region};

use super::Medium;
use super::messages::{self, Messages, Old, Talk};
use super::random::Random;
use super::traffic::{
    AREA, LEAST, LINK, MESSAGES, MUTUAL, Received, STATE, Token, Value, Values, WORDS, is_intact,
    write,
};

type Packet<'a> = domain::Packet<'a, std::sync::Arc<End<Process>>>;
type State = domain::State<std::sync::Arc<End<Process>>, Value>;
type Place<'a> = domain::Place<'a, std::sync::Arc<End<Process>>>;

/// A call that takes this long hangs.
const HANGS: Duration = Duration::from_secs(60);
/// How often the wish to end is looked at.
const SLICE: Option<Duration> = Some(Duration::from_millis(50));
/// Packets on each channel by which both directions are known to work.
const MOVING: u64 = 12;

static ENDS: AtomicBool = AtomicBool::new(false);

pub fn ends() -> bool {
    ENDS.load(Ordering::Relaxed)
}

fn say(line: &str) {
    // The other end may be gone.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// `MEDIUM PATH ROLE LIFE`. Ends when its standard input does.
pub fn run(arguments: &[String]) {
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    std::panic::set_hook(Box::new(|panic| {
        say(&format!("bad {panic}").replace('\n', " "));
        std::process::exit(1);
    }));
    let [medium, path, role, life] = arguments else {
        panic!("{arguments:?}");
    };
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        ENDS.store(true, Ordering::Relaxed);
    });
    let medium = Medium::of(medium);
    let life: u64 = life.parse().unwrap();
    let mut side = Side {
        medium,
        config: if medium.is_mutual() { MUTUAL } else { LINK },
        role: match role.as_str() {
            "first" => Role::First,
            _ => Role::Second,
        },
        life,
        pairings: 0,
        random: Random(life.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
        received: Received::default(),
        old_values: HashSet::new(),
        area: 0,
        old_messages: Old::default(),
    };
    side.live(Path::new(path));
}

struct Side {
    medium: Medium,
    config: Config<'static>,
    role: Role,
    life: u64,
    pairings: u64,
    random: Random,
    received: Received,
    /// Of all pairings before.
    old_values: HashSet<Token>,
    /// What this life left in the area last.
    area: u32,
    old_messages: Old,
}

/// Handles of one pairing.
struct Handles {
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    state: State,
    area: Area,
    messages: Messages,
}

impl Handles {
    fn new(link: &Link, config: &Config) -> Handles {
        let queues = || config.channels.iter().filter(|it| it.kind == Kind::Queue);
        let ids = || queues().map(|channel| channel.id);
        Handles {
            senders: ids().map(|id| link.sender(id).unwrap()).collect(),
            receivers: ids().map(|id| link.receiver(id).unwrap()).collect(),
            state: State::new(link.end(), STATE).unwrap(),
            area: link.area(AREA).unwrap(),
            messages: Messages::new(link.end(), MESSAGES).unwrap(),
        }
    }
}

impl Side {
    fn options(&self) -> Options {
        let end = domain::Options {
            heartbeat: 20,
            silence: 250,
            faults: true,
        };
        let doorbell = match self.medium {
            Medium::EventFd => DoorbellKind::EventFd,
            Medium::Futex => DoorbellKind::Futex,
            _ => DoorbellKind::Socket,
        };
        Options {
            end,
            doorbell,
            exchange: Duration::from_secs(2),
            ..Options::default()
        }
    }

    fn live(&mut self, path: &Path) {
        let options = self.options();
        if self.medium.is_region() {
            let len = domain::Region::of(&self.config).len as usize;
            let region = Region::create(path, 0, len).unwrap();
            let bell = RegionBell::Process;
            let link = Link::in_region(&region, self.config, self.role, bell, options).unwrap();
            self.use_link(&link);
            return;
        }
        let listener = match self.role {
            Role::First => Some(Listener::bind(path).unwrap()),
            Role::Second => None,
        };
        let deadline = Deadline::after(HANGS);
        while !ends() {
            let made = match &listener {
                Some(listener) => listener.accept(self.config, options, SLICE),
                None => Link::connect(path, self.config, options),
            };
            match made {
                Ok(link) => self.use_link(&link),
                // The other one was killed in the middle, or does not listen yet.
                Err(
                    LinkError::Nobody
                    | LinkError::Socket(_)
                    | LinkError::Exchange(
                        ExchangeError::HungUp | ExchangeError::Silent | ExchangeError::Io(_),
                    ),
                ) => {
                    assert!(self.pairings > 0 || !deadline.is_over(), "nobody comes");
                    thread::sleep(Duration::from_millis(1));
                }
                Err(error) => panic!("{error}"),
            }
            let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
            assert!(open < 64, "{open} open files");
        }
    }

    /// Until the link is gone, or this side is to end.
    fn use_link(&mut self, link: &Link) {
        if !self.medium.is_region() {
            // New memory.
            self.area = 0;
        }
        while !ends() {
            match link.up_within(SLICE) {
                Ok(()) => {}
                Err(WaitError::TimedOut | WaitError::Refused(_)) => continue,
                Err(WaitError::Lost(domain::Lost::Closed)) => return,
                Err(error) => panic!("{error}"),
            }
            let first = Handles::new(link, &self.config);
            let (mut packet, mut place) = (None, None);
            if self.is_whole(link, &first, 0) {
                let keep = self.random.one_in(2).then_some(&mut packet);
                if self.random.one_in(2) {
                    place = first.senders[1].place(1).ok();
                }
                self.exchange(link, &first, keep, &mut || {});
            }
            if ends() {
                return;
            }
            // Of a trusted peer, views of its last life stay as they are, and the next waits for them.
            if self.medium.is_mutual()
                && let Some(packet) = packet.take()
            {
                let limit = Duration::from_micros(self.random.below(5000));
                let up = link.up_within(Some(limit));
                assert!(up.is_err(), "up with a view of the last life");
                is_intact(packet.trusted().unwrap());
            }
            // The next pairing begins while views of this one live.
            if let Some(place) = place.take_if(|_| self.random.one_in(2)) {
                let sent = Place::send(place, LEAST);
                assert!(matches!(sent, Err(Refused::Lost(_))), "{sent:?}");
            }
            let held = u16::from(place.is_some());
            while !ends() {
                match link.up_within(SLICE) {
                    Ok(()) => break,
                    Err(WaitError::TimedOut | WaitError::Refused(_)) => {}
                    Err(_) => return,
                }
            }
            let second = Handles::new(link, &self.config);
            if self.is_whole(link, &second, held) {
                let mut end = || drop((packet.take(), place.take()));
                self.exchange(link, &second, None, &mut end);
            }
        }
    }

    /// Whether every own block can be taken in a new pairing; false where it ended already. A place
    /// of the bulk channel may be `held`.
    fn is_whole(&mut self, link: &Link, handles: &Handles, held: u16) -> bool {
        self.pairings += 1;
        self.received.begin_pairing();
        assert!(link.end().check_books(), "the books, before");
        for (channel, sender) in self.config.channels.iter().zip(&handles.senders) {
            let held = if channel.id == 2 { held } else { 0 };
            let blocks = channel.pool(self.role).blocks - held;
            let mut places = Vec::new();
            for taken in 0..blocks {
                // The first attempt may itself bring the link up, where it went down before the handles
                // were made and has come back.
                match sender.place(1).or_else(|_| sender.place(1)) {
                    Ok(place) => places.push(place),
                    Err(Refused::Lost(_)) => return false,
                    // It went down again before the handles were made.
                    Err(_) if link.end().status() != Status::Up => return false,
                    Err(refused) => {
                        panic!("{refused:?}: {taken} of {blocks} blocks on {channel:?}")
                    }
                }
            }
            assert!(sender.place(1).is_err(), "more than {blocks} blocks");
        }
        messages::is_whole(&handles.messages)
    }

    /// Both directions, until the pairing is over. The first packet of the bulk channel is kept.
    fn exchange<'a>(
        &mut self,
        link: &Link,
        handles: &'a Handles,
        keep: Option<&mut Option<Packet<'a>>>,
        when_moving: &mut dyn FnMut(),
    ) {
        let token = (self.life, self.pairings);
        let mut random = Random(self.random.next() | 1);
        let is_over = AtomicBool::new(false);
        let (has_value, has_area) = (&AtomicBool::new(false), &AtomicBool::new(false));
        let mut area = self.area;
        let talks = &AtomicBool::new(false);
        let talk = Talk::new(&handles.messages, token, self.random.next());
        thread::scope(|scope| {
            scope.spawn(|| {
                send(&handles.senders, token, &mut random);
                is_over.store(true, Ordering::Relaxed);
            });
            let values = scope.spawn(|| exchange_values(&handles.state, token, has_value));
            scope.spawn(|| share_area(&handles.area, &mut area, has_area));
            let talked = scope.spawn(|| talk.run(talks));
            self.receive(
                link,
                handles,
                keep,
                ([has_value, has_area, talks], when_moving),
            );
            self.old_messages.add(talked.join().unwrap());
            if let Some(peer) = values.join().unwrap() {
                assert!(self.old_values.insert(peer), "{peer:?} is over");
            }
        });
        self.area = area;
        // Who sends ends with the pairing as well, or with this side.
        assert!(is_over.load(Ordering::Relaxed));
        say(&format!("over {}", self.pairings));
        assert!(link.end().check_books(), "the books, after");
    }

    fn receive<'a>(
        &mut self,
        link: &Link,
        handles: &'a Handles,
        mut keep: Option<&mut Option<Packet<'a>>>,
        (others, when_moving): ([&AtomicBool; 3], &mut dyn FnMut()),
    ) {
        let mut is_moving = false;
        while !ends() {
            let next = match link.next_within(SLICE) {
                Ok(id) if id != MESSAGES => id,
                Ok(_) | Err(WaitError::TimedOut) => {
                    // This pairing, or the next one, in which it would wait for ever.
                    match handles.receivers[0].has(1) {
                        Ok(_) => thread::yield_now(),
                        Err(_) => return,
                    }
                    continue;
                }
                Err(_) => return,
            };
            let channels = self.config.channels;
            let at = channels.iter().position(|it| it.id == next).unwrap();
            let packet = match handles.receivers[at].receive() {
                Ok(Some(packet)) => packet,
                Ok(None) => continue,
                Err(_) => return,
            };
            if self.random.one_in(100) {
                // Time for the peer to go and to come again.
                thread::sleep(Duration::from_micros(self.random.below(5000)));
            }
            if !self.received.check(at, &packet) {
                return;
            }
            if at == 1
                && let Some(keep) = keep.take()
            {
                *keep = Some(packet);
            }
            let others_move = others.iter().all(|has| has.load(Ordering::Relaxed));
            if !is_moving && others_move && self.received.next.iter().all(|&count| count >= MOVING)
            {
                is_moving = true;
                when_moving();
                let (peer, pairings) = (self.received.life(), self.pairings);
                say(&format!("moving {peer} {pairings}"));
            }
        }
    }
}

/// Sends on all channels until the pairing is over.
fn send(senders: &[Sender], token: Token, random: &mut Random) {
    let mut sequence = [0; 3];
    while !ends() {
        let at = random.below(senders.len() as u64) as usize;
        let sender = &senders[at];
        let most = (sender.size() - LEAST) as u64 + 1;
        let len = LEAST + random.below(most) as usize;
        let mut place = match sender.place_within(len, SLICE) {
            Ok(place) => place,
            Err(WaitError::TimedOut) => {
                // What it published on the others may be all that the peer waits for.
                senders.iter().for_each(|sender| sender.flush());
                continue;
            }
            Err(WaitError::Lost(_)) => return,
            Err(error) => panic!("{error}"),
        };
        let bytes = place.get_mut(..len).unwrap();
        write(bytes, token, sequence[at]);
        let is_batch = random.one_in(4);
        let sent = match is_batch {
            true => place.publish(len),
            false => place.send(len),
        };
        match sent {
            Ok(is_wanted) => assert!(is_wanted),
            Err(Refused::Lost(_)) => return,
            Err(refused) => panic!("{refused:?}"),
        }
        sequence[at] += 1;
    }
}

/// Sets values and reads the peer's until the pairing is over: whose they were.
fn exchange_values(state: &State, token: Token, has_value: &AtomicBool) -> Option<Token> {
    let mut seen = Values::default();
    let mut value = [0; _];
    let mut sequence = 0;
    while !ends() {
        for _ in 0..8 {
            write(&mut value, token, sequence);
            match state.set(&value) {
                Ok(set) => assert!(set),
                Err(_) => return seen.token,
            }
            sequence += 1;
            match state.get_with_version() {
                Ok(Some((value, version))) => {
                    seen.check(&value, version);
                    has_value.store(version >= 20, Ordering::Relaxed);
                }
                Ok(None) => {}
                Err(_) => return seen.token,
            }
        }
        thread::sleep(Duration::from_micros(200));
    }
    seen.token
}

/// Takes the lock again and again until the pairing is over, and makes all words of the area one more.
/// They are all the same, and not less than this side left, unless an owner died.
fn share_area(area: &Area, last: &mut u32, has_area: &AtomicBool) {
    let mut count = 0;
    while !ends() {
        let mut bytes = [0; 4 * WORDS];
        let words = |bytes: &[u8]| -> Vec<u32> {
            let words = bytes.chunks_exact(4);
            words
                .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
                .collect()
        };
        let (mut guard, found) = match area.lock_within(SLICE) {
            Ok(Ok(guard)) => {
                if guard.read(0, &mut bytes).is_err() {
                    return;
                }
                let found = words(&bytes);
                assert!(
                    found.iter().all(|word| *word == found[0]),
                    "in part: {found:?}"
                );
                assert!(found[0] >= *last, "{} after {last}", found[0]);
                (guard, found[0])
            }
            Ok(Err(poisoned)) => {
                if poisoned.read(0, &mut bytes).is_err() {
                    return;
                }
                // The last whole one, and in some words what came after it, from each that died.
                let found = words(&bytes);
                let most = found.iter().copied().max().unwrap();
                assert!(most >= *last, "{most} after {last}");
                (poisoned.accept(), most)
            }
            Err(WaitError::TimedOut) => continue,
            Err(WaitError::Lost(_)) => return,
            Err(error) => panic!("{error}"),
        };
        let next = found + 1;
        for word in 0..WORDS {
            if word == WORDS / 2 {
                // Time to be killed in the middle.
                thread::sleep(Duration::from_micros(200));
            }
            if guard.set(4 * word, &next).is_err() {
                return;
            }
        }
        if guard.unlock().is_err() {
            return;
        }
        *last = next;
        count += 1;
        has_area.store(count >= 5, Ordering::Relaxed);
        thread::sleep(Duration::from_micros(100));
    }
}
