//! The rules of the two halves.

use std::format;
use std::string::String;
use std::thread;
use std::vec::Vec;

use super::tools::{
    Alarm, Nothing, await_packet, deliver, ensure, expect, fill, pattern, receive, same, send,
    take, try_send,
};
use super::{Checked, End, Harness, Outcome, Rule};
use crate::link::{RecvError, SendError};

pub(super) const RULES: &[Rule] = &[
    ("packets_arrive_whole_with_their_exact_length", exact_length),
    ("packets_arrive_in_order", order),
    ("min_above_mtu_is_too_large", too_large),
    ("place_is_the_same_until_commit", same_place),
    ("commit_of_nothing_sends_nothing", commit_nothing),
    ("commit_beyond_the_place_is_refused", commit_beyond),
    ("packet_wakes_an_armed_receiver", packet_wakes),
    (
        "arm_wakes_at_once_where_something_is_there",
        arm_looks_again,
    ),
    ("peek_gives_the_same_packet_until_release", same_packet),
    ("release_without_a_peeked_packet_does_nothing", idle_release),
    (
        "place_that_comes_back_wakes_an_armed_sender",
        place_back_wakes,
    ),
    ("full_link_loses_nothing", full_loses_nothing),
    ("flush_only_sends_what_was_committed", flush),
    ("threads_lose_no_wake_up", threads),
    ("rest_is_readable_after_the_peer_is_gone", rest_then_closed),
    (
        "armed_receiver_is_woken_when_the_peer_goes",
        gone_wakes_receiver,
    ),
    (
        "armed_sender_is_woken_when_the_peer_goes",
        gone_wakes_sender,
    ),
];

fn exact_length(h: &mut dyn Harness) -> Outcome {
    let (mut a, mut b) = h.connect();
    let mtu = a.tx.mtu();
    ensure!(mtu > 0, "the mtu is 0");
    let mut sizes: Vec<_> = [1, 2, 3, 4, 5, 8, 64, 255, 256, mtu / 2, mtu - 1, mtu]
        .into_iter()
        .collect();
    sizes.retain(|&size| (1..=mtu).contains(&size));
    for (seq, len) in sizes.into_iter().enumerate() {
        deliver(h, &mut *a.tx, &mut *b.rx, &pattern(seq, len))?;
        // Content that framing has to escape.
        deliver(
            h,
            &mut *a.tx,
            &mut *b.rx,
            &[0x7e, 0x7d, 0, 0xff].repeat(len)[..len],
        )?;
    }
    Ok(Checked::Holds)
}

fn order(h: &mut dyn Harness) -> Outcome {
    let (mut a, mut b) = h.connect();
    for round in 0..20u8 {
        let mut sent = Vec::new();
        // Few: a full link has a rule of its own.
        for seq in 0..3u8 {
            match try_send(&mut *a.tx, &[round, seq]) {
                Ok(()) => sent.push(seq),
                Err(SendError::Full) => break,
                Err(other) => return Err(format!("sending: {other:?}")),
            }
        }
        let mut next = sent.into_iter();
        while next.len() > 0 {
            match receive(h, &mut *b.rx) {
                Ok(got) if got.len() == 2 && got[0] == round => {
                    let skipped = next.by_ref().position(|seq| seq == got[1]);
                    let lost = h.may_lose() && skipped.is_some();
                    ensure!(
                        skipped == Some(0) || lost,
                        "packet {} is out of order",
                        got[1]
                    );
                }
                Err(Nothing::NeverCame) if h.may_lose() => break,
                other => return Err(format!("instead of the next packet: {other:?}")),
            }
        }
    }
    Ok(Checked::Holds)
}

fn same_place(h: &mut dyn Harness) -> Outcome {
    let (mut a, mut b) = h.connect();
    let mtu = a.tx.mtu();
    for seq in 0..5 {
        let packet = pattern(seq, mtu);
        let place =
            a.tx.place(1)
                .map_err(|refused| format!("place: {refused:?}"))?;
        ensure!(!place.is_empty(), "the place is smaller than asked");
        let first = place.len().min(mtu);
        place[..first].copy_from_slice(&packet[..first]);
        ensure!(a.tx.place(mtu + 1).is_err(), "a place above the mtu");
        a.tx.flush();
        let place =
            a.tx.place(mtu)
                .map_err(|refused| format!("place again: {refused:?}"))?;
        ensure!(place.len() >= mtu, "the place is smaller than asked");
        ensure!(
            place[..first] == packet[..first],
            "what was written is not there any more"
        );
        place[..mtu].copy_from_slice(&packet);
        a.tx.commit(mtu)
            .map_err(|refused| format!("commit: {refused:?}"))?;
        a.tx.flush();
        if !h.may_lose() {
            expect(h, &mut *b.rx, &packet)?;
        }
    }
    Ok(Checked::Holds)
}

