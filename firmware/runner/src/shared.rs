//! This process as the first side of the memory that it shares with a board.

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use sinew_shm::StdLock;
use sinew_shm::domain::{Doorbell, End, Options, Receiver, Refused, Role, Sender};
use sinew_shm::linux::bell::{SocketBell, Wait, Woken};
use sinew_shm::linux::process::{Mapped, Process};
use sinew_shm::linux::region::Region;

use crate::Result;
use crate::agreed::{CALLS, LINK};

/// The board's PSRAM, in bytes.
const LEN: u64 = 16 << 20;
/// No answer of the board takes this long on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often to look as long as nothing was heard of the doorbell: what the board rings is lost until
/// the emulator has accepted this side's connection.
const UNHEARD: Duration = Duration::from_millis(5);
/// How often to look after that. QEMU leaves out the barriers of a board with one core, so that its look whether to
/// ring may overtake what it has sent; then nobody is rung, as where a ring is lost.
const LOOK: Duration = Duration::from_millis(100);
/// How long a ring may be behind what it was rung for.
const LATE: Duration = Duration::from_secs(1);
/// Rings that one side may miss: that is rare, and more is a failure.
const MISSED: u32 = 3;

/// Where memory and doorbell are. Both go with it, if it has made them.
pub struct Place {
    folder: PathBuf,
    is_mine: bool,
    pub memory: PathBuf,
    pub bell: PathBuf,
}

