//! The thread that writes a capture. Packets do not wait for it: a paused viewer or a slow disk takes nothing
//! from those who call. What it cannot keep up with is counted, there where it is missing.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};

use sinew_io::relay::Passing;

use super::file::{Capture, Seen};

/// Packets that may wait to be written: with the largest that calls have, 32 MiB.
const WAITING: usize = 8192;
/// What is written at once while packets come faster than one by one.
const BUFFER: usize = 64 << 10;

/// Takes packets where they pass.
pub struct Keeper {
    queue: SyncSender<Seen>,
    /// Since the last one that could be kept.
    missed: AtomicU64,
    uncaptured: Arc<AtomicU64>,
}

impl Keeper {
    pub fn see(&self, passing: Passing<'_>) {
        let missed = self.missed.swap(0, Ordering::Relaxed);
        let seen = Seen {
            link: passing.link,
            way: passing.way,
            time: passing.time,
            packet: passing.packet.to_vec(),
            missed,
        };
        if self.queue.try_send(seen).is_err() {
            self.missed.fetch_add(missed + 1, Ordering::Relaxed);
            self.uncaptured.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What waits for its file.
pub struct Waiting {
    queue: Receiver<Seen>,
    uncaptured: Arc<AtomicU64>,
}

/// The two ends of a queue of packets.
pub fn keep() -> (Keeper, Waiting) {
    let (sender, queue) = sync_channel(WAITING);
    let uncaptured = Arc::new(AtomicU64::new(0));
    let keeper = Keeper {
        queue: sender,
        missed: AtomicU64::new(0),
        uncaptured: uncaptured.clone(),
    };
    (keeper, Waiting { queue, uncaptured })
}

impl Waiting {
    /// Writes what comes, in a thread, until nothing can come any more, or it cannot be written. `links`:
    /// from where to where they go.
    pub fn write_to(self, out: Box<dyn Write + Send>, links: [String; 2]) -> io::Result<Writer> {
        let Waiting { queue, uncaptured } = self;
        let run = move || {
            let mut packets = 0;
            let error = write(&queue, out, links, &mut packets).err();
            (packets, error)
        };
        let thread = thread::Builder::new().name("sinew-capture".into());
        Ok(Writer {
            thread: thread.spawn(run)?,
            uncaptured,
        })
    }
}

fn write(
    queue: &Receiver<Seen>,
    out: Box<dyn Write + Send>,
    [served, far]: [String; 2],
    packets: &mut u64,
) -> io::Result<()> {
    let out = BufWriter::with_capacity(BUFFER, out);
    let mut file = Capture::new(out, served, far)?;
    loop {
        let seen = match queue.try_recv() {
            Ok(seen) => Ok(seen),
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {
                // Whoever looks on sees all that there is, and so does who comes after a crash.
                file.flush()?;
                queue.recv()
            }
        };
        let Ok(seen) = seen else { break };
        file.write(&seen)?;
        *packets += 1;
    }
    file.flush()
}

/// The thread that writes.
pub struct Writer {
    thread: JoinHandle<(u64, Option<io::Error>)>,
    uncaptured: Arc<AtomicU64>,
}

/// What became of the packets.
pub struct Kept {
    /// How many are in the file.
    pub packets: u64,
    /// How many passed, and are not.
    pub uncaptured: u64,
    /// Why the file ends before its time.
    pub error: Option<io::Error>,
}

impl Writer {
    /// Whether it writes no more.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until all is written that came; the [`Keeper`] is gone by then.
    pub fn end(self) -> Kept {
        let gone = |_| {
            (
                0,
                Some(io::Error::other("the thread that writes it is gone")),
            )
        };
        let (packets, error) = self.thread.join().unwrap_or_else(gone);
        Kept {
            packets,
            uncaptured: self.uncaptured.load(Ordering::Relaxed),
            error,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::SystemTime;

    use pcap_file::pcapng::PcapNgReader;
    use pcap_file::pcapng::blocks::Block;
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
    use sinew_io::relay::Way;

    use super::*;

    fn pass(keeper: &Keeper, count: usize) {
        for _ in 0..count {
            keeper.see(Passing {
                link: 1,
                way: Way::Forth,
                time: SystemTime::now(),
                packet: b"x",
            });
        }
    }

    /// Writes once it is let go, and gives all of it at the end.
    struct Paused(Receiver<()>, std::sync::mpsc::Sender<Vec<u8>>);

    impl Write for Paused {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            self.1.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn packets_pass_a_file_that_takes_nothing_and_are_counted_where_they_are_missing() {
        let (go, gone) = channel();
        let (give, given) = channel();
        let (keeper, waiting) = keep();
        pass(&keeper, WAITING + 5);
        let out = Box::new(Paused(gone, give));
        let links = ["tcp:a:1".to_owned(), "tcp:b:2".to_owned()];
        let writer = waiting.write_to(out, links).unwrap();
        drop(go);
        // The queue empties while nothing else is written to it.
        while keeper.missed.load(Ordering::Relaxed) > 0 {
            pass(&keeper, 1);
            thread::yield_now();
        }
        drop(keeper);
        let kept = writer.end();
        assert!(kept.error.is_none() && kept.uncaptured >= 5);
        let file: Vec<u8> = given.iter().flatten().collect();
        let mut reader = PcapNgReader::new(&file[..]).unwrap();
        let (mut packets, mut missed) = (0, 0);
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(it) = block.unwrap() {
                packets += 1;
                missed += it.options.iter().fold(0, |sum, option| match option {
                    EnhancedPacketOption::DropCount(count) => sum + count,
                    _ => sum,
                });
            }
        }
        assert_eq!((packets, missed), (kept.packets, kept.uncaptured));
    }

    #[test]
    fn file_that_cannot_be_written_ends_it_with_the_reason() {
        let (keeper, waiting) = keep();
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let links = ["a".to_owned(), "b".to_owned()];
        let writer = waiting.write_to(Box::new(full), links).unwrap();
        while !writer.is_over() {
            thread::yield_now();
        }
        pass(&keeper, 2);
        drop(keeper);
        let kept = writer.end();
        assert_eq!((kept.packets, kept.uncaptured), (0, 2));
        assert_eq!(kept.error.unwrap().kind(), io::ErrorKind::StorageFull);
    }
}
