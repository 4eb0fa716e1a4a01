//! What must hold for any bytes and any packets: no panic, no write beyond the place, answers only
//! in the right direction, no answer to an error, and two engines that always fall silent.

mod support;

use core::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use sinew::rpc::packet::{OPEN_CALL_ID, Packet, PacketType};
use sinew::rpc::{Client, Inbox, MethodKind, Status, id};
use sinew::time::Instant;
use support::kinds::*;
use support::wire::*;
use support::{Bench, MTU, at};

/// Any packet, most of them near enough to a real one to get far.
fn packet() -> impl Strategy<Value = P> {
    let methods = [DOUBLE, COUNT, SUM, ECHO_ALL, BIG, BIG_ECHO, id("Nobody")];
    let call_ids = prop_oneof![
        8 => 0..6u32,
        1 => Just(OPEN_CALL_ID),
        1 => any::<u32>(),
    ];
    let payload = prop_oneof![
        4 => (0..300u32).prop_map(|n| Num(n).to_vec()),
        1 => vec(any::<u8>(), 0..20),
    ];
    (
        prop_oneof![9 => 0..12u32, 1 => any::<u32>()],
        prop_oneof![9 => Just(1u32), 1 => 0..4u32],
        prop_oneof![9 => Just(SERVICE), 1 => 0..3u32],
        prop::sample::select(methods.to_vec()),
        call_ids,
        payload,
        0..20u32,
    )
        .prop_map(
            |(packet_type, channel, service, method, call_id, payload, status)| P {
                packet_type,
                channel,
                service,
                method,
                call_id,
                payload,
                status: Status::from_code(status),
            },
        )
}

/// One thing that happens to an engine.
#[derive(Clone, Debug)]
enum Step {
    Packet(P),
    Bytes(Vec<u8>),
    /// Milliseconds pass.
    Wait(u64),
    /// The server's tasks answer, stream or die; the client opens or gives up a call.
    Task(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => packet().prop_map(Step::Packet),
        1 => vec(any::<u8>(), 0..60).prop_map(Step::Bytes),
        1 => (0..40_000u64).prop_map(Step::Wait),
        2 => any::<u8>().prop_map(Step::Task),
    ];
    vec(step, 0..60)
}

fn is_error(bytes: &[u8]) -> bool {
    let error = [PacketType::CLIENT_ERROR, PacketType::SERVER_ERROR];
    Packet::decode(bytes).is_ok_and(|packet| error.contains(&packet.packet_type))
}

/// Gives a packet to a server in a place of `room` bytes behind which a guard stands.
fn serve(bench: &mut Bench, packet: &[u8], room: usize) -> Option<Vec<u8>> {
    let mut place = [0x5A; 300];
    let len = bench.server.handle(
        packet,
        &bench.via,
        &mut place[..room],
        &mut bench.kinds,
        bench.now,
    );
    assert!(len <= room);
    assert!(place[room..].iter().all(|&byte| byte == 0x5A));
    if len == 0 {
        return None;
    }
    assert!(!is_error(packet), "an error is never answered");
    let answer = Seen::of(&place[..len]);
    assert!(!answer.packet_type.is_for_server(), "{answer}");
    let refused = answer.packet_type == PacketType::SERVER_ERROR;
    assert!(!(refused && answer.status.is_ok()), "SERVER_ERROR with OK");
    Some(place[..len].to_vec())
}