fn too_large(h: &mut dyn Harness) -> Outcome {
    let (mut a, mut b) = h.connect();
    let mtu = a.tx.mtu();
    for min in [mtu + 1, usize::MAX] {
        let refused = a.tx.place(min).map(|place| place.len());
        ensure!(
            refused == Err(SendError::TooLarge),
            "place({min}): {refused:?}"
        );
    }
    deliver(h, &mut *a.tx, &mut *b.rx, &pattern(1, mtu))?;
    Ok(Checked::Holds)
}

fn commit_nothing(h: &mut dyn Harness) -> Outcome {
    let (mut a, mut b) = h.connect();
    // Often, so that a place that does not come back is missed.
    for _ in 0..1000 {
        a.tx.place(1)
            .map_err(|refused| format!("place: {refused:?}"))?[0] = 0xEE;
        a.tx.commit(0)
            .map_err(|refused| format!("commit(0): {refused:?}"))?;
        a.tx.flush();
    }
    deliver(h, &mut *a.tx, &mut *b.rx, &pattern(2, 3))?;
    Ok(Checked::Holds)
}

fn commit_beyond(h: &mut dyn Harness) -> Outcome {
    let (mut a, mut b) = h.connect();
    let got = a.tx.commit(1);
    ensure!(
        got == Err(SendError::TooLarge),
        "commit without a place: {got:?}"
    );
    let len =
        a.tx.place(1)
            .map_err(|refused| format!("place: {refused:?}"))?
            .len();
    let got = a.tx.commit(len + 1);
    ensure!(
        got == Err(SendError::TooLarge),
        "commit beyond the place: {got:?}"
    );
    a.tx.flush();
    deliver(h, &mut *a.tx, &mut *b.rx, &pattern(3, 2))?;
    let got = a.tx.commit(1);
    ensure!(
        got == Err(SendError::TooLarge),
        "second commit of one place: {got:?}"
    );
    deliver(h, &mut *a.tx, &mut *b.rx, &pattern(4, 2))?;
    Ok(Checked::Holds)
}

/// Sends two packets and waits for the first; false where the carrier lost it.
fn two_packets(h: &mut dyn Harness, a: &mut End, b: &mut End) -> Result<bool, String> {
    send(h, &mut *a.tx, &pattern(1, 2))?;
    send(h, &mut *a.tx, &pattern(2, 3))?;
    match await_packet(h, &mut *b.rx) {
        Err(_) if h.may_lose() => Ok(false),
        done => done.map(|()| true),
    }
}

fn same_packet(h: &mut dyn Harness) -> Outcome {
    let (mut a, mut b) = h.connect();
    if !two_packets(h, &mut a, &mut b)? {
        return Ok(Checked::NotOffered("the carrier lost the packets"));
    }
    for _ in 0..3 {
        match b.rx.peek() {
            Ok(Some(got)) => same(got, &pattern(1, 2))?,
            other => return Err(format!("peek: {other:?}")),
        }
    }
    b.rx.release();
    if !h.may_lose() {
        expect(h, &mut *b.rx, &pattern(2, 3))?;
    }
    Ok(Checked::Holds)
}

fn idle_release(h: &mut dyn Harness) -> Outcome {
    let (mut a, mut b) = h.connect();
    b.rx.release();
    if !two_packets(h, &mut a, &mut b)? {
        return Ok(Checked::NotOffered("the carrier lost the packets"));
    }
    b.rx.release();
    expect(h, &mut *b.rx, &pattern(1, 2))?;
    b.rx.release();
    if h.may_lose() {
        while matches!(take(&mut *b.rx), Ok(Some(_))) {}
    } else {
        expect(h, &mut *b.rx, &pattern(2, 3))?;
    }
    b.rx.release();
    deliver(h, &mut *a.tx, &mut *b.rx, &pattern(3, 1))?;
    Ok(Checked::Holds)
}

