//! A port of domain links to a chip with a mailbox, run here with registers that are a table.

/// The chip: here its registers lie in a table, and time stands still.
mod chip {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    pub const MAILBOX_SET_OTHER: usize = 0x5000_3014;
    pub const MAILBOX_CLEAR_OWN: usize = 0x5000_3008;
    pub const CACHE_CLEAN_LINE: usize = 0xe000_ef68;
    pub const CACHE_INVALIDATE_LINE: usize = 0xe000_ef5c;

    thread_local! {
        pub static WRITTEN: RefCell<BTreeMap<usize, Vec<u32>>> = const { RefCell::new(BTreeMap::new()) };
    }

    pub fn write(register: usize, value: u32) {
        WRITTEN.with_borrow_mut(|all| all.entry(register).or_default().push(value));
    }

    pub fn barrier() {}

    pub fn millis() -> u32 {
        1
    }
}

// ANCHOR: port
use core::ptr::NonNull;

use sinew_shm::CriticalSectionLock;
use sinew_shm::domain::{
    Block, Cache, Channel, Config, Doorbell, End, Memory, OpenError, Options, Parts, Platform,
    Pool, Role, Slot,
};

/// What both sides compile in.
const LINK: Config = Config::new(&[
    Channel::new(1, "calls", Pool::new(8, 64)).priority(0),
    Channel::new(2, "log", Pool::new(16, 128)).priority(200),
]);
const _: () = assert!(LINK.check().is_ok());

/// A bit of the other core in a mailbox, which raises its interrupt until it is cleared.
struct Mailbox;

impl Doorbell for Mailbox {
    fn ring(&self) {
        chip::barrier(); // DSB: memory first, then the device
        chip::write(chip::MAILBOX_SET_OTHER, 1);
    }
}

/// The data cache of a Cortex-M7, by lines.
struct DataCache;

impl DataCache {
    fn each_line(at: NonNull<u8>, len: usize, operation: usize) {
        const LINE: usize = 32;
        let first = at.addr().get() & !(LINE - 1);
        for line in (first..at.addr().get() + len).step_by(LINE) {
            chip::write(operation, line as u32);
        }
        chip::barrier();
    }
}

// SAFETY: registers of the core, and nothing of the link.
unsafe impl Cache for DataCache {
    fn clean(&self, at: NonNull<u8>, len: usize) {
        DataCache::each_line(at, len, chip::CACHE_CLEAN_LINE);
    }

    fn invalidate(&self, at: NonNull<u8>, len: usize) {
        DataCache::each_line(at, len, chip::CACHE_INVALIDATE_LINE);
    }
}

struct Board;

impl Platform for Board {
    type Lock = CriticalSectionLock; // tasks and interrupt handlers use the link
    type Doorbell = Mailbox;
    type Cache = DataCache; // or `Coherent`
    type Slots = [Slot; LINK.channels.len()];
    type Blocks = [Block; LINK.blocks()];
}

fn open(memory: Memory, role: Role) -> Result<End<Board>, OpenError> {
    let parts = Parts {
        doorbell: Mailbox,
        cache: DataCache,
        platform: Board,
        slots: [Slot::EMPTY; LINK.channels.len()],
        blocks: [Block::NEW; LINK.blocks()],
    };
    End::open(memory, LINK, role, parts, Options::default())
}

/// The mailbox's interrupt handler, and what a timer calls ten times a second.
fn rung(link: &End<Board>) {
    chip::write(chip::MAILBOX_CLEAR_OWN, 1); // first: what rings from now on interrupts again
    link.look(chip::millis());
    link.recover(); // where the peer has broken the protocol: the next one need not
}
// ANCHOR_END: port

use sinew_shm::Line;
use sinew_shm::domain::{Receiver, Sender, Status};

fn lines(role: Role) -> &'static mut [Line] {
    let lines = vec![Line::ZERO; Line::count(LINK.segment_len(role))];
    Box::leak(lines.into_boxed_slice())
}

fn written(register: usize) -> Vec<u32> {
    chip::WRITTEN
        .with_borrow_mut(|all| all.remove(&register))
        .unwrap_or_default()
}

#[test]
fn two_cores_with_a_mailbox_exchange_packets() {
    let (first, second) = Memory::pair(lines(Role::First), lines(Role::Second), &mut []);
    let first = open(first, Role::First).expect("the first side");
    let second = open(second, Role::Second).expect("the second side");
    for _ in 0..2 {
        rung(&first);
        rung(&second);
    }
    assert_eq!((first.status(), second.status()), (Status::Up, Status::Up));
    // Both have rung, at least when they were opened, and have cleared their own bit at each look.
    assert!(written(chip::MAILBOX_SET_OTHER).len() >= 2);
    assert_eq!(written(chip::MAILBOX_CLEAR_OWN), [1; 4]);

    let tx = Sender::new(&&first, 1).expect("channel 1");
    let rx = Receiver::new(&&second, 1).expect("channel 1");
    rx.arm(std::task::Waker::noop());
    written(chip::CACHE_CLEAN_LINE);
    assert_eq!(tx.send(b"ping"), Ok(true));
    assert_eq!(written(chip::MAILBOX_SET_OTHER), [1], "it waits");
    let cleaned = written(chip::CACHE_CLEAN_LINE);
    assert!(cleaned.len() >= 2, "the block, and its entry");
    assert!(cleaned.iter().all(|line| line % 32 == 0));
    let packet = rx.receive().expect("a link that is up").expect("a packet");
    assert_eq!(packet.trusted(), Some(&b"ping"[..]));
}
