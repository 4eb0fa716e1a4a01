//! 53 bytes lent to the other context through a message channel, changed there and handed back, without
//! trust.
//!
//! They are copied where the peer could still change them: out of the block by the server, to where its
//! answer goes, and out of there by the caller. Nothing is cleared per message: a side clears what it sent
//! when its peer changes.
#![no_std]
#![no_main]

use core::hint::black_box;

use sinew_shm::domain::{Channel, Config, Messages, Pool, Role};
use vexriscv::link::{Side, meet, open};
use vexriscv::{Part, begin, measure, switch};

/// Bytes that are lent: those of Xous's own benchmark.
const BYTES: usize = 53;
/// They begin where a word does, as those of a struct do.
#[derive(Clone, Copy, PartialEq)]
#[repr(C, align(4))]
struct Bytes([u8; BYTES]);

const OPCODE: u32 = 7;
const CHANNEL: u16 = 1;
const CHANNELS: &[Channel] =
    &[Channel::messages(CHANNEL, "calls", 4, 4).with_memory(Pool::new(4, 64))];
const LINK: Config = Config::new(CHANNELS);
const BLOCKS: usize = LINK.blocks();
const _: () = assert!(LINK.check().is_ok());

/// Lends bytes that are all the same, and sees whether they come back as they must.
#[inline(never)]
#[unsafe(link_section = ".text.hot.client")]
fn lend(client: &Side<'_, BLOCKS>, n: u32) -> Option<()> {
    let mut bytes = black_box(Bytes([n as u8; BYTES]));
    begin(Part::Channel);
    let mut buffer = client.memory(BYTES).ok()?;
    begin(Part::Client);
    *buffer.first_chunk_mut()? = bytes.0;
    begin(Part::Channel);
    let words = black_box([1, 2, 3]);
    let mut loan = buffer.lend_mut(OPCODE, 0..BYTES, words).ok()?;
    begin(Part::Switch);
    switch();
    begin(Part::Channel);
    let returned = loan.poll().ok()??;
    let is_whole = returned.copy_to(&mut bytes.0).ok()? == BYTES;
    drop(returned); // the memory is free again
    begin(Part::Pause);
    (is_whole && is_changed(&bytes, n as u8)).then_some(())
}

fn run() -> Option<()> {
    let end = open::<BLOCKS, true>(LINK, Role::First)?;
    meet(&end)?;
    let client = Messages::new(&&end, CHANNEL)?;
    measure("lend_mut", &mut |n| lend(&client, n))
}

/// Whether the first byte and the last one are other ones than before.
#[inline(never)]
fn is_changed(bytes: &Bytes, was: u8) -> bool {
    let mut expected = [was; BYTES];
    (expected[0], expected[BYTES - 1]) = (!was, !was);
    bytes.0 == expected
}

fn serve() -> Option<()> {
    let end = open::<BLOCKS, true>(LINK, Role::Second)?;
    meet(&end)?;
    let server = Messages::new(&&end, CHANNEL)?;
    answer_all(&server)
}

/// Changes the first byte and the last one of what is lent, in the copy that is the answer.
#[inline(never)]
#[unsafe(link_section = ".text.hot.server")]
fn answer_all(server: &Side<'_, BLOCKS>) -> Option<()> {
    loop {
        begin(Part::Channel);
        let mut given = server.receive().ok()??.memory?;
        let bytes = given.in_place()?;
        begin(Part::Server);
        let [first, .., last] = bytes else {
            return None;
        };
        (*first, *last) = (!*first, !*last);
        begin(Part::Channel);
        let valid = given.valid();
        given.answer_with(valid).then_some(())?;
        begin(Part::Switch);
        switch();
    }
}

vexriscv::contexts!(run, serve);
