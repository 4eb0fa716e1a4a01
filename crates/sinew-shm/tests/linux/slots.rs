//! Slots: who has which, and what stands against having one. Whole processes that are killed are in
//! `tests/linux_slots`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sinew_shm::StdLock;
use sinew_shm::domain::{Channel, Config, Lost, NoRegions, Pool, Region as Layout, Regions, Role};
use sinew_shm::linux::link::{Link, Options, RegionBell, WaitError};
use sinew_shm::linux::map::MapError;
use sinew_shm::linux::slots::{Claimed, Slots, SlotsError};
use sinew_shm::linux::{Mapping, Region};

use super::{LONG, closed, start, write};

const LINK: Config = Config::new(&[
    Channel::new(1, "urgent", Pool::new(4, 64)).priority(0),
    Channel::new(2, "bulk", Pool::new(4, 500)),
]);
const OTHER: Config = Config::new(&[Channel::new(1, "urgent", Pool::new(5, 64)).priority(0)]);

/// Not at the beginning of the file.
const OFFSET: u64 = 8192;

/// A file for one test, removed at its end.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        let name = format!("sinew-slots-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        File(path)
    }

    fn slots(&self, slots: u32) -> Slots {
        Slots::create(&self.0, OFFSET, LINK, slots).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn claim(slots: &Slots) -> Result<Claimed, SlotsError> {
    slots.claim(Options::default())
}

fn master(slots: &Slots, slot: u32) -> Link {
    slots.master(slot, Options::default()).unwrap()
}

fn come_up(first: &Link, second: &Link) {
    thread::scope(|scope| {
        scope.spawn(|| first.up_within(Some(LONG)).unwrap());
        second.up_within(Some(LONG)).unwrap();
    });
}

fn taken(slots: &Slots, role: Role) -> Vec<bool> {
    let is_taken = |slot| slots.is_taken(slot, role).unwrap();
    (0..slots.count()).map(is_taken).collect()
}

#[test]
fn each_claim_takes_another_slot_and_the_last_is_told_how_many_there_are() {
    let file = File::new("each");
    let slots = file.slots(4);
    let claimed: Vec<Claimed> = (0..4).map(|_| claim(&slots).unwrap()).collect();
    let numbers: Vec<u32> = claimed.iter().map(|claimed| claimed.slot).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    let Err(error) = claim(&slots) else {
        panic!("a fifth slot of four");
    };
    assert!(matches!(error, SlotsError::AllTaken { slots: 4 }));
    assert!(error.to_string().contains("all 4 slots are taken"));
    // Nobody is the master yet.
    assert_eq!(taken(&slots, Role::Second), [true; 4]);
    assert_eq!(taken(&slots, Role::First), [false; 4]);
}

#[test]
fn a_slot_that_is_given_back_is_the_next_that_is_claimed() {
    let file = File::new("back");
    let slots = file.slots(4);
    let mut claimed: Vec<Claimed> = (0..4).map(|_| claim(&slots).unwrap()).collect();
    let sender = claimed[2].link.sender(1).unwrap();
    drop(claimed.remove(2));
    assert!(claim(&slots).is_err(), "a handle lives");
    drop(sender);
    closed();
    assert_eq!(taken(&slots, Role::Second), [true, true, false, true]);
    assert_eq!(claim(&slots).unwrap().slot, 2);
}

#[test]
fn packets_of_one_slot_are_seen_in_no_other() {
    let file = File::new("own");
    let slots = file.slots(3);
    let masters: Vec<Link> = (0..3).map(|slot| master(&slots, slot)).collect();
    // By slots that somebody else has opened, who need not know how many.
    let theirs = Slots::open(&file.0, OFFSET, LINK).unwrap();
    let remotes: Vec<Claimed> = (0..3).map(|_| claim(&theirs).unwrap()).collect();
    for remote in &remotes {
        come_up(&masters[remote.slot as usize], &remote.link);
    }
    for (slot, master) in masters.iter().enumerate() {
        let there = master.sender(2).unwrap();
        for number in 0..=slot as u8 {
            there.send(&[slot as u8, number]).unwrap();
        }
    }
    for remote in &remotes {
        let here = remote.link.receiver(2).unwrap();
        for number in 0..=remote.slot as u8 {
            let packet = here.receive_within(Some(LONG)).unwrap();
            let mut bytes = [0; 2];
            assert_eq!(packet.copy_to(&mut bytes), Ok(2));
            assert_eq!(bytes, [remote.slot as u8, number]);
        }
        assert!(here.receive().unwrap().is_none());
    }
}

#[test]
fn a_slot_taken_over_begins_in_a_new_session_with_every_block_back() {
    let file = File::new("over");
    let slots = file.slots(2);
    let first = master(&slots, 0);
    let mut old = claim(&slots).unwrap();
    for turn in 0..20u8 {
        come_up(&first, &old.link);
        let (there, back) = (first.sender(1).unwrap(), old.link.sender(1).unwrap());
        // Everything is on its way when the remote goes.
        for _ in 0..4 {
            there.send(&[turn]).unwrap();
            back.send(&[turn]).unwrap();
        }
        drop((back, old));
        closed();
        old = claim(&slots).unwrap();
        assert_eq!(old.slot, 0);
        let here = old.link.receiver(1).unwrap();
        assert_eq!(first.receiver(1).map(drop), Some(()));
        let lost = loop {
            match there.place_within(1, Some(LONG)) {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(matches!(
            lost,
            WaitError::Lost(Lost::Closed | Lost::Restarted)
        ));
        come_up(&first, &old.link);
        assert!(here.receive().unwrap().is_none(), "a packet of before");
        let again = first.sender(1).unwrap();
        let places: Vec<_> = (0..4).map(|_| again.place(1).unwrap()).collect();
        assert!(again.place(1).is_err());
        drop(places);
        assert!(first.end().check_books() && old.link.end().check_books());
    }
}

#[test]
fn sides_are_had_by_their_number_once() {
    let file = File::new("number");
    let slots = file.slots(2);
    let side =
        |slot, role| slots.side::<StdLock>(slot, role, RegionBell::Process, Options::default());
    let _master = side(1, Role::First).unwrap();
    let again = side(1, Role::First);
    assert!(matches!(again, Err(SlotsError::Taken { slot: 1 })));
    let _remote = side(1, Role::Second).unwrap();
    let none = side(2, Role::First);
    assert!(matches!(
        none,
        Err(SlotsError::NoSlot { slot: 2, slots: 2 })
    ));
    assert_eq!(claim(&slots).unwrap().slot, 0);
}

#[test]
fn many_may_make_the_slots_at_the_same_time() {
    for turn in 0..50 {
        let file = File::new(&format!("race-{turn}"));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(file.slots(3).count(), 3));
            }
        });
        let found = Slots::open(&file.0, OFFSET, LINK).unwrap();
        assert_eq!(Some(found.regions()), Regions::of(&LINK, 3));
    }
}

