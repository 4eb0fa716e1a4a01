//! One side of a link of one channel, and how it waits.

use std::fmt::Debug;
use std::hint::spin_loop;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use sinew_shm::Unshared;
use sinew_shm::domain::{BELL, Channel, Config, End, Options, Role, Status, Trust};
use sinew_shm::linux::bell::{FutexBell, SocketBell, Wait};
use sinew_shm::linux::exchange::{self, Accepted, DoorbellKind, TIMEOUT};
use sinew_shm::linux::process::{AnyDoorbell, Mapped, Process, offer};

use crate::Result;
use crate::shm::contender::{Opening, Waiting};

/// The end: its thread has it alone.
pub type Handle = Rc<End<Process<Unshared>>>;

/// The id of the channel.
pub const CHANNEL: u16 = 1;

/// What a benchmark says about an error of the link.
pub fn told(error: impl Debug) -> Box<dyn std::error::Error> {
    format!("{error:?}").into()
}

/// One side of a link that is up.
pub struct Link {
    pub end: Handle,
    bell: Arc<dyn Bell>,
    waiting: Waiting,
    start: Instant,
    flag: Arc<Flag>,
    waker: Waker,
}

trait Bell: Wait + sinew_shm::domain::Doorbell + Send + Sync {}
impl<B: Wait + sinew_shm::domain::Doorbell + Send + Sync> Bell for B {}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Link {
    /// The calling process's side.
    pub fn near(
        opening: &Opening<'_>,
        trust: Trust,
        channel: Channel,
        bell: DoorbellKind,
    ) -> Result<Self> {
        let (near, far) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        opening.control.give(&[far.as_fd()])?;
        let config = config(trust, channel);
        let offer = offer(&config, Role::First, bell);
        let Accepted::Joined(joined) = exchange::accept(near, &offer, &[], TIMEOUT)? else {
            return Err("the other process came to look only".into());
        };
        Link::open(opening, config, Role::First, bell, joined)
    }

    /// The answering process's side.
    pub fn far(
        opening: &Opening<'_>,
        trust: Trust,
        channel: Channel,
        bell: DoorbellKind,
    ) -> Result<Self> {
        let [socket] = opening.control.take()?;
        let config = config(trust, channel);
        let offer = offer(&config, Role::Second, bell);
        let joined = exchange::join(socket, &offer, TIMEOUT)?;
        Link::open(opening, config, Role::Second, bell, joined)
    }

    fn open(
        opening: &Opening<'_>,
        config: Config<'static>,
        role: Role,
        bell: DoorbellKind,
        joined: exchange::Joined,
    ) -> Result<Self> {
        let mapped = Mapped::joined(joined.mine, joined.peer, joined.exchange);
        let mapped = mapped.ok_or("the segments do not fit")?;
        let (bell, doorbell): (Arc<dyn Bell>, AnyDoorbell) = match bell {
            DoorbellKind::Futex => {
                let [mine, peer] = mapped.maps().ok_or("no maps")?;
                let bell = FutexBell::new((&mine, BELL), (&peer, BELL), joined.socket)?;
                let bell = Arc::new(bell);
                (bell.clone(), Box::new(bell))
            }
            _ => {
                let bell = Arc::new(SocketBell::new(joined.socket));
                (bell.clone(), Box::new(bell))
            }
        };
        let end = mapped.open(config, role, doorbell, Options::default());
        let end = Rc::new(end.map_err(told)?);
        let start = Instant::now();
        while end.look(start.elapsed().as_millis() as u32) != Status::Up {
            if start.elapsed() > TIMEOUT {
                return Err(format!("the link does not come up: {:?}", end.status()).into());
            }
            sleep(Duration::from_micros(50));
        }
        let flag = Arc::new(Flag(AtomicBool::new(false)));
        Ok(Link {
            end,
            bell,
            waiting: opening.waiting,
            start,
            waker: flag.clone().into(),
            flag,
        })
    }

    /// Waits for what `arm` arms a waker for.
    #[inline]
    pub fn pause(&self, arm: impl FnOnce(&Waker)) {
        match self.waiting {
            Waiting::Busy => spin_loop(),
            Waiting::Blocking => self.sleep(arm),
        }
    }

    fn sleep(&self, arm: impl FnOnce(&Waker)) {
        self.flag.0.store(false, Ordering::Relaxed);
        let seen = self.bell.seen();
        arm(&self.waker);
        if !self.flag.0.load(Ordering::Relaxed) {
            self.bell.wait(seen, None);
            self.end.look(self.start.elapsed().as_millis() as u32);
        }
    }
}

/// Both sides of a link, up, in this thread.
pub fn both(config: Config<'static>) -> Result<(Handle, Handle)> {
    let (near, far) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let kind = DoorbellKind::Socket;
    let (first, second) = thread::scope(|scope| {
        let far = scope.spawn(|| {
            let offer = offer(&config, Role::Second, kind);
            exchange::join(far, &offer, TIMEOUT)
        });
        let offer = offer(&config, Role::First, kind);
        (
            exchange::accept(near, &offer, &[], TIMEOUT),
            far.join().map_err(|_| "no end"),
        )
    });
    let Accepted::Joined(first) = first? else {
        return Err("an observer".into());
    };
    let open = |joined: exchange::Joined, role| -> Result<Handle> {
        let bell = SocketBell::new(joined.socket);
        let mapped = Mapped::joined(joined.mine, joined.peer, joined.exchange);
        let mapped = mapped.ok_or("the segments do not fit")?;
        let end = mapped.open(config, role, Box::new(bell), Options::default());
        Ok(Rc::new(end.map_err(told)?))
    };
    up(open(first, Role::First)?, open(second??, Role::Second)?)
}

/// Both ends, once they have seen each other.
pub fn up(first: Handle, second: Handle) -> Result<(Handle, Handle)> {
    first.look(0);
    second.look(0);
    first.look(0);
    match (first.status(), second.status()) {
        (Status::Up, Status::Up) => Ok((first, second)),
        other => Err(told(other)),
    }
}

fn config(trust: Trust, channel: Channel) -> Config<'static> {
    let mut config = Config::new(Box::leak(Box::new([channel])));
    config.trust = trust;
    config
}
