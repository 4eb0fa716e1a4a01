//! A side whose configuration is not the peer's must not write over a core that runs: what it wrote of
//! itself it wrote when it started.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use sinew_shm::domain::{
    self, Channel, Config, Doorbell, End, Memory, Parts, Pool, Receiver, Role, Silent, Status,
};
use sinew_shm::linux::bell::{Seen, Wait, Woken};
use sinew_shm::linux::link::{Link, LinkError, Options, RegionBell};
use sinew_shm::linux::map::MapError;
use sinew_shm::linux::overlap::Overlap;
use sinew_shm::linux::{Mapping, Region};
use sinew_shm::{Segment, StdLock};

use super::LONG;

const fn calls(size: u32) -> [Channel; 1] {
    [Channel::new(1, "rpc", Pool::new(16, size))]
}
/// Of one segment fits into the first page, of the other several pages do not suffice.
const SMALL: Config = Config::new(&calls(64));
const LARGE: Config = Config::new(&calls(4096));

/// Where the link begins in the file.
const OFFSET: u64 = 8192;

/// The memory that a core shares; it goes with its file.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = super::links::file(name);
        let len = OFFSET + domain::Region::of(&LARGE.mutual()).len;
        File::create(&path).unwrap().set_len(len).unwrap();
        Place(path)
    }

    fn region(&self, config: Config) -> Region {
        let len = domain::Region::of(&config).len as usize;
        Region::open(&self.0, OFFSET, len).unwrap()
    }

    fn side(
        &self,
        config: Config<'static>,
        role: Role,
        bell: &Arc<Bell>,
    ) -> Result<Link, LinkError> {
        let bell = RegionBell::Other(bell.clone());
        Link::in_region(&self.region(config), config, role, bell, Options::default())
    }

    /// Why it is not opened, and that not a byte was written meanwhile but the core's own signs of life.
    #[track_caller]
    fn refused(&self, config: Config<'static>, role: Role, bell: &Arc<Bell>) -> Overlap {
        let before = self.bytes();
        let overlap = match self.side(config, role, bell) {
            Err(LinkError::Map(MapError::Overlap(overlap))) => *overlap,
            other => panic!("{other:?}"),
        };
        let mut after = self.bytes();
        let life = overlap.offset as usize + 0x80;
        after[life..life + 4].copy_from_slice(&before[life..life + 4]);
        assert!(before == after);
        overlap
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.0).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A core: it has no lock on its segment, and looks when it is rung.
struct Core {
    end: End<Platform>,
    now: AtomicU32,
    _maps: [Mapping; 2],
}

struct Platform;

impl domain::Platform for Platform {
    type Lock = StdLock;
    type Doorbell = Silent;
    type Cache = domain::Coherent;
    type Slots = Vec<domain::Slot>;
    type Blocks = Vec<domain::Block>;
}

impl Core {
    fn start(place: &Place, config: Config<'static>, role: Role) -> Arc<Core> {
        let parts = domain::Region::of(&config);
        let region = place.region(config);
        let map = |part: domain::Span| region.own(part.offset as usize, part.len as usize);
        let maps = [role, role.peer()].map(|role| map(parts.segment(role)).unwrap());
        let segment = |map: &Mapping| {
            // SAFETY: mapped for as long as the core keeps the map, which is longer than the end.
            unsafe { Segment::from_raw(map.as_ptr(), map.len()).unwrap() }
        };
        let [mine, peer] = [&maps[0], &maps[1]].map(segment);
        assert_eq!(parts.exchange.len, 0);
        // SAFETY: as above; only ends reach into the memory.
        let memory = unsafe { Memory::new(mine, peer, None) };
        let parts = Parts {
            doorbell: Silent,
            cache: domain::Coherent,
            platform: Platform,
            slots: config
                .channels
                .iter()
                .map(|_| domain::Slot::EMPTY)
                .collect(),
            blocks: vec![domain::Block::NEW; config.blocks()],
        };
        let end = End::open(memory, config, role, parts, domain::Options::default()).unwrap();
        let now = AtomicU32::new(0);
        end.look(0);
        Arc::new(Core {
            end,
            now,
            _maps: maps,
        })
    }

    /// Another sign of life is due at each look.
    fn look(&self) {
        self.end
            .look(100 + self.now.fetch_add(100, Ordering::Relaxed));
    }
}

/// Rings a core, whose interrupt handler then runs, if there is one.
struct Bell(Option<Arc<Core>>);

impl Doorbell for Bell {
    fn ring(&self) {
        self.0.iter().for_each(|core| core.look());
    }
}

impl Wait for Bell {
    fn seen(&self) -> Seen {
        Seen::default()
    }

    fn wait(&self, _: Seen, timeout: Option<Duration>) -> Woken {
        thread::sleep(timeout.unwrap_or(LONG).min(Duration::from_millis(1)));
        self.ring();
        Woken::TimedOut
    }

    fn interrupt(&self) {}
}

fn bell_of(core: &Arc<Core>) -> Arc<Bell> {
    Arc::new(Bell(Some(core.clone())))
}

fn nobodys_bell() -> Arc<Bell> {
    Arc::new(Bell(None))
}

/// A core that is reset: nothing tells of its end.
fn reset(core: Arc<Core>) {
    // What it held stays mapped, as the memory of a core does.
    std::mem::forget(core);
}

#[track_caller]
fn assert_up(link: &Link, core: &Core) {
    link.up_within(Some(LONG)).unwrap();
    core.look();
    assert_eq!(core.end.status(), Status::Up);
    link.sender(1)
        .unwrap()
        .send_within(b"a packet", Some(LONG))
        .unwrap();
    let receiver = Receiver::new(&&core.end, 1).unwrap();
    let packet = receiver.receive().unwrap().unwrap();
    assert_eq!(packet.len(), 8);
}

