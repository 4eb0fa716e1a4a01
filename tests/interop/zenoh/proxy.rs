//! Proxies between a node and who listens: one that records and can hang up on one side, one that
//! loses datagrams.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::node::{At, Failure, Kind};

fn words(error: std::io::Error) -> Failure {
    error.to_string()
}

/// Carries TCP, and records it.
pub struct Recorder {
    at: At,
    state: Arc<Mutex<Recorded>>,
}

#[derive(Default)]
struct Recorded {
    /// What who connects has sent, and what was sent to him.
    bytes: [Vec<u8>; 2],
    near: Vec<TcpStream>,
    /// Held, so that the far side does not hear of it when the near one has gone.
    far: Vec<TcpStream>,
}

impl Recorder {
    pub fn new(far: &At) -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(words)?;
        let address = listener.local_addr().map_err(words)?.to_string();
        let state = Arc::<Mutex<Recorded>>::default();
        let (shared, far) = (state.clone(), far.address.clone());
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(&far) else {
                    continue;
                };
                let _ = join(&shared, near, far);
            }
        });
        let at = At {
            kind: Kind::Tcp,
            address,
        };
        Ok(Self { at, state })
    }

    pub fn at(&self) -> &At {
        &self.at
    }

    fn state(&self) -> MutexGuard<'_, Recorded> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what was recorded since the last time: of who connects, and of the other side.
    pub fn take(&self) -> [Vec<u8>; 2] {
        std::mem::take(&mut self.state().bytes)
    }

    /// Hangs up on whoever has connected. The far side hears nothing of it.
    pub fn hang_up(&self) {
        for near in self.state().near.drain(..) {
            let _ = near.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn join(state: &Arc<Mutex<Recorded>>, near: TcpStream, far: TcpStream) -> std::io::Result<()> {
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let mut shared = state.lock().unwrap_or_else(PoisonError::into_inner);
    shared.near.push(near.try_clone()?);
    shared.far.push(far.try_clone()?);
    drop(shared);
    let ways = [(near.try_clone()?, far.try_clone()?, 0), (far, near, 1)];
    for (mut from, mut to, way) in ways {
        let state = state.clone();
        thread::spawn(move || {
            let mut piece = vec![0; 1 << 16];
            while let Ok(len @ 1..) = from.read(&mut piece) {
                let piece = &piece[..len];
                state.lock().unwrap_or_else(PoisonError::into_inner).bytes[way]
                    .extend_from_slice(piece);
                if to.write_all(piece).is_err() {
                    return;
                }
            }
            // What the far side says is passed on; that the near one has gone is not.
            if way == 1 {
                let _ = to.shutdown(std::net::Shutdown::Both);
            }
        });
    }
    Ok(())
}

/// Carries datagrams of one node, and loses some of those that hold a frame.
pub struct Loser {
    at: At,
    losing: Arc<Losing>,
}

#[derive(Default)]
struct Losing {
    loses: AtomicBool,
    /// Frames that were lost: to who listens, and from him; best-effort, and reliable.
    lost: [[AtomicU32; 2]; 2],
}

/// One frame of so many is lost.
const ONE_OF: u32 = 7;

impl Loser {
    pub fn new(far: &At) -> Result<Self, Failure> {
        let near = UdpSocket::bind("127.0.0.1:0").map_err(words)?;
        let out = UdpSocket::bind("127.0.0.1:0").map_err(words)?;
        out.connect(&far.address).map_err(words)?;
        let at = At {
            kind: Kind::Udp,
            address: near.local_addr().map_err(words)?.to_string(),
        };
        let losing = Arc::<Losing>::default();
        let back = Arc::<Mutex<Option<SocketAddr>>>::default();
        let (socket, to, client) = (
            near.try_clone().map_err(words)?,
            out.try_clone().map_err(words)?,
            back.clone(),
        );
        let lose = losing.clone();
        thread::spawn(move || {
            let (mut packet, mut frames) = (vec![0; 1 << 16], 0);
            while let Ok((len, from)) = socket.recv_from(&mut packet) {
                *client.lock().unwrap_or_else(PoisonError::into_inner) = Some(from);
                if !lose.loses(0, &packet[..len], &mut frames) {
                    let _ = to.send(&packet[..len]);
                }
            }
        });
        let lose = losing.clone();
        thread::spawn(move || {
            let (mut packet, mut frames) = (vec![0; 1 << 16], 0);
            while let Ok(len) = out.recv(&mut packet) {
                let to = *back.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(to) = to
                    && !lose.loses(1, &packet[..len], &mut frames)
                {
                    let _ = near.send_to(&packet[..len], to);
                }
            }
        });
        Ok(Self { at, losing })
    }

    pub fn at(&self) -> &At {
        &self.at
    }

    pub fn loses(&self, loses: bool) {
        self.losing.loses.store(loses, SeqCst);
        // Let what is in hand pass.
        thread::sleep(Duration::from_millis(20));
    }

    /// Frames lost on the way to who listens, or from him.
    pub fn lost(&self, from: bool, reliable: bool) -> u32 {
        self.losing.lost[usize::from(from)][usize::from(reliable)].load(SeqCst)
    }
}

impl Losing {
    /// Loses frames only: what opens the session and keeps it up passes.
    fn loses(&self, way: usize, packet: &[u8], frames: &mut u32) -> bool {
        const FRAME: u8 = 0x05;
        const RELIABLE: u8 = 0x20;
        let Some(header) = packet.first().filter(|header| **header & 0x1f == FRAME) else {
            return false;
        };
        if !self.loses.load(SeqCst) {
            return false;
        }
        *frames += 1;
        let is_lost = frames.is_multiple_of(ONE_OF);
        if is_lost {
            self.lost[way][usize::from(header & RELIABLE != 0)].fetch_add(1, SeqCst);
        }
        is_lost
    }
}
