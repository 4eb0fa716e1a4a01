//! The rules of links that several contexts share.

use std::boxed::Box;
use std::format;
use std::string::String;
use std::sync::mpsc;
use std::thread;
use std::vec::Vec;

use super::tools::{Alarm, ensure, expect, fill, pattern, receive, take, try_send};
use super::{Checked, End, Harness, Outcome, Ports, Rule};
use crate::link::{Port, SendError, Tx};

pub(super) const RULES: &[Rule] = &[
    ("port_sends_whole_packets", whole),
    ("port_leaves_a_place_for_the_driver", leaves_one),
    ("bulk_port_leaves_places_for_urgent_packets", leaves_more),
    ("port_holds_no_lock_while_it_fills", no_lock),
    (
        "place_that_comes_back_wakes_an_armed_port",
        place_back_wakes,
    ),
    ("armed_port_is_woken_when_the_peer_goes", gone_wakes),
    ("ring_reaches_the_own_driver", ring),
    ("ports_and_driver_send_at_the_same_time", together),
];

const NONE: Outcome = Ok(Checked::NotOffered("the link has no ports"));
const NEVER_FULL: Outcome = Ok(Checked::NotOffered("the link is never full"));

/// A fresh link whose first end has ports.
fn connect(h: &mut dyn Harness) -> Option<(Box<dyn Tx + Send>, Ports, EndB)> {
    let (a, b) = h.connect();
    Some((a.tx, a.ports?, EndB { _rx: a.rx, b }))
}

/// The second end, and what must live as long.
struct EndB {
    _rx: Box<dyn crate::link::Rx + Send>,
    b: End,
}

fn port_send(port: &dyn Port, packet: &[u8]) -> Result<(), SendError> {
    port.send(
        packet.len(),
        &mut |place| match place.get_mut(..packet.len()) {
            Some(place) => {
                place.copy_from_slice(packet);
                packet.len()
            }
            None => 0,
        },
    )
}

fn whole(h: &mut dyn Harness) -> Outcome {
    let Some((mut tx, ports, mut end)) = connect(h) else {
        return NONE;
    };
    let port = &*ports.urgent;
    let mtu = tx.mtu();
    ensure!(
        port.mtu() == mtu,
        "the port's mtu is {}, the link's {mtu}",
        port.mtu()
    );
    for (seq, len) in [1, 2, mtu / 2 + 1, mtu].into_iter().enumerate() {
        for _ in 0..50 {
            let got = port.send(1, &mut |_| 0);
            ensure!(got == Ok(()), "sending nothing: {got:?}");
        }
        let mut filled = false;
        let got = port.send(mtu + 1, &mut |_| {
            filled = true;
            1
        });
        ensure!(
            got == Err(SendError::TooLarge) && !filled,
            "above the mtu: {got:?}"
        );
        let got = port_send(port, &pattern(seq, len));
        ensure!(got == Ok(()), "sending {len} bytes: {got:?}");
        expect(h, &mut *end.b.rx, &pattern(seq, len))?;
        let got = try_send(&mut *tx, &pattern(seq, 1));
        ensure!(got == Ok(()), "the driver sends: {got:?}");
        expect(h, &mut *end.b.rx, &pattern(seq, 1))?;
    }
    Ok(Checked::Holds)
}

fn leaves_one(h: &mut dyn Harness) -> Outcome {
    if !h.fills() {
        return NEVER_FULL;
    }
    for bulk in [false, true] {
        let Some((mut tx, ports, _end)) = connect(h) else {
            return NONE;
        };
        let port = if bulk { &*ports.bulk } else { &*ports.urgent };
        let sent = fill(h, |seq| port_send(port, &pattern(seq, 1)))?;
        ensure!(sent > 0, "the port never sends");
        let got = try_send(&mut *tx, &[1]);
        ensure!(got == Ok(()), "the driver meets {got:?}");
    }
    Ok(Checked::Holds)
}

fn leaves_more(h: &mut dyn Harness) -> Outcome {
    if !h.fills() {
        return NEVER_FULL;
    }
    let Some((mut tx, ports, _end)) = connect(h) else {
        return NONE;
    };
    fill(h, |seq| port_send(&*ports.bulk, &pattern(seq, 1)))?;
    let got = port_send(&*ports.urgent, &[1]);
    ensure!(got == Ok(()), "an urgent packet meets {got:?}");
    let got = try_send(&mut *tx, &[1]);
    ensure!(got == Ok(()), "after it, the driver meets {got:?}");
    Ok(Checked::Holds)
}

fn no_lock(h: &mut dyn Harness) -> Outcome {
    let Some((_tx, ports, mut end)) = connect(h) else {
        return NONE;
    };
    let port = &*ports.urgent;
    let patience = h.patience();
    let mut inner = Err(String::from("another context cannot send while one fills"));
    thread::scope(|scope| {
        let outer = port.send(1, &mut |place| {
            place[0] = 1;
            let (done, wait) = mpsc::channel();
            scope.spawn(move || done.send(port_send(port, &[2])));
            if let Ok(got) = wait.recv_timeout(patience) {
                inner = got.map_err(|refused| format!("inner: {refused:?}"));
            }
            1
        });
        outer.map_err(|refused| format!("outer: {refused:?}"))
    })?;
    inner?;
    let first = receive(h, &mut *end.b.rx).map_err(|nothing| format!("{nothing:?}"))?;
    let second = receive(h, &mut *end.b.rx).map_err(|nothing| format!("{nothing:?}"))?;
    ensure!(
        first == [2] && second == [1],
        "{first:?} came, then {second:?}"
    );
    Ok(Checked::Holds)
}