#[test]
fn of_different_slots_made_at_the_same_time_one_is_there_whole() {
    for turn in 0..50 {
        let file = File::new(&format!("unlike-{turn}"));
        let made: Vec<bool> = thread::scope(|scope| {
            let make = |config, slots| Slots::create(&file.0, OFFSET, config, slots).is_ok();
            let threads: Vec<_> = (0..8)
                .map(|number| {
                    let config = if number % 2 == 0 { LINK } else { OTHER };
                    scope.spawn(move || make(config, 2 + number % 2))
                })
                .collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect()
        });
        assert!(made == [true, false].repeat(4) || made == [false, true].repeat(4));
    }
}

#[test]
fn what_is_there_and_differs_is_named_and_left_as_it_is() {
    let file = File::new("differs");
    drop(file.slots(3));
    let before = std::fs::read(&file.0).unwrap();
    let named = |made: Result<Slots, SlotsError>| match made {
        Err(SlotsError::Differs { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    let create = |config, slots| Slots::create(&file.0, OFFSET, config, slots);
    assert_eq!(named(create(LINK, 2)), "number of slots");
    assert_eq!(named(create(OTHER, 3)), "configuration hash");
    let opened = Slots::open(&file.0, OFFSET, OTHER);
    assert_eq!(named(opened), "configuration hash");
    assert_eq!(std::fs::read(&file.0).unwrap(), before);
}

#[test]
fn what_is_no_slots_is_refused_and_left_as_it_is() {
    let file = File::new("garbage");
    let text = b"a letter, which is not to be written over".repeat(1000);
    std::fs::write(&file.0, &text).unwrap();
    let made = Slots::create(&file.0, OFFSET, LINK, 2);
    assert!(matches!(made, Err(SlotsError::Not(NoRegions::Magic(_)))));
    assert_eq!(std::fs::read(&file.0).unwrap()[..text.len()], text);
    for slots in [0, Regions::MAX + 1] {
        let made = Slots::create(&file.0, OFFSET, LINK, slots);
        assert!(matches!(made, Err(SlotsError::Count(count)) if count == slots));
    }
}

#[test]
fn slots_that_nobody_has_made_are_not_opened() {
    let file = File::new("nobody");
    let open = || Slots::open(&file.0, OFFSET, LINK);
    assert!(matches!(open(), Err(SlotsError::Map(MapError::Io(_)))));
    std::fs::write(&file.0, []).unwrap();
    assert!(matches!(
        open(),
        Err(SlotsError::Map(MapError::TooShort { .. }))
    ));
    std::fs::write(&file.0, [0; 16384]).unwrap();
    assert!(matches!(open(), Err(SlotsError::Not(NoRegions::Absent))));
}

/// Whoever wrote the header may have been killed before its first word.
#[test]
fn a_header_that_was_begun_is_written_anew() {
    let file = File::new("begun");
    std::fs::write(&file.0, [0; OFFSET as usize + 64]).unwrap();
    let region = Region::open(&file.0, OFFSET, 64).unwrap();
    let map: Mapping = region.own(0, 64).unwrap();
    for at in 4..64 {
        write(&map, at, 0xA5);
    }
    assert_eq!(file.slots(2).count(), 2);
    assert!(Slots::open(&file.0, OFFSET, LINK).is_ok());
}

#[test]
fn an_offset_between_lines_is_refused() {
    let file = File::new("unaligned");
    let made = Slots::create(&file.0, 4100, LINK, 2);
    assert!(matches!(
        made,
        Err(SlotsError::Map(MapError::OutOfRange { .. }))
    ));
}

#[test]
fn an_observer_who_may_only_read_sees_who_is_there() {
    let file = File::new("observer");
    let slots = file.slots(2);
    let _remote = claim(&slots).unwrap();
    let _master = master(&slots, 1);
    let len = slots.regions().len() as usize;
    let region = Region::open_read_only(&file.0, OFFSET, len).unwrap();
    let sees = |slot, role| {
        let part = slots.regions().segment(slot, role).unwrap();
        region.is_taken(part).unwrap()
    };
    let all = [0, 1].map(|slot| [Role::First, Role::Second].map(|role| sees(slot, role)));
    assert_eq!(all, [[false, true], [true, false]]);
    assert_eq!(Layout::of(&LINK), slots.regions().region);
}

const CLAIMER: &str = "SINEW_TEST_SLOTS";

/// Not a test of its own: claims a slot, starts a program, and waits to be killed.
#[test]
#[ignore = "started by another test"]
fn claimer() {
    let Some(path) = std::env::var_os(CLAIMER) else {
        return;
    };
    let slots = Slots::open(path, OFFSET, LINK).unwrap();
    let claimed = claim(&slots).unwrap();
    // It ends with the pipe of the test, whatever else happens.
    let mut child = Command::new("cat").stdin(Stdio::inherit()).spawn().unwrap();
    println!("\nslot {} {}", claimed.slot, child.id());
    loop {
        let _ = claimed.link.up_within(Some(Duration::from_millis(50)));
        if child.try_wait().unwrap().is_some() {
            return;
        }
    }
}

fn start_claimer(path: &Path) -> (Child, u32) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "slots::claimer", "--ignored", "--nocapture"])
        .env(CLAIMER, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = start(&mut command);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.strip_prefix("slot ")?.to_owned()))
        .unwrap();
    let (slot, _program) = said.split_once(' ').unwrap();
    (child, slot.parse().unwrap())
}

