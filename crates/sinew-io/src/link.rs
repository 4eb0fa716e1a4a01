//! What a blocking driver needs beyond the seam: both halves at once, and a way to sleep.

use std::task::Waker;
use std::time::Duration;

use sinew::frame::FrameStats;
use sinew::link::{Rx, Tx};

/// What a driver waits for, besides a packet and its waker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Want {
    /// Nothing more.
    #[default]
    Packet,
    /// A place to send from, which was refused as `Full`.
    Place,
    /// Everything committed has left; see [`Link::is_idle`].
    Idle,
}

/// Both halves of a link, and the way in which a thread sleeps on it.
pub trait Link {
    /// The sending half.
    type Tx: Tx + ?Sized;
    /// The receiving half.
    type Rx: Rx + ?Sized;

    /// The halves.
    fn halves(&mut self) -> (&mut Self::Tx, &mut Self::Rx);

    /// Sleeps until there may be something to do: a packet, the end of the link, what is wanted,
    /// a call of [`Link::waker`]'s waker since the last `wait`, or the time-out (`None`: for
    /// ever). It may return early; the caller looks again.
    fn wait(&mut self, want: Want, timeout: Option<Duration>);

    /// Wakes [`Link::wait`] from anywhere.
    fn waker(&mut self) -> Waker;

    /// Whether everything committed has left this side. What is urgent then waits behind nothing
    /// but the carrier itself, so this is the moment to send a piece of a bulk stream.
    fn is_idle(&self) -> bool {
        true
    }

    /// What has passed so far.
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    /// Whether a lost link comes back by itself: [`Tx::place`] is then `Full` meanwhile.
    fn revives(&self) -> bool {
        false
    }

    /// Tells a link that comes back that it was found closed.
    fn lost(&mut self) {}
}

/// What has passed over a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Bytes received, framing and noise included.
    pub bytes_in: u64,
    /// Bytes sent, framing included.
    pub bytes_out: u64,
    /// What became of the bytes received; on a packet carrier only `frames` and `too_large`.
    /// Bytes without a good frame on a serial line: the speed is wrong, or there is no framing.
    pub frames: FrameStats,
    /// Packets for this side that its kernel dropped, because they came faster than they were read.
    /// Only a datagram carrier does so.
    pub dropped: u64,
}

impl Traffic {
    /// Every counter with its name, for tools.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let frames = &self.frames;
        [
            ("bytes_in", self.bytes_in),
            ("bytes_out", self.bytes_out),
            ("packets_in", frames.frames.into()),
            ("bad_escape", frames.bad_escape.into()),
            ("too_short", frames.too_short.into()),
            ("bad_crc", frames.bad_crc.into()),
            ("other_address", frames.other_address.into()),
            ("too_large", frames.too_large.into()),
            ("noise_bytes", frames.noise_bytes.into()),
            ("dropped", self.dropped),
        ]
        .into_iter()
    }

    /// The sum of what passed over one link and then over another.
    pub(crate) fn and(&self, then: &Traffic) -> Traffic {
        let (a, b) = (&self.frames, &then.frames);
        Traffic {
            bytes_in: self.bytes_in.wrapping_add(then.bytes_in),
            bytes_out: self.bytes_out.wrapping_add(then.bytes_out),
            frames: FrameStats {
                frames: a.frames.wrapping_add(b.frames),
                bad_escape: a.bad_escape.wrapping_add(b.bad_escape),
                too_short: a.too_short.wrapping_add(b.too_short),
                bad_crc: a.bad_crc.wrapping_add(b.bad_crc),
                other_address: a.other_address.wrapping_add(b.other_address),
                too_large: a.too_large.wrapping_add(b.too_large),
                noise_bytes: a.noise_bytes.wrapping_add(b.noise_bytes),
            },
            dropped: self.dropped.wrapping_add(then.dropped),
        }
    }
}

impl<L: Link + ?Sized> Link for Box<L> {
    type Tx = L::Tx;
    type Rx = L::Rx;

    fn halves(&mut self) -> (&mut Self::Tx, &mut Self::Rx) {
        (**self).halves()
    }

    fn wait(&mut self, want: Want, timeout: Option<Duration>) {
        (**self).wait(want, timeout);
    }

    fn waker(&mut self) -> Waker {
        (**self).waker()
    }

    fn is_idle(&self) -> bool {
        (**self).is_idle()
    }

    fn traffic(&self) -> Traffic {
        (**self).traffic()
    }

    fn revives(&self) -> bool {
        (**self).revives()
    }

    fn lost(&mut self) {
        (**self).lost();
    }
}

/// A link of any kind, as an endpoint opens it.
pub type AnyLink = Box<dyn Link<Tx = dyn Tx + Send, Rx = dyn Rx + Send> + Send>;

/// Forgets which kind a link is of.
pub(crate) struct Erased<L>(pub L);

impl<L> Link for Erased<L>
where
    L: Link,
    L::Tx: Send + Sized + 'static,
    L::Rx: Send + Sized + 'static,
{
    type Tx = dyn Tx + Send;
    type Rx = dyn Rx + Send;

    fn halves(&mut self) -> (&mut Self::Tx, &mut Self::Rx) {
        let (tx, rx) = self.0.halves();
        (tx, rx)
    }

    fn wait(&mut self, want: Want, timeout: Option<Duration>) {
        self.0.wait(want, timeout);
    }

    fn waker(&mut self) -> Waker {
        self.0.waker()
    }

    fn is_idle(&self) -> bool {
        self.0.is_idle()
    }

    fn traffic(&self) -> Traffic {
        self.0.traffic()
    }

    fn revives(&self) -> bool {
        self.0.revives()
    }

    fn lost(&mut self) {
        self.0.lost();
    }
}

/// Owned halves of a link, for drivers that arm them.
pub struct Halves {
    /// The sending half.
    pub tx: Box<dyn Tx + Send>,
    /// The receiving half.
    pub rx: Box<dyn Rx + Send>,
    /// What lives as long as the link, to be dropped after the halves: a child process.
    pub keep: Option<Box<dyn Send>>,
}
