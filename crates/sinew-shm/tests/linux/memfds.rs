use std::ffi::c_void;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr;

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mprotect};
use sinew_shm::linux::Segment;
use sinew_shm::linux::memfd::SegmentError;

use super::{read, write};

const LEN: usize = 10_000;

/// What the other process would have: the same memory by a descriptor of its own.
fn copy(segment: &Segment) -> OwnedFd {
    segment.as_fd().try_clone_to_owned().unwrap()
}

fn map_writable(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses an address; nothing uses it.
    unsafe { mmap(ptr::null_mut(), LEN, protection, MapFlags::SHARED, fd, 0) }.map(drop)
}

fn make_writable(at: *mut u8) -> Result<(), Errno> {
    // SAFETY: a mapping of at least this length; more rights take nothing from anybody.
    unsafe {
        mprotect(
            at.cast::<c_void>(),
            LEN,
            MprotectFlags::READ | MprotectFlags::WRITE,
        )
    }
}

fn memfd(len: u64, seals: SealFlags) -> OwnedFd {
    let fd = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&fd, len).unwrap();
    rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
    fd
}

const NEEDED: [SealFlags; 4] = [
    SealFlags::SHRINK,
    SealFlags::GROW,
    SealFlags::FUTURE_WRITE,
    SealFlags::SEAL,
];

#[test]
fn owner_writes_and_peer_sees_it() {
    let own = Segment::create(LEN).unwrap();
    let peer = Segment::accept(copy(&own), LEN).unwrap();
    assert!(own.mapping().is_writable() && !peer.mapping().is_writable());
    assert_eq!(peer.mapping().len(), LEN);
    for at in [0, 4096, LEN - 1] {
        assert_eq!(read(peer.mapping(), at), 0);
        write(own.mapping(), at, 0x5A);
        assert_eq!(read(peer.mapping(), at), 0x5A);
    }
}

#[test]
fn peer_cannot_map_it_writable() {
    let own = Segment::create(LEN).unwrap();
    assert_eq!(map_writable(copy(&own).as_fd()), Err(Errno::PERM));
}

#[test]
fn peer_cannot_make_its_mapping_writable() {
    let own = Segment::create(LEN).unwrap();
    let peer = Segment::accept(copy(&own), LEN).unwrap();
    let at = peer.mapping().as_ptr().as_ptr();
    assert_eq!(make_writable(at), Err(Errno::ACCESS));
    // Also not by the file through which debuggers write read-only memory.
    let memory = File::options().write(true).open("/proc/self/mem").unwrap();
    memory.write_at(&[1], at.addr() as u64).unwrap_err();
    memory
        .write_at(&[1], own.mapping().as_ptr().addr().get() as u64)
        .expect("as the owner's can");
}

#[test]
fn address_space_shows_the_peers_mapping_as_read_only_for_ever() {
    let own = Segment::create(LEN).unwrap();
    let peer = Segment::accept(copy(&own), LEN).unwrap();
    let flags = |segment: &Segment| {
        let start = format!("{:x}-", segment.mapping().as_ptr().addr());
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines = maps.lines().skip_while(|line| !line.starts_with(&start));
        let protection = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
        let flags = lines.find(|line| line.starts_with("VmFlags:")).unwrap();
        // mw: may become writable.
        (protection, flags.split(' ').any(|flag| flag == "mw"))
    };
    assert_eq!(flags(&own), ("rw-s".to_owned(), true));
    assert_eq!(flags(&peer), ("r--s".to_owned(), false));
}

#[test]
fn peer_cannot_change_its_size_or_punch_holes() {
    let own = Segment::create(LEN).unwrap();
    let fd = copy(&own);
    for len in [0, LEN - 1, LEN + 1] {
        assert_eq!(ftruncate(&fd, len as u64), Err(Errno::PERM));
    }
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(fallocate(&fd, hole, 0, 4096), Err(Errno::PERM));
    let seals = rustix::fs::fcntl_add_seals(&fd, SealFlags::WRITE);
    assert_eq!(seals, Err(Errno::PERM), "nor its seals");
}

#[test]
fn peer_cannot_write_it_through_a_new_descriptor() {
    let own = Segment::create(LEN).unwrap();
    let path = format!("/proc/self/fd/{}", own.as_fd().as_raw_fd());
    let file = File::options().read(true).write(true).open(path).unwrap();
    assert_eq!(map_writable(file.as_fd()), Err(Errno::PERM));
    assert_eq!(file.write_at(&[1], 0).unwrap_err().raw_os_error(), Some(1));
    assert_eq!(file.set_len(1).unwrap_err().raw_os_error(), Some(1));
    assert_eq!(read(own.mapping(), 0), 0);
}

