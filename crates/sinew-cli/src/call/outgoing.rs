//! A packet that the client sends: what it carries, and how it gets onto the link.

use sinew::link::{SendError, Tx};
use sinew::rpc::packet::HEADER_MAX;
use sinew::rpc::{Client, ClientCall};

/// What the client sends in the course of a call.
pub enum Outgoing {
    /// Opens the call. Empty where the client streams.
    Request(Vec<u8>),
    /// An item of the client's stream.
    Item(Vec<u8>),
    /// The client's stream is complete.
    Completion,
}

impl Outgoing {
    /// The length of the message.
    pub fn len(&self) -> usize {
        match self {
            Outgoing::Request(bytes) | Outgoing::Item(bytes) => bytes.len(),
            Outgoing::Completion => 0,
        }
    }

    /// Encodes it into the next place of the link. `Full`: nothing has happened.
    pub fn send(
        &self,
        client: &mut Client<1>,
        call: &ClientCall,
        tx: &mut dyn Tx,
    ) -> Result<(), SendError> {
        let place = tx.place((HEADER_MAX + self.len()).min(tx.mtu()))?;
        let len = match self {
            Outgoing::Request(bytes) => call.request(place, bytes.as_slice()),
            Outgoing::Item(bytes) => call.item(place, bytes.as_slice()),
            Outgoing::Completion => Some(client.complete(call, place)),
        };
        tx.commit(len.unwrap_or(0))?;
        len.map(drop).ok_or(SendError::TooLarge)
    }
}
