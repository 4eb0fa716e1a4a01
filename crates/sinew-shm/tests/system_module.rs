//! One system file of which both sides have their constants: one compiles in the module that `sinew gen`
//! makes of it, the other loads it.
#![cfg(all(feature = "toml", not(loom)))]

mod support;
/// Made of `examples/system.toml`; `tests/system.rs` compares it, and writes it anew.
#[path = "golden/system.rs"]
mod system;

#[cfg(all(feature = "linux", target_os = "linux"))]
use std::error::Error;
#[cfg(all(feature = "linux", target_os = "linux"))]
use std::path::Path;
use std::rc::Rc;

use sinew_shm::domain::file::system::SystemFile;
use sinew_shm::domain::{Config, End, Options, Receiver, Role, Sender, Status};
#[cfg(all(feature = "linux", target_os = "linux"))]
use sinew_shm::linux::{
    Region,
    link::{Link, RegionBell},
};
use support::Solo;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/system.toml");

fn example() -> SystemFile {
    SystemFile::load(EXAMPLE).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn who_compiles_it_in_and_who_loads_it_have_the_same() {
    let file = example();
    for (name, config, hash, spans) in [
        (
            "control",
            system::control::LINK,
            system::control::HASH,
            [system::control::FIRST, system::control::SECOND],
        ),
        (
            "trace",
            system::trace::LINK,
            system::trace::HASH,
            [system::trace::FIRST, system::trace::SECOND],
        ),
    ] {
        let link = file.link(name).unwrap();
        assert_eq!(link.config(), config);
        assert_eq!((link.config().hash(), config.hash()), (hash, hash));
        assert_eq!(
            [Role::First, Role::Second].map(|role| link.segment(role)),
            spans
        );
    }
    let trace = file.link("trace").unwrap();
    assert_eq!(trace.role("rtos"), Some(system::trace::rtos::ROLE));
    assert_eq!(trace.role("linux"), Some(system::trace::linux::ROLE));
    assert_eq!(trace.role("core 7"), None);
    // The same bytes, where each of the two sees them.
    assert_eq!(system::trace::linux::OWN.offset, 0x3100_3000);
    assert_eq!(system::trace::rtos::PEER.offset, 0x3000);
    assert_eq!(
        trace.seen_by(Role::Second, trace.segment(Role::Second)),
        system::trace::rtos::OWN
    );
    assert_eq!(system::trace::channels::LEVEL, 2);
    assert_eq!(system::regions::tcm::LEN, 0x4000);
    assert_eq!(system::regions::tcm::BASE_LINUX, 0x3100_0000);
}

#[test]
fn a_side_with_the_constants_and_one_with_the_file_come_up() {
    let link = example();
    let loaded = link.link("control").unwrap().leak();
    let (first, second) = support::memory(&loaded);
    let end = |memory, config: Config<'static>, role| {
        let parts = support::parts(Solo, &config);
        Rc::new(End::open(memory, config, role, parts, Options::default()).unwrap())
    };
    let linux = end(first, loaded, Role::First);
    let rtos = end(second, system::control::LINK, system::control::rtos::ROLE);
    linux.look(0);
    assert_eq!(rtos.look(0), Status::Up);
    assert_eq!(linux.look(0), Status::Up);
    let id = system::control::channels::CONTROL;
    let (sender, receiver) = (
        Sender::new(&linux, id).unwrap(),
        Receiver::new(&rtos, id).unwrap(),
    );
    sender.send(b"go").unwrap();
    assert_eq!(receiver.receive().unwrap().unwrap().len(), 2);
}

// ANCHOR: linux
/// What a domain opens under Linux, of a loaded file; `path` is `/dev/mem`, a UIO device, or a file.
#[cfg(all(feature = "linux", target_os = "linux"))]
fn open(path: &Path, system: &SystemFile, domain: &str) -> Result<Link, Box<dyn Error>> {
    let control = system.link("control").ok_or("no such link")?;
    let role = control.role(domain).ok_or("not a side of it")?;
    let whole = control.whole(role).ok_or("not in whole pages")?;
    let region = Region::create(path, whole.offset, whole.len as usize)?;
    let (bell, options) = (RegionBell::Process, Default::default());
    Ok(Link::in_region(
        &region,
        control.leak(),
        role,
        bell,
        options,
    )?)
}
// ANCHOR_END: linux

#[test]
#[cfg(all(feature = "linux", target_os = "linux", not(miri)))]
fn processes_find_each_other_in_the_memory_that_the_file_names() {
    let folder = std::env::temp_dir();
    let path = folder.join(format!("sinew-system-{}", std::process::id()));
    let text = std::fs::read_to_string(EXAMPLE).unwrap();
    // Both are processes of this machine, and the file is as long as one region.
    let text = text.replace("0x3000_0000", "0").replace("0x2000_0000", "0");
    let text = text.replace(
        "linux = 0x3100_0000, rtos = 0",
        "linux = 0x10_0000, rtos = 0x10_0000",
    );
    let file = SystemFile::parse(EXAMPLE, &text).unwrap();
    let open = |domain| open(&path, &file, domain).unwrap();
    let (linux, rtos) = (open("linux"), open("rtos"));
    std::thread::scope(|scope| {
        scope.spawn(|| linux.up_within(None).unwrap());
        rtos.up_within(None).unwrap();
    });
    std::fs::remove_file(path).unwrap();
}
