//! Raw channels between two processes: a station that measures, and whoever wants to know.

// ANCHOR: link
use std::error::Error;
use std::path::Path;
use std::time::Duration;

use sinew_shm::domain::{Channel, Config, Pool, Predicate};
use sinew_shm::linux::link::{Link, LinkError, Listener, Options, WaitError};

const ORDERS: u16 = 1;
const SAMPLES: u16 = 2;

/// Both sides compile this in, and refuse a peer that has another.
const LINK: Config = Config::new(&[
    // The station (first side) has 8 blocks of 64 bytes here, and so has its peer.
    Channel::new(ORDERS, "orders", Pool::new(8, 64)).priority(0),
    // Only the station sends here.
    Channel::new(SAMPLES, "samples", Pool::new(16, 1024))
        .pools(Pool::new(16, 1024), Pool::new(0, 0))
        .priority(200),
]);
const _: () = assert!(LINK.check().is_ok());

const SECOND: Option<Duration> = Some(Duration::from_secs(1));
// ANCHOR_END: link

// ANCHOR: station
fn listen(path: &Path) -> Result<(), LinkError> {
    let listener = Listener::bind(path)?;
    loop {
        // None: for ever. An error of one accept says nothing of the next.
        let link: Link = match listener.accept(LINK, Options::default(), None) {
            Ok(link) => link,
            Err(error) => {
                eprintln!("no link: {error}");
                std::thread::sleep(Duration::from_millis(10)); // it may be a lack of descriptors
                continue;
            }
        };
        std::thread::spawn(move || {
            if let Err(error) = station(&link) {
                eprintln!("a link ended: {error}");
            }
        });
    }
}

fn station(link: &Link) -> Result<(), Box<dyn Error>> {
    link.up_within(SECOND)?;
    let orders = link.receiver(ORDERS).ok_or("no such channel")?;
    let answers = link.sender(ORDERS).ok_or("no such channel")?;
    let samples = link.sender(SAMPLES).ok_or("no such channel")?;
    loop {
        let order = match orders.receive_within(None) {
            Ok(order) => order,
            Err(WaitError::Lost(_)) => return Ok(()), // the peer has gone
            Err(error) => return Err(error.into()),
        };
        // Of an untrusted peer each byte is read once: copied out, then used.
        let mut count = [0; 4];
        order.copy_to(&mut count)?;
        drop(order); // the block goes back
        let count = u32::from_le_bytes(count);

        // A batch: one doorbell for all of it.
        for number in 0..count {
            let mut place = samples.place_within(8, SECOND)?;
            place[..4].copy_from_slice(&(number % 3).to_le_bytes()); // which sensor
            place[4..8].copy_from_slice(&number.to_le_bytes()); // written where it leaves from
            place.publish(8)?;
        }
        samples.flush();
        answers.send_within(b"done", SECOND)?;
    }
}
// ANCHOR_END: station

// ANCHOR: client
fn client(path: &Path) -> Result<Vec<u32>, Box<dyn Error>> {
    let link: Link = Link::connect(path, LINK, Options::default())?;
    link.up_within(SECOND)?;
    let orders = link.sender(ORDERS).ok_or("no such channel")?;
    let answers = link.receiver(ORDERS).ok_or("no such channel")?;
    let samples = link.receiver(SAMPLES).ok_or("no such channel")?;

    // Sensor 2 alone: what does not match is dropped by the sender, and wakes nobody.
    samples.set_filter(Predicate::Matches {
        offset: 0,
        mask: u32::MAX,
        value: 2,
    });
    orders.send_within(&30_u32.to_le_bytes(), SECOND)?;

    let mut seen = Vec::new();
    let mut is_done = false;
    while !is_done || samples.has(1)? {
        // The most urgent channel that has a packet.
        match link.next_within(SECOND)? {
            ORDERS => {
                answers.receive_within(SECOND)?;
                is_done = true;
            }
            _ => {
                let packet = samples.receive_within(SECOND)?;
                let mut sample = [0; 8];
                packet.copy_to(&mut sample)?;
                let [.., a, b, c, d] = sample;
                seen.push(u32::from_le_bytes([a, b, c, d]));
            }
        }
    }
    Ok(seen)
}
// ANCHOR_END: client

use sinew_shm::StdLock;
use sinew_shm::domain::file::LinkFile;

