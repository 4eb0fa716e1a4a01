//! A channel of a domain link passes the suite of the seam, with and without trust.
#![cfg(all(feature = "shm", feature = "conformance"))]

use std::sync::Arc;

use sinew::link::conformance::{End, Harness, Ports, run};
use sinew::link::domain::DomainPort;
use sinew_shm::domain::{
    Channel, Config, Incoming, OpenError, Options, Outgoing, Pool, Receiver, Sender, Staged,
};
use sinew_shm::local::{self, LocalEnd};
use sinew_shm::{Bell, StdLock};

const BLOCKS: u16 = 8;
const SIZE: u32 = 64;
const ID: u16 = 7;
/// A second channel, so that the first is not the whole link.
const LINK: Config = Config::new(&[
    Channel::new(1, "other", Pool::new(2, 32)),
    Channel::new(ID, "this", Pool::new(BLOCKS, SIZE)).priority(3),
]);

type Pair = Result<(LocalEnd, LocalEnd), OpenError>;

struct Domain {
    config: Config<'static>,
    pair: fn(Config<'static>, Options) -> Pair,
    is_trusted: bool,
    /// Packets are written into a buffer, and copied from there.
    is_staged: bool,
}

fn end(end: &LocalEnd, is_staged: bool) -> End {
    let bell = Arc::new(Bell::<StdLock>::new());
    let sender = Sender::new(end, ID).unwrap();
    let port = |reserve| Box::new(DomainPort::new(&sender, reserve, bell.clone()));
    let ports = Ports {
        urgent: port(1),
        bulk: port(3),
        rung: Box::new({
            let bell = bell.clone();
            move || bell.take()
        }),
    };
    let buffer = vec![0; if end.is_trusted() { 0 } else { SIZE as usize }];
    let receiver = Receiver::new(end, ID).unwrap();
    End {
        tx: match is_staged {
            true => Box::new(Staged::new(sender, [0; SIZE as usize]).expect("room for a block")),
            false => Box::new(Outgoing::new(sender)),
        },
        rx: Box::new(Incoming::new(receiver, buffer).expect("room for a block")),
        ports: Some(ports),
    }
}

impl Harness for Domain {
    fn connect(&mut self) -> (End, End) {
        let (first, second) = (self.pair)(self.config, Options::default()).unwrap();
        assert_eq!(first.is_trusted(), self.is_trusted);
        assert!(first.check_books() && second.check_books());
        (end(&first, self.is_staged), end(&second, self.is_staged))
    }
}

fn passes(mut harness: Domain) {
    let report = run(&mut harness);
    assert!(report.not_offered.is_empty(), "{report:?}");
}

#[test]
fn channel_inside_a_program_passes_every_rule() {
    passes(Domain {
        config: LINK,
        pair: local::pair,
        is_trusted: true,
        is_staged: false,
    });
}

#[test]
fn channel_to_a_peer_that_is_not_trusted_passes_every_rule() {
    passes(Domain {
        config: LINK,
        pair: local::pair_untrusted,
        is_trusted: false,
        is_staged: false,
    });
}

#[test]
fn channel_on_memory_that_takes_words_alone_passes_every_rule() {
    passes(Domain {
        config: LINK,
        pair: local::pair_untrusted,
        is_trusted: false,
        is_staged: true,
    });
}

#[test]
#[cfg_attr(
    miri,
    ignore = "the code is that of the first test, and this takes a minute"
)]
fn channel_to_a_trusted_peer_passes_every_rule() {
    passes(Domain {
        config: LINK.mutual(),
        pair: local::pair_untrusted,
        is_trusted: true,
        is_staged: false,
    });
}
