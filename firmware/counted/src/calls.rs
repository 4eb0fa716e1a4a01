//! What a call through a message channel takes on each side: one of five words, and one of 53 bytes
//! that are lent and changed.
//!
//! Both ends are in one image and take turns, and one call is under way at a time. Nothing is looked for in
//! vain: the server looks when the message is there, and the caller when the answer is. What it takes to look at
//! the counter is taken off.

use core::hint::black_box;

use sinew_shm::domain::{
    Block, Call, Channel, Coherent, Config, End, Loan, Memory, Messages, Options, Parts, Platform,
    Pool, Role, Silent, Slot, Status, Uses,
};
use sinew_shm::{Line, Segment, Unshared};

use crate::{Board, Meter, print};

/// Calls that are counted, after some that are not.
const CALLS: u32 = 1024;
const WARM_UP: u32 = 16;
/// Bytes that are lent: those of Xous's own benchmark.
const BYTES: usize = 53;
/// They begin where a word does, as those of a struct do.
#[derive(Clone, Copy, PartialEq)]
#[repr(C, align(4))]
struct Bytes([u8; BYTES]);
const OPCODE: u32 = 7;
const CHANNEL: u16 = 1;

const POOL: Pool = Pool::new(4, 64);
const PLAIN: Channel = Channel::messages(CHANNEL, "count", 4, 4).with_memory(POOL);
/// Without trust: what is lent is copied out by who may not trust it, and answered in a block of the
/// server's own.
pub const NONE: Config = Config::new(&[PLAIN]);
/// With trust, and answered in the block that was lent.
pub const MUTUAL: Config = Config::new(&[PLAIN.with_replies()]).mutual();
const _: () = assert!(NONE.check().is_ok() && MUTUAL.check().is_ok());

const fn max(one: usize, other: usize) -> usize {
    if one > other { one } else { other }
}
/// Lines of the segment of each side, and of the one that both write.
pub const FIRST: usize = Line::count(max(
    NONE.segment_len(Role::First),
    MUTUAL.segment_len(Role::First),
));
/// See [`FIRST`].
pub const SECOND: usize = Line::count(max(
    NONE.segment_len(Role::Second),
    MUTUAL.segment_len(Role::Second),
));
/// See [`FIRST`].
pub const EXCHANGE: usize = Line::count(MUTUAL.exchange_len());

/// The memory of both configurations, one after the other.
#[derive(Clone, Copy)]
pub struct Segments {
    /// Written by the first side.
    pub first: Segment,
    /// Written by the second side.
    pub second: Segment,
    /// Written by both, where they trust each other.
    pub exchange: Segment,
}

/// How ends get at these segments: by the image, which knows that nothing else uses them.
pub type Map = fn(mine: Segment, peer: Segment, exchange: Option<Segment>) -> Memory;

struct Bare<const REPLIES: bool>;

impl<const REPLIES: bool> Platform for Bare<REPLIES> {
    type Lock = Unshared;
    type Doorbell = Silent;
    type Cache = Coherent;
    type Slots = [Slot; 1];
    type Blocks = [Block; NONE.blocks()];
    const USES: Uses = Uses {
        messages: true,
        replies: REPLIES,
        ..Uses::PACKETS
    };
}

type Side<'a, const REPLIES: bool> = Messages<&'a End<Bare<REPLIES>>>;

fn open<const REPLIES: bool>(role: Role, memory: Memory) -> Option<End<Bare<REPLIES>>> {
    let parts = Parts {
        doorbell: Silent,
        cache: Coherent,
        platform: Bare,
        slots: [Slot::EMPTY],
        blocks: [Block::NEW; NONE.blocks()],
    };
    let config = if REPLIES { MUTUAL } else { NONE };
    End::open(memory, config, role, parts, Options::default()).ok()
}

/// The instructions of one call, on each side.
struct Counts<B> {
    client: Meter<B>,
    server: Meter<B>,
    /// A part in which nothing is done.
    empty: Meter<B>,
}

impl<B: Board> Counts<B> {
    fn new() -> Self {
        Counts {
            client: Meter::new(),
            server: Meter::new(),
            empty: Meter::new(),
        }
    }

    fn end_run(&mut self) {
        self.empty.part(|| ());
        self.empty.end_run();
        self.client.end_run();
        self.server.end_run();
    }

    /// Of a call whose client has two parts.
    fn print(&self, kind: &str, what: &Names) {
        let empty = self.empty.per_run();
        let client = self.client.per_run().saturating_sub(2 * empty);
        let server = self.server.per_run().saturating_sub(empty);
        print::<B>(kind, what.call, client + server);
        print::<B>(kind, what.client, client);
        print::<B>(kind, what.server, server);
    }
}