#[test]
fn core_that_runs_stays_in_service_whatever_blocks_another_side_believes_in() {
    let place = Place::new("overlap-runs");
    let core = Core::start(&place, SMALL, Role::Second);
    let bell = bell_of(&core);
    let overlap = place.refused(LARGE, Role::First, &bell);
    assert_eq!(overlap.offset, OFFSET + 4096);
    assert_eq!(overlap.side.hash, SMALL.hash());
    assert_eq!(overlap.channel.unwrap().pool, Pool::new(16, 64));
    assert!(overlap.is_alive);
    let text = MapError::Overlap(Box::new(overlap)).to_string();
    assert!(!text.contains("clear"), "{text}");
    for part in [
        "the other side runs at 0x3000",
        "channel 1 `rpc`: 16 blocks of 64 bytes",
        "give both sides the same configuration, or check the offset",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_up(&place.side(SMALL, Role::First, &bell).unwrap(), &core);
}

#[test]
fn core_that_gives_no_sign_of_life_is_not_written_over_either() {
    let place = Place::new("overlap-sleeps");
    let core = Core::start(&place, SMALL, Role::Second);
    let overlap = place.refused(LARGE, Role::First, &nobodys_bell());
    assert!(!overlap.is_alive);
    let text = MapError::Overlap(Box::new(overlap)).to_string();
    assert!(text.contains("the other side stands at 0x3000"), "{text}");
    assert!(text.contains("runs any more, clear the memory"), "{text}");
    let bell = bell_of(&core);
    assert_up(&place.side(SMALL, Role::First, &bell).unwrap(), &core);
}

#[test]
fn core_that_is_not_written_over_outlives_a_side_that_looks_elsewhere_for_it() {
    let place = Place::new("overlap-smaller");
    let core = Core::start(&place, LARGE, Role::Second);
    let bell = bell_of(&core);
    let wrong = place.side(SMALL, Role::First, &bell).unwrap();
    core.look();
    assert!(matches!(core.end.status(), Status::Refused(_)));
    drop(wrong);
    assert_up(&place.side(LARGE, Role::First, &bell).unwrap(), &core);
}

#[test]
fn core_in_whose_segment_this_side_would_begin_is_not_written_over() {
    let place = Place::new("overlap-second");
    let core = Core::start(&place, LARGE, Role::First);
    let bell = bell_of(&core);
    let overlap = place.refused(SMALL, Role::Second, &bell);
    assert_eq!((overlap.offset, overlap.is_alive), (OFFSET, true));
    assert_up(&place.side(LARGE, Role::Second, &bell).unwrap(), &core);
}

#[test]
fn core_where_both_sides_blocks_would_be_is_not_written_over() {
    const MUTUAL: Config =
        Config::new(&[Channel::new(1, "lent", Pool::new(4, 8192)).with_replies()]).mutual();
    const LONGER: Config = Config::new(&calls(256));
    let parts = domain::Region::of(&MUTUAL);
    let at = domain::Region::of(&LONGER).second;
    assert!((parts.exchange.offset..parts.exchange.end()).contains(&at.offset));
    let place = Place::new("overlap-exchange");
    let core = Core::start(&place, LONGER, Role::Second);
    let bell = bell_of(&core);
    let overlap = place.refused(MUTUAL, Role::First, &bell);
    assert_eq!(
        (overlap.offset, overlap.is_alive),
        (OFFSET + at.offset, true)
    );
    assert_up(&place.side(LONGER, Role::First, &bell).unwrap(), &core);
}

#[test]
fn what_a_core_with_other_blocks_left_is_no_hindrance_where_one_that_fits_runs() {
    let place = Place::new("overlap-left");
    reset(Core::start(&place, SMALL, Role::Second));
    let left = place.refused(LARGE, Role::First, &nobodys_bell());
    assert_eq!((left.offset, left.is_alive), (OFFSET + 4096, false));
    let core = Core::start(&place, LARGE, Role::Second);
    let bell = bell_of(&core);
    assert_up(&place.side(LARGE, Role::First, &bell).unwrap(), &core);
}

#[test]
fn what_a_core_that_would_fit_left_is_no_leave_to_write_over_one_that_runs() {
    let place = Place::new("overlap-both");
    reset(Core::start(&place, LARGE, Role::Second));
    let core = Core::start(&place, SMALL, Role::Second);
    let bell = bell_of(&core);
    assert!(place.refused(LARGE, Role::First, &bell).is_alive);
    // Nor where nobody can tell which of them it is.
    assert!(!place.refused(LARGE, Role::First, &nobodys_bell()).is_alive);
    assert_up(&place.side(SMALL, Role::First, &bell).unwrap(), &core);
}

#[test]
fn core_that_has_closed_its_side_is_written_over() {
    let place = Place::new("overlap-closed");
    drop(Core::start(&place, SMALL, Role::Second));
    let link = place.side(LARGE, Role::First, &nobodys_bell()).unwrap();
    let core = Core::start(&place, LARGE, Role::Second);
    assert_up(&link, &core);
}

#[test]
fn what_a_process_left_is_written_over_by_the_next_one() {
    let place = Place::new("overlap-process");
    reset(Core::start(&place, SMALL, Role::Second));
    let open = |role| {
        let region = place.region(LARGE);
        Link::<StdLock>::in_region(
            &region,
            LARGE,
            role,
            RegionBell::Process,
            Options::default(),
        )
    };
    let (first, second) = (open(Role::First).unwrap(), open(Role::Second).unwrap());
    thread::scope(|scope| {
        scope.spawn(|| first.up_within(Some(LONG)).unwrap());
        second.up_within(Some(LONG)).unwrap();
    });
}