fn packet_wakes(h: &mut dyn Harness) -> Outcome {
    for seq in 0..5 {
        let (mut a, mut b) = h.connect();
        ensure!(matches!(b.rx.peek(), Ok(None)), "a fresh link is not empty");
        let (alarm, waker) = Alarm::new();
        b.rx.arm(&waker);
        let patience = h.patience();
        let mut woken = false;
        for _ in 0..if h.may_lose() { 5 } else { 1 } {
            try_send(&mut *a.tx, &pattern(seq, 2)).map_err(|refused| format!("{refused:?}"))?;
            woken = woken || alarm.wait(patience, || h.settle());
        }
        ensure!(woken, "the armed receiver is not woken");
        ensure!(
            matches!(b.rx.peek(), Ok(Some(_))),
            "woken, and nothing is there"
        );
    }
    Ok(Checked::Holds)
}

fn arm_looks_again(h: &mut dyn Harness) -> Outcome {
    let (mut a, mut b) = h.connect();
    let patience = h.patience();
    let (alarm, waker) = Alarm::new();
    a.tx.arm(&waker);
    ensure!(
        alarm.wait(patience, || h.settle()),
        "a place is free, and the sender is not woken"
    );
    let _ =
        a.tx.place(1)
            .map_err(|refused| format!("place: {refused:?}"))?;
    let (alarm, waker) = Alarm::new();
    a.tx.arm(&waker);
    ensure!(
        alarm.wait(patience, || h.settle()),
        "a place is in hand, and nobody is woken"
    );
    let _ = a.tx.commit(0);
    deliver(h, &mut *a.tx, &mut *b.rx, &[1])?;
    send(h, &mut *a.tx, &[2])?;
    if await_packet(h, &mut *b.rx).is_err() && h.may_lose() {
        return Ok(Checked::NotOffered("the carrier lost the packets"));
    }
    ensure!(
        matches!(b.rx.peek(), Ok(Some(_))),
        "the second packet is not there"
    );
    let (alarm, waker) = Alarm::new();
    b.rx.arm(&waker);
    ensure!(
        alarm.wait(patience, || h.settle()),
        "a packet is there, and nobody is woken"
    );
    Ok(Checked::Holds)
}

fn place_back_wakes(h: &mut dyn Harness) -> Outcome {
    if !h.fills() {
        return Ok(Checked::NotOffered("the link is never full"));
    }
    let (mut a, mut b) = h.connect();
    let len = 8.min(a.tx.mtu());
    fill(h, |seq| try_send(&mut *a.tx, &pattern(seq, len)))?;
    let (alarm, waker) = Alarm::new();
    a.tx.arm(&waker);
    let patience = h.patience();
    let woken = alarm.wait(patience, || {
        while matches!(take(&mut *b.rx), Ok(Some(_))) {}
        h.settle();
    });
    ensure!(woken, "all was read, and the armed sender is not woken");
    Ok(Checked::Holds)
}

fn full_loses_nothing(h: &mut dyn Harness) -> Outcome {
    if !h.fills() || h.may_lose() {
        return Ok(Checked::NotOffered("the link is never full, or may lose"));
    }
    let (mut a, mut b) = h.connect();
    let len = 8.min(a.tx.mtu());
    for _ in 0..2 {
        let sent = fill(h, |seq| try_send(&mut *a.tx, &pattern(seq, len)))?;
        ensure!(sent > 0, "a fresh link is full");
        for seq in 0..sent {
            expect(h, &mut *b.rx, &pattern(seq, len)).map_err(|e| format!("packet {seq}: {e}"))?;
        }
    }
    deliver(h, &mut *a.tx, &mut *b.rx, &pattern(99, 1))?;
    Ok(Checked::Holds)
}

fn flush(h: &mut dyn Harness) -> Outcome {
    let (mut a, mut b) = h.connect();
    for seq in 0..5 {
        a.tx.flush();
        a.tx.flush();
        if h.may_lose() {
            deliver(h, &mut *a.tx, &mut *b.rx, &pattern(seq, 3))?;
        } else {
            send(h, &mut *a.tx, &pattern(seq, 3))?;
            a.tx.flush();
            expect(h, &mut *b.rx, &pattern(seq, 3))?;
        }
    }
    Ok(Checked::Holds)
}