impl Place {
    /// A new one.
    pub fn new() -> Result<Place> {
        static PLACES: AtomicU32 = AtomicU32::new(0);
        let place = PLACES.fetch_add(1, Ordering::Relaxed);
        let name = format!("sinew-shared-{}-{place}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder)?;
        let mut place = Place::at(&folder);
        place.is_mine = true;
        File::create(&place.memory)?.set_len(LEN)?;
        Ok(place)
    }

    /// That of another process.
    pub fn at(folder: &Path) -> Place {
        Place {
            folder: folder.to_owned(),
            is_mine: false,
            memory: folder.join("memory"),
            bell: folder.join("bell"),
        }
    }

    /// What names it for programs, where packets have at most so many bytes.
    pub fn endpoint(&self, mtu: usize) -> String {
        let (memory, bell) = (self.memory.display(), self.bell.display());
        format!("shm:{memory}?mtu={mtu}&doorbell={bell}")
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_mine {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

type Link = Arc<End<Process<StdLock>>>;

/// The board's doorbell, which is another one each time that the emulator is started.
#[derive(Default)]
struct Bell(Mutex<Option<SocketBell>>);

impl Bell {
    fn socket(&self) -> MutexGuard<'_, Option<SocketBell>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Doorbell for Bell {
    fn ring(&self) {
        if let Some(socket) = &*self.socket() {
            socket.ring();
        }
    }
}

/// The side of this process.
pub struct Side {
    link: Link,
    bell: Arc<Bell>,
    tx: Sender<Link>,
    rx: Receiver<Link>,
    start: Instant,
    /// The board has rung since this side has connected.
    heard: bool,
    missed: u32,
}

impl Side {
    /// Opens this side, with or without a board on the other.
    pub fn open(place: &Place) -> Result<Side> {
        let bell = Arc::new(Bell::default());
        let region = Region::open(&place.memory, 0, LEN as usize)?;
        let mapped = Mapped::in_region(&region, &LINK, Role::First)?;
        let doorbell = Box::new(bell.clone());
        let link = Arc::new(mapped.open(LINK, Role::First, doorbell, Options::default())?);
        let no_channel = "the channel is not configured";
        Ok(Side {
            tx: Sender::new(&link, CALLS).ok_or(no_channel)?,
            rx: Receiver::new(&link, CALLS).ok_or(no_channel)?,
            link,
            bell,
            start: Instant::now(),
            heard: false,
            missed: 0,
        })
    }

    /// Connects to the doorbell of an emulator that was started. It makes the socket at its start.
    pub fn connect(&mut self, place: &Place) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let stream = loop {
            match UnixStream::connect(&place.bell) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() > deadline => {
                    return Err(format!("{}: {error}", place.bell.display()).into());
                }
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        *self.bell.socket() = Some(SocketBell::new(stream.into()));
        self.heard = false;
        // What rang before rang for nobody.
        self.bell.ring();
        Ok(())
    }

    /// The emulator has ended: takes back what the board had, until there is another one.
    pub fn board_is_gone(&mut self) {
        *self.bell.socket() = None;
        self.link.peer_is_gone();
    }

    /// Whether every block is where it should be.
    pub fn is_conserved(&self) -> bool {
        self.link.check_books()
    }

    /// How often the board has found that this side broke the protocol, since it was started.
    pub fn violations(&self) -> u32 {
        let link = self.link.observe();
        let boards = link.channels().filter_map(|channel| {
            let board = channel.side(Role::Second)?;
            Some(board.counts.violations)
        });
        boards.sum()
    }

    /// Looks, tries to send and to receive, and rings, whatever comes of it.
    pub fn nudge(&mut self) {
        self.link.look(self.start.elapsed().as_millis() as u32);
        let sent = self.tx.send(&[0x5a; 20]);
        let received = self.rx.receive().map(drop);
        if sent.is_err() || received.is_err() {
            self.tx.renew();
            self.rx.renew();
        }
        self.bell.ring();
    }

    /// The pairing that is up, or the next one.
    pub fn pairing(&self) -> u32 {
        self.link.pairing()
    }

    /// Waits until another pairing than this one is up, or the next one.
    pub fn renewed(&mut self, before: u32) -> Result<()> {
        self.until("no sign of its restart", |side| {
            Ok((side.pairing() != before).then_some(()))
        })
    }

    /// Sends a packet, as soon as the link is up and there is a place.
    pub fn send(&mut self, packet: &[u8]) -> Result<()> {
        self.until("no place", |side| match side.tx.send(packet) {
            Ok(_) => Ok(Some(())),
            Err(Refused::Full) => {
                side.tx.arm(Waker::noop());
                match side.tx.send(packet) {
                    Ok(_) => Ok(Some(())),
                    Err(Refused::Full) => Ok(None),
                    Err(refused) => Err(refused),
                }
            }
            Err(refused) => Err(refused),
        })
    }

    /// The next packet.
    pub fn receive(&mut self) -> Result<Vec<u8>> {
        fn next(rx: &Receiver<Link>) -> std::result::Result<Option<Vec<u8>>, Refused> {
            let Some(packet) = rx.receive().map_err(Refused::Lost)? else {
                return Ok(None);
            };
            let mut bytes = vec![0; packet.len()];
            packet.copy_to(&mut bytes).map_err(Refused::Lost)?;
            Ok(Some(bytes))
        }
        self.until("no answer", |side| match next(&side.rx)? {
            Some(packet) => Ok(Some(packet)),
            None => {
                side.rx.arm(Waker::noop());
                next(&side.rx)
            }
        })
    }

    /// Something was there that this side was not rung for yet, and it had asked for that.
    fn expect_ring(&mut self) -> Result<()> {
        let socket = self.bell.socket();
        let bell = socket.as_ref().ok_or("there is no board")?;
        if let Woken::TimedOut = bell.wait(bell.seen(), Some(LATE)) {
            self.missed += 1;
        }
        match self.missed > MISSED {
            true => Err(format!("{} rings of the board are missing", self.missed).into()),
            false => Ok(()),
        }
    }

    /// Tries after each doorbell, in this pairing or the next one.
    fn until<T>(
        &mut self,
        what: &str,
        mut attempt: impl FnMut(&mut Side) -> std::result::Result<Option<T>, Refused>,
    ) -> Result<T> {
        let deadline = Instant::now() + PATIENCE;
        let mut is_rung = true;
        loop {
            self.link.look(self.start.elapsed().as_millis() as u32);
            match attempt(self) {
                Ok(Some(done)) if is_rung => return Ok(done),
                Ok(Some(done)) => return self.expect_ring().map(|()| done),
                Ok(None) => {}
                Err(Refused::Lost(_)) => {
                    self.tx.renew();
                    self.rx.renew();
                    is_rung = true;
                    continue;
                }
                Err(refused) => return Err(format!("{what}: {refused:?}").into()),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let span = left.min(if self.heard { LOOK } else { UNHEARD });
            let socket = self.bell.socket();
            let bell = socket.as_ref().ok_or("there is no board")?;
            match bell.wait(bell.seen(), Some(span)) {
                Woken::Rung => (self.heard, is_rung) = (true, true),
                Woken::TimedOut if span < left => is_rung = !self.heard,
                Woken::TimedOut => {
                    let status = self.link.status();
                    return Err(format!("{what} from the board: the link is {status:?}").into());
                }
                Woken::HungUp => return Err(format!("{what}: the board is gone").into()),
            }
        }
    }
}
