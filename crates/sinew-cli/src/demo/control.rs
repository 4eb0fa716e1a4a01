//! The control: a plain struct through the same two queues and threads, with no call around it.
//!
//! No ids, no encoding, no dispatch: what a program without Sinew would do between two threads.

use std::thread;

use indicatif::ProgressBar;
use sinew::link::{Rx, Tx};
use sinew_io::{Link, Want, threads};

use super::measure::{Times, times};

/// What a plain program would send.
#[derive(Clone, Copy)]
struct Plain {
    operation: i32,
    value: i32,
}

const SET: i32 = 1;
const GET: i32 = 2;
const BYTES: usize = size_of::<Plain>();

impl Plain {
    fn send(self, link: &mut impl Link) -> Option<()> {
        let (tx, _) = link.halves();
        let place: &mut [u8; BYTES] = tx.place(BYTES).ok()?.first_chunk_mut()?;
        place[..4].copy_from_slice(&self.operation.to_ne_bytes());
        place[4..].copy_from_slice(&self.value.to_ne_bytes());
        tx.commit(BYTES).ok()?;
        tx.flush();
        Some(())
    }

    fn receive(link: &mut impl Link) -> Option<Plain> {
        loop {
            let (_, rx) = link.halves();
            if let Some(bytes) = rx.peek().ok()? {
                let [o0, o1, o2, o3, v0, v1, v2, v3] = *bytes.first_chunk::<BYTES>()?;
                rx.release();
                return Some(Plain {
                    operation: i32::from_ne_bytes([o0, o1, o2, o3]),
                    value: i32::from_ne_bytes([v0, v1, v2, v3]),
                });
            }
            link.wait(Want::Packet, None);
        }
    }
}

/// Sets and gets a value, as the exercise does.
pub fn run(calls: u64, bar: &ProgressBar) -> Result<Times, String> {
    let (mut near, mut far) = threads::link();
    let server = thread::spawn(move || {
        let mut remembered = 0;
        while let Some(mut plain) = Plain::receive(&mut far) {
            match plain.operation {
                SET => remembered = plain.value,
                _ => plain.value = remembered,
            }
            if plain.send(&mut far).is_none() {
                break;
            }
        }
    });
    let mut value = 0i32;
    let result = times(calls, bar, || {
        value = value.wrapping_add(1);
        let mut exchange = |operation, value| {
            Plain { operation, value }.send(&mut near)?;
            Plain::receive(&mut near)
        };
        exchange(SET, value);
        match exchange(GET, 0) {
            Some(plain) if plain.value == value => Ok(()),
            _ => Err("the control lost a value".to_string()),
        }
    });
    drop(near);
    server
        .join()
        .map_err(|_| "the control's thread panicked".to_string())?;
    result
}
