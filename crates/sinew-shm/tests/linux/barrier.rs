use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use sinew_shm::linux::barrier;

/// Both sides of a round start together, which a barrier that sleeps would prevent.
fn meet(own: &AtomicU32, other: &AtomicU32, round: u32) {
    own.store(round, Ordering::Release);
    let mut spins = 0;
    while other.load(Ordering::Acquire) < round {
        spins += 1;
        if spins > 10_000 {
            std::thread::yield_now();
        }
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
    const ROUNDS: u32 = 30_000;
    let often = Box::new(AtomicU32::new(0));
    let rare = Box::new(AtomicU32::new(0));
    let [one, two] = [const { AtomicU32::new(0) }; 2];
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut seen = Vec::new();
            for round in 0..ROUNDS {
                meet(&one, &two, 2 * round + 1);
                often.store(1, Ordering::Relaxed);
                compiler_fence(Ordering::SeqCst);
                seen.push(rare.load(Ordering::Relaxed));
                meet(&one, &two, 2 * round + 2);
            }
            seen
        });
        let mut seen = Vec::new();
        for round in 0..ROUNDS {
            often.store(0, Ordering::Relaxed);
            rare.store(0, Ordering::Relaxed);
            meet(&two, &one, 2 * round + 1);
            rare.store(1, Ordering::Relaxed);
            assert!(barrier::heavy());
            seen.push(often.load(Ordering::Relaxed));
            meet(&two, &one, 2 * round + 2);
        }
        for (round, (a, b)) in seen.iter().zip(other.join().unwrap()).enumerate() {
            assert!(*a == 1 || b == 1, "round {round}: neither saw the other");
        }
    });
}
