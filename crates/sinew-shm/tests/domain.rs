//! What a link between two domains promises, call by call.
#![cfg(not(loom))]

mod support;

use sinew_shm::domain::{
    Channel, Config, End, Lost, OpenError, Options, Pool, Predicate, Receiver, Refused, Role,
    Sender, Status,
};
use support::{memory, open, parts, up};

const ONE: Config = Config::new(&[Channel::new(1, "one", Pool::new(4, 100))]);

#[test]
fn two_sides_come_up_in_either_order() {
    let (first, second) = open(ONE);
    assert_eq!(first.look(0), Status::Waiting);
    assert_eq!(second.look(0), Status::Up);
    assert_eq!(first.look(0), Status::Up);
}

#[test]
fn packets_cross_both_ways_in_order() {
    let (first, second) = up(ONE);
    let (there, here) = (
        Sender::new(&first, 1).unwrap(),
        Receiver::new(&second, 1).unwrap(),
    );
    let (back, home) = (
        Sender::new(&second, 1).unwrap(),
        Receiver::new(&first, 1).unwrap(),
    );
    for round in 0..100u8 {
        there.send(&[round; 7]).unwrap();
        there.send(&[round; 100]).unwrap();
        let packet = here.receive().unwrap().unwrap();
        assert_eq!(packet.trusted().unwrap(), [round; 7]);
        drop(packet);
        let packet = here.receive().unwrap().unwrap();
        let mut copy = [0; 100];
        assert_eq!(packet.copy_to(&mut copy), Ok(100));
        assert_eq!(copy, [round; 100]);
        back.send(&copy[..3]).unwrap();
        drop(packet);
        assert_eq!(home.receive().unwrap().unwrap().len(), 3);
        assert!(here.receive().unwrap().is_none());
    }
}

#[test]
fn a_batch_is_seen_when_it_is_flushed() {
    let (near, far) = up(ONE);
    let (tx, rx) = (
        Sender::new(&near, 1).unwrap(),
        Receiver::new(&far, 1).unwrap(),
    );
    let flag = support::Flag::new();
    rx.arm_at(2, &flag.waker());
    for byte in 0..3 {
        tx.place(1)
            .unwrap()
            .publish(usize::from(byte == 2))
            .unwrap();
        assert!(rx.receive().unwrap().is_none());
        far.look(0);
        assert!(!flag.is_set());
    }
    tx.flush();
    far.look(0);
    assert!(flag.is_set());
    for len in [0, 0, 1] {
        assert_eq!(rx.receive().unwrap().unwrap().len(), len);
    }
    assert!(rx.receive().unwrap().is_none());
    assert!(near.check_books() && far.check_books());
}

#[test]
fn a_batch_is_shown_when_more_places_are_asked_for_in_vain() {
    let (near, far) = up(ONE);
    let (tx, rx) = (
        Sender::new(&near, 1).unwrap(),
        Receiver::new(&far, 1).unwrap(),
    );
    for _ in 0..4 {
        tx.place(1).unwrap().publish(1).unwrap();
    }
    assert!(rx.receive().unwrap().is_none());
    assert_eq!(tx.place(1).err(), Some(Refused::Full));
    assert_eq!(
        (0..5).filter(|_| rx.receive().unwrap().is_some()).count(),
        4
    );
    tx.place(1).unwrap().publish(1).unwrap();
    // Who waits for a place is not left with a batch that nobody sees.
    tx.arm(&support::Flag::new().waker());
    assert!(rx.receive().unwrap().is_some());
}

#[test]
fn a_batch_is_shown_before_the_link_closes() {
    let (near, far) = up(ONE);
    let (tx, rx) = (
        Sender::new(&near, 1).unwrap(),
        Receiver::new(&far, 1).unwrap(),
    );
    tx.place(1).unwrap().publish(1).unwrap();
    near.close();
    assert!(rx.receive().unwrap().is_some());
}

#[test]
fn a_packet_taken_in_one_step_is_copied_and_its_block_comes_back() {
    let (near, far) = up(ONE);
    let (tx, rx) = (
        Sender::new(&near, 1).unwrap(),
        Receiver::new(&far, 1).unwrap(),
    );
    let packet: Vec<u8> = (0..100).collect();
    for len in 0..=packet.len() {
        let mut copy = [0xEE; 100];
        assert_eq!(rx.receive_into(&mut copy), Ok(None));
        tx.send(&packet[..len]).unwrap();
        assert_eq!(rx.receive_into(&mut copy), Ok(Some(len)));
        assert_eq!(copy[..len], packet[..len]);
        assert!(copy[len..].iter().all(|byte| *byte == 0xEE));
    }
    // One that is cut says how long it was.
    tx.send(&packet).unwrap();
    let mut copy = [0xEE; 9];
    assert_eq!(rx.receive_into(&mut copy[..7]), Ok(Some(100)));
    assert_eq!(copy, [0, 1, 2, 3, 4, 5, 6, 0xEE, 0xEE]);
    assert_eq!(tx.send(&[0; 101]), Err(Refused::TooLarge));
    assert!(near.check_books() && far.check_books());
    assert!(near.is_drained() && far.is_drained());
}