fn threads(h: &mut dyn Harness) -> Outcome {
    const COUNT: usize = if cfg!(miri) { 50 } else { 5000 };
    if h.may_lose() {
        return Ok(Checked::NotOffered("the carrier may lose"));
    }
    let (a, b) = h.connect();
    let (mut tx, mut rx) = (a.tx, b.rx);
    // Whoever fails goes, so that the other one does not wait for it.
    let _keep = (a.rx, b.tx);
    let len = |seq: usize, mtu: usize| 1 + seq % 8.min(mtu);
    let mtu = tx.mtu();
    let patience = h.patience();
    thread::scope(|scope| {
        let sender = scope.spawn(move || {
            for seq in 0..COUNT {
                while let Err(refused) = try_send(&mut *tx, &pattern(seq, len(seq, mtu))) {
                    ensure!(
                        refused == SendError::Full,
                        "sending packet {seq}: {refused:?}"
                    );
                    let (alarm, waker) = Alarm::new();
                    tx.arm(&waker);
                    ensure!(
                        alarm.wait(patience, || ()),
                        "the sender of {seq} is not woken"
                    );
                }
            }
            Ok(tx)
        });
        let received = (0..COUNT).try_for_each(|seq| {
            expect(h, &mut *rx, &pattern(seq, len(seq, mtu)))
                .map_err(|detail| format!("packet {seq}: {detail}"))
        });
        drop(rx);
        let sent = sender
            .join()
            .map_err(|_| String::from("the sender panicked"))?;
        received.and(sent.map(|_| Checked::Holds))
    })
}

fn rest_then_closed(h: &mut dyn Harness) -> Outcome {
    if !h.sees_hang_up() || h.may_lose() {
        return Ok(Checked::NotOffered(
            "the link does not see the peer go, or may lose",
        ));
    }
    for count in [0, 1, 3] {
        let (mut a, mut b) = h.connect();
        for seq in 0..count {
            send(h, &mut *a.tx, &pattern(seq, 3))?;
        }
        h.hang_up(a);
        for seq in 0..count {
            expect(h, &mut *b.rx, &pattern(seq, 3))?;
        }
        let end = receive(h, &mut *b.rx);
        ensure!(end == Err(Nothing::Closed), "after the rest: {end:?}");
        ensure!(
            b.rx.peek() == Err(RecvError::Closed),
            "closed, and open again"
        );
    }
    Ok(Checked::Holds)
}

fn gone_wakes_receiver(h: &mut dyn Harness) -> Outcome {
    if !h.sees_hang_up() {
        return Ok(Checked::NotOffered("the link does not see the peer go"));
    }
    let (a, mut b) = h.connect();
    let (alarm, waker) = Alarm::new();
    b.rx.arm(&waker);
    h.hang_up(a);
    let patience = h.patience();
    ensure!(
        alarm.wait(patience, || h.settle()),
        "the armed receiver is not woken"
    );
    let (alarm, waker) = Alarm::new();
    b.rx.arm(&waker);
    ensure!(
        alarm.wait(patience, || h.settle()),
        "armed after the peer went, and not woken"
    );
    Ok(Checked::Holds)
}

fn gone_wakes_sender(h: &mut dyn Harness) -> Outcome {
    if !h.sees_hang_up() || !h.fills() {
        return Ok(Checked::NotOffered(
            "the link does not see the peer go, or is never full",
        ));
    }
    let (mut a, b) = h.connect();
    fill(h, |seq| try_send(&mut *a.tx, &pattern(seq, 1)))?;
    let (alarm, waker) = Alarm::new();
    a.tx.arm(&waker);
    h.hang_up(b);
    let patience = h.patience();
    ensure!(
        alarm.wait(patience, || h.settle()),
        "the armed sender is not woken"
    );
    // A carrier may take a few more before it knows.
    for _ in 0..1000 {
        match try_send(&mut *a.tx, &[1]) {
            Err(SendError::Closed) => return Ok(Checked::Holds),
            Err(SendError::TooLarge) => return Err(String::from("TooLarge after the peer went")),
            Ok(()) | Err(SendError::Full) => {
                let (alarm, waker) = Alarm::new();
                a.tx.arm(&waker);
                ensure!(
                    alarm.wait(patience, || h.settle()),
                    "armed, and never woken"
                );
            }
        }
    }
    Err(String::from("sending never says Closed"))
}
