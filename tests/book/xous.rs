//! A Xous server and its client, as the book moves them.

use std::error::Error;
use std::ops::Range;
use std::thread;
use std::time::Duration;

use sinew_shm::domain::{
    Answer, Channel, Config, EndRef, Given, Message, Passing, Pool, Refused, Unsent,
};
use sinew_shm::linux::link::{Link, Messages, Options};

// ANCHOR: opcodes
sinew_shm::opcodes! {
    /// What the server does; both sides have it from one crate, as with Xous.
    pub mod codec {
        /// Xous: `Message::new_scalar(0, level, 0, 0, 0)`.
        0 => fn set_volume(level: u32);
        /// Xous: `Message::new_blocking_scalar(1, ...)`, answered with `return_scalar`.
        1 => fn free_frames() -> u32;
        /// Xous: `buf.send(conn, 2)`.
        2 => fn play[move](rate: u32);
        /// Xous: `buf.lend(conn, 3)`.
        3 => fn checksum[lend]() -> u32;
        /// Xous: `buf.lend_mut(conn, 4)`.
        4 => fn record[lend_mut](rate: u32);
    }
}

const CODEC: u16 = 7;
const LINK: Config = Config::new(&[
    // 8 messages may wait, 4 calls be open, and 4 pages be under way, in each direction.
    Channel::messages(CODEC, "codec", 8, 4)
        .with_memory(Pool::new(4, 4096))
        .with_uuid(0x5ca1_ab1e_0000_4000_8000_0000_0000_0001) // the SID
        .typed(codec::HASH),
]);
// ANCHOR_END: opcodes

// ANCHOR: service
#[derive(Default)]
struct Codec {
    volume: u32,
    played: Vec<u8>,
}

impl codec::Service for Codec {
    fn set_volume(&mut self, level: u32) {
        self.volume = level;
    }

    fn free_frames(&mut self) -> u32 {
        4096 - self.played.len() as u32
    }

    fn play<R: EndRef>(&mut self, frames: Given<R>, _rate: u32) {
        let mut bytes = vec![0; frames.len()];
        if let Ok(len) = frames.copy_to(&mut bytes) {
            self.played.extend_from_slice(&bytes[..len]);
        }
    } // Dropped here, the page goes back.

    fn checksum<R: EndRef>(&mut self, frames: &Given<R>) -> u32 {
        let mut bytes = vec![0; frames.len()];
        let _ = frames.copy_to(&mut bytes);
        bytes.iter().map(|byte| u32::from(*byte)).sum()
    }

    fn record<R: EndRef>(&mut self, frames: &mut Given<R>, _rate: u32) -> Range<usize> {
        match frames.blank(self.played.len()) {
            Some(place) => place.copy_from_slice(&self.played),
            None => return 0..0, // more than a page
        }
        0..self.played.len() // offset and valid
    }
}

/// Xous: `loop { let msg = xous::receive_message(sid)?; match FromPrimitive::from_usize(msg.body.id()) {..} }`
fn serve(server: &Messages, codec: &mut Codec) {
    // It ends when the client is gone.
    while let Ok(message) = server.receive_within(None) {
        codec::serve(codec, message);
    }
}
// ANCHOR_END: service

const SECOND: Option<Duration> = Some(Duration::from_secs(1));

