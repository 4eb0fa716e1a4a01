//! Counts the bytes between two parties: it stands in between, and hands everything on.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use crate::Result;

/// A port that leads to another one.
pub struct Proxy {
    pub port: u16,
    forth: Arc<AtomicU64>,
    back: Arc<AtomicU64>,
}

impl Proxy {
    /// Leads the first one who connects to this port of this machine.
    pub fn to(port: u16) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let proxy = Proxy {
            port: listener.local_addr()?.port(),
            forth: Arc::default(),
            back: Arc::default(),
        };
        let (forth, back) = (proxy.forth.clone(), proxy.back.clone());
        thread::spawn(move || -> std::io::Result<()> {
            let (near, _) = listener.accept()?;
            let far = TcpStream::connect(("127.0.0.1", port))?;
            let (from, to) = (far.try_clone()?, near.try_clone()?);
            thread::spawn(move || carry(from, to, &back));
            carry(near, far, &forth);
            Ok(())
        });
        Ok(proxy)
    }

    /// Bytes so far from the one who connected, and to it.
    pub fn bytes(&self) -> (u64, u64) {
        (self.forth.load(Relaxed), self.back.load(Relaxed))
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, count: &AtomicU64) {
    let _ = to.set_nodelay(true);
    let mut bytes = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..read]).is_err() {
            let _ = from.shutdown(Shutdown::Read);
            break;
        }
        // After it is handed on, so that whoever sees its effect sees it counted, nearly.
        count.fetch_add(read as u64, Relaxed);
    }
    // The other way goes on: what one side still has to say is not cut off by the other's end.
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_on_and_are_counted_each_way() {
        let far = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy::to(far.local_addr().unwrap().port()).unwrap();
        let mut near = TcpStream::connect(("127.0.0.1", proxy.port)).unwrap();
        let (mut far, _) = far.accept().unwrap();
        near.write_all(&[7; 1000]).unwrap();
        near.shutdown(Shutdown::Write).unwrap();
        far.write_all(&[8; 10]).unwrap();
        let mut there = [0; 1000];
        far.read_exact(&mut there).unwrap();
        assert_eq!(there, [7; 1000]);
        let mut back = [0; 10];
        near.read_exact(&mut back).unwrap();
        // Counted after it is handed on.
        while proxy.bytes() != (1000, 10) {
            thread::yield_now();
        }
    }
}
