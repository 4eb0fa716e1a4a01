//! A message that a full link has cut: what else there is to say neither mixes with it nor waits for
//! ever.

#[path = "support/node.rs"]
#[allow(dead_code, unused_imports)]
mod node;

use node::{Node, Told, peers, settle};
use sinew::pubsub::codec::{Kind, Qos};
use sinew::pubsub::session::{PublisherId, PublisherOptions, Put, PutError};
use sinew::time::Instant;

const NOW: Instant = Instant::START;

fn blocking(reliable: bool) -> PublisherOptions {
    PublisherOptions {
        qos: Qos::DEFAULT.with_blocking(true),
        reliable,
        ..PublisherOptions::DEFAULT
    }
}

/// Two publishers on a link with few places, and nobody there yet.
fn publishers(second_reliable: bool) -> (Node, Node, PublisherId, PublisherId) {
    let (mut one, other) = peers(64, 2);
    let mut publisher = |key: &str, reliable| {
        let publisher = one.session.publisher(key.to_owned(), blocking(reliable));
        publisher.unwrap()
    };
    let (a, b) = (publisher("a", true), publisher("b", second_reliable));
    (one, other, a, b)
}

/// The same, with a subscriber there.
fn pair(second_reliable: bool) -> (Node, Node, PublisherId, PublisherId) {
    let (mut one, mut other, a, b) = publishers(second_reliable);
    other.session.subscriber("*".to_owned()).unwrap();
    settle(&mut one, &mut other, NOW);
    (one, other, a, b)
}

/// Puts again until it has gone.
fn whole(one: &mut Node, other: &mut Node, id: PublisherId, payload: &[u8]) {
    for _ in 0..1000 {
        match one.session.put(&mut one.tx, id, payload, NOW) {
            Ok(became) => return assert_eq!(became, Put::Heard),
            Err(PutError::Full | PutError::Cut) => {}
            Err(error) => panic!("{error}"),
        }
        one.turn(NOW);
        other.turn(NOW);
    }
    panic!("it never goes");
}

fn samples(node: &mut Node) -> Vec<(String, Vec<u8>)> {
    let sample = |told| match told {
        Told::Sample(_, key, Kind::Put, payload) => Some((key, payload)),
        _ => None,
    };
    node.take().into_iter().filter_map(sample).collect()
}

fn cut(one: &mut Node, id: PublisherId, payload: &[u8]) {
    let became = one.session.put(&mut one.tx, id, payload, NOW);
    assert_eq!(became, Err(PutError::Cut));
}

#[test]
fn sample_of_another_publisher_is_not_taken_for_its_rest() {
    let (mut one, mut other, a, b) = pair(true);
    cut(&mut one, a, &[1; 500]);
    other.turn(NOW);
    let between = one.session.put(&mut one.tx, b, &[2; 500], NOW);
    assert_eq!(between, Err(PutError::Full));
    whole(&mut one, &mut other, a, &[1; 500]);
    whole(&mut one, &mut other, b, &[2; 500]);
    settle(&mut one, &mut other, NOW);
    assert_eq!(
        samples(&mut other),
        [("a".into(), vec![1; 500]), ("b".into(), vec![2; 500])]
    );
}

#[test]
fn payload_to_be_written_in_place_is_not_taken_for_its_rest() {
    let (mut one, mut other, a, _) = pair(true);
    cut(&mut one, a, &[1; 500]);
    other.turn(NOW);
    let filled = one
        .session
        .put_with(&mut one.tx, a, 500, NOW, |room| room.fill(1));
    assert_eq!(filled, Err(PutError::Full));
    whole(&mut one, &mut other, a, &[1; 500]);
    settle(&mut one, &mut other, NOW);
    assert_eq!(samples(&mut other), [("a".into(), vec![1; 500])]);
}

#[test]
fn sample_of_the_other_channel_is_not_cut_as_well() {
    let (mut one, mut other, a, b) = pair(false);
    cut(&mut one, a, &[1; 500]);
    other.turn(NOW);
    let between = one.session.put(&mut one.tx, b, &[2; 500], NOW);
    assert_eq!(between, Err(PutError::Full));
    // One that fits a batch goes.
    let between = one.session.put(&mut one.tx, b, &[3; 5], NOW);
    assert_eq!(between, Ok(Put::Heard));
    whole(&mut one, &mut other, a, &[1; 500]);
    whole(&mut one, &mut other, b, &[2; 500]);
    settle(&mut one, &mut other, NOW);
    assert_eq!(
        samples(&mut other),
        [
            ("b".into(), vec![3; 5]),
            ("a".into(), vec![1; 500]),
            ("b".into(), vec![2; 500])
        ]
    );
}

#[test]
fn new_declaration_does_not_hold_its_rest_up() {
    let (mut one, mut other, a, _) = pair(true);
    cut(&mut one, a, &[1; 500]);
    let sub = one.session.subscriber("mine".to_owned()).unwrap();
    whole(&mut one, &mut other, a, &[1; 500]);
    settle(&mut one, &mut other, NOW);
    assert_eq!(samples(&mut other), [("a".into(), vec![1; 500])]);
    let mine = other
        .session
        .publisher("mine".to_owned(), blocking(true))
        .unwrap();
    settle(&mut one, &mut other, NOW);
    whole(&mut other, &mut one, mine, b"it was declared");
    settle(&mut one, &mut other, NOW);
    let sample = Told::Sample(sub, "mine".into(), Kind::Put, b"it was declared".into());
    assert_eq!(one.take().pop(), Some(sample));
}

#[test]
fn declaration_that_was_cut_can_be_withdrawn() {
    let (mut one, mut other, a, _) = pair(true);
    let long = "long/".repeat(12) + "key";
    one.tx.room = 1;
    let wide = one.session.publisher(long, blocking(true)).unwrap();
    one.turn(NOW);
    one.session.withdraw_publisher(wide);
    let next = one
        .session
        .publisher("next".to_owned(), blocking(true))
        .unwrap();
    settle(&mut one, &mut other, NOW);
    whole(&mut one, &mut other, a, b"goes on");
    whole(&mut one, &mut other, next, b"is known");
    settle(&mut one, &mut other, NOW);
    assert_eq!(
        samples(&mut other),
        [
            ("a".into(), b"goes on".to_vec()),
            ("next".into(), b"is known".to_vec())
        ]
    );
}

#[test]
fn it_is_not_left_lying_where_nobody_subscribes_any_more() {
    let (mut one, mut other, a, b) = publishers(true);
    let to_a = other.session.subscriber("a".to_owned()).unwrap();
    other.session.subscriber("b".to_owned()).unwrap();
    settle(&mut one, &mut other, NOW);
    cut(&mut one, a, &[1; 500]);
    other.session.withdraw_subscriber(to_a);
    let mut became = Err(PutError::Cut);
    for _ in 0..100 {
        one.turn(NOW);
        other.turn(NOW);
        if became.is_err() {
            became = one.session.put(&mut one.tx, a, &[1; 500], NOW);
        }
    }
    assert_eq!(became, Ok(Put::Unheard));
    whole(&mut one, &mut other, b, b"goes on");
    settle(&mut one, &mut other, NOW);
    assert_eq!(samples(&mut other), [("b".into(), b"goes on".to_vec())]);
}
