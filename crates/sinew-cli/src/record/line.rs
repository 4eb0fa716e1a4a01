//! A link on which packets are sent and taken up one by one, without an engine: a recording says what is sent,
//! and what comes is looked at as it is.

use std::time::Duration;

use sinew::link::{RecvError, SendError};
use sinew::rpc::Status;
use sinew::rpc::packet::{self, HEADER_MAX, PacketType, Route};
use sinew_io::{AnyLink, Link as _, Want};

/// The link.
pub struct Line(pub AnyLink);

impl Line {
    /// Sends a packet, which `see` sees before it leaves. `Full`: nothing has happened.
    pub fn send(
        &mut self,
        packet_type: PacketType,
        route: &Route,
        payload: &[u8],
        status: Status,
        see: impl FnOnce(&[u8]),
    ) -> Result<(), SendError> {
        let (tx, _) = self.0.halves();
        let mtu = tx.mtu();
        let place = tx.place((HEADER_MAX + payload.len()).min(mtu))?;
        let len = packet::encode(place, packet_type, route, payload, status);
        if let Some(packet) = len.and_then(|len| place.get(..len)) {
            see(packet);
        }
        tx.commit(len.unwrap_or(0))?;
        tx.flush();
        len.map(drop).ok_or(SendError::TooLarge)
    }

    /// Takes up a packet where there is one.
    pub fn receive<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> Result<Option<T>, RecvError> {
        let (_, rx) = self.0.halves();
        let taken = rx.peek()?.map(take);
        if taken.is_some() {
            rx.release();
        }
        Ok(taken)
    }

    /// The largest packet.
    pub fn mtu(&mut self) -> usize {
        self.0.halves().0.mtu()
    }

    pub fn wait(&mut self, want: Want, span: Duration) {
        self.0.wait(want, Some(span));
    }
}