#[test]
fn a_client_hears_of_one_sensor_from_another_process() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("sinew-station-{}", std::process::id()));
    let there = path.clone();
    std::thread::spawn(move || listen(&there));
    while !path.exists() {
        std::thread::yield_now();
    }
    for _ in 0..2 {
        let mut seen = client(&path);
        // The path is there a moment before somebody listens.
        while matches!(&seen, Err(error) if format!("{error:?}").contains("ConnectionRefused")) {
            seen = client(&path);
        }
        let seen = seen?;
        assert_eq!(seen, [2, 5, 8, 11, 14, 17, 20, 23, 26, 29]);
        // Whoever does not fit is refused, and the next one is not.
        const OTHER: Config = Config::new(&[Channel::new(ORDERS, "orders", Pool::new(1, 64))]);
        let refused = Link::<StdLock>::connect(&path, OTHER, Options::default());
        assert!(matches!(refused, Err(LinkError::Exchange(_))));
    }
    std::fs::remove_file(&path)?;
    Ok(())
}

#[test]
fn a_link_file_is_loaded() -> Result<(), Box<dyn Error>> {
    let file = std::env::temp_dir().join(format!("sinew-link-{}.toml", std::process::id()));
    std::fs::write(&file, LINK.to_toml())?;
    // ANCHOR: file
    let config: Config = LinkFile::load(&file)?.leak(); // once: it stays as long as the program
    assert_eq!(config.hash(), LINK.hash()); // the peer may have compiled it in
    // ANCHOR_END: file
    std::fs::remove_file(&file)?;
    Ok(())
}

#[test]
fn threads_have_a_link() -> Result<(), Box<dyn Error>> {
    // ANCHOR: threads
    let (near, far): (Link, Link) = Link::pair(LINK, Options::default())?;
    let thread = std::thread::spawn(move || -> Result<(), WaitError> {
        far.up_within(SECOND)?;
        let (Some(orders), Some(answers)) = (far.receiver(ORDERS), far.sender(ORDERS)) else {
            return Ok(());
        };
        while let Ok(order) = orders.receive_within(None) {
            let mut text = [0; 64];
            let len = order.copy_to(&mut text).map_err(WaitError::Lost)?;
            answers.send_within(&text[..len], SECOND)?;
        }
        Ok(()) // the other thread has dropped its side
    });

    near.up_within(SECOND)?;
    let order = near.sender(ORDERS).ok_or("no such channel")?;
    let answer = near.receiver(ORDERS).ok_or("no such channel")?;
    order.send_within(b"echo", SECOND)?;
    assert_eq!(answer.receive_within(SECOND)?.len(), 4);
    drop((order, answer, near)); // the link closes
    thread.join().unwrap()?;
    // ANCHOR_END: threads
    Ok(())
}

#[test]
fn the_latest_value_is_shared() -> Result<(), Box<dyn Error>> {
    // ANCHOR: state
    use sinew_shm::domain::{Role, State};

    sinew_shm::value! {
        /// Where the arm is, or is to be.
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub struct Pose {
            pub at: [f32; 3],
            pub time: u64,
        }
    }
    const POSE: u16 = 3;
    const ARM: Config = Config::new(&[Channel::of::<Pose>(POSE, "pose")]);

    let (near, far): (Link, Link) = Link::pair(ARM, Options::default())?;
    let thread = std::thread::spawn(move || far.up_within(SECOND).map(|()| far));
    near.up_within(SECOND)?;
    let far = thread.join().unwrap()?;
    let is: State<_, Pose> = State::new(near.end(), POSE).ok_or("no such channel")?;
    let wanted: State<_, Pose> = State::new(far.end(), POSE).ok_or("no such channel")?;
    let mut pose = Pose {
        at: [0.0; 3],
        time: 0,
    };
    assert_eq!(wanted.get()?, None); // nothing was set yet
    for time in 1..=1000 {
        pose.time = time;
        is.set(&pose)?; // whatever the peer does meanwhile
    }
    assert_eq!(wanted.get_with_version()?, Some((pose, 1000)));
    // Whoever is neither side, in this program or by the two segments in another one.
    let (seen, _) = near.end().observe().state::<Pose>(Role::First, POSE)?;
    assert_eq!(seen, pose);
    // ANCHOR_END: state
    Ok(())
}

