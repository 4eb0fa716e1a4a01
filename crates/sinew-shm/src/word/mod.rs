//! The one way to a shared word: a plain aligned load or store of 32 bits, and a full fence.
//!
//! [`Word`] is a word inside one domain; `segment` has the little-endian words, rings and blocks
//! of memory that two domains share. Loom, Miri and the real thing run the same code above here.
//!
//! Every ordered access names the synchronisation point it belongs to, and points come in pairs,
//! one in each half. Under loom a point can be weakened by its name (environment variable
//! `SINEW_MUTANT`), so that the tests prove each of them to be needed.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, Ordering, fence};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering, fence};

mod segment;
#[cfg(all(test, not(any(loom, miri))))]
pub(crate) mod trial;

pub(crate) use segment::{BlockArea, CopyArea, LineArea, RingArea, Span, WordArea, Words};
pub use segment::{Line, Segment};
#[cfg(all(feature = "linux", target_os = "linux"))]
pub(crate) mod futex;

/// A synchronisation point: a name and the ordering it needs.
#[derive(Clone, Copy)]
pub(crate) struct Point {
    #[cfg_attr(not(loom), allow(dead_code))]
    name: &'static str,
    order: Ordering,
}

/// Producer: the payload and the entry happen before the consumer sees the new head.
pub(crate) const HEAD_STORE: Point = Point::new("head_store", Ordering::Release);
/// Consumer: pairs with [`HEAD_STORE`].
pub(crate) const HEAD_LOAD: Point = Point::new("head_load", Ordering::Acquire);
/// Consumer: its reads of a block happen before a producer writes the block again.
pub(crate) const RETURN_STORE: Point = Point::new("return_store", Ordering::Release);
/// Producer: pairs with [`RETURN_STORE`].
pub(crate) const RETURN_LOAD: Point = Point::new("return_load", Ordering::Acquire);
/// Either side: everything sent happens before the consumer sees that the queue is closed.
pub(crate) const CLOSE_STORE: Point = Point::new("close_store", Ordering::Release);
/// Consumer: pairs with [`CLOSE_STORE`].
pub(crate) const CLOSE_LOAD: Point = Point::new("close_load", Ordering::Acquire);
/// Producer that waits: its wake word before its last look at the return head.
pub(crate) const ARM_FENCE: Point = Point::new("arm_fence", Ordering::SeqCst);
/// Consumer: its return head before its look at the producers' wake word.
pub(crate) const RETURN_FENCE: Point = Point::new("return_fence", Ordering::SeqCst);
/// Ringer: what it did happens before the driver sees the bell.
pub(crate) const RING_STORE: Point = Point::new("ring_store", Ordering::Release);
/// Driver: pairs with [`RING_STORE`].
pub(crate) const RING_LOAD: Point = Point::new("ring_load", Ordering::Acquire);

/// Between domains, side that publishes a packet or a return: the block and the entry happen before
/// the other side sees the sequence number.
pub(crate) const ENTRY_STORE: Point = Point::new("entry_store", Ordering::Release);
/// Between domains: pairs with [`ENTRY_STORE`].
pub(crate) const ENTRY_LOAD: Point = Point::new("entry_load", Ordering::Acquire);
/// Between domains, side that goes to sleep: its wake word before its last look at the ring.
pub(crate) const SLEEP_FENCE: Point = Point::new("sleep_fence", Ordering::SeqCst);
/// Between domains, side that publishes a packet: its number before its look at the wake word.
pub(crate) const PUBLISH_FENCE: Point = Point::new("publish_fence", Ordering::SeqCst);
/// Between domains: the same for a return.
pub(crate) const RETURN_LOOK_FENCE: Point = Point::new("return_look_fence", Ordering::SeqCst);
/// Between domains, side that opens: its new session happens before its ring is empty. Pairs with
/// [`ENTRY_LOAD`], and with [`JUDGE_FENCE`] where a word of the entry was read without order.
pub(crate) const RESET_STORE: Point = Point::new("reset_store", Ordering::Release);
/// Between domains, side that found something wrong in a ring: that look before its look at the
/// peer's session, so that a restart is not taken for a violation.
pub(crate) const JUDGE_FENCE: Point = Point::new("judge_fence", Ordering::SeqCst);
/// Between domains, side that begins a session: the words that say whose something is are gone before
/// the rest of it is cleared.
pub(crate) const CLEAR_FENCE: Point = Point::new("clear_fence", Ordering::Release);
/// Between domains: what was read before the look whose it is. Pairs with [`CLEAR_FENCE`].
pub(crate) const CLEAR_LOOK: Point = Point::new("clear_look", Ordering::Acquire);
/// Session: what is opened, acknowledged or taken down happens before the word that says so.
pub(crate) const SESSION_STORE: Point = Point::new("session_store", Ordering::Release);
/// Session: pairs with [`SESSION_STORE`].
pub(crate) const SESSION_LOAD: Point = Point::new("session_load", Ordering::Acquire);
/// Filter: its words lie between the two counts of the one who sets it.
pub(crate) const FILTER_STORE: Point = Point::new("filter_store", Ordering::Release);
/// Filter: pairs with [`FILTER_STORE`].
pub(crate) const FILTER_LOAD: Point = Point::new("filter_load", Ordering::Acquire);

