//! What a peer that is no domain of ours, or a hostile one, can send: always an error that names it,
//! within the time limit, and no descriptor is left open.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::SocketType;
use sinew_shm::linux::exchange::{ExchangeError, Field, Refusal, greet, join, observe};
use sinew_shm::linux::fds::receive;
use sinew_shm::linux::{Deadline, Segment};

use super::exchange::{OFFER, other};
use super::fds::send_any;
use super::{KINDS, LONG, SHORT, pair};

/// The hello of [`OFFER`], by the table in `exchange/hello.rs`.
fn hello() -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(b"sinewdom");
    bytes[8] = 1;
    bytes[12..16].copy_from_slice(&0x0102_0304u32.to_ne_bytes());
    bytes[20..24].copy_from_slice(&OFFER.config_hash.to_le_bytes());
    bytes[24..28].copy_from_slice(&OFFER.own_len.to_le_bytes());
    bytes[28..32].copy_from_slice(&OFFER.peer_len.to_le_bytes());
    bytes
}

/// And of the other side.
fn answer() -> [u8; 64] {
    let mut bytes = hello();
    bytes[24..28].copy_from_slice(&OFFER.peer_len.to_le_bytes());
    bytes[28..32].copy_from_slice(&OFFER.own_len.to_le_bytes());
    bytes
}

fn changed(at: usize, to: u8) -> [u8; 64] {
    let mut bytes = hello();
    bytes[at] = to;
    bytes
}

/// What a server says to this first message, and what it tells the sender.
fn serve(kind: SocketType, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> (ExchangeError, Option<u8>) {
    let (near, far) = pair(kind);
    send_any(&near, bytes, fds);
    let error = greet(far, SHORT)
        .and_then(|greeting| greeting.join(&other(OFFER), SHORT).map(drop))
        .unwrap_err();
    let mut told = [0; 64];
    let told = match receive(&near, &mut told, Deadline::after(LONG)) {
        Ok(fds) => {
            assert!(fds.is_empty() || told[40] == 0);
            Some(told[40])
        }
        Err(_) => None,
    };
    (error, told)
}

fn refused(error: &ExchangeError) -> Field {
    match error {
        ExchangeError::Refused(refusal) => refusal.field,
        error => panic!("{error}"),
    }
}

fn memfd(len: u32) -> OwnedFd {
    let fd = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&fd, u64::from(len)).unwrap();
    fd
}

#[test]
fn garbage_is_refused_and_the_sender_told() {
    let segment = Segment::create(OFFER.own_len as usize).unwrap();
    for kind in KINDS {
        for bytes in [
            [0; 64],
            [0xFF; 64],
            changed(0, b'S'),
            changed(12, 0x55),
            changed(16, 2),
            changed(17, 2),
            changed(18, 3),
            changed(19, 2),
            changed(40, 17),
            changed(41, 1),
            changed(44, 1),
            changed(63, 1),
        ] {
            let (error, told) = serve(kind, &bytes, &[segment.as_fd()]);
            assert_eq!(refused(&error), Field::Hello);
            assert_eq!(told, Some(1));
        }
    }
}

#[test]
fn version_and_byte_order_are_named() {
    for kind in KINDS {
        let (error, told) = serve(kind, &changed(8, 9), &[]);
        assert!(
            matches!(
                error,
                ExchangeError::Refused(Refusal {
                    field: Field::Version,
                    ours: 1,
                    theirs: 9
                })
            ),
            "{error}"
        );
        assert_eq!(told, Some(2));
        let mut swapped = hello();
        swapped[12..16].reverse();
        let (error, told) = serve(kind, &swapped, &[]);
        assert_eq!((refused(&error), told), (Field::ByteOrder, Some(3)));
    }
}

#[test]
fn message_of_another_size_is_refused() {
    for len in [1, 63, 65, 500] {
        let mut bytes = vec![0; len];
        for (to, from) in bytes.iter_mut().zip(hello()) {
            *to = from;
        }
        let (error, told) = serve(SocketType::SEQPACKET, &bytes, &[]);
        assert_eq!((refused(&error), told), (Field::Hello, Some(1)), "{len}");
    }
    // On a stream there is no telling what is still to come.
    let (error, told) = serve(SocketType::STREAM, &hello()[..63], &[]);
    assert!(matches!(error, ExchangeError::Silent), "{error}");
    assert_eq!(told, None);
}

