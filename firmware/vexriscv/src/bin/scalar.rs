//! A call through a message channel from one context to the other: five words, and an answer of five words.
#![no_std]
#![no_main]

use core::hint::black_box;

use sinew_shm::domain::{Channel, Config, Messages, Role};
use vexriscv::link::{Side, meet, open};
use vexriscv::{Part, begin, measure, switch};

const OPCODE: u32 = 7;
const CHANNEL: u16 = 1;
const CHANNELS: &[Channel] = &[Channel::messages(CHANNEL, "calls", 4, 4)];
const LINK: Config = Config::new(CHANNELS);
const BLOCKS: usize = LINK.blocks();
const _: () = assert!(LINK.check().is_ok());

/// A call, and whether its answer is right.
#[inline(never)]
#[unsafe(link_section = ".text.hot.client")]
fn call(client: &Side<'_, BLOCKS>, n: u32) -> Option<()> {
    let words = black_box([n, 1, 2, 3, 4]);
    begin(Part::Channel);
    let mut call = client.call(OPCODE, words).ok()?;
    begin(Part::Switch);
    switch();
    begin(Part::Channel);
    let answered = call.poll().ok()??;
    begin(Part::Pause);
    (answered == words.map(|word| word + 1)).then_some(())
}

fn run() -> Option<()> {
    let end = open::<BLOCKS, true>(LINK, Role::First)?;
    meet(&end)?;
    let client = Messages::new(&&end, CHANNEL)?;
    measure("scalar", &mut |n| call(&client, n))
}

fn serve() -> Option<()> {
    let end = open::<BLOCKS, true>(LINK, Role::Second)?;
    meet(&end)?;
    let server = Messages::new(&&end, CHANNEL)?;
    answer_all(&server)
}

/// Answers each message with its words, and one more each.
#[inline(never)]
#[unsafe(link_section = ".text.hot.server")]
fn answer_all(server: &Side<'_, BLOCKS>) -> Option<()> {
    loop {
        begin(Part::Channel);
        let message = server.receive().ok()??;
        begin(Part::Server);
        let words = message.words.map(|word| word + 1);
        begin(Part::Channel);
        message.answer(words);
        begin(Part::Switch);
        switch();
    }
}

vexriscv::contexts!(run, serve);
