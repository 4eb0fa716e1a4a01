use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use sinew_shm::linux::barrier;

/// On a cache line of its own, or a load would be as slow as the store before it.
#[repr(align(128))]
struct Line(AtomicU32);

/// Both sides of a round start together, which a barrier that sleeps would prevent.
fn meet(own: &Line, other: &Line, round: u32) {
    own.0.store(round, Ordering::Release);
    let mut spins = 0;
    while other.0.load(Ordering::Acquire) < round {
        spins += 1;
        if spins > 10_000 {
            std::thread::yield_now();
        }
    }
}

/// The sides differ in when they start, by some instructions.
fn pass(some: u32) {
    for step in 0..some {
        black_box(step);
    }
}

/// Each side stores its word and loads the other's. One of the two must see the other's store,
/// although only the rare side has a fence.
#[test]
fn heavy_fence_serves_the_side_without_one() {
    if !barrier::register() {
        assert!(!barrier::heavy(), "neither, where the kernel has none");
        return;
    }
    const ROUNDS: u32 = 50_000;
    let [often, rare, one, two] = [const { Line(AtomicU32::new(0)) }; 4];
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut seen = Vec::new();
            for round in 0..ROUNDS {
                meet(&one, &two, 2 * round + 1);
                pass(round % 64);
                often.0.store(round + 1, Ordering::Relaxed);
                compiler_fence(Ordering::SeqCst);
                seen.push(rare.0.load(Ordering::Relaxed));
                meet(&one, &two, 2 * round + 2);
            }
            seen
        });
        let mut seen = Vec::new();
        for round in 0..ROUNDS {
            meet(&two, &one, 2 * round + 1);
            pass(round / 64 % 16);
            rare.0.store(round + 1, Ordering::Relaxed);
            assert!(barrier::heavy());
            seen.push(often.0.load(Ordering::Relaxed));
            meet(&two, &one, 2 * round + 2);
        }
        let both = seen.into_iter().zip(other.join().unwrap());
        for (round, (a, b)) in (1..).zip(both) {
            assert!(
                a == round || b == round,
                "round {round}: neither saw the other"
            );
        }
    });
}