#[test]
fn wrong_descriptors_are_refused() {
    let good = Segment::create(OFFER.own_len as usize).unwrap();
    let long = Segment::create(OFFER.own_len as usize + 1).unwrap();
    let short = Segment::create(OFFER.own_len as usize - 1).unwrap();
    let both_write = Segment::create_exchange(OFFER.own_len as usize).unwrap();
    let unsealed = memfd(OFFER.own_len);
    let null = File::open("/dev/null").unwrap();
    let cases: [(&[BorrowedFd<'_>], Field); 10] = [
        (&[], Field::Descriptors),
        (&[good.as_fd(), good.as_fd()], Field::Descriptors),
        (&[good.as_fd(); 4], Field::Descriptors),
        (&[good.as_fd(); 5], Field::Descriptors),
        (&[good.as_fd(); 64], Field::Descriptors),
        (&[unsealed.as_fd()], Field::Seals),
        (&[both_write.as_fd()], Field::Seals),
        (&[long.as_fd()], Field::SegmentSize),
        (&[short.as_fd()], Field::SegmentSize),
        (&[null.as_fd()], Field::NotMemory),
    ];
    for kind in KINDS {
        for (fds, field) in cases {
            let (error, told) = serve(kind, &hello(), fds);
            assert_eq!(refused(&error), field, "{} descriptors", fds.len());
            assert!(told.is_some_and(|told| told != 0));
        }
        // The same bytes with the right descriptor go on to the next step.
        let (error, told) = serve(kind, &hello(), &[good.as_fd()]);
        assert!(matches!(error, ExchangeError::Silent), "{error}");
        assert_eq!(told, Some(0));
    }
}

#[test]
fn server_that_answers_wrongly_is_refused_and_told() {
    let good = Segment::create(OFFER.peer_len as usize).unwrap();
    let unsealed = memfd(OFFER.peer_len);
    let mut other_hash = answer();
    other_hash[20] ^= 1;
    let mut observer = answer();
    observer[16] = 1;
    let cases: [([u8; 64], &[BorrowedFd<'_>], Field); 6] = [
        ([0; 64], &[good.as_fd()], Field::Hello),
        (other_hash, &[good.as_fd()], Field::Configuration),
        (observer, &[good.as_fd()], Field::Kind),
        (answer(), &[], Field::Descriptors),
        (answer(), &[good.as_fd(), good.as_fd()], Field::Descriptors),
        (answer(), &[unsealed.as_fd()], Field::Seals),
    ];
    for kind in KINDS {
        for (bytes, fds, field) in cases {
            let (near, far) = pair(kind);
            send_any(&far, &bytes, fds);
            let error = join(near, &OFFER, LONG).map(drop).unwrap_err();
            assert_eq!(refused(&error), field);
            let mut told = [0; 64];
            let got = receive(&far, &mut told, Deadline::after(LONG)).unwrap();
            assert_eq!((got.len(), told[40]), (1, 0), "its hello");
            receive(&far, &mut told, Deadline::after(LONG)).unwrap();
            assert_ne!(told[40], 0, "and then why not");
        }
    }
}

#[test]
fn descriptors_in_the_last_step_are_refused() {
    let good = Segment::create(OFFER.own_len as usize).unwrap();
    for kind in KINDS {
        let (near, far) = pair(kind);
        send_any(&near, &hello(), &[good.as_fd()]);
        send_any(&near, &hello(), &[good.as_fd()]);
        let error = greet(far, LONG).unwrap().join(&other(OFFER), LONG);
        assert_eq!(refused(&error.map(drop).unwrap_err()), Field::Descriptors);
    }
}

#[test]
fn server_shows_an_observer_no_more_than_its_bound() {
    let link = Segment::create(4096).unwrap();
    let links = [(link.as_fd(), link.as_fd()); 70];
    for kind in KINDS {
        let (near, far) = pair(kind);
        let mut bytes = [0; 64];
        bytes[..16].copy_from_slice(&hello()[..16]);
        bytes[16] = 1;
        send_any(&near, &bytes, &[]);
        let socket = greet(far, LONG).unwrap().show(&links, LONG).unwrap();
        drop(socket);
        receive(&near, &mut bytes, Deadline::after(LONG)).unwrap();
        assert_eq!(bytes[36], 70);
        let shown = std::iter::repeat_with(|| receive(&near, &mut [0], Deadline::after(LONG)))
            .take_while(Result::is_ok)
            .count();
        assert_eq!(shown, 64);
    }
}

#[test]
fn silence_ends_every_step_with_the_time_limit() {
    let good = Segment::create(OFFER.own_len as usize).unwrap();
    for kind in KINDS {
        let (near, far) = pair(kind);
        let error = greet(far, SHORT).map(drop).unwrap_err();
        assert!(matches!(error, ExchangeError::Silent), "{error}");
        drop(near);

        let (near, _far) = pair(kind);
        let error = join(near, &OFFER, SHORT).map(drop).unwrap_err();
        assert!(matches!(error, ExchangeError::Silent), "{error}");

        let (near, _far) = pair(kind);
        let error = observe(near, SHORT).map(drop).unwrap_err();
        assert!(matches!(error, ExchangeError::Silent), "{error}");

        let (near, far) = pair(kind);
        send_any(&near, &hello(), &[good.as_fd()]);
        let error = greet(far, SHORT).unwrap().join(&other(OFFER), SHORT);
        assert!(
            matches!(error, Err(ExchangeError::Silent)),
            "before the last step"
        );
    }
}

#[test]
fn hang_up_ends_every_step() {
    let good = Segment::create(OFFER.own_len as usize).unwrap();
    for kind in KINDS {
        let (near, far) = pair(kind);
        drop(near);
        let error = greet(far, LONG).map(drop).unwrap_err();
        assert!(matches!(error, ExchangeError::HungUp), "{error}");

        let (near, far) = pair(kind);
        drop(far);
        let error = join(near, &OFFER, LONG).map(drop).unwrap_err();
        assert!(matches!(error, ExchangeError::HungUp), "{error}");

        let (near, far) = pair(kind);
        std::thread::scope(|scope| {
            let server = scope.spawn(|| greet(far, LONG)?.join(&other(OFFER), LONG).map(drop));
            send_any(&near, &hello(), &[good.as_fd()]);
            receive(&near, &mut [0; 64], Deadline::after(LONG)).unwrap();
            drop(near);
            let error = server.join().unwrap().unwrap_err();
            assert!(matches!(error, ExchangeError::HungUp), "{error}");
        });
    }
    let (near, far) = pair(SocketType::STREAM);
    send_any(&near, &hello()[..30], &[good.as_fd()]);
    drop(near);
    let error = greet(far, LONG).map(drop).unwrap_err();
    assert!(
        matches!(error, ExchangeError::HungUp),
        "in the middle: {error}"
    );
}

#[test]
fn observer_takes_no_more_than_its_bounds() {
    let good = Segment::create(4096).unwrap();
    let null = File::open("/dev/null").unwrap();
    let count = |links: u32| {
        let mut bytes = [0; 64];
        bytes[..16].copy_from_slice(&hello()[..16]);
        bytes[16] = 1;
        bytes[36..40].copy_from_slice(&links.to_le_bytes());
        bytes
    };
    let cases: [(&[BorrowedFd<'_>], Field); 4] = [
        (&[good.as_fd()], Field::Descriptors),
        (&[good.as_fd(); 3], Field::Descriptors),
        (&[good.as_fd(); 9], Field::Descriptors),
        (&[good.as_fd(), null.as_fd()], Field::NotMemory),
    ];
    for kind in KINDS {
        for (bytes, fds, field) in [
            (answer(), &[][..], Field::Kind),
            (count(0), &[good.as_fd()], Field::Descriptors),
        ] {
            let (near, far) = pair(kind);
            send_any(&far, &bytes, fds);
            let error = observe(near, LONG).map(drop).unwrap_err();
            assert_eq!(refused(&error), field);
        }
        for (fds, field) in cases {
            let (near, far) = pair(kind);
            send_any(&far, &count(1), &[]);
            send_any(&far, &[0], fds);
            let error = observe(near, LONG).map(drop).unwrap_err();
            assert_eq!(refused(&error), field);
        }
        // A count that is no truth neither allocates nor waits beyond the bound.
        let (near, far) = pair(kind);
        send_any(&far, &count(u32::MAX), &[]);
        for _ in 0..64 {
            send_any(&far, &[0], &[good.as_fd(), good.as_fd()]);
        }
        assert_eq!(observe(near, LONG).unwrap().links.len(), 64);
    }
}

#[test]
fn refused_exchange_leaves_no_descriptor_open() {
    let name = format!("sinew-hostile-{}", std::process::id());
    let path = std::env::temp_dir().join(&name);
    let file = File::create(&path).unwrap();
    for kind in KINDS {
        for count in [1, 2, 4, 5, 30] {
            serve(kind, &hello(), &vec![file.as_fd(); count]);
            serve(kind, &[0; 64], &vec![file.as_fd(); count]);
            assert_eq!(super::open_files(&name), 1);
        }
    }
    std::fs::remove_file(path).unwrap();
}