/// What a task of the server does next.
fn work(bench: &mut Bench, choice: u8) {
    let kinds = &mut bench.kinds;
    match choice % 5 {
        0 => drop(kinds.responders.pop()),
        1 => drop(kinds.writers.pop()),
        2 => {
            if let Some(mut responder) = kinds.responders.pop() {
                let _ = responder.answer(&Num(choice.into()));
            }
        }
        3 => {
            if let Some(mut writer) = kinds.writers.pop() {
                let _ = writer.send(&Num(choice.into()));
                let _ = writer.finish(Status::ABORTED);
            }
        }
        _ => kinds.defer = !kinds.defer,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_server_survives_anything_and_every_slot_is_free_in_the_end(
        steps in steps(),
        room in 0..140usize,
    ) {
        let mut bench = Bench::new();
        for step in steps {
            match step {
                Step::Packet(packet) => drop(serve(&mut bench, &packet.bytes(), room)),
                Step::Bytes(bytes) => drop(serve(&mut bench, &bytes, room)),
                Step::Wait(millis) => bench.now = bench.now.after(Duration::from_millis(millis)),
                Step::Task(choice) => work(&mut bench, choice),
            }
            bench.port.pop();
            let _ = bench.poll();
        }
        bench.kinds.responders.clear();
        bench.kinds.writers.clear();
        bench.now = bench.now.after(sinew::rpc::DEFAULT_LIFETIME * 2);
        while bench.poll() != Ok(None) {
            bench.port.pop();
        }
        prop_assert_eq!(bench.server.deadline(), Instant::FAR);
        bench.kinds.defer = false;
        for call in 1..=4 {
            prop_assert_eq!(bench.send(&request(SUM, 100 + call, 0)), None);
        }
    }

    #[test]
    fn a_client_survives_anything_and_every_call_ends(
        steps in steps(),
        room in 0..60usize,
        seed in any::<u32>(),
    ) {
        let mut client = Client::<4>::new(1, seed % 4);
        let mut now = Instant::START;
        let mut calls = Vec::new();
        for step in steps {
            let bytes = match step {
                Step::Packet(packet) => packet.bytes(),
                Step::Bytes(bytes) => bytes,
                Step::Wait(millis) => {
                    now = now.after(Duration::from_millis(millis));
                    let mut place = [0; MTU];
                    while client.expire(&mut place, now).is_some() {}
                    prop_assert!(client.deadline() > now);
                    continue;
                }
                Step::Task(choice) => {
                    act(&mut client, &mut calls, choice, now);
                    continue;
                }
            };
            let mut place = [0x5A; 100];
            let (len, event) = client.handle(&bytes, &mut place[..room], now);
            prop_assert!(len <= room);
            prop_assert!(place[room..].iter().all(|&byte| byte == 0x5A));
            if len > 0 {
                prop_assert!(!is_error(&bytes));
                let answer = Seen::of(&place[..len]);
                prop_assert_eq!(answer.packet_type, PacketType::CLIENT_ERROR);
                prop_assert!(!answer.status.is_ok());
            }
            if let Some(event) = event {
                prop_assert!(event.call.index() < 4);
            }
        }
        now = now.after(Duration::from_secs(1000));
        let mut ended = 0;
        while client.expire(&mut [0; MTU], now).is_some() {
            ended += 1;
        }
        prop_assert!(ended <= 4);
        prop_assert_eq!(client.deadline(), Instant::FAR);
    }

    /// Whatever is injected on either side, the two engines stop talking by themselves.
    #[test]
    fn two_engines_always_fall_silent(steps in steps(), to_client in any::<u64>()) {
        let mut bench = Bench::new();
        let mut client = Client::<4>::new(1, 0);
        let mut calls = Vec::new();
        for (index, step) in steps.into_iter().enumerate() {
            let packet = match step {
                Step::Packet(packet) => packet.bytes(),
                Step::Bytes(bytes) => bytes,
                Step::Wait(_) => continue,
                Step::Task(choice) => {
                    act(&mut client, &mut calls, choice, bench.now);
                    work(&mut bench, choice);
                    continue;
                }
            };
            let mut on_the_way = vec![(packet, to_client >> (index % 64) & 1 == 1)];
            let mut exchanged = 0;
            while let Some((packet, for_client)) = on_the_way.pop() {
                exchanged += 1;
                prop_assert!(exchanged < 6, "they talk on");
                let mut place = [0; MTU];
                let answer = if for_client {
                    let (len, _) = client.handle(&packet, &mut place, bench.now);
                    (len > 0).then(|| place[..len].to_vec())
                } else {
                    serve(&mut bench, &packet, MTU)
                };
                on_the_way.extend(answer.map(|answer| (answer, !for_client)));
            }
        }
    }
}

/// What an application does next with its client.
fn act(client: &mut Client<4>, calls: &mut Vec<sinew::rpc::ClientCall>, choice: u8, now: Instant) {
    let timeout = Duration::from_secs(u64::from(choice) + 1);
    let mut place = [0; MTU];
    let opened = match choice % 9 {
        0 => client.open(method(DOUBLE, MethodKind::Unary), timeout, now),
        1 => client.open(method(COUNT, MethodKind::ServerStream), timeout, now),
        2 => client.open(method(SUM, MethodKind::ClientStream), timeout, now),
        3 => client.open(method(ECHO_ALL, MethodKind::Bidi), timeout, now),
        4 => client.listen(method(COUNT, MethodKind::ServerStream), timeout, now),
        ending => {
            let Some(call) = calls.pop() else { return };
            let len = match ending {
                5 => client.cancel(&call, Status::CANCELLED, &mut place),
                6 => client.abandon(&call, &mut place),
                _ => client.complete(&call, &mut place),
            };
            if len > 0 {
                assert!(Seen::of(&place[..len]).packet_type.is_for_server());
            }
            return;
        }
    };
    calls.extend(opened);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// An inbox is a queue, whatever wraps where; it refuses only what cannot be sure to fit.
    #[test]
    fn an_inbox_is_a_queue(
        ops in vec(prop_oneof![3 => (0..30usize).prop_map(Some), 2 => Just(None)], 0..200),
    ) {
        inbox_is_a_queue::<0>(&ops)?;
        inbox_is_a_queue::<1>(&ops)?;
        inbox_is_a_queue::<2>(&ops)?;
        inbox_is_a_queue::<13>(&ops)?;
        inbox_is_a_queue::<31>(&ops)?;
        inbox_is_a_queue::<64>(&ops)?;
    }
}

/// `Some(len)` pushes, `None` pops.
fn inbox_is_a_queue<const BYTES: usize>(ops: &[Option<usize>]) -> Result<(), TestCaseError> {
    let mut inbox = Inbox::<BYTES>::new();
    let mut model = std::collections::VecDeque::<Vec<u8>>::new();
    let mut largest = 0;
    for (n, op) in ops.iter().enumerate() {
        let used: usize = model.iter().map(|message| message.len() + 2).sum();
        match op {
            Some(len) => {
                // 0xff is what a wrap mark consists of.
                let message = vec![if n % 3 == 0 { 0xff } else { n as u8 }; *len];
                let need = len + 2;
                match inbox.push(&message) {
                    Ok(()) => {
                        prop_assert!(used + need <= BYTES);
                        largest = largest.max(need);
                        model.push_back(message);
                    }
                    Err(_) if model.is_empty() => prop_assert!(need > BYTES),
                    Err(_) => prop_assert!(used + need + need.max(largest) > BYTES),
                }
            }
            None => {
                inbox.pop();
                model.pop_front();
            }
        }
        prop_assert_eq!(inbox.len(), model.len());
        prop_assert_eq!(inbox.is_empty(), model.is_empty());
        prop_assert_eq!(inbox.front(), model.front().map(Vec::as_slice));
    }
    inbox.clear();
    prop_assert_eq!(inbox.front(), None);
    Ok(())
}

#[test]
fn a_message_too_long_for_its_length_field_is_refused() {
    let mut inbox = Box::new(Inbox::<70_000>::new());
    assert!(inbox.push(&[1; 65_535]).is_err());
    assert!(inbox.push(&[1; 65_534]).is_ok());
    assert_eq!(inbox.front().map(<[u8]>::len), Some(65_534));
}

#[test]
fn time_at_its_end_ends_no_call_early() {
    let mut client = Client::<1>::new(1, 0);
    let unary = method(DOUBLE, MethodKind::Unary);
    client.open(unary, Duration::MAX, at(1)).unwrap();
    assert_eq!(client.deadline(), Instant::FAR);
    assert_eq!(client.expire(&mut [0; MTU], at(u64::MAX / 2000)), None);
}