/// The figures of a call: all of it, and the part of each side.
struct Names {
    call: &'static str,
    client: &'static str,
    server: &'static str,
}
const SCALAR: Names = Names {
    call: "scalar",
    client: "scalar_client",
    server: "scalar_server",
};
const LEND: Names = Names {
    call: "lend_mut",
    client: "lend_client",
    server: "lend_server",
};

/// Counts both calls, without and with trust; `None` where something fails.
pub fn run<B: Board>(memory: Segments, map: Map) -> Option<()> {
    both::<B, false>(memory, map, "")?;
    both::<B, true>(memory, map, "mutual_")
}

fn both<B: Board, const REPLIES: bool>(memory: Segments, map: Map, kind: &str) -> Option<()> {
    let Segments {
        first,
        second,
        exchange,
    } = memory;
    let exchange = REPLIES.then_some(exchange);
    let near = open::<REPLIES>(Role::First, map(first, second, exchange))?;
    let far = open::<REPLIES>(Role::Second, map(second, first, exchange))?;
    near.look(0);
    far.look(0);
    if near.look(0) != Status::Up {
        return None;
    }
    let client = Messages::new(&&near, CHANNEL)?;
    let server = Messages::new(&&far, CHANNEL)?;

    let mut counts = Counts::<B>::new();
    for n in 0..WARM_UP + CALLS {
        if n == WARM_UP {
            counts = Counts::new();
        }
        let words = [n, 1, 2, 3, 4];
        let mut call = counts.client.part(|| ask(&client, &words))?;
        counts.server.part(|| answer(&server))?;
        let answered = counts.client.part(|| answered(&mut call))?;
        (answered == words.map(|word| word.wrapping_add(1))).then_some(())?;
        counts.end_run();
    }
    counts.print(kind, &SCALAR);

    let mut counts = Counts::<B>::new();
    for n in 0..WARM_UP + CALLS {
        if n == WARM_UP {
            counts = Counts::new();
        }
        let mut bytes = Bytes([n as u8; BYTES]);
        let loan = counts.client.part(|| lend(&client, &bytes))?;
        counts.server.part(|| change(&server))?;
        counts.client.part(|| changed(loan, &mut bytes))?;
        let mut expected = [n as u8; BYTES];
        (expected[0], expected[BYTES - 1]) = (!(n as u8), !(n as u8));
        (bytes == Bytes(expected)).then_some(())?;
        counts.end_run();
    }
    counts.print(kind, &LEND);
    Some(())
}

/// The caller's first part: words go.
#[inline(never)]
fn ask<'a, const REPLIES: bool>(
    client: &Side<'a, REPLIES>,
    words: &[u32; 5],
) -> Option<Call<&'a End<Bare<REPLIES>>>> {
    client.call(OPCODE, *words).ok()
}

/// The server's part: they are taken up and answered.
#[inline(never)]
fn answer<const REPLIES: bool>(server: &Side<'_, REPLIES>) -> Option<()> {
    let message = server.receive().ok()??;
    let words = message.words.map(|word| word.wrapping_add(1));
    (message.opcode == OPCODE).then(|| message.answer(words))
}

/// The caller's second part.
#[inline(never)]
fn answered<const REPLIES: bool>(call: &mut Call<&End<Bare<REPLIES>>>) -> Option<[u32; 5]> {
    call.poll().ok()?
}

/// The caller's first part: memory is taken, written, and lent.
#[inline(never)]
fn lend<'a, const REPLIES: bool>(
    client: &Side<'a, REPLIES>,
    bytes: &Bytes,
) -> Option<Loan<&'a End<Bare<REPLIES>>>> {
    let mut buffer = client.memory(BYTES).ok()?;
    *buffer.first_chunk_mut()? = bytes.0;
    buffer.lend_mut(OPCODE, 0..BYTES, black_box([1, 2, 3])).ok()
}

/// The server's part: what came is copied to where the answer goes, or is there already, and its first
/// and last byte are changed.
#[inline(never)]
fn change<const REPLIES: bool>(server: &Side<'_, REPLIES>) -> Option<()> {
    let message = server.receive().ok()??;
    let mut given = message.memory?;
    let [first, .., last] = given.in_place()? else {
        return None;
    };
    (*first, *last) = (!*first, !*last);
    let valid = given.valid();
    given.answer_with(valid).then_some(())
}

/// The caller's second part: the answer is copied out, and the memory is free again.
#[inline(never)]
fn changed<const REPLIES: bool>(
    mut loan: Loan<&End<Bare<REPLIES>>>,
    bytes: &mut Bytes,
) -> Option<()> {
    let returned = loan.poll().ok()??;
    match returned.trusted() {
        Some(answer) => bytes.0 = *answer.first_chunk()?,
        None => (returned.copy_to(&mut bytes.0).ok()? == BYTES).then_some(())?,
    }
    Some(())
}