#[test]
fn an_area_is_shared_by_turns() -> Result<(), Box<dyn Error>> {
    // ANCHOR: lock
    const ACCOUNT: u16 = 4;
    const BANK: Config = Config::new(&[Channel::lock(ACCOUNT, "account", 8)]);

    let (near, far): (Link, Link) = Link::pair(BANK, Options::default())?;
    let thread = std::thread::spawn(move || far.up_within(SECOND).map(|()| far));
    near.up_within(SECOND)?;
    let far = thread.join().unwrap()?;
    let (here, there) = (
        near.area(ACCOUNT).ok_or("no such channel")?,
        far.area(ACCOUNT).ok_or("no such channel")?,
    );
    for area in [&here, &there] {
        let mut account = match area.lock_within(SECOND)? {
            Ok(account) => account,
            // Its last owner died, perhaps between the two writes.
            Err(poisoned) => {
                let mut account = poisoned.accept();
                account.write(0, &[0; 8])?;
                account
            }
        };
        let (from, to): (u32, u32) = (account.get(0)?, account.get(4)?);
        account.set(0, &from.wrapping_sub(100))?;
        account.set(4, &to.wrapping_add(100))?;
        account.unlock()?; // dropping it does the same, without a word on how it went
    }
    // ANCHOR_END: lock
    let account = here.lock_within(SECOND)?.map_err(|_| "poisoned")?;
    assert_eq!(account.get::<u32>(4)?, 200);
    Ok(())
}

#[test]
fn gathering_and_polling() -> Result<(), Box<dyn Error>> {
    let (near, far): (Link, Link) = Link::pair(LINK, Options::default())?;
    let thread = std::thread::spawn(move || far.up_within(SECOND).map(|()| far));
    near.up_within(SECOND)?;
    let far = thread.join().unwrap()?;
    let samples = far.receiver(SAMPLES).ok_or("no such channel")?;
    let sender = near.sender(SAMPLES).ok_or("no such channel")?;
    for _ in 0..3 {
        sender.send_within(b"sample", SECOND)?;
    }
    let mut handled = 0;
    let mut handle = |_| handled += 1;
    // ANCHOR: gather
    // Eight packets, or what there is after 20 ms: one wake-up for all of them.
    match samples.gather_within(8, Some(Duration::from_millis(20))) {
        Ok(()) | Err(WaitError::TimedOut) => {}
        Err(error) => return Err(error.into()),
    }
    while let Some(packet) = samples.receive()? {
        handle(packet);
    }
    // ANCHOR_END: gather
    assert_eq!(handled, 3);
    Ok(())
}

// ANCHOR: slots-master
use sinew_shm::linux::slots::{Claimed, Slots};

/// The master has the first side of every slot, and here a thread for each.
fn master(path: &Path) -> Result<(), Box<dyn Error>> {
    let slots = Slots::create(path, 0, LINK, 2)?;
    std::thread::scope(|scope| {
        for slot in 0..slots.count() {
            let link: Link = slots.master(slot, Options::default())?;
            scope.spawn(move || serve(&link));
        }
        Ok(())
    })
}

/// Works for one remote after the other, until none has come for a second.
fn serve(link: &Link) {
    while link.up_within(SECOND).is_ok() {
        let (Some(orders), Some(answers)) = (link.receiver(ORDERS), link.sender(ORDERS)) else {
            return;
        };
        // Ends when the remote goes, whatever way it does.
        while let Ok(order) = orders.receive_within(None) {
            let mut number = [0; 4];
            if order.copy_to(&mut number).is_err() {
                break;
            }
            drop(order);
            let number = u32::from_le_bytes(number);
            let square = (number * number).to_le_bytes();
            if answers.send_within(&square, None).is_err() {
                break;
            }
        }
    }
}
// ANCHOR_END: slots-master

// ANCHOR: slots-remote
fn remote(path: &Path, number: u32) -> Result<u32, Box<dyn Error>> {
    // Whoever comes first makes the slots.
    let slots = Slots::create(path, 0, LINK, 2)?;
    let Claimed { link, .. } = slots.claim::<StdLock>(Options::default())?;
    link.up_within(SECOND)?;
    let orders = link.sender(ORDERS).ok_or("no such channel")?;
    let answers = link.receiver(ORDERS).ok_or("no such channel")?;
    orders.send_within(&number.to_le_bytes(), SECOND)?;
    let mut square = [0; 4];
    answers.receive_within(SECOND)?.copy_to(&mut square)?;
    Ok(u32::from_le_bytes(square))
}
// ANCHOR_END: slots-remote

#[test]
fn one_master_works_for_two_remotes() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("sinew-master-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let run = |number| remote(&path, number).map_err(|error| error.to_string());
    std::thread::scope(|scope| -> Result<(), Box<dyn Error>> {
        let master = scope.spawn(|| master(&path).map_err(|error| error.to_string()));
        let remotes = [3, 4].map(|number| scope.spawn(move || run(number)));
        let [three, four] = remotes.map(|remote| remote.join().unwrap());
        assert_eq!((three?, four?), (9, 16));
        Ok(master.join().unwrap()?)
    })?;
    std::fs::remove_file(&path)?;
    Ok(())
}
