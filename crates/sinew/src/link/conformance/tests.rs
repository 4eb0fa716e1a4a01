//! The suite itself: a sound link passes, and each broken one fails by the right rule.

use super::memory::{Fault, Memory};
use super::{check, port_rules, rules, run};

#[test]
fn sound_link_passes_every_rule() {
    let report = run(&mut Memory(Fault::Nothing));
    assert_eq!(
        report.checked.len(),
        rules::RULES.len() + port_rules::RULES.len()
    );
    assert!(report.not_offered.is_empty());
}

macro_rules! broken_links {
    ($($name:ident: $fault:ident => $rule:literal,)*) => {$(
        #[test]
        fn $name() {
            match check(&mut Memory(Fault::$fault)) {
                Err(failure) => assert_eq!(failure.rule, $rule, "{}", failure.detail),
                Ok(report) => panic!("passed {report:?}"),
            }
        }
    )*};
}

broken_links! {
    link_that_drops_the_last_byte_fails: DropsTheLastByte =>
        "packets_arrive_whole_with_their_exact_length",
    link_that_reorders_fails: Reorders => "packets_arrive_in_order",
    link_that_gives_another_place_fails: GivesAnotherPlace => "place_is_the_same_until_commit",
    link_that_accepts_too_large_fails: AcceptsTooLarge => "min_above_mtu_is_too_large",
    link_that_sends_nothing_as_a_packet_fails: SendsNothingAsAPacket =>
        "commit_of_nothing_sends_nothing",
    link_that_leaks_a_place_fails: LeaksAPlaceOnCommitOfNothing =>
        "commit_of_nothing_sends_nothing",
    link_that_commits_without_a_place_fails: CommitsWithoutAPlace =>
        "commit_beyond_the_place_is_refused",
    link_that_peeks_the_next_fails: PeeksTheNext => "peek_gives_the_same_packet_until_release",
    link_that_releases_unpeeked_fails: ReleasesUnpeeked =>
        "release_without_a_peeked_packet_does_nothing",
    link_that_never_wakes_the_receiver_fails: NeverWakesTheReceiver =>
        "packet_wakes_an_armed_receiver",
    link_whose_receiver_does_not_look_fails: ArmOfReceiverDoesNotLook =>
        "arm_wakes_at_once_where_something_is_there",
    link_whose_sender_does_not_look_fails: ArmOfSenderDoesNotLook =>
        "arm_wakes_at_once_where_something_is_there",
    link_that_never_wakes_the_sender_fails: NeverWakesTheSender =>
        "place_that_comes_back_wakes_an_armed_sender",
    link_that_loses_a_packet_when_full_fails: LosesAPacketWhenFull => "full_link_loses_nothing",
    link_whose_flush_repeats_fails: FlushRepeats => "flush_only_sends_what_was_committed",
    link_that_forgets_the_rest_at_close_fails: ForgetsTheRestAtClose =>
        "rest_is_readable_after_the_peer_is_gone",
    link_that_closes_in_silence_fails: ClosesInSilence =>
        "armed_receiver_is_woken_when_the_peer_goes",
    link_that_closes_in_silence_for_senders_fails: ClosesInSilenceForSenders =>
        "armed_sender_is_woken_when_the_peer_goes",
    link_whose_port_sends_nothing_as_a_packet_fails: PortSendsNothingAsAPacket =>
        "port_sends_whole_packets",
    link_whose_port_takes_the_last_place_fails: PortTakesTheLastPlace =>
        "port_leaves_a_place_for_the_driver",
    link_whose_bulk_port_takes_all_but_one_fails: BulkTakesAllButOne =>
        "bulk_port_leaves_places_for_urgent_packets",
    link_whose_port_holds_the_lock_fails: PortHoldsTheLock => "port_holds_no_lock_while_it_fills",
    link_whose_ring_is_silent_fails: RingIsSilent => "ring_reaches_the_own_driver",
}
