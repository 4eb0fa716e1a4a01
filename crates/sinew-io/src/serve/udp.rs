//! One socket, any number of client addresses: each is a link, the longest silent makes room.

use std::io::ErrorKind::{Interrupted, WouldBlock};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use sinew::rpc::Service;
use sinew::time::Instant;

use super::Server;
use super::control::Control;
use super::seat::Seat;
use crate::endpoint::Endpoint;
use crate::link::{Traffic, Want};
use crate::sleep::{Sleeper, reading, writing};

/// Addresses that are remembered at the same time.
const PEERS: usize = 32;
/// Packets taken up, or sent for one client, in a row.
const BURST: usize = 16;

/// The answer that leaves next. While the socket does not take it, nothing else is taken up.
struct Answer {
    place: Box<[u8]>,
    len: usize,
    to: SocketAddr,
}

impl Answer {
    fn new(mtu: usize) -> Answer {
        Answer {
            place: vec![0; mtu].into(),
            len: 0,
            to: (Ipv4Addr::UNSPECIFIED, 0).into(),
        }
    }

    /// Sends what is in the place; `false` where the socket takes none now.
    fn send(&mut self, socket: &UdpSocket) -> bool {
        let packet = self.place.get(..self.len).unwrap_or_default();
        let has_left = send(socket, packet, self.to);
        if has_left {
            self.len = 0;
        }
        has_left
    }
}

struct Peer<S: Service, const CALLS: usize> {
    address: SocketAddr,
    heard: Instant,
    seat: Seat<S, CALLS>,
    traffic: Traffic,
}

pub(super) fn run<S: Service, const CALLS: usize>(
    server: &Server<S, CALLS>,
    socket: &UdpSocket,
    endpoint: &Endpoint,
    control: &Control,
) {
    let mut sleeper = Sleeper::default();
    let waker = sleeper.waker();
    let mut peers: Vec<Peer<S, CALLS>> = Vec::new();
    // One byte more, so that a larger datagram shows.
    let mut packet = vec![0; endpoint.mtu + 1];
    let mut answer = Answer::new(endpoint.mtu);
    control.during(waker.clone(), || {
        let (mut moved, mut held_up) = (false, false);
        while !control.is_stopped() {
            let now = server.shared.clock.now();
            let mut received = false;
            let mut room = answer.send(socket);
            for _ in 0..BURST {
                if !room {
                    break;
                }
                let (len, address) = match socket.recv_from(&mut packet) {
                    Ok(received) => received,
                    Err(error) if matches!(error.kind(), WouldBlock | Interrupted) => break,
                    // What an earlier datagram met; its client is not there any more.
                    Err(_) => continue,
                };
                received = true;
                let Some(packet) = packet.get(..len).filter(|it| it.len() <= endpoint.mtu) else {
                    server.refuse();
                    continue;
                };
                let Some(peer) = seat(server, &mut peers, address, endpoint, now) else {
                    server.refuse();
                    continue;
                };
                answer.len = peer.seat.handle(packet, &mut answer.place, now);
                peer.traffic.bytes_in += len as u64;
                peer.traffic.bytes_out += answer.len as u64;
                let packets = &mut peer.traffic.frames.frames;
                *packets = packets.wrapping_add(1);
                answer.to = address;
                room = answer.send(socket);
            }
            let mut busy = false;
            let mut deadline = Instant::FAR;
            let was_moved = std::mem::take(&mut moved) | std::mem::take(&mut held_up);
            for peer in &mut peers {
                let due = peer.seat.take_ring() | was_moved | peer.seat.is_busy;
                if due || now >= peer.seat.deadline {
                    while room && let Ok(len @ 1..) = peer.seat.poll(&mut answer.place, now) {
                        (answer.len, answer.to) = (len, peer.address);
                        peer.traffic.bytes_out += len as u64;
                        room = answer.send(socket);
                    }
                    // The rings are taken: every engine is asked again when there is room.
                    held_up |= !room;
                }
                room = room && forward(socket, peer, &mut moved);
                busy |= peer.seat.is_busy;
                deadline = deadline.min(peer.seat.deadline);
            }
            let is_on = room && (received || moved || busy);
            for peer in &mut peers {
                peer.seat.count(!is_on, || peer.traffic);
            }
            if is_on {
                continue;
            }
            let want = if room { Want::Packet } else { Want::Place };
            for peer in &mut peers {
                peer.seat.arm(&waker, want);
            }
            let timeout = (room && deadline != Instant::FAR).then(|| deadline.since(now));
            // What has arrived would wake it again and again while it cannot be answered.
            let event = if room {
                reading(socket)
            } else {
                writing(socket)
            };
            sleeper.sleep(event, None, timeout);
        }
    });
}

/// Sends what waits in the client's lanes; `false` where the socket takes no more now.
fn forward<S: Service, const CALLS: usize>(
    socket: &UdpSocket,
    peer: &mut Peer<S, CALLS>,
    moved: &mut bool,
) -> bool {
    for lane in [&mut peer.seat.urgent, &mut peer.seat.bulk] {
        for _ in 0..BURST {
            let Some(packet) = lane.peek() else { break };
            if !send(socket, packet, peer.address) {
                return false;
            }
            peer.traffic.bytes_out += packet.len() as u64;
            lane.release();
            *moved = true;
        }
    }
    true
}

/// Sends one datagram; `false` where the socket takes none now. Any other failure is a loss.
fn send(socket: &UdpSocket, packet: &[u8], address: SocketAddr) -> bool {
    packet.is_empty()
        || !socket
            .send_to(packet, address)
            .is_err_and(|error| error.kind() == WouldBlock)
}

/// The client of this address.
fn seat<'p, S: Service, const CALLS: usize>(
    server: &Server<S, CALLS>,
    peers: &'p mut Vec<Peer<S, CALLS>>,
    address: SocketAddr,
    endpoint: &Endpoint,
    now: Instant,
) -> Option<&'p mut Peer<S, CALLS>> {
    if let Some(index) = peers.iter().position(|peer| peer.address == address) {
        let peer = peers.get_mut(index)?;
        peer.heard = now;
        return Some(peer);
    }
    if peers.len() >= PEERS.min(server.max_links()) {
        let oldest = peers
            .iter()
            .enumerate()
            .min_by_key(|(_, peer)| peer.heard)?
            .0;
        peers.swap_remove(oldest);
    }
    let seat = server.shared.seat(endpoint.mtu, endpoint.channel, None)?;
    peers.push(Peer {
        address,
        heard: now,
        seat,
        traffic: Traffic::default(),
    });
    peers.last_mut()
}