#[test]
fn owner_still_writes_after_all_that_was_tried() {
    let own = Segment::create(LEN).unwrap();
    let peer = Segment::accept(copy(&own), LEN).unwrap();
    let _ = make_writable(peer.mapping().as_ptr().as_ptr());
    let _ = map_writable(peer.as_fd());
    write(own.mapping(), 1, 2);
    assert_eq!(read(peer.mapping(), 1), 2);
}

#[test]
fn memory_is_there_before_the_first_access() {
    let own = Segment::create(LEN).unwrap();
    let blocks = rustix::fs::fstat(&own).unwrap().st_blocks;
    assert!(blocks as usize * 512 >= LEN, "{blocks}");
}

#[test]
fn every_seal_is_needed() {
    let all = NEEDED.into_iter().collect::<SealFlags>();
    Segment::accept(memfd(LEN as u64, all), LEN).unwrap();
    for missing in NEEDED {
        let seals = all.difference(missing);
        let error = Segment::accept(memfd(LEN as u64, seals), LEN).unwrap_err();
        let SegmentError::NotSealed { ours, theirs } = error else {
            panic!("{error}");
        };
        assert_eq!((ours, theirs), (all.bits(), seals.bits()));
    }
}

#[test]
fn other_size_is_refused_with_both_sizes() {
    let own = Segment::create(LEN).unwrap();
    for len in [LEN - 1, LEN + 1, 0] {
        let error = Segment::accept(copy(&own), len).unwrap_err();
        assert!(
            matches!(error, SegmentError::WrongSize { ours, theirs }
                if ours == len as u64 && theirs == LEN as u64),
            "{error}"
        );
    }
}

#[test]
fn what_is_no_memfd_is_refused() {
    let (socket, _other) = super::pair(super::KINDS[0]);
    let zero = File::open("/dev/zero").unwrap();
    let program = File::open(std::env::current_exe().unwrap()).unwrap();
    for fd in [socket, zero.into(), program.into()] {
        let error = Segment::accept(fd, LEN).unwrap_err();
        assert!(
            matches!(
                error,
                SegmentError::NotMemory | SegmentError::NotSealed { .. }
            ),
            "{error}"
        );
    }
}

#[test]
fn huge_pages_are_refused() {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
    // Some kernels have none.
    let Ok(fd) = memfd_create("test", flags) else {
        return;
    };
    let all = NEEDED.into_iter().collect::<SealFlags>();
    rustix::fs::fcntl_add_seals(&fd, all).unwrap();
    let error = Segment::accept(fd, LEN).unwrap_err();
    assert!(matches!(error, SegmentError::NotMemory), "{error}");
}

#[test]
fn both_write_the_exchange_segment_and_none_resizes_it() {
    let own = Segment::create_exchange(LEN).unwrap();
    let peer = Segment::accept_exchange(copy(&own), LEN).unwrap();
    write(own.mapping(), 0, 1);
    write(peer.mapping(), 1, 2);
    assert_eq!(read(peer.mapping(), 0), 1);
    assert_eq!(read(own.mapping(), 1), 2);
    assert_eq!(ftruncate(&peer, 0), Err(Errno::PERM));
    // It is no segment with one writer.
    let error = Segment::accept(copy(&own), LEN).unwrap_err();
    assert!(matches!(error, SegmentError::NotSealed { .. }), "{error}");
}

#[test]
fn exchange_segment_needs_its_seals_too() {
    let seals = SealFlags::SHRINK | SealFlags::GROW;
    let error = Segment::accept_exchange(memfd(LEN as u64, seals), LEN).unwrap_err();
    assert!(matches!(error, SegmentError::NotSealed { .. }), "{error}");
    let one_writer = Segment::create(LEN).unwrap();
    Segment::accept_exchange(copy(&one_writer), LEN).unwrap_err();
}

#[test]
fn observer_maps_any_size_up_to_its_limit() {
    let own = Segment::create(LEN).unwrap();
    let seen = Segment::observe(copy(&own), LEN).unwrap();
    assert_eq!(seen.mapping().len(), LEN);
    assert!(!seen.mapping().is_writable());
    let error = Segment::observe(copy(&own), LEN - 1).unwrap_err();
    assert!(matches!(error, SegmentError::WrongSize { .. }), "{error}");
}

#[test]
fn segment_of_no_bytes_is_refused() {
    assert!(matches!(Segment::create(0), Err(SegmentError::Map(_))));
}
