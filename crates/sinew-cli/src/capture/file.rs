//! Packets as blocks of pcapng.
//!
//! Each link is an interface of its own, so that a request and its response are never looked for among the
//! calls of another client. A packet is one that RpcPacket is, as it passed: without framing, which each side
//! of the capture has for itself.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};
use sinew_io::relay::Way;

/// A packet that passed.
pub struct Seen {
    pub link: u64,
    pub way: Way,
    pub time: SystemTime,
    pub packet: Vec<u8>,
    /// How many passed before it that are not in the file.
    pub missed: u64,
}

/// A packet of pw_rpc, without framing. The dissector takes USER1 for frames of HDLC.
const PACKETS: DataLink = DataLink::USER0;
/// Times are in 10^-9 s.
const NANOSECONDS: u8 = 9;
/// The first two bits of a packet's flags. Seen from the client's side of the server: what comes from it is
/// inbound.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// What a file begins with: the type of its first block.
pub const MAGIC: &[u8] = &[0x0a, 0x0d, 0x0d, 0x0a];

/// A file that is written.
pub struct Capture<W: Write> {
    out: PcapNgWriter<W>,
    /// The interface of each link.
    links: HashMap<u64, u32>,
    served: String,
    far: String,
}

impl<W: Write> Capture<W> {
    /// Begins one, of links from the first endpoint to the second.
    pub fn new(out: W, served: String, far: String) -> io::Result<Capture<W>> {
        let tool = concat!("sinew ", env!("CARGO_PKG_VERSION"));
        let options = vec![SectionHeaderOption::UserApplication(tool.into())];
        let section = SectionHeaderBlock {
            // Who reads it while it is written takes no other.
            endianness: Endianness::native(),
            options,
            ..SectionHeaderBlock::default()
        };
        Ok(Capture {
            out: PcapNgWriter::with_section_header(out, section).map_err(cause)?,
            links: HashMap::new(),
            served,
            far,
        })
    }

    pub fn write(&mut self, seen: &Seen) -> io::Result<()> {
        let interface_id = match self.links.get(&seen.link) {
            Some(&interface) => interface,
            None => self.begin(seen.link)?,
        };
        let direction = match seen.way {
            Way::Forth => OUTBOUND,
            Way::Back => INBOUND,
        };
        let mut options = vec![EnhancedPacketOption::Flags(direction)];
        if seen.missed > 0 {
            options.push(EnhancedPacketOption::DropCount(seen.missed));
        }
        let since = seen.time.duration_since(SystemTime::UNIX_EPOCH);
        let block = EnhancedPacketBlock {
            interface_id,
            // The crate writes nanoseconds, whatever the interface says.
            timestamp: since.unwrap_or(Duration::ZERO),
            original_len: seen.packet.len() as u32,
            data: Cow::Borrowed(&seen.packet),
            options,
        };
        self.out.write_pcapng_block(block).map_err(cause)?;
        Ok(())
    }

    /// A link that has not had a packet yet.
    fn begin(&mut self, link: u64) -> io::Result<u32> {
        let name = format!("{}#{link}", self.far);
        let what = format!("link {link} of {} to {}", self.served, self.far);
        let block = InterfaceDescriptionBlock {
            linktype: PACKETS,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(name.into()),
                InterfaceDescriptionOption::IfDescription(what.into()),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        self.out.write_pcapng_block(block).map_err(cause)?;
        let interface = self.links.len() as u32;
        self.links.insert(link, interface);
        Ok(interface)
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.out.get_mut().flush()
    }
}

fn cause(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use pcap_file::pcapng::PcapNgReader;
    use pcap_file::pcapng::blocks::Block;

    use super::*;

    #[test]
    fn what_is_read_back_is_what_was_written() {
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789);
        let seen = |link, way, packet: &[u8], missed| Seen {
            link,
            way,
            time,
            packet: packet.to_vec(),
            missed,
        };
        let mut file = Vec::new();
        let mut capture = Capture::new(&mut file, "tcp:a:1".into(), "tcp:b:2".into()).unwrap();
        capture.write(&seen(7, Way::Forth, b"request", 0)).unwrap();
        capture.write(&seen(9, Way::Forth, b"other", 3)).unwrap();
        capture.write(&seen(7, Way::Back, b"answer", 0)).unwrap();
        capture.flush().unwrap();
        assert!(file.starts_with(MAGIC));
        let mut reader = PcapNgReader::new(&file[..]).unwrap();
        let mut names = Vec::new();
        let mut packets = Vec::new();
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::InterfaceDescription(it) => {
                    assert_eq!(u32::from(it.linktype), 147);
                    assert!(
                        it.options
                            .contains(&InterfaceDescriptionOption::IfTsResol(9))
                    );
                    names.extend(it.options.iter().find_map(|option| match option {
                        InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                        _ => None,
                    }));
                }
                Block::EnhancedPacket(it) => {
                    assert_eq!(it.timestamp.as_nanos(), 1_700_000_000_123_456_789);
                    let it = it.into_owned();
                    packets.push((it.interface_id, it.data.to_vec(), it.options));
                }
                other => panic!("{other:?}"),
            }
        }
        use EnhancedPacketOption::{DropCount, Flags};
        assert_eq!(names, ["tcp:b:2#7", "tcp:b:2#9"]);
        assert_eq!(
            packets,
            [
                (0, b"request".to_vec(), vec![Flags(OUTBOUND)]),
                (1, b"other".to_vec(), vec![Flags(OUTBOUND), DropCount(3)]),
                (0, b"answer".to_vec(), vec![Flags(INBOUND)]),
            ]
        );
    }
}
