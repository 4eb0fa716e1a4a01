//! A sample of 8 bytes, published into a batch that is under way: see [`counted::puts`]. One context does
//! it alone.
#![no_std]
#![no_main]

use core::hint::black_box;

use counted::puts::{Pair, SAMPLE};
use vexriscv::{Part, begin, measure};

#[inline(never)]
#[unsafe(link_section = ".text.hot.client")]
fn put(pair: &mut Pair) -> Option<()> {
    let sample = black_box(SAMPLE);
    begin(Part::Client);
    pair.put(&sample)?;
    begin(Part::Pause);
    Some(())
}

fn run() -> Option<()> {
    let mut pair = Pair::open()?;
    pair.put(&SAMPLE)?; // begins the batch, which has room for all that follow
    measure("publish", &mut |_| put(&mut pair))
}

/// Nobody switches to it.
fn serve() -> Option<()> {
    None
}

vexriscv::contexts!(run, serve);
