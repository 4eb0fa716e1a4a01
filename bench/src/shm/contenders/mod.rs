//! Who takes part, in the order of the results.

mod iceoryx;
mod pipe;
mod reference;
mod ring_calls;
mod seqpacket;
mod sinew;

pub use ring_calls::RingCalls;
pub use sinew::QueueCalls;

use super::contender::{Contender, End};

/// What everybody is held against: no checks at all.
pub const REFERENCE: &str = reference::Ring::NAME;
/// The fastest of the peers that one could use instead.
pub const ICEORYX: &str = iceoryx::PublishSubscribe::NAME;

type Lend = sinew::LendMut<false, 0>;
type LendMutual = sinew::LendMut<true, 0>;

/// One held against another one, and what the ratio should be at most.
pub struct Pair {
    pub one: &'static str,
    pub over: &'static str,
    pub aim: Option<f64>,
    pub what: &'static str,
}

const fn pair<One: End, Over: End>(aim: Option<f64>, what: &'static str) -> Pair {
    Pair {
        one: One::NAME,
        over: Over::NAME,
        aim,
        what,
    }
}

const CLEARING: &str = "as shipped nothing is cleared per message, but when the peer changes: this is what clearing after each use would cost";

/// Calls, against what they have to be measured by.
#[rustfmt::skip]
pub const PAIRS: &[Pair] = &[
    pair::<sinew::ScalarCall, reference::Bare>(Some(1.2), "five words each way, checked, against 64 bytes that are not"),
    pair::<Lend, sinew::ScalarCall>(Some(1.5), "53 bytes lent and changed, trust none, against five words"),
    pair::<LendMutual, sinew::ScalarCall>(Some(1.5), "53 bytes lent and changed, trust mutual, against five words"),
    pair::<sinew::LendMut<false, 53>, Lend>(None, CLEARING),
    pair::<sinew::LendMut<false, 4096>, Lend>(None, CLEARING),
    pair::<sinew::LendMut<true, 53>, LendMutual>(None, CLEARING),
    pair::<sinew::LendMut<true, 4096>, LendMutual>(None, CLEARING),
];

/// Everybody.
pub const ALL: &[Contender] = &[
    Contender::of::<reference::Ring>(),
    Contender::of::<reference::InPlace>(),
    Contender::of::<sinew::Queue<false>>(),
    Contender::of::<sinew::Queue<true>>(),
    Contender::of::<sinew::InPlace>(),
    Contender::of::<reference::Bare>(),
    Contender::of::<sinew::ScalarCall>(),
    Contender::of::<Lend>(),
    Contender::of::<LendMutual>(),
    Contender::of::<sinew::LendMut<false, 53>>(),
    Contender::of::<sinew::LendMut<false, 4096>>(),
    Contender::of::<sinew::LendMut<true, 53>>(),
    Contender::of::<sinew::LendMut<true, 4096>>(),
    Contender::of::<sinew::TypedCall>(),
    Contender::of::<iceoryx::PublishSubscribe>(),
    Contender::of::<pipe::Pipes>(),
    Contender::of::<seqpacket::Seqpacket>(),
];
