use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use sinew_shm::linux::map::MapError;
use sinew_shm::linux::{Mapping, Region};

use super::{read, write};

/// A file of three pages in which each byte says where it lies; gone when dropped.
struct Temp(PathBuf, File);

const LEN: usize = 3 * 4096;

impl Temp {
    fn new(name: &str) -> Temp {
        let name = format!("sinew-map-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .unwrap();
        let bytes: Vec<u8> = (0..LEN).map(|at| (at % 251) as u8).collect();
        file.write_all(&bytes).unwrap();
        Temp(path, file)
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

#[test]
fn offset_inside_of_a_page_shows_the_bytes_from_there() {
    let file = Temp::new("offset");
    for offset in [0usize, 1, 64, 4095, 4096, 4160] {
        let map = Mapping::read_only(&file.1, offset as u64, 5000).unwrap();
        assert_eq!(map.len(), 5000);
        assert_eq!(map.as_ptr().addr().get() % 4096, offset % 4096);
        for at in [0, 1, 4095, 4096, 4999] {
            assert_eq!(read(&map, at), ((offset + at) % 251) as u8);
        }
    }
}

#[test]
fn what_one_writes_others_and_the_file_see() {
    let file = Temp::new("shared");
    let own = Mapping::shared(&file.1, 100, 200).unwrap();
    let other = Mapping::read_only(&file.1, 0, 4096).unwrap();
    assert!(own.is_writable() && !other.is_writable());
    write(&own, 7, 0xA5);
    assert_eq!(read(&other, 107), 0xA5);
    let mut byte = [0];
    file.1.read_exact_at(&mut byte, 107).unwrap();
    assert_eq!(byte, [0xA5]);
}

#[test]
fn file_that_is_too_short_is_refused_with_both_lengths() {
    let file = Temp::new("short");
    let error = Mapping::shared(&file.1, 4096, LEN - 4095).unwrap_err();
    assert!(
        matches!(
            error,
            MapError::TooShort {
                needed: 12289,
                has: 12288
            }
        ),
        "{error}"
    );
    Mapping::shared(&file.1, 4096, LEN - 4096).unwrap();
}

#[test]
fn ranges_that_no_file_has_are_refused() {
    let file = Temp::new("range");
    let error = Mapping::shared(&file.1, 0, 0).unwrap_err();
    assert!(matches!(error, MapError::Empty), "{error}");
    for (offset, len) in [
        (u64::MAX, 2),
        (u64::MAX - 1, 1),
        (i64::MAX as u64, 1),
        (1, usize::MAX),
        (0, usize::MAX),
    ] {
        let error = Mapping::shared(&file.1, offset, len).unwrap_err();
        assert!(
            matches!(
                error,
                MapError::OutOfRange { .. } | MapError::TooShort { .. }
            ),
            "{error}"
        );
    }
}

#[test]
fn what_is_no_memory_is_refused() {
    let (socket, _other) = super::pair(super::KINDS[0]);
    let error = Mapping::shared(&socket, 0, 1).unwrap_err();
    assert!(matches!(error, MapError::NotMemory), "{error}");
    let directory = File::open(std::env::temp_dir()).unwrap();
    let error = Mapping::read_only(&directory, 0, 1).unwrap_err();
    assert!(matches!(error, MapError::NotMemory), "{error}");
    let file = Temp::new("closed");
    let for_reading = File::open(&file.0).unwrap();
    let error = Mapping::shared(&for_reading, 0, 1).unwrap_err();
    assert!(matches!(error, MapError::Io(_)), "{error}");
}

#[test]
fn device_is_mapped_without_a_length_to_check() {
    let zero = File::options()
        .read(true)
        .write(true)
        .open("/dev/zero")
        .unwrap();
    let map = Mapping::shared(&zero, 0, 10_000).unwrap();
    write(&map, 9_999, 1);
    assert_eq!(read(&map, 9_999), 1);
    assert_eq!(read(&map, 0), 0);
}

#[test]
fn device_without_memory_behind_an_offset_is_refused() {
    let zero = File::options().read(true).write(true).open("/dev/zero");
    let error = Mapping::shared(zero.unwrap(), 8192, 4096).unwrap_err();
    assert!(matches!(error, MapError::NotMemory), "{error}");
}

#[test]
fn region_gives_ranges_inside_of_itself_only() {
    let file = Temp::new("region");
    let region = Region::open(&file.0, 1000, 5000).unwrap();
    let own = region.own(0, 2500).unwrap();
    let peer = region.peer(2500, 2500).unwrap();
    assert!(own.is_writable() && !peer.is_writable());
    assert_eq!(read(&own, 0), (1000 % 251) as u8);
    assert_eq!(read(&peer, 0), (3500 % 251) as u8);
    for (at, len) in [(2501, 2500), (5000, 1), (usize::MAX, 1), (1, usize::MAX)] {
        let error = region.own(at, len).unwrap_err();
        assert!(matches!(error, MapError::OutOfRange { .. }), "{error}");
    }
    let observer = Region::open_read_only(&file.0, 1000, 5000).unwrap();
    assert_eq!(read(&observer.peer(0, 1).unwrap(), 0), read(&own, 0));
    assert!(matches!(observer.own(0, 1), Err(MapError::Io(_))));
}

#[test]
fn dropped_mapping_is_unmapped() {
    let file = Temp::new("dropped");
    let name = file.0.to_string_lossy().into_owned();
    let mapped = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.matches(&name).count()
    };
    let map = Mapping::shared(&file.1, 4000, 200).unwrap();
    assert_eq!(mapped(), 1);
    drop(map);
    assert_eq!(mapped(), 0);
}

#[test]
fn region_that_several_make_is_as_long_as_the_longest() {
    let path = std::env::temp_dir().join(format!("sinew-longest-{}", std::process::id()));
    for _ in 0..500 {
        let _ = std::fs::remove_file(&path);
        let begin = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for pages in 1..=4 {
                let (path, begin) = (&path, &begin);
                scope.spawn(move || {
                    begin.wait();
                    let region = Region::create(path, 0, pages * 4096).unwrap();
                    // Its end is there from now on.
                    assert!(region.own(0, pages * 4096).is_ok());
                });
            }
        });
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 4 * 4096);
    }
    std::fs::remove_file(&path).unwrap();
}
