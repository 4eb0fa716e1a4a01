//! A receiving half over a descriptor: its thread sleeps in poll(2), with nobody in between.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Weak;
use std::task::Waker;
use std::time::Duration;

use sinew::link::{RecvError, Rx};

use super::{Keep, Receive};
use crate::link::Traffic;
use crate::out::Patient;
use crate::sleep::{Sleeper, reading};

/// A half that has something to receive when its descriptor says so.
pub(crate) trait Readable: Rx {
    fn fd(&self) -> BorrowedFd<'_>;
    fn traffic(&self) -> Traffic;
}

/// Sleeps on a receiving half.
pub(crate) struct Polled<R> {
    rx: R,
    sleeper: Sleeper,
    /// The sending half, where it may have to be given up while this one sleeps.
    sender: Option<Weak<dyn Patient>>,
    _keep: Option<Keep>,
}

impl<R> Polled<R> {
    pub(crate) fn new(rx: R) -> Polled<R> {
        Polled {
            rx,
            sleeper: Sleeper::default(),
            sender: None,
            _keep: None,
        }
    }

    pub(crate) fn watching(self, sender: Weak<dyn Patient>) -> Polled<R> {
        Polled {
            sender: Some(sender),
            ..self
        }
    }

    pub(crate) fn keeping(self, keep: Option<Keep>) -> Polled<R> {
        Polled {
            _keep: keep,
            ..self
        }
    }
}

impl<R: Readable> Receive for Polled<R> {
    fn wait(&mut self, timeout: Option<Duration>) {
        let sender = self.sender.as_ref().and_then(Weak::upgrade);
        let timeout = sender.map_or(timeout, |sender| sender.limit(timeout));
        let fd = self.rx.fd();
        self.sleeper.sleep(reading(&fd), None, timeout);
    }

    fn waker(&mut self) -> Waker {
        self.sleeper.waker()
    }

    fn traffic(&self) -> Traffic {
        self.rx.traffic()
    }
}

impl<R: Readable> Rx for Polled<R> {
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError> {
        self.rx.peek()
    }

    fn release(&mut self) {
        self.rx.release();
    }

    fn arm(&mut self, waker: &Waker) {
        self.rx.arm(waker);
    }
}

impl Readable for crate::stream::StreamRx {
    fn fd(&self) -> BorrowedFd<'_> {
        self.inp.inner().as_fd()
    }

    fn traffic(&self) -> Traffic {
        self.traffic()
    }
}

impl Readable for crate::bytes::ByteRx {
    fn fd(&self) -> BorrowedFd<'_> {
        self.inp.inner().as_fd()
    }

    fn traffic(&self) -> Traffic {
        self.traffic()
    }
}

impl Readable for crate::udp::UdpRx {
    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.inner().as_fd()
    }

    fn traffic(&self) -> Traffic {
        self.traffic()
    }
}
