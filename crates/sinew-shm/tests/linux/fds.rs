use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{FdFlags, fcntl_getfd};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketType, sendmsg};
use sinew_shm::linux::Deadline;
use sinew_shm::linux::fds::{FdsError, MAX_FDS, receive, send};

use super::{KINDS, LONG, SHORT, open_files, pair};

/// Sends what [`send`] would not.
pub fn send_any(socket: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
    }
    let sent = sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    );
    assert_eq!(sent, Ok(bytes.len()));
}

fn long() -> Deadline {
    Deadline::after(LONG)
}

#[test]
fn bytes_and_descriptors_arrive_together_and_close_on_exec() {
    for kind in KINDS {
        let (near, far) = pair(kind);
        let (reader, writer) = std::io::pipe().unwrap();
        send(&near, b"hello", &[reader.as_fd(), writer.as_fd()], long()).unwrap();
        drop((reader, writer));
        let mut bytes = [0; 5];
        let fds = receive(&far, &mut bytes, long()).unwrap();
        assert_eq!(&bytes, b"hello");
        let [reader, writer] = <[OwnedFd; 2]>::try_from(fds).unwrap();
        for fd in [&reader, &writer] {
            assert!(fcntl_getfd(fd).unwrap().contains(FdFlags::CLOEXEC));
        }
        File::from(writer).write_all(b"x").unwrap();
        let mut all = Vec::new();
        File::from(reader).read_to_end(&mut all).unwrap();
        assert_eq!(all, b"x", "and the writer is open nowhere else");
    }
}

#[test]
fn most_descriptors_pass_and_one_more_does_not() {
    for kind in KINDS {
        let (near, far) = pair(kind);
        let null = File::open("/dev/null").unwrap();
        let most = [null.as_fd(); MAX_FDS];
        send(&near, b"x", &most, long()).unwrap();
        assert_eq!(receive(&far, &mut [0], long()).unwrap().len(), MAX_FDS);
        let more = [null.as_fd(); MAX_FDS + 1];
        let refused = send(&near, b"x", &more, long());
        assert!(matches!(refused, Err(FdsError::TooMany)));
    }
}

#[test]
fn too_many_descriptors_are_an_error_and_all_are_closed() {
    for kind in KINDS {
        for count in [MAX_FDS + 1, MAX_FDS + 2, 64] {
            let (near, far) = pair(kind);
            // One that nothing else here has open.
            let name = format!("sinew-fds-{}", std::process::id());
            let path = std::env::temp_dir().join(&name);
            let file = File::create(&path).unwrap();
            send_any(&near, b"x", &vec![file.as_fd(); count]);
            assert_eq!(open_files(&name), 1);
            let refused = receive(&far, &mut [0], long());
            assert!(matches!(refused, Err(FdsError::TooMany)), "{count}");
            assert_eq!(open_files(&name), 1);
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn too_many_descriptors_in_many_parts_are_an_error() {
    let (near, far) = pair(SocketType::STREAM);
    let null = File::open("/dev/null").unwrap();
    for _ in 0..5 {
        send_any(&near, b"x", &[null.as_fd()]);
    }
    let refused = receive(&far, &mut [0; 64], long());
    assert!(matches!(refused, Err(FdsError::TooMany)));
}

#[test]
fn stream_gives_what_was_asked_for_and_no_byte_more() {
    let (near, far) = pair(SocketType::STREAM);
    send(&near, b"abc", &[], long()).unwrap();
    send(&near, b"def", &[], long()).unwrap();
    let mut bytes = [0; 4];
    receive(&far, &mut bytes, long()).unwrap();
    assert_eq!(&bytes, b"abcd");
    let mut bytes = [0; 2];
    receive(&far, &mut bytes, long()).unwrap();
    assert_eq!(&bytes, b"ef");
}

#[test]
fn descriptors_arrive_once_however_many_parts_it_takes() {
    let (near, far) = pair(SocketType::STREAM);
    let null = File::open("/dev/null").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| send(&near, &vec![7; 2 << 20], &[null.as_fd()], long()).unwrap());
        let mut bytes = vec![0; 2 << 20];
        assert_eq!(receive(&far, &mut bytes, long()).unwrap().len(), 1);
        assert!(bytes.iter().all(|byte| *byte == 7));
    });
}

#[test]
fn message_of_another_length_is_an_error() {
    for len in [3, 5] {
        let (near, far) = pair(SocketType::SEQPACKET);
        send(&near, &b"abcde"[..len], &[], long()).unwrap();
        let refused = receive(&far, &mut [0; 4], long());
        assert!(matches!(refused, Err(FdsError::WrongLength)), "{len}");
    }
}

#[test]
fn silence_ends_with_the_time_limit() {
    for kind in KINDS {
        let (near, far) = pair(kind);
        let refused = receive(&far, &mut [0; 4], Deadline::after(SHORT));
        assert!(matches!(refused, Err(FdsError::TimedOut)));
        if kind == SocketType::STREAM {
            send(&near, b"ab", &[], long()).unwrap();
            let refused = receive(&far, &mut [0; 4], Deadline::after(SHORT));
            assert!(matches!(refused, Err(FdsError::TimedOut)), "in the middle");
        }
    }
}

#[test]
fn peer_that_does_not_read_ends_a_send_with_the_time_limit() {
    for kind in KINDS {
        let (near, _far) = pair(kind);
        let mut refused = Ok(());
        for _ in 0..100_000 {
            refused = send(&near, &[0; 64], &[], Deadline::after(SHORT));
            if refused.is_err() {
                break;
            }
        }
        assert!(matches!(refused, Err(FdsError::TimedOut)));
    }
}

#[test]
fn hang_up_is_told_on_both_ways() {
    for kind in KINDS {
        let (near, far) = pair(kind);
        if kind == SocketType::STREAM {
            send(&near, b"ab", &[], long()).unwrap();
        }
        drop(near);
        let refused = receive(&far, &mut [0; 4], long());
        assert!(matches!(refused, Err(FdsError::HungUp)));
        let refused = send(&far, b"x", &[], long());
        assert!(matches!(refused, Err(FdsError::HungUp)));
    }
}