#[test]
fn a_program_that_a_killed_process_has_started_does_not_keep_its_slot() {
    let file = File::new("inherited");
    let slots = file.slots(3);
    let _zero = claim(&slots).unwrap();
    let (mut child, slot) = start_claimer(&file.0);
    assert_eq!(slot, 1);
    let _two = claim(&slots).unwrap();
    assert!(claim(&slots).is_err());
    // Held open, so that the program of the killed one lives on.
    let pipe = child.stdin.take();
    child.kill().unwrap();
    child.wait().unwrap();
    // The program may just be starting, with what it inherits not closed yet.
    let end = Instant::now() + LONG;
    while slots.is_taken(1, Role::Second).unwrap() {
        assert!(Instant::now() < end, "the program keeps it");
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(taken(&slots, Role::Second), [true, false, true]);
    assert_eq!(claim(&slots).unwrap().slot, 1);
    drop(pipe);
}

#[test]
fn a_slot_claimed_anew_ends_the_wait_of_its_master_before_any_look() {
    let file = File::new("anew");
    let slots = file.slots(2);
    // Nothing is found by looking every now and then.
    let mut options = Options::default();
    options.end.heartbeat = 3_600_000;
    let first: Link = slots.master(0, options).unwrap();
    let (mut child, slot) = start_claimer(&file.0);
    assert_eq!(slot, 0);
    first.up_within(Some(LONG)).unwrap();
    let here = first.receiver(1).unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| here.receive_within(None).map(drop));
        child.kill().unwrap();
        child.wait().unwrap();
        let next = loop {
            let next = claim(&slots).unwrap();
            if next.slot == 0 {
                break next;
            }
        };
        let lost = waiter.join().unwrap();
        assert_eq!(lost, Err(WaitError::Lost(Lost::Restarted)));
        come_up(&first, &next.link);
    });
}

