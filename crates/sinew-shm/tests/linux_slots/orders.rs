//! One master and two remotes, each a process, started in every order; then each is killed and started
//! again.

use std::path::PathBuf;
use std::time::Instant;

use super::child::Child;
use super::random::Random;
use super::traffic::HANGS;

const SLOTS: u32 = 2;
const MASTER: usize = 0;
const ORDERS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

pub fn run(times: u64, random: &mut Random) {
    for time in 0..times {
        for order in ORDERS {
            let name = format!("sinew-orders-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = std::fs::remove_file(&path);
            let mut system = System {
                path,
                children: [const { None }; 3],
                slots: [None; 3],
            };
            for who in order {
                system.start(who);
                if time % 2 == 0 {
                    random.sleep(20_000);
                }
            }
            system.moves(&[0, 1]);
            // Each, beginning with the first that was started.
            for who in order {
                system.children[who].as_mut().unwrap().kill();
                random.sleep(60_000);
                system.start(who);
                match system.slots[who] {
                    // The other remote has not noticed anything.
                    Some(slot) => system.moves(&[slot]),
                    None => system.moves(&[0, 1]),
                }
            }
            system.end();
        }
    }
    println!("one master and two remotes: 6 orders, each started again, {times} times");
}

struct System {
    path: PathBuf,
    children: [Option<Child>; 3],
    /// Of the remotes.
    slots: [Option<u32>; 3],
}

impl System {
    fn start(&mut self, who: usize) {
        let role = if who == MASTER { "master" } else { "remote" };
        let child = Child::start(role, &self.path, SLOTS);
        if who != MASTER {
            let slot = child.slot();
            let had = self.slots[who].replace(slot);
            assert!(had.is_none_or(|had| had == slot), "the one that is free");
            assert_ne!(self.slots[1], self.slots[2]);
        }
        self.children[who] = Some(child);
    }

    /// Waits until the master says that packets go on these slots, and nothing of any other.
    fn moves(&mut self, slots: &[u32]) {
        let master = self.children[MASTER].as_ref().unwrap();
        let begin = Instant::now();
        let mut missing = slots.to_vec();
        while !missing.is_empty() {
            let left = HANGS.saturating_sub(begin.elapsed());
            let line = master.hear(left).expect("what the master says");
            let mut words = line.split(' ');
            let (what, slot) = (words.next().unwrap(), words.next().unwrap());
            let slot = slot.parse().unwrap();
            assert!(slots.contains(&slot), "{line}, of {slots:?}");
            if what == "moving" {
                missing.retain(|&it| it != slot);
            }
        }
    }

    fn end(&mut self) {
        // The master first: it drains, which needs the remotes.
        for child in self.children.iter_mut().flatten() {
            child.end();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}
