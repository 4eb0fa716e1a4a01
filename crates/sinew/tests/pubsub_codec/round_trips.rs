//! Whatever is written is read back the same, and takes no more room than it says.

use proptest::collection::vec;
use proptest::prelude::*;
use sinew::pubsub::codec::{Kind, Reader, Reply, Writer};

use crate::any::{Datagram, Message, written};
use crate::made::{datagram, message};

proptest! {
    #[test]
    fn a_message_is_read_back_the_same(message in message()) {
        let bytes = message.bytes();
        prop_assert_eq!(Message::batch(&bytes), Ok(vec![message]));
    }

    #[test]
    fn a_datagram_is_read_back_the_same(datagram in datagram()) {
        let bytes = datagram.bytes();
        let mut r = Reader::new(&bytes);
        prop_assert_eq!(Datagram::decode(&mut r), Ok(datagram));
        prop_assert!(r.is_empty());
    }

    /// All but a fragment, which ends its batch.
    #[test]
    fn messages_follow_one_another(messages in vec(message(), 0..8)) {
        let mut messages = messages;
        let (mut last, rest) = messages.iter().partition::<Vec<_>, _>(|m| matches!(m, Message::Fragment(_)));
        last.truncate(1);
        let order: Vec<Message<'_>> = rest.into_iter().chain(last).copied().collect();
        messages.clone_from(&order);
        let bytes = written(|w| messages.iter().for_each(|message| message.encode(w)));
        prop_assert_eq!(Message::batch(&bytes), Ok(order));
    }

    #[test]
    fn a_place_that_is_too_small_is_said_and_nothing_is_written_behind_it(message in message(), cut in any::<prop::sample::Index>()) {
        let bytes = message.bytes();
        let mut exact = vec![0; bytes.len()];
        let mut w = Writer::new(&mut exact);
        message.encode(&mut w);
        prop_assert_eq!(w.finish(), Some(bytes.len()));
        prop_assert_eq!(&exact, &bytes);
        let mut small = vec![0; cut.index(bytes.len())];
        let mut w = Writer::new(&mut small);
        message.encode(&mut w);
        prop_assert_eq!(w.finish(), None);
    }

    #[test]
    fn windows_are_cut_from_the_message(message in message(), size in 1..40usize) {
        let bytes = message.bytes();
        let mut pieces = Vec::new();
        while pieces.len() < bytes.len() {
            let mut place = vec![0; size.min(bytes.len() - pieces.len())];
            let mut w = Writer::window(&mut place, pieces.len());
            message.encode(&mut w);
            prop_assert_eq!(w.total(), bytes.len());
            pieces.extend(place);
        }
        prop_assert_eq!(pieces, bytes);
    }

    #[test]
    fn what_is_in_the_place_before_a_message_is_kept(message in message(), before in vec(any::<u8>(), 0..9)) {
        let mut place = before.clone();
        place.resize(before.len() + message.bytes().len(), 0);
        let mut w = Writer::behind(&mut place, before.len());
        message.encode(&mut w);
        prop_assert_eq!(w.finish(), Some(place.len()));
        prop_assert_eq!(place, [before, message.bytes()].concat());
    }

    #[test]
    fn a_head_and_its_payload_are_the_message(message in message()) {
        let bytes = message.bytes();
        let (head, payload) = match &message {
            Message::Push(push) => {
                let len = push.body.payload.len();
                (written(|w| push.encode_head(w, len)), push.body)
            }
            Message::Response(response) => {
                let body = match response.reply {
                    Reply::Sample { body, .. } => body,
                    Reply::Error { payload, .. } => sinew::pubsub::codec::Body::put(payload),
                };
                (written(|w| response.encode_head(w, body.payload.len())), body)
            }
            _ => return Ok(()),
        };
        prop_assert!(payload.kind == Kind::Put || payload.payload.is_empty());
        prop_assert_eq!([&head[..], payload.payload].concat(), bytes);
    }

    #[test]
    fn random_bytes_are_an_error_or_a_message_that_is_read_back_the_same(bytes in vec(any::<u8>(), 0..64)) {
        for message in Message::batch(&bytes).unwrap_or_default() {
            let again = message.bytes();
            prop_assert_eq!(Message::batch(&again), Ok(vec![message]));
        }
        if let Ok(datagram) = Datagram::decode(&mut Reader::new(&bytes)) {
            let bytes = datagram.bytes();
            prop_assert_eq!(Datagram::decode(&mut Reader::new(&bytes)), Ok(datagram));
        }
    }
}