#[test]
fn answers_in_the_lent_block_stay_in_their_slot() {
    const MUTUAL: Config =
        Config::new(&[Channel::new(1, "calls", Pool::new(4, 64)).with_replies()]).mutual();
    let file = File::new("mutual");
    let slots = Slots::create(&file.0, OFFSET, MUTUAL, 2).unwrap();
    let masters = [0, 1].map(|slot| master(&slots, slot));
    let remotes = [0, 1].map(|_| claim(&slots).unwrap());
    for remote in &remotes {
        come_up(&masters[remote.slot as usize], &remote.link);
    }
    let callers = masters.each_ref().map(|link| link.sender(1).unwrap());
    for (slot, caller) in callers.iter().enumerate() {
        assert!(caller.send_within(&[slot as u8; 32], Some(LONG)).unwrap());
    }
    for remote in &remotes {
        let here = remote.link.receiver(1).unwrap();
        let mut packet = here.receive_within(Some(LONG)).unwrap();
        assert_eq!(packet.trusted().unwrap(), [remote.slot as u8; 32]);
        packet.place().unwrap()[0] = 100 + remote.slot as u8;
        assert!(packet.reply(1));
    }
    for (slot, caller) in callers.iter().enumerate() {
        let reply = caller.reply_within(Some(LONG)).unwrap();
        assert_eq!(reply[..], [100 + slot as u8]);
    }
}
