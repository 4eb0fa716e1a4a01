//! What carries a packet over the line: the packet and a checksum.

/// A packet as it goes over the line.
pub fn frame(packet: &[u8]) -> Vec<u8> {
    let mut frame = packet.to_vec();
    frame.extend(checksum(packet).to_le_bytes());
    frame
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// Finds the packets in what arrives.
pub struct Receiver {
    bad: u64,
}

impl Receiver {
    pub fn new() -> Receiver {
        Receiver { bad: 0 }
    }

    pub fn packets(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        if let Some((packet, sum)) = bytes.split_last_chunk::<4>()
            && *sum == checksum(packet).to_le_bytes()
        {
            return vec![packet.to_vec()];
        }
        self.bad += 1;
        Vec::new()
    }

    /// How many frames were refused.
    pub fn bad(&self) -> u64 {
        self.bad
    }
}
