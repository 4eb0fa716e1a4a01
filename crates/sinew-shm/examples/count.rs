//! Instructions per packet, under callgrind:
//!
//! ```text
//! cargo build -p sinew-shm --profile bench --example count
//! valgrind --tool=callgrind --callgrind-out-file=target/count.out target/release/examples/count
//! callgrind_annotate --inclusive=yes target/count.out | grep -E 'send_|receive_'
//! ```
//!
//! Divide by [`PACKETS`]. Each figure includes the call, and one byte written or read.

use std::hint::black_box;

use sinew_shm::{Lock, Queue, Receiver, Sender, StdLock, Unshared};

const PACKETS: usize = 1000;

#[inline(always)]
fn send<L: Lock>(sender: &Sender<L, 8, 256>) {
    if let Ok(mut place) = sender.place(black_box(64)) {
        place[0] = 1;
        let _ = place.commit(black_box(64));
    }
}

#[inline(always)]
fn receive<L: Lock>(receiver: &mut Receiver<L, 8, 256>) {
    if let Ok(Some(packet)) = receiver.peek() {
        black_box(packet[0]);
    }
    receiver.release();
}

#[inline(never)]
fn send_std(sender: &Sender<StdLock, 8, 256>) {
    send(sender);
}

#[inline(never)]
fn receive_std(receiver: &mut Receiver<StdLock, 8, 256>) {
    receive(receiver);
}

#[inline(never)]
fn send_unshared(sender: &Sender<Unshared, 8, 256>) {
    send(sender);
}

#[inline(never)]
fn receive_unshared(receiver: &mut Receiver<Unshared, 8, 256>) {
    receive(receiver);
}

fn main() {
    static QUEUE: Queue<StdLock, 8, 256> = Queue::new();
    let (sender, mut receiver) = QUEUE.split().expect("opened once");
    for _ in 0..PACKETS {
        send_std(&sender);
        receive_std(&mut receiver);
    }
    let queue: &'static Queue<Unshared, 8, 256> = Box::leak(Box::new(Queue::new()));
    let (sender, mut receiver) = queue.split().expect("opened once");
    for _ in 0..PACKETS {
        send_unshared(&sender);
        receive_unshared(&mut receiver);
    }
}
