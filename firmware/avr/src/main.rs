//! `zenoh_pub` on an ATmega1284P: the same session, key check and HDLC both ways, over USART0. Built for its size:
//! it has neither vector table nor start-up code, its registers are those of the data sheet, and nothing has
//! run it.
#![no_std]
#![no_main]

extern crate sinew_mem;
extern crate sinew_rt;

use core::ptr;
use core::time::Duration;

use sinew::frame::hdlc::{Decoder, RPC_ADDRESS, put_frame};
use sinew::link::{SendError, Tx};
use sinew::pubsub::codec::Zid;
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::{Config, Fixed, Opens, PublisherOptions, Session, State, Step};
use sinew::time::Instant;

const COUNT: KeyExpr<'_> = KeyExpr::from_static("board/count");
/// Samples of one burst.
const BURST: u32 = 8;
/// The largest batch, in bytes.
const BATCH: usize = 128;

const UCSR0A: usize = 0xc0;
const RXC0: u8 = 1 << 7;
const UDRE0: u8 = 1 << 5;
const UDR0: usize = 0xc6;
const TCNT0: usize = 0x46;

fn read(register: usize) -> u8 {
    // SAFETY: only the constants above are read, each a readable register of this chip.
    unsafe { ptr::with_exposed_provenance::<u8>(register).read_volatile() }
}

fn receive() -> Option<u8> {
    (read(UCSR0A) & RXC0 != 0).then(|| read(UDR0))
}

#[inline(never)]
fn send(byte: u8) {
    while read(UCSR0A) & UDRE0 == 0 {}
    // SAFETY: a register of this chip.
    unsafe { ptr::with_exposed_provenance_mut::<u8>(UDR0).write_volatile(byte) }
}

/// The time, from a timer that counts microseconds.
struct Clock {
    micros: u64,
    last: u8,
}

impl Clock {
    fn micros(&mut self) -> u64 {
        let now = read(TCNT0);
        self.micros += u64::from(now.wrapping_sub(self.last));
        self.last = now;
        self.micros
    }
}

struct Uart([u8; BATCH]);

impl Tx for Uart {
    fn mtu(&self) -> usize {
        BATCH
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        match min > BATCH {
            true => Err(SendError::TooLarge),
            false => Ok(&mut self.0),
        }
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        let packet = self.0.get(..len).ok_or(SendError::TooLarge)?;
        if !packet.is_empty() {
            put_frame(RPC_ADDRESS, packet, &mut |byte| send(byte));
        }
        Ok(())
    }

    fn flush(&mut self) {}

    fn arm(&mut self, waker: &core::task::Waker) {
        waker.wake_by_ref();
    }
}

/// What avr-gcc's library has and Rust's has not: the product of two words, by shifts.
#[unsafe(no_mangle)]
extern "C" fn __mulsi3(mut a: u32, mut b: u32) -> u32 {
    let mut product: u32 = 0;
    while b != 0 {
        if b & 1 != 0 {
            product = product.wrapping_add(a);
        }
        a <<= 1;
        b >>= 1;
    }
    product
}

fn run() -> Option<()> {
    let mut clock = Clock { micros: 0, last: 0 };
    let (mut tx, mut decoder, mut arriving) =
        (Uart([0; BATCH]), Decoder::new(RPC_ADDRESS), [0; BATCH]);
    let config = Config {
        batching: Duration::from_millis(10),
        resend: 200_000,
        ..Config::peer(Zid::new(b"board-pub")?)
    };
    let mut session = Session::new(config, Opens(Fixed::<1>::new()));
    let count = session.publisher(COUNT, PublisherOptions::DEFAULT).ok()?;
    let (mut samples, mut next) = (0u64, Instant::START);
    loop {
        let now = Instant::from_micros(clock.micros());
        if session.state() == State::Closed {
            session.open(now);
        }
        let byte = receive();
        if let Some(packet) = decoder.decode(&mut arriving, &mut byte.as_slice()) {
            while !matches!(session.receive(packet, &mut tx, now), Step::Done) {}
        }
        if session.state() == State::Open && next <= now {
            for _ in 0..BURST {
                let bytes = samples.to_le_bytes();
                if session.put(&mut tx, count, &bytes, now).is_ok() {
                    samples += 1;
                }
            }
            next = now.after(Duration::from_millis(50));
        }
        while !matches!(session.poll(&mut tx, now), Step::Done) {}
    }
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    loop {
        run();
    }
}
