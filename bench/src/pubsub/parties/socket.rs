//! A bare TCP socket: the limit. It carries bytes laid out as Zenoh lays them out, and does nothing else.
//!
//! A batch: its length in two bytes, a frame's head of five, then samples, each with a head in front.
//! A sample that leaves alone is a batch of one. What is too long for a batch has the same head and no
//! length; a receiver knows from its command line what it will get.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use sinew_bench_party::{Options, Party, Path, Pinger, Publisher, Result};

/// Bytes of a batch, at most, without its length.
const BATCH: usize = 65_533;
/// Length of the batch.
const LENGTH: usize = 2;
/// What a frame's sequence number is in front of, and it.
const FRAME: [u8; 5] = [0x25, 0x80, 0x80, 0x80, 0x01];
/// Of a sample with a declared key; the payload's length stands for itself.
const SAMPLE: [u8; 4] = [0x5d, 0x01, 0x01, 0x08];

/// Bytes that are read at once, at most.
const READ: usize = 1 << 17;

pub struct Socket;

impl Party for Socket {
    fn publisher(options: &Options) -> Result<impl Publisher> {
        let sample = SAMPLE.len() + options.size;
        let room = BATCH - FRAME.len();
        Ok(Batches {
            stream: connect(options)?,
            batch: vec![0; LENGTH + FRAME.len() + room.max(sample)],
            len: 0,
            most: if options.batched {
                (room / sample).max(1) * sample
            } else {
                sample
            },
        })
    }

    fn subscriber(
        options: &Options,
        take: impl FnMut(&[u8]) + Send + Sync + 'static,
    ) -> Result<impl Sized> {
        let (listener, size) = (listen(options)?, options.size);
        Ok(thread::spawn(move || {
            let result = listener.accept().map_err(Into::into);
            if let Err(error) = result.and_then(|(stream, _)| receive(stream, size, take)) {
                eprintln!("bare socket: {error}");
            }
        }))
    }

    fn pinger(options: &Options) -> Result<impl Pinger> {
        let stream = connect(options)?;
        Ok(Rounds {
            stream,
            sample: one(options.size),
        })
    }