fn place_back_wakes(h: &mut dyn Harness) -> Outcome {
    let Some((_tx, ports, mut end)) = connect(h) else {
        return NONE;
    };
    let patience = h.patience();
    for port in [&*ports.bulk, &*ports.urgent] {
        let (alarm, waker) = Alarm::new();
        port.arm(&waker);
        ensure!(
            alarm.wait(patience, || h.settle()),
            "a place is free, and the port not woken"
        );
        if !h.fills() {
            return NEVER_FULL;
        }
        fill(h, |seq| port_send(port, &pattern(seq, 1)))?;
        let (alarm, waker) = Alarm::new();
        port.arm(&waker);
        let woken = alarm.wait(patience, || {
            while matches!(take(&mut *end.b.rx), Ok(Some(_))) {}
            h.settle();
        });
        ensure!(woken, "all was read, and the armed port is not woken");
    }
    Ok(Checked::Holds)
}

fn gone_wakes(h: &mut dyn Harness) -> Outcome {
    if !h.sees_hang_up() || !h.fills() {
        return Ok(Checked::NotOffered(
            "the link does not see the peer go, or is never full",
        ));
    }
    let Some((_tx, ports, end)) = connect(h) else {
        return NONE;
    };
    let port = &*ports.urgent;
    fill(h, |seq| port_send(port, &pattern(seq, 1)))?;
    let (alarm, waker) = Alarm::new();
    port.arm(&waker);
    h.hang_up(end.b);
    let patience = h.patience();
    ensure!(
        alarm.wait(patience, || h.settle()),
        "the armed port is not woken"
    );
    for _ in 0..1000 {
        match port_send(port, &[1]) {
            Err(SendError::Closed) => return Ok(Checked::Holds),
            Err(SendError::TooLarge) => return Err(String::from("TooLarge after the peer went")),
            Ok(()) | Err(SendError::Full) => h.settle(),
        }
    }
    Err(String::from("the port never says Closed"))
}

fn ring(h: &mut dyn Harness) -> Outcome {
    let Some((_tx, mut ports, mut end)) = connect(h) else {
        return NONE;
    };
    while (ports.rung)() {}
    for port in [&*ports.urgent, &*ports.bulk] {
        port.ring();
        ensure!((ports.rung)(), "the driver does not see the ring");
        ensure!(!(ports.rung)(), "one ring is seen twice");
    }
    ensure!(matches!(end.b.rx.peek(), Ok(None)), "a ring sent a packet");
    Ok(Checked::Holds)
}

fn together(h: &mut dyn Harness) -> Outcome {
    const EACH: u8 = if cfg!(miri) { 10 } else { 250 };
    if h.may_lose() {
        return Ok(Checked::NotOffered("the carrier may lose"));
    }
    let Some((mut tx, ports, mut end)) = connect(h) else {
        return NONE;
    };
    let patience = h.patience();
    let wait = move |arm: &mut dyn FnMut(&std::task::Waker)| {
        let (alarm, waker) = Alarm::new();
        arm(&waker);
        alarm.wait(patience, || ())
    };
    thread::scope(|scope| {
        let senders: Vec<_> = [&*ports.urgent, &*ports.bulk]
            .into_iter()
            .zip(1u8..)
            .map(|(port, id)| {
                scope.spawn(move || {
                    (0..EACH).all(|seq| {
                        while let Err(refused) = port_send(port, &[id, seq]) {
                            if refused != SendError::Full || !wait(&mut |waker| port.arm(waker)) {
                                return false;
                            }
                        }
                        true
                    })
                })
            })
            .collect();
        let driver = scope.spawn(move || {
            (0..EACH)
                .all(|seq| {
                    while let Err(refused) = try_send(&mut *tx, &[0, seq]) {
                        if refused != SendError::Full || !wait(&mut |waker| tx.arm(waker)) {
                            return false;
                        }
                    }
                    true
                })
                .then_some(tx)
        });
        let mut next = [0u8; 3];
        let mut received = Ok(Checked::Holds);
        for _ in 0..3 * usize::from(EACH) {
            let got = receive(h, &mut *end.b.rx);
            let expected = match got.as_deref() {
                Ok(&[id, seq]) => next.get_mut(usize::from(id)).filter(|next| **next == seq),
                _ => None,
            };
            let Some(expected) = expected else {
                received = Err(format!("after {next:?} came {got:?}"));
                break;
            };
            *expected += 1;
        }
        // Gone, so that nobody waits for it.
        drop(end);
        let all_sent = senders
            .into_iter()
            .all(|sender| matches!(sender.join(), Ok(true)));
        let driver_sent = matches!(driver.join(), Ok(Some(_)));
        let received = received?;
        ensure!(
            all_sent && driver_sent,
            "a sender was refused or never woken"
        );
        Ok(received)
    })
}