#[test]
fn a_packet_taken_in_one_step_is_one_that_is_wanted() {
    let (near, far) = up(ONE);
    let (tx, rx) = (
        Sender::new(&near, 1).unwrap(),
        Receiver::new(&far, 1).unwrap(),
    );
    for byte in 1..=3 {
        tx.send(&[byte; 4]).unwrap();
    }
    // The sender does not know yet.
    rx.set_filter(Predicate::Matches {
        offset: 0,
        mask: 0xFF,
        value: 3,
    });
    let mut copy = [0; 4];
    assert_eq!(rx.receive_into(&mut copy), Ok(Some(4)));
    assert_eq!(copy, [3; 4]);
    assert_eq!(rx.receive_into(&mut copy), Ok(None));
    assert!(near.is_drained());
}

#[test]
fn an_end_for_packets_only_talks_with_one_that_does_everything() {
    let (first, second) = memory(&ONE);
    let options = Options::default();
    let near = &End::open(first, ONE, Role::First, parts(support::Lean, &ONE), options).unwrap();
    let solo = parts(support::Solo, &ONE);
    let far = &End::open(second, ONE, Role::Second, solo, options).unwrap();
    near.look(0);
    far.look(0);
    near.look(0);
    let (tx, rx) = (
        Sender::new(&near, 1).unwrap(),
        Receiver::new(&near, 1).unwrap(),
    );
    let (back, here) = (
        Sender::new(&far, 1).unwrap(),
        Receiver::new(&far, 1).unwrap(),
    );
    // It sends what is not wanted, and the other side drops it.
    here.set_filter(Predicate::Every(1000));
    let mut copy = [0; 4];
    for byte in 0..10 {
        assert_eq!(tx.send(&[byte]), Ok(true));
        back.send(&[byte; 3]).unwrap();
        assert_eq!(rx.ring_at(1), Ok(true));
        assert_eq!(rx.receive_into(&mut copy), Ok(Some(3)));
        assert_eq!(rx.ring_at(1), Ok(false));
        assert_eq!(tx.ring_at_return(), Ok(true));
        assert_eq!(here.receive_into(&mut copy), Ok(Some(1)));
        assert_eq!(copy[0], byte);
    }
    assert!(near.check_books() && far.check_books());
}

#[test]
fn replies_need_an_end_that_is_built_with_them() {
    const REPLIES: Config =
        Config::new(&[Channel::new(1, "one", Pool::new(1, 8)).with_replies()]).mutual();
    let (first, _) = memory(&REPLIES);
    let lean = parts(support::Lean, &REPLIES);
    let opened = End::open(first, REPLIES, Role::First, lean, Options::default());
    assert_eq!(opened.err(), Some(OpenError::Replies));
}

#[test]
fn a_packet_read_by_lines_is_what_was_sent() {
    let (near, far) = up(ONE);
    let (tx, rx) = (
        Sender::new(&near, 1).unwrap(),
        Receiver::new(&far, 1).unwrap(),
    );
    let packet: Vec<u8> = (0..100).collect();
    for len in 0..=packet.len() {
        tx.send(&packet[..len]).unwrap();
        let received = rx.receive().unwrap().unwrap();
        let words = received.words().map(usize::to_ne_bytes);
        let words: Vec<u8> = words.flatten().collect();
        assert_eq!(words.len(), len.next_multiple_of(size_of::<usize>()));
        assert_eq!(words[..len], packet[..len]);
        let lines = received.lines().flatten().map(usize::to_ne_bytes);
        let lines: Vec<u8> = lines.flatten().collect();
        assert_eq!(lines.len(), len.next_multiple_of(64));
        assert_eq!(lines[..len], packet[..len]);
    }
}