/// Message channels: an answer's words before its token.
pub(crate) const ANSWER_STORE: Point = Point::new("answer_store", Ordering::Release);
/// Message channels: pairs with [`ANSWER_STORE`].
pub(crate) const ANSWER_LOAD: Point = Point::new("answer_load", Ordering::Acquire);
/// Message channels: a message is read before its line is free for another.
pub(crate) const TAKEN_STORE: Point = Point::new("taken_store", Ordering::Release);
/// Message channels: pairs with [`TAKEN_STORE`].
pub(crate) const TAKEN_LOAD: Point = Point::new("taken_load", Ordering::Acquire);
/// Lock channels: this side's wish before its look at the peer's, so that one of two sees the other.
pub(crate) const LOCK_FENCE: Point = Point::new("lock_fence", Ordering::SeqCst);
/// Lock channels: what the owner read and wrote happens before the lock is free.
pub(crate) const LOCK_STORE: Point = Point::new("lock_store", Ordering::Release);
/// Lock channels: pairs with [`LOCK_STORE`].
pub(crate) const LOCK_LOAD: Point = Point::new("lock_load", Ordering::Acquire);
/// Lock channels: that the lock is free before the look whether the peer waits for it.
pub(crate) const LOCK_LOOK_FENCE: Point = Point::new("lock_look_fence", Ordering::SeqCst);
/// State channels: what a side says of its copies, or of its reading, happens after what it wrote or
/// read before.
pub(crate) const STATE_STORE: Point = Point::new("state_store", Ordering::Release);
/// State channels: pairs with [`STATE_STORE`].
pub(crate) const STATE_LOAD: Point = Point::new("state_load", Ordering::Acquire);
/// State channels, writer: its last value before its look at what is read, and before the next copy.
pub(crate) const STATE_WRITE_FENCE: Point = Point::new("state_write_fence", Ordering::SeqCst);
/// State channels, reader: what it reads before its look at which copy is the latest.
pub(crate) const STATE_READ_FENCE: Point = Point::new("state_read_fence", Ordering::SeqCst);

/// The points inside one domain: every one that a test must be able to tell from a weaker one.
#[cfg(loom)]
pub const MUTANTS: [&str; 10] = [
    HEAD_STORE.name,
    HEAD_LOAD.name,
    RETURN_STORE.name,
    RETURN_LOAD.name,
    CLOSE_STORE.name,
    CLOSE_LOAD.name,
    ARM_FENCE.name,
    RETURN_FENCE.name,
    RING_STORE.name,
    RING_LOAD.name,
];

