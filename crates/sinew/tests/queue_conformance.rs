//! The block queue passes the suite of the seam.
#![cfg(all(feature = "shm", feature = "conformance"))]

use sinew::link::conformance::{End, Harness, Ports, run};
use sinew::link::queue::{self, QueueTx};
use sinew_shm::{Bell, Queue, StdLock};

static THERE: Queue<StdLock, 8, 64> = Queue::new();
static BACK: Queue<StdLock, 8, 64> = Queue::new();
static BELLS: [Bell<StdLock>; 2] = [const { Bell::new() }; 2];

/// The same two statics again and again: each connection opens them anew.
struct Queues;

fn ports(tx: &QueueTx<StdLock, 8, 64>, bell: &'static Bell<StdLock>) -> Option<Ports> {
    Some(Ports {
        urgent: Box::new(tx.port(1, bell)),
        bulk: Box::new(tx.port(3, bell)),
        rung: Box::new(|| bell.take()),
    })
}

impl Harness for Queues {
    fn connect(&mut self) -> (End, End) {
        let ((a, a_rx), (b, b_rx)) = queue::pair(&THERE, &BACK).expect("all ends were dropped");
        let [a_ports, b_ports] = [ports(&a, &BELLS[0]), ports(&b, &BELLS[1])];
        (
            End {
                tx: Box::new(a),
                rx: Box::new(a_rx),
                ports: a_ports,
            },
            End {
                tx: Box::new(b),
                rx: Box::new(b_rx),
                ports: b_ports,
            },
        )
    }
}

#[test]
fn block_queue_passes_every_rule() {
    let report = run(&mut Queues);
    assert!(report.not_offered.is_empty(), "{report:?}");
}