#[test]
fn a_packet_copied_by_words_arrives_as_it_was() {
    let (near, far) = up(ONE);
    let (tx, rx) = (
        Sender::new(&near, 1).unwrap(),
        Receiver::new(&far, 1).unwrap(),
    );
    let packet: Vec<u8> = (1..=tx.size() as u8).collect();
    for len in 0..=packet.len() {
        let mut place = tx.place(len).unwrap();
        place.fill(0xff);
        assert_eq!(place.copy_from(&packet[..len]), len);
        let next = len.next_multiple_of(size_of::<usize>());
        assert!(
            place[len..]
                .iter()
                .enumerate()
                .all(|(at, &byte)| { byte == if len + at < next { 0 } else { 0xff } })
        );
        place.send(len).unwrap();
        assert_eq!(
            *rx.receive().unwrap().unwrap().trusted().unwrap(),
            packet[..len]
        );
    }
    // More than a block: what fits.
    let more = vec![7; packet.len() + 1];
    assert_eq!(tx.place(0).unwrap().copy_from(&more), packet.len());
}

#[test]
fn a_full_channel_says_so_and_goes_on_when_a_block_comes_back() {
    let (first, second) = up(ONE);
    let (there, here) = (
        Sender::new(&first, 1).unwrap(),
        Receiver::new(&second, 1).unwrap(),
    );
    for _ in 0..4 {
        there.send(b"x").unwrap();
    }
    assert_eq!(there.send(b"x"), Err(Refused::Full));
    drop(here.receive().unwrap().unwrap());
    there.send(b"x").unwrap();
    assert_eq!(there.send(&[0; 101]), Err(Refused::TooLarge));
}

#[test]
fn an_answer_comes_back_in_the_lent_block() {
    const MUTUAL: Config =
        Config::new(&[Channel::new(1, "one", Pool::new(2, 64)).with_replies()]).mutual();
    let (first, second) = up(MUTUAL);
    let (there, here) = (
        Sender::new(&first, 1).unwrap(),
        Receiver::new(&second, 1).unwrap(),
    );
    for _ in 0..10 {
        there.send(b"ping").unwrap();
        let mut packet = here.receive().unwrap().unwrap();
        packet.place().unwrap()[..5].copy_from_slice(b"reply");
        assert!(packet.reply(5));
        let reply = there.reply().unwrap().unwrap();
        assert_eq!(&*reply, b"reply");
    }
}

#[test]
fn a_restart_is_told_and_every_block_comes_back() {
    let (first, second) = up(ONE);
    let mut there = Sender::new(&first, 1).unwrap();
    let here = Receiver::new(&second, 1).unwrap();
    for _ in 0..4 {
        there.send(b"x").unwrap();
    }
    second.close();
    assert!(matches!(here.receive(), Err(Lost::Closed)));
    first.look(0);
    assert_eq!(there.send(b"x"), Err(Refused::Lost(Lost::Closed)));
    there.renew();
    assert_eq!(there.send(b"x"), Err(Refused::Full));
}

#[test]
fn a_packet_that_never_fits_is_refused_as_such_before_the_peer_is_there() {
    let (first, _second) = open(ONE);
    let there = Sender::new(&first, 1).unwrap();
    assert_eq!(there.send(&[0; 100]), Err(Refused::Full));
    assert_eq!(there.send(&[0; 101]), Err(Refused::TooLarge));
}

#[test]
fn what_a_peer_sent_before_it_closed_can_still_be_received() {
    for told in [false, true] {
        let (first, second) = up(ONE);
        let (there, here) = (
            Sender::new(&first, 1).unwrap(),
            Receiver::new(&second, 1).unwrap(),
        );
        let back = Sender::new(&second, 1).unwrap();
        there.send(b"one").unwrap();
        there.send(b"two").unwrap();
        match told {
            false => first.close(),
            true => second.peer_has_ended(),
        }
        second.look(0);
        assert_eq!(back.send(b"x"), Err(Refused::Lost(Lost::Closed)));
        for packet in [b"one", b"two"] {
            let mut copy = [0; 3];
            let got = here.receive().unwrap().unwrap();
            assert_eq!(got.copy_to(&mut copy), Ok(3));
            assert_eq!(&copy, packet);
            drop(got);
            second.look(0);
        }
        assert!(matches!(here.receive(), Err(Lost::Closed)));
        assert!(second.check_books());
    }
}

