//! What carries a packet over the line: HDLC, as on a UART. Damage is done to the bytes of frames.

use sinew::frame::{Decoder, Framing};

/// A packet as it goes over the line.
pub fn frame(packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; Framing::HDLC.max_encoded_len(packet.len())];
    let len = Framing::HDLC.encode(packet, &mut frame);
    frame.truncate(len.expect("room for the largest"));
    frame
}

/// Finds the packets in what arrives.
pub struct Receiver {
    decoder: Decoder,
    place: [u8; 64],
}

impl Receiver {
    pub fn new() -> Receiver {
        Receiver {
            decoder: Framing::HDLC.decoder(),
            place: [0; 64],
        }
    }

    pub fn packets(&mut self, mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        while let Ok(Some(packet)) = self.decoder.decode(&mut self.place, &mut bytes) {
            packets.push(packet.to_vec());
        }
        packets
    }

    /// How many frames were refused.
    pub fn bad(&self) -> u64 {
        let stats = self.decoder.stats();
        let bad = [
            stats.bad_escape,
            stats.too_short,
            stats.bad_crc,
            stats.other_address,
            stats.too_large,
        ];
        bad.map(u64::from).iter().sum()
    }
}
