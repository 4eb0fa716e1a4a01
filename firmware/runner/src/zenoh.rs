//! The images that are nodes of Zenoh, with a node of this process on the other end of their UART.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use sinew::frame::Framing;
use sinew::pubsub::codec::Body;
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::{Ask, PublisherOptions};
use sinew_io::bytes::ByteLink;
use sinew_io::pubsub::{Answer, Node, Options, Overflow, OwnedSample, Samples, accept};

use crate::Result;
use crate::agreed::BATCH;
use crate::emulator::Emulator;
use crate::garbage::{self, Random};

/// No answer of the board takes this long on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// Samples that are taken of the image that only publishes.
const COUNTED: u64 = 40;

/// A check of an image: how many samples, queries and replies arrived as they must.
pub type Check = fn(&Emulator) -> Result<usize>;

/// The images, and what is checked of each.
pub const IMAGES: [(&str, Check); 3] = [
    ("zenoh_pub", publishes),
    ("zenoh_pubsub", says_what_it_hears),
    ("zenoh_all", does_all),
];

/// Garbage before each sample that must arrive, and pieces in it.
const ROUNDS: u32 = 40;
const PIECES: u32 = 5;

/// Garbage between samples: none of them may be lost.
pub fn garbage(name: &str, board: &Emulator) -> Result<()> {
    let mut random = Random::new(0x5eed_0002);
    let node = meet(board)?;
    let uart = board.uart()?;
    let say = node.publisher("board/say/this")?;
    let publishes = name == "zenoh_pub";
    let key = if publishes {
        "board/count"
    } else {
        "board/said"
    };
    // The counter goes on whether or not it is taken: the last one is enough.
    let said = node.samples(key, 1, Overflow::DropOldest)?;
    for n in 0..ROUNDS {
        garbage::write(uart, &mut random, PIECES)?;
        if !publishes {
            say.put(&n.to_le_bytes())?;
        }
        let sample = next(&said).map_err(|error| format!("garbage {n}: {error}"))?;
        if !publishes && sample.payload != n.to_le_bytes() {
            return Err(format!("garbage {n}: {sample:?} came back").into());
        }
    }
    println!(
        "{name}: {} pieces of garbage, a sample behind every {PIECES}",
        ROUNDS * PIECES
    );
    Ok(())
}

/// Waits for the board to open a session.
fn meet(board: &Emulator) -> Result<Node> {
    let uart = OwnedFd::from(board.uart()?.try_clone()?);
    let link = ByteLink::duplex(uart, Framing::HDLC, BATCH)?;
    let node = accept(link.apart(), Options::peer());
    node.wait_open(PATIENCE)
        .map_err(|error| format!("no session with the board: {error}"))?;
    Ok(node)
}

fn samples(node: &Node, key: &str) -> Result<Samples> {
    Ok(node.samples(key, 64, Overflow::Wait)?)
}

fn next(samples: &Samples) -> Result<OwnedSample> {
    let sample = samples.next_within(Some(PATIENCE));
    Ok(sample.ok_or("the board publishes nothing")?)
}

/// A counter that misses nothing.
fn publishes(board: &Emulator) -> Result<usize> {
    let node = meet(board)?;
    let counts = samples(&node, "board/*")?;
    let mut first = None;
    for n in 0..COUNTED {
        let sample = next(&counts)?;
        let bytes = sample.payload.as_slice().try_into();
        let count = u64::from_le_bytes(bytes.map_err(|_| "not 8 bytes")?);
        let due = *first.get_or_insert(count) + n;
        if sample.key != "board/count" || count != due {
            return Err(format!("{} is {count}, not {due}", sample.key).into());
        }
    }
    let stats = node.stats();
    match stats.gaps + stats.malformed + stats.unknown_key {
        0 => Ok(COUNTED as usize),
        _ => Err(format!("the board's packets: {stats:?}").into()),
    }
}

/// What is said to the board, and whether it comes back: with one byte, and in fragments both ways.
fn echoes(node: &Node, said: &Samples) -> Result<usize> {
    let lengths = [1, 8, 100, 250];
    let say = node.publisher("board/say/this")?;
    for len in lengths {
        let bytes: Vec<u8> = (0..len).collect();
        say.put(&bytes)?;
        let back = next(said)?;
        if back.key != "board/said" || back.payload != bytes {
            return Err(format!("{len} bytes came back as {back:?}").into());
        }
    }
    Ok(lengths.len())
}

fn says_what_it_hears(board: &Emulator) -> Result<usize> {
    let node = meet(board)?;
    let said = samples(&node, "board/said")?;
    let on_a_key_not_declared = Body::put(b"once");
    let echoed = echoes(&node, &said)?;
    let key = "board/say/another";
    node.put(key, &on_a_key_not_declared, PublisherOptions::DEFAULT)?;
    match next(&said)?.payload == on_a_key_not_declared.payload {
        true => Ok(echoed + 1),
        false => Err("another came back".into()),
    }
}

/// How many samples the board says that it has sent, and how many nobody wanted.
fn counts(node: &Node) -> Result<(u8, u8)> {
    let ask = Ask {
        timeout: PATIENCE,
        ..Ask::new(KeyExpr::from_static("board/**"))
    };
    let start = Instant::now();
    let answers: Vec<Answer> = loop {
        let answers: Vec<_> = node.ask(&ask)?.collect();
        // Who asks before the board has said that it answers gets nothing at once.
        if !answers.is_empty() || start.elapsed() > PATIENCE {
            break answers;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    match &answers[..] {
        [Answer::Sample(sample)] if sample.key == "board/counts" => match sample.payload[..] {
            [heard, unheard] => Ok((heard, unheard)),
            _ => Err(format!("the board answers {sample:?}").into()),
        },
        _ => Err(format!("the board answers {answers:?}").into()),
    }
}

fn does_all(board: &Emulator) -> Result<usize> {
    let node = meet(board)?;
    // The query comes behind the sample on the same channel, so the sample has been handled.
    node.publisher("board/say/this")?.put(b"to nobody")?;
    let nobody = counts(&node)?;
    if nobody != (0, 1) {
        return Err(format!("with no subscriber, sent and not sent: {nobody:?}").into());
    }
    let said = samples(&node, "board/said")?;
    let echoed = echoes(&node, &said)?;
    let _answering = node.queryable("host/name", true, |_, responder| {
        // What fails, the board does not say, and that is found.
        let _ = responder.reply(b"the host");
    })?;
    node.publisher("board/say/this")?.put(b"ask")?;
    if next(&said)?.payload != b"the host" {
        return Err("the board has not got its answer".into());
    }
    match counts(&node)? {
        (sent, 1) if usize::from(sent) == echoed + 1 => Ok(echoed + 5),
        other => Err(format!("at the end, sent and not sent: {other:?}").into()),
    }
}
