//! What calls from one context to the other take by hand, with the same switch and without any check; and
//! what it takes to clear a page, which calibrates the memory.
#![no_std]
#![no_main]

use core::hint::black_box;

use sinew_shm::domain::Role;
use vexriscv::{Part, begin, measure, shared, switch};

/// Words that one context writes and the other one reads.
#[derive(Clone, Copy)]
struct Area(*mut u32);

// What stands where, in words.
const OPCODE: usize = 0;
const SCALAR: usize = 1;
const LENT: usize = 8;
/// Behind all of these.
const PAGE: usize = 1024;

/// Words of a scalar call.
const WORDS: usize = 5;
/// Of 53 bytes that are lent.
const LENT_WORDS: usize = 14;
const PAGE_WORDS: usize = 1024;

// What is to be done.
const CALL: u32 = 1;
const LEND_MUT: u32 = 2;
const LEND_MUT_CLEARED: u32 = 3;

impl Area {
    /// This context's own, and the other one's.
    fn both(role: Role) -> [Area; 2] {
        const { assert!(PAGE + PAGE_WORDS <= 2048) };
        shared(role).map(|(start, _)| Area(start.cast()))
    }

    #[inline(always)]
    fn get(self, at: usize) -> u32 {
        // SAFETY: an area has 2,048 words, and every place here is one of them.
        unsafe { self.0.add(at).read_volatile() }
    }

    #[inline(always)]
    fn set(self, at: usize, value: u32) {
        // SAFETY: as above; only the own area is written.
        unsafe { self.0.add(at).write_volatile(value) }
    }

    #[inline(always)]
    fn copy_to<const N: usize>(self, from: usize, words: &mut [u32; N]) {
        for (at, word) in (from..).zip(words) {
            *word = self.get(at);
        }
    }

    #[inline(always)]
    fn copy_from<const N: usize>(self, to: usize, words: &[u32; N]) {
        for (at, word) in (to..).zip(words) {
            self.set(at, *word);
        }
    }

    #[inline(always)]
    fn clear(self, from: usize, count: usize) {
        begin(Part::Clear);
        for at in from..from + count {
            self.set(at, 0);
        }
    }
}

fn run() -> Option<()> {
    let [own, peer] = Area::both(Role::First);
    measure("floor_scalar", &mut |n| {
        let words = black_box([n, 1, 2, 3, 4]);
        begin(Part::Client);
        own.set(OPCODE, CALL);
        own.copy_from(SCALAR, &words);
        begin(Part::Switch);
        switch();
        begin(Part::Client);
        let mut answered = [0; WORDS];
        peer.copy_to(SCALAR, &mut answered);
        begin(Part::Pause);
        (answered == words.map(|word| word + 1)).then_some(())
    })?;
    for (name, opcode) in [
        ("floor_lend_mut", LEND_MUT),
        ("floor_lend_mut_cleared", LEND_MUT_CLEARED),
    ] {
        measure(name, &mut |n| {
            let mut words = black_box([n; LENT_WORDS]);
            begin(Part::Client);
            own.set(OPCODE, opcode);
            own.copy_from(LENT, &words);
            begin(Part::Switch);
            switch();
            begin(Part::Client);
            peer.copy_to(LENT, &mut words);
            if opcode == LEND_MUT_CLEARED {
                own.clear(LENT, LENT_WORDS);
            }
            begin(Part::Pause);
            let mut expected = [n; LENT_WORDS];
            (expected[0], expected[LENT_WORDS - 1]) = (!n, !n);
            (black_box(words) == expected).then_some(())
        })?;
    }
    measure("clear_page", &mut |_| {
        own.clear(PAGE, PAGE_WORDS);
        begin(Part::Pause);
        Some(())
    })
}

fn serve() -> Option<()> {
    let [own, peer] = Area::both(Role::Second);
    loop {
        begin(Part::Server);
        let opcode = peer.get(OPCODE);
        if opcode == CALL {
            for at in SCALAR..SCALAR + WORDS {
                own.set(at, peer.get(at) + 1);
            }
        } else {
            if opcode == LEND_MUT_CLEARED {
                own.clear(LENT, LENT_WORDS);
                begin(Part::Server);
            }
            for at in LENT..LENT + LENT_WORDS {
                own.set(at, peer.get(at));
            }
            for at in [LENT, LENT + LENT_WORDS - 1] {
                own.set(at, !own.get(at));
            }
        }
        begin(Part::Switch);
        switch();
    }
}

vexriscv::contexts!(run, serve);