#[test]
fn what_a_peer_sent_and_went_before_this_side_found_it_up_can_still_be_received() {
    for (config, told) in [(ONE, false), (ONE, true), (ONE.mutual(), false)] {
        let (first, second) = open(config);
        first.look(0);
        assert_eq!(second.look(0), Status::Up);
        Sender::new(&second, 1).unwrap().send(b"one").unwrap();
        let here = Receiver::new(&first, 1).unwrap();
        assert_eq!(first.status(), Status::Waiting);
        match told {
            false => second.close(),
            true => first.peer_has_ended(),
        }
        // Also where it is the receiver that finds out.
        let got = match told {
            false => here.receive().unwrap().or_else(|| here.receive().unwrap()),
            true => here.receive().unwrap(),
        };
        assert_eq!(first.status(), Status::Up);
        let mut copy = [0; 3];
        let got = got.unwrap();
        assert_eq!(got.copy_to(&mut copy), Ok(3));
        assert_eq!(&copy, b"one");
        drop(got);
        first.look(0);
        assert!(matches!(here.receive(), Err(Lost::Closed)));
        assert!(first.check_books());
    }
}

#[test]
fn an_answer_that_came_before_the_peer_closed_can_still_be_read() {
    const MUTUAL: Config =
        Config::new(&[Channel::new(1, "one", Pool::new(2, 64)).with_replies()]).mutual();
    let (first, second) = up(MUTUAL);
    let (there, here) = (
        Sender::new(&first, 1).unwrap(),
        Receiver::new(&second, 1).unwrap(),
    );
    there.send(b"ping").unwrap();
    let mut packet = here.receive().unwrap().unwrap();
    packet.place().unwrap()[..5].copy_from_slice(b"reply");
    assert!(packet.reply(5));
    second.close();
    first.look(0);
    assert_eq!(&*there.reply().unwrap().unwrap(), b"reply");
    assert!(matches!(there.reply(), Err(Lost::Closed)));
}

#[test]
fn a_channel_that_nobody_reads_holds_no_other_up_when_the_peer_closes() {
    const TWO: Config = Config::new(&[
        Channel::new(1, "one", Pool::new(4, 100)),
        Channel::new(2, "two", Pool::new(4, 100)),
    ]);
    let (first, second) = up(TWO);
    let unread = Sender::new(&first, 2).unwrap();
    let mut here = Receiver::new(&second, 1).unwrap();
    unread.send(b"x").unwrap();
    first.close();
    second.look(0);
    assert!(matches!(here.receive(), Err(Lost::Closed)));
    // Who begins again does not wait for it either.
    let pairing = second.pairing();
    here.renew();
    assert_ne!(second.pairing(), pairing);
    assert!(here.receive().unwrap().is_none());
}

#[test]
fn a_filter_drops_at_the_sender_what_the_receiver_does_not_want() {
    let (first, second) = up(ONE);
    let (there, here) = (
        Sender::new(&first, 1).unwrap(),
        Receiver::new(&second, 1).unwrap(),
    );
    here.set_filter(Predicate::Matches {
        offset: 0,
        mask: 0xFF,
        value: 7,
    });
    // The wish is seen with the first flush.
    assert_eq!(there.send(&[1, 0, 0, 0]), Ok(true));
    assert_eq!(there.send(&[1, 0, 0, 0]), Ok(false));
    assert_eq!(there.send(&[7, 0, 0, 0]), Ok(true));
    assert_eq!(
        here.receive().unwrap().unwrap().trusted().unwrap(),
        [7, 0, 0, 0]
    );
    assert!(here.receive().unwrap().is_none());
}

#[test]
fn a_filter_that_let_nothing_through_is_taken_back() {
    let (first, second) = up(ONE);
    let (there, here) = (
        Sender::new(&first, 1).unwrap(),
        Receiver::new(&second, 1).unwrap(),
    );
    here.set_filter(Predicate::Matches {
        offset: 0,
        mask: 0xFF,
        value: 7,
    });
    assert_eq!(there.send(&[1, 0, 0, 0]), Ok(true));
    assert!(here.receive().unwrap().is_none());
    assert_eq!(there.send(&[1, 0, 0, 0]), Ok(false));
    // Nothing is shown meanwhile, and so no flush looks at the wish.
    here.set_filter(Predicate::All);
    assert_eq!(there.send(&[2, 0, 0, 0]), Ok(true));
    let place = there.place(4).unwrap();
    assert_eq!(place.send(4), Ok(true));
    let packet = here.receive().unwrap().unwrap();
    assert_eq!(packet.trusted().unwrap(), [2, 0, 0, 0]);
}

#[test]
fn a_place_is_not_sent_to_a_peer_that_has_ended() {
    let (first, second) = up(ONE);
    let there = Sender::new(&first, 1).unwrap();
    Sender::new(&second, 1).unwrap().send(b"last").unwrap();
    let place = there.place(1).unwrap();
    second.close();
    first.look(0);
    assert_eq!(place.send(1), Err(Refused::Lost(Lost::Closed)));
    assert!(first.check_books());
}