fn client(codec: Messages) -> Result<(), Box<dyn Error>> {
    // ANCHOR: client
    let ask = codec::Client::new((*codec).clone());
    ask.set_volume(11)?; // Full: try again, or `codec.send_within`

    let mut page = codec.memory_within(4096, SECOND)?;
    page[..4].copy_from_slice(&[1, 2, 3, 4]);
    let mut lent = ask.checksum(page, 0..4)?;
    // `page` cannot be touched until the answer gives it back.
    let (sum, page) = codec.answer_within(&mut lent, SECOND)?;
    assert_eq!(sum, 10);

    ask.play(page, 0..4, 8000)?; // for good
    let mut free = ask.free_frames()?;
    assert_eq!(codec.answer_within(&mut free, SECOND)?, 4092);

    let page = codec.memory_within(4096, SECOND)?;
    let mut lent = ask.record(page, 0..0, 8000)?;
    let returned = codec.answer_within(&mut lent, SECOND)?;
    let mut frames = [0; 4];
    assert_eq!(
        (returned.valid(), returned.copy_to(&mut frames)?),
        (0..4, 4)
    );
    assert_eq!(frames, [1, 2, 3, 4]);
    // ANCHOR_END: client
    Ok(())
}

#[test]
fn a_xous_server_and_its_client_go_on_here() -> Result<(), Box<dyn Error>> {
    let (near, far): (Link, Link) = Link::pair(LINK, Options::default())?;
    let server = thread::spawn(move || {
        far.up_within(SECOND).ok()?;
        let mut codec = Codec::default();
        serve(&far.messages(CODEC)?, &mut codec);
        Some(codec)
    });
    near.up_within(SECOND)?;
    client(near.messages(CODEC).ok_or("no such channel")?)?;
    drop(near);
    let codec = server
        .join()
        .expect("the server ends")
        .ok_or("the server never ran")?;
    assert_eq!((codec.volume, codec.played), (11, vec![1, 2, 3, 4]));
    Ok(())
}

// ANCHOR: try
/// Xous: `xous::try_send_message(conn, msg)` and its `Err(ServerQueueFull)`.
fn try_play(codec: &Messages, frames: &[u8]) -> Result<bool, Refused> {
    let mut page = codec.memory(frames.len())?;
    page.copy_from_slice(frames);
    match page.give(2, 0..frames.len(), [8000, 0, 0]) {
        Ok(()) => Ok(true),
        // Nothing has moved: the page is here, as it was.
        Err(Unsent {
            refused: Refused::Full,
            buffer,
        }) => {
            assert_eq!(&buffer[..], frames);
            Ok(false)
        }
        Err(unsent) => Err(unsent.refused),
    }
}
// ANCHOR_END: try

// ANCHOR: later
/// Xous: keep `msg.sender`, and `return_scalar(sender, ..)` later, from any thread.
fn later<R: EndRef>(message: Message<R>, waiting: &mut Vec<Answer<R>>) {
    waiting.extend(message.answer);
}

fn all_done<R: EndRef>(waiting: &mut Vec<Answer<R>>) {
    // In any order; one whose caller is gone says `false`.
    for answer in waiting.drain(..).rev() {
        answer.give([0, 1]); // `return_scalar2`
    }
}
// ANCHOR_END: later

#[test]
fn full_hands_back_and_answers_wait() -> Result<(), Box<dyn Error>> {
    let (near, far): (Link, Link) = Link::pair(LINK, Options::default())?;
    thread::scope(|scope| {
        scope.spawn(|| far.up_within(SECOND));
        near.up_within(SECOND)
    })?;
    let (near, far) = (
        near.messages(CODEC).ok_or("")?,
        far.messages(CODEC).ok_or("")?,
    );
    for _ in 0..8 {
        near.send(0, [0; 5])?;
    }
    assert!(!try_play(&near, &[1; 10])?);
    while far.receive()?.is_some() {}
    assert!(try_play(&near, &[1; 10])?);
    let given = far.receive()?.and_then(|message| message.memory);
    assert_eq!(given.map(|given| given.passing()), Some(Passing::Move));

    let mut calls = [near.call(1, [0; 5])?, near.call(1, [0; 5])?];
    let mut waiting = vec![];
    while let Some(message) = far.receive()? {
        later(message, &mut waiting);
    }
    all_done(&mut waiting);
    for call in &mut calls {
        assert_eq!(near.answer_within(call, SECOND)?, [0, 1, 0, 0, 0]);
    }
    Ok(())
}
