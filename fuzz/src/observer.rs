use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::OnceLock;

use sinew_shm::domain::observe::{ChannelSide, Flow, Link, NoSide, Side, Source};
use sinew_shm::domain::{
    Block, Channel, Coherent, Config, End, Memory, Options, Parts, Platform, Pool, Receiver, Role,
    Sender, Silent, Slot,
};
use sinew_shm::{Line, Segment, Unshared};

/// The first byte chooses. Even: the rest is the first segment and, from its middle on, the second.
/// Odd: the rest changes words of a good link, six bytes each: side and word, and its new value.
///
/// Whatever stands there, the observer ends, no number passes its bound, and live memory shows the
/// same as a copy of it.
pub fn observer(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else {
        return;
    };
    let sides = if choice % 2 == 0 {
        let (first, second) = rest.split_at(rest.len() / 2);
        [first, second].map(<[u8]>::to_vec)
    } else {
        changed(rest)
    };
    let [first, second] = &sides;
    let shown = look(&Link::new(first.as_slice(), second.as_slice()));
    let (mut first, mut second) = (aligned(first), aligned(second));
    let live = Link::new(first.segment(), second.segment());
    assert_eq!(shown, look(&live));
}

type Shown = (
    [Result<Side, NoSide>; 2],
    Vec<(Option<ChannelSide>, Option<Flow>)>,
);

/// Everything that there is to see.
fn look(link: &Link<impl Source>) -> Shown {
    let roles = [Role::First, Role::Second];
    let mut shown = Vec::new();
    for channel in link.channels() {
        for role in roles {
            let (side, flow) = (channel.side(role).copied(), channel.flow(role));
            if let Some(side) = side {
                assert!(side.name.as_str().len() <= 16);
                assert!(side.counts.suppressed() <= i32::MAX as u32);
            }
            if let Some(flow) = channel.messages(role) {
                assert!(flow.waiting <= flow.requests);
            }
            if let Some(flow) = flow {
                for blocks in [flow.free, flow.lent, flow.queued, flow.held, flow.returned] {
                    assert!(blocks <= flow.blocks);
                }
            }
            shown.push((side, flow));
        }
    }
    assert!(shown.len() <= 256, "each side has 64 channels at most");
    (roles.map(|role| link.side(role)), shown)
}

/// A good link with some words changed.
fn changed(patches: &[u8]) -> [Vec<u8>; 2] {
    static GOOD: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    let mut sides = GOOD.get_or_init(good).clone();
    for patch in patches.as_chunks::<6>().0 {
        let [low, high, value @ ..] = *patch;
        let bytes = &mut sides[usize::from(high >> 7)];
        let word = usize::from(u16::from_le_bytes([low, high & 0x7F]));
        let at = word % (bytes.len() / 4) * 4;
        bytes[at..at + 4].copy_from_slice(&value);
    }
    sides
}

struct Solo;

impl Platform for Solo {
    type Lock = Unshared;
    type Doorbell = Silent;
    type Cache = Coherent;
    type Slots = Vec<Slot>;
    type Blocks = Vec<Block>;
}

/// Both segments of a link that is up and has packets under way.
fn good() -> [Vec<u8>; 2] {
    const LINK: Config = Config::new(&[
        Channel::new(1, "control", Pool::new(4, 16)).priority(0),
        Channel::new(2, "bulk", Pool::new(2, 64)),
    ]);
    let lines = |bytes| vec![Line::ZERO; Line::count(bytes)].leak();
    let memory = Memory::pair(
        lines(LINK.segment_len(Role::First)),
        lines(LINK.segment_len(Role::Second)),
        &mut [],
    );
    let open = |memory, role| {
        let parts = Parts {
            doorbell: Silent,
            cache: Coherent,
            platform: Solo,
            slots: vec![Slot::EMPTY, Slot::EMPTY],
            blocks: vec![Block::NEW; LINK.blocks()],
        };
        Rc::new(End::open(memory, LINK, role, parts, Options::default()).expect("it fits"))
    };
    let (first, second) = (open(memory.0, Role::First), open(memory.1, Role::Second));
    for end in [&first, &second, &first] {
        end.look(0);
    }
    let sender = Sender::new(&first, 1).expect("a channel");
    for _ in 0..3 {
        sender.send(b"packet").expect("room");
    }
    let receiver = Receiver::new(&second, 1).expect("a channel");
    let held = receiver.receive().expect("up").expect("a packet");
    let link = first.observe();
    let sides = [Role::First, Role::Second].map(|role| {
        let lines = (0..).map_while(|line| link.source(role).line(64 * line));
        lines.flatten().flat_map(u32::to_le_bytes).collect()
    });
    drop(held);
    sides
}

/// Bytes where a segment may begin.
struct Aligned {
    lines: Vec<Chunk>,
    len: usize,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Chunk([u8; 64]);

fn aligned(bytes: &[u8]) -> Aligned {
    let lines = bytes.chunks(64).map(|chunk| {
        let mut line = Chunk([0; 64]);
        line.0[..chunk.len()].copy_from_slice(chunk);
        line
    });
    Aligned {
        lines: lines.collect(),
        len: bytes.len(),
    }
}

impl Aligned {
    fn segment(&mut self) -> Segment {
        let base = NonNull::from(self.lines.as_mut_slice()).cast();
        // SAFETY: the lines hold that many bytes, aligned, and live and are not used otherwise as
        // long as the link that is looked at.
        unsafe { Segment::from_raw(base, self.len) }.expect("aligned and small")
    }
}
