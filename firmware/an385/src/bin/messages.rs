//! Prints instructions per message through a domain channel, as `name value` lines on the UART.
//!
//! Both ends are in this image, and take turns: the sending side sends `BATCH` messages, then the
//! receiving side takes all of them, so that each side's part is counted by itself. The pool has
//! `BATCH` blocks, so from the second turn on each block sent was taken up from the returns before.
#![no_std]
#![no_main]

use core::hint::black_box;
use core::marker::PhantomData;

use an385::count::{Meter, print};
use an385::{board, lock::Masked};
use sinew_shm::domain::{
    Block, Channel, ChannelPlan, Coherent, Config, End, Memory, Options, Parts, Place, Plan,
    Platform, Pool, Receiver, Role, Sender, Silent, Slot, Status, Uses,
};
use sinew_shm::{Line, Lock, Segment, Unshared};
use static_cell::StaticCell;

/// Messages of one turn.
const BATCH: u32 = 64;
/// Turns, after one that is not counted.
const TURNS: u32 = 16;
/// Bytes of a message.
const BYTES: usize = 16;

const CHANNELS: &[Channel] = &[Channel::new(1, "count", Pool::new(BATCH as u16, 64))];
const NONE: Config = Config::new(CHANNELS);
const MUTUAL: Config = NONE.mutual();
const _: () = assert!(NONE.check().is_ok() && MUTUAL.check().is_ok());

const FIRST: usize = Line::count(NONE.segment_len(Role::First));
const SECOND: usize = Line::count(NONE.segment_len(Role::Second));

// Trust moves nothing.
const FIRST_SIDE: [ChannelPlan; 1] = ChannelPlan::all(&NONE, Role::First);
const SECOND_SIDE: [ChannelPlan; 1] = ChannelPlan::all(&NONE, Role::Second);

/// A case: what one side of it is compiled for.
struct Board<L, const SECOND: bool, const TRUSTS: bool>(PhantomData<L>);

impl<L: Lock, const SECOND: bool, const TRUSTS: bool> Platform for Board<L, SECOND, TRUSTS> {
    type Lock = L;
    type Doorbell = Silent;
    type Cache = Coherent;
    type Slots = [Slot; 1];
    type Blocks = [Block; NONE.blocks()];
    const PLAN: Option<Plan<'static>> = {
        let config = if TRUSTS { MUTUAL } else { NONE };
        Some(match SECOND {
            false => Plan::new(config, Role::First, &FIRST_SIDE),
            true => Plan::new(config, Role::Second, &SECOND_SIDE),
        })
    };
    const USES: Uses = Uses::PACKETS;
}

/// The side that sends, and the one that receives.
type Near<L, const TRUSTS: bool> = End<Board<L, false, TRUSTS>>;
type Far<L, const TRUSTS: bool> = End<Board<L, true, TRUSTS>>;

fn open<L: Lock, const SECOND: bool, const TRUSTS: bool>(
    mine: Segment,
    peer: Segment,
) -> Option<End<Board<L, SECOND, TRUSTS>>> {
    // SAFETY: both segments are statics of this image, which nothing else uses; each end has its
    // own one.
    let memory = unsafe { Memory::new(mine, peer, None) };
    let parts = Parts {
        doorbell: Silent,
        cache: Coherent,
        platform: Board(PhantomData),
        slots: [Slot::EMPTY],
        blocks: [Block::NEW; NONE.blocks()],
    };
    End::open_planned(memory, parts, Options::default()).ok()
}

/// Two ends that are up.
fn pair<L: Lock, const TRUSTS: bool>(
    first: Segment,
    second: Segment,
) -> Option<(Near<L, TRUSTS>, Far<L, TRUSTS>)> {
    let near: Near<L, TRUSTS> = open(first, second)?;
    let far: Far<L, TRUSTS> = open(second, first)?;
    near.look(0);
    far.look(0);
    (near.look(0) == Status::Up).then_some((near, far))
}

/// Messages of `BYTES` from one end to the other.
#[inline(never)]
fn messages<L: Lock, const TRUSTS: bool>(
    first: Segment,
    second: Segment,
    kind: &str,
    (send, receive, words): (Send<L, TRUSTS>, Receive<L, TRUSTS>, u32),
) -> Option<()> {
    let (near, far) = pair::<L, TRUSTS>(first, second)?;
    let (tx, rx) = (Sender::new(&&near, 1)?, Receiver::new(&&far, 1)?);
    let (mut sending, mut receiving) = (Meter::new(), Meter::new());
    let mut sum = 0;
    for turn in 0..=TURNS {
        if turn == 1 {
            (sending, receiving) = (Meter::new(), Meter::new());
        }
        let message = message(turn);
        sending.runs(0..BATCH, |_| send(&tx, &message))?;
        receiving.runs(0..BATCH, |_| {
            sum += receive(&rx)?;
            Some(())
        })?;
    }
    (sum == words * BATCH * (TURNS + 1) * TURNS / 2).then_some(())?;
    let (sender, receiver) = (sending.per_run(), receiving.per_run());
    print(kind, "message", sender + receiver);
    print(kind, "sender", sender);
    print(kind, "receiver", receiver);
    Some(())
}