/// The points between domains; see [`MUTANTS`].
#[cfg(loom)]
pub const DOMAIN_MUTANTS: [&str; 17] = [
    ENTRY_STORE.name,
    ENTRY_LOAD.name,
    SLEEP_FENCE.name,
    PUBLISH_FENCE.name,
    RETURN_LOOK_FENCE.name,
    RESET_STORE.name,
    JUDGE_FENCE.name,
    SESSION_STORE.name,
    SESSION_LOAD.name,
    FILTER_STORE.name,
    FILTER_LOAD.name,
    STATE_STORE.name,
    STATE_LOAD.name,
    STATE_WRITE_FENCE.name,
    STATE_READ_FENCE.name,
    CLEAR_FENCE.name,
    CLEAR_LOOK.name,
];

/// The points of message channels; see [`MUTANTS`].
#[cfg(loom)]
pub const MESSAGE_MUTANTS: [&str; 10] = [
    ENTRY_STORE.name,
    ENTRY_LOAD.name,
    TAKEN_STORE.name,
    TAKEN_LOAD.name,
    ANSWER_STORE.name,
    ANSWER_LOAD.name,
    PUBLISH_FENCE.name,
    RETURN_LOOK_FENCE.name,
    CLEAR_FENCE.name,
    CLEAR_LOOK.name,
];

/// The points of lock channels; see [`MUTANTS`].
#[cfg(loom)]
pub const LOCK_MUTANTS: [&str; 5] = [
    LOCK_FENCE.name,
    LOCK_STORE.name,
    LOCK_LOAD.name,
    LOCK_LOOK_FENCE.name,
    SLEEP_FENCE.name,
];

impl Point {
    const fn new(name: &'static str, order: Ordering) -> Self {
        Point { name, order }
    }

    #[cfg(not(loom))]
    #[inline(always)]
    fn order(self) -> Ordering {
        self.order
    }

    #[cfg(loom)]
    fn order(self) -> Ordering {
        if self.is_weakened() {
            Ordering::Relaxed
        } else {
            self.order
        }
    }

    #[cfg(loom)]
    fn is_weakened(self) -> bool {
        use std::sync::OnceLock;
        static WEAKENED: OnceLock<Option<std::string::String>> = OnceLock::new();
        WEAKENED
            .get_or_init(|| std::env::var("SINEW_MUTANT").ok())
            .as_deref()
            == Some(self.name)
    }
}

/// A shared word with one writer.
pub(crate) struct Word(AtomicU32);

impl Word {
    const_fn! {
        /// A word that holds 0.
        pub(crate) fn new() -> Self {
            Word(AtomicU32::new(0))
        }
    }

    /// Reads a word of one's own, or one that orders nothing.
    #[inline(always)]
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Writes a word that orders nothing.
    #[inline(always)]
    pub(crate) fn set(&self, value: u32) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds 1 to a word of one's own: a load and a store, for the one writer.
    #[inline(always)]
    pub(crate) fn bump(&self) {
        self.set(self.get().wrapping_add(1));
    }

    /// Reads a word of the other side.
    #[inline(always)]
    pub(crate) fn load(&self, point: Point) -> u32 {
        self.0.load(point.order())
    }

    /// Publishes a word of one's own.
    #[inline(always)]
    pub(crate) fn store(&self, value: u32, point: Point) {
        self.0.store(value, point.order());
    }
}

/// Begins to fetch a line that will be read soon. Only a hint: it reads nothing and cannot fault.
#[inline(always)]
pub(crate) fn prefetch(at: core::ptr::NonNull<u8>) {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    // SAFETY: a hint may be given for any address.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.as_ptr().cast());
    }
    #[cfg(all(target_arch = "aarch64", not(any(loom, miri))))]
    // SAFETY: as above.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) at.as_ptr(), options(nostack, readonly, preserves_flags));
    }
    let _ = at;
}

/// Keeps what lies before it before what lies behind it, as the point says: mostly an own store before a
/// later load of the other side's word.
#[inline(always)]
pub(crate) fn full_fence(point: Point) {
    #[cfg(loom)]
    if point.is_weakened() {
        return;
    }
    // `mfence`, which the compiler takes, costs twice as much.
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    if point.order() == Ordering::SeqCst {
        // SAFETY: the own stack, which it does not change. Any locked instruction keeps what lies before it
        // before what lies behind it.
        unsafe { core::arch::asm!("lock or dword ptr [rsp], 0") };
        return;
    }
    fence(point.order());
}