    fn ponger(options: &Options) -> Result<impl Sized> {
        let (listener, mut sample) = (listen(options)?, one(options.size));
        Ok(thread::spawn(move || -> Result<()> {
            let (mut stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            loop {
                stream.read_exact(&mut sample)?;
                stream.write_all(&sample)?;
            }
        }))
    }
}

fn address(options: &Options) -> Result<&str> {
    match (options.path, options.endpoint.strip_prefix("tcp/")) {
        (Path::Peer, Some(address)) => Ok(address),
        _ => Err("only TCP from one to the other".into()),
    }
}

fn listen(options: &Options) -> Result<TcpListener> {
    Ok(TcpListener::bind(address(options)?)?)
}

fn connect(options: &Options) -> Result<TcpStream> {
    let stream = TcpStream::connect(address(options)?)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A batch of one sample.
fn one(size: usize) -> Vec<u8> {
    let mut batch = vec![0; LENGTH];
    batch.extend_from_slice(&FRAME);
    batch.extend_from_slice(&SAMPLE);
    batch.resize(batch.len() + size, 0);
    end(&mut batch);
    batch
}

fn end(batch: &mut [u8]) {
    // Of what is too long this says nothing, and nobody asks.
    let length = (batch.len() - LENGTH) as u16;
    batch[..LENGTH].copy_from_slice(&length.to_le_bytes());
}

struct Batches {
    stream: TcpStream,
    batch: Vec<u8>,
    /// Bytes of it that are written.
    len: usize,
    /// Bytes of samples in a batch, at most.
    most: usize,
}

impl Publisher for Batches {
    #[inline]
    fn put(&mut self, size: usize, write: impl FnOnce(&mut [u8])) -> Result<()> {
        if self.len == 0 {
            self.append(&[0; LENGTH]);
            self.append(&FRAME);
        }
        self.append(&SAMPLE);
        let place = self.len..self.len + size;
        write(&mut self.batch[place.clone()]);
        self.len = place.end;
        if self.len - LENGTH - FRAME.len() >= self.most {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.len > 0 {
            end(&mut self.batch[..self.len]);
            self.stream.write_all(&self.batch[..self.len])?;
            self.len = 0;
        }
        Ok(())
    }
}

impl Batches {
    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        let place = self.len..self.len + bytes.len();
        self.batch[place.clone()].copy_from_slice(bytes);
        self.len = place.end;
    }
}

/// Takes samples until the stream ends.
fn receive(mut stream: TcpStream, size: usize, mut take: impl FnMut(&[u8])) -> Result<()> {
    let sample = SAMPLE.len() + size;
    let mut buffer = vec![0; 2 * READ + sample];
    let (mut start, mut end) = (0, 0);
    // Bytes of samples that the batch still has.
    let mut left = 0;
    loop {
        loop {
            let there = &buffer[start..end];
            if left == 0 {
                let Some((head, _)) = there.split_at_checked(LENGTH + FRAME.len()) else {
                    break;
                };
                let length = usize::from(u16::from_le_bytes([head[0], head[1]]));
                left = if sample > BATCH {
                    sample
                } else {
                    length - FRAME.len()
                };
                start += head.len();
            } else {
                let Some((bytes, _)) = there.split_at_checked(sample) else {
                    break;
                };
                take(&bytes[SAMPLE.len()..]);
                start += sample;
                left -= sample;
            }
        }
        if start == end {
            (start, end) = (0, 0);
        } else if buffer.len() - start < sample + LENGTH + FRAME.len() {
            buffer.copy_within(start..end, 0);
            (start, end) = (0, end - start);
        }
        let until = buffer.len().min(end + READ);
        match stream.read(&mut buffer[end..until])? {
            0 => return Ok(()),
            read => end += read,
        }
    }
}

struct Rounds {
    stream: TcpStream,
    sample: Vec<u8>,
}

impl Pinger for Rounds {
    #[inline]
    fn round(&mut self, payload: &[u8]) -> Result<()> {
        let at = self.sample.len() - payload.len();
        self.sample[at..].copy_from_slice(payload);
        self.stream.write_all(&self.sample)?;
        self.stream.read_exact(&mut self.sample)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::pubsub::ports::free_port;

    /// Publishes so many samples of this size; the numbers at the start of those that came.
    fn carried(size: usize, batched: bool, count: u64) -> Vec<u64> {
        let port = free_port().unwrap();
        let options = |role: &str| {
            let batched = if batched { "yes" } else { "no" };
            let line =
                format!("{role} --endpoint tcp/127.0.0.1:{port} --size {size} --batched {batched}");
            Options::read(line.split(' ').map(String::from)).unwrap()
        };
        let (came, numbers) = channel();
        let take = move |payload: &[u8]| {
            assert_eq!(payload.len(), size);
            let (number, rest) = payload.split_first_chunk().unwrap();
            assert!(rest.iter().all(|byte| *byte == 5));
            came.send(u64::from_le_bytes(*number)).unwrap();
        };
        let (passive, active) = (options("subscribe"), options("publish"));
        let _open = Socket::subscriber(&passive, take).unwrap();
        let mut publisher = Socket::publisher(&active).unwrap();
        for number in 0..count {
            let write = |place: &mut [u8]| {
                place.fill(5);
                place[..8].copy_from_slice(&number.to_le_bytes());
            };
            publisher.put(size, write).unwrap();
        }
        publisher.flush().unwrap();
        drop(publisher);
        numbers.iter().collect()
    }

    #[test]
    fn every_sample_arrives_whole_and_in_order() {
        for size in [8, 16, 8192, 65_536] {
            for batched in [false, true] {
                // More than one read, and a batch that is not full.
                let count = 4_000_000 / size as u64 + 1;
                assert_eq!(
                    carried(size, batched, count),
                    (0..count).collect::<Vec<_>>(),
                    "{size}"
                );
            }
        }
    }
}