/// The two steps in the middle alone, and a look at nothing.
#[inline(never)]
fn steps(first: Segment, second: Segment) -> Option<()> {
    let (near, far) = pair::<Unshared, false>(first, second)?;
    let (tx, rx) = (Sender::new(&&near, 1)?, Receiver::new(&&far, 1)?);
    let (mut enqueue, mut dequeue, mut empty) = (Meter::new(), Meter::new(), Meter::new());
    for _ in 0..TURNS {
        let mut places: [Option<Place<'_, _>>; BATCH as usize] =
            core::array::from_fn(|_| tx.place(BYTES).ok());
        let mut next = places.iter_mut();
        enqueue.runs(0..BATCH, |_| {
            next.next()?
                .take()?
                .publish(black_box(BYTES))
                .ok()?
                .then_some(())
        })?;
        tx.flush();
        let mut packets = [const { None }; BATCH as usize];
        let mut next = packets.iter_mut();
        dequeue.runs(0..BATCH, |_| {
            *next.next()? = rx.receive().ok()?;
            Some(())
        })?;
        empty.runs(0..BATCH, |_| rx.receive().ok()?.is_none().then_some(()))?;
    }
    print("", "enqueue", enqueue.per_run());
    print("", "dequeue", dequeue.per_run());
    print("", "empty", empty.per_run());
    Some(())
}

type Message = [u8; BYTES];
type Send<L, const TRUSTS: bool> = fn(&Sender<&Near<L, TRUSTS>>, &Message) -> Option<()>;
type Receive<L, const TRUSTS: bool> = fn(&Receiver<&Far<L, TRUSTS>>) -> Option<u32>;

/// The number, four times.
fn message(n: u32) -> Message {
    let mut bytes = [0; BYTES];
    for word in bytes.as_chunks_mut().0 {
        *word = n.to_le_bytes();
    }
    bytes
}

/// Copied in, in one step.
#[inline(never)]
fn send<L: Lock, const TRUSTS: bool>(
    tx: &Sender<&Near<L, TRUSTS>>,
    message: &Message,
) -> Option<()> {
    tx.send(message).ok()?.then_some(())
}

/// Copied out, in one step.
#[inline(never)]
fn receive<L: Lock, const TRUSTS: bool>(rx: &Receiver<&Far<L, TRUSTS>>) -> Option<u32> {
    let mut bytes = [0; BYTES];
    let len = rx.receive_into(&mut bytes).ok()??;
    (len == BYTES).then_some(last_word(&bytes))
}

/// Written in place.
#[inline(never)]
fn place<L: Lock, const TRUSTS: bool>(
    tx: &Sender<&Near<L, TRUSTS>>,
    message: &Message,
) -> Option<()> {
    let mut place = tx.place(BYTES).ok()?;
    *place.first_chunk_mut()? = *message;
    place.send(BYTES).ok()?.then_some(())
}

/// Read where it lies where the peer is trusted, else copied out.
#[inline(never)]
fn packet<L: Lock, const TRUSTS: bool>(rx: &Receiver<&Far<L, TRUSTS>>) -> Option<u32> {
    let packet = rx.receive().ok()??;
    if let Some(bytes) = packet.trusted() {
        let words = bytes.as_chunks().0;
        let sum = words.iter().map(|word| u32::from_le_bytes(*word)).sum();
        return (bytes.len() == BYTES).then_some(sum);
    }
    let mut bytes = [0; BYTES];
    let len = packet.copy_to(&mut bytes).ok()?;
    (len == BYTES).then_some(last_word(&bytes))
}

fn last_word(bytes: &Message) -> u32 {
    let [.., a, b, c, d] = *bytes;
    u32::from_le_bytes([a, b, c, d])
}

fn run() -> Option<()> {
    static MEMORY: StaticCell<([Line; FIRST], [Line; SECOND])> = StaticCell::new();
    let (first, second) = MEMORY.try_init(([Line::ZERO; FIRST], [Line::ZERO; SECOND]))?;
    let (first, second) = (Segment::from_lines(first), Segment::from_lines(second));
    // With the words of each message that the receiver sums.
    messages::<Unshared, false>(first, second, "", (send, receive, 1))?;
    messages::<Unshared, false>(first, second, "placed_", (place, packet, 1))?;
    messages::<Unshared, true>(first, second, "mutual_", (send, packet, 4))?;
    messages::<Masked, false>(first, second, "masked_", (send, receive, 1))?;
    steps(first, second)
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    board::start();
    match run() {
        Some(()) => sinew_rt::exit(0),
        None => sinew_rt::exit(3),
    }
}
