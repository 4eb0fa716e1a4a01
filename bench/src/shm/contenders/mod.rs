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

/// Everybody.
pub const ALL: &[Contender] = &[
    Contender::of::<reference::Ring>(),
    Contender::of::<reference::InPlace>(),
    Contender::of::<sinew::Queue<false>>(),
    Contender::of::<sinew::Queue<true>>(),
    Contender::of::<sinew::InPlace>(),
    Contender::of::<sinew::ScalarCall>(),
    Contender::of::<sinew::TypedCall>(),
    Contender::of::<iceoryx::PublishSubscribe>(),
    Contender::of::<pipe::Pipes>(),
    Contender::of::<seqpacket::Seqpacket>(),
];
