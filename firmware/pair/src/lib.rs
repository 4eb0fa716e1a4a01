//! Two cores of one chip, joined by a [domain link](sinew_shm::domain): the second serves `demo.Cache` and
//! `demo.Kinds`, the first calls them, or lets whoever is at its UART call them. For every chip: a board adds its
//! [`Chip`], and an image is one line.
//!
//! | on the second core | what it does |
//! |---|---|
//! | [`serve`] | serves calls |
//! | [`serve_and_scribble`] | the same, and writes garbage into its own segment where it was told to |
//! | [`answer`] | answers messages of five words |
//!
//! | on the first | what it does |
//! |---|---|
//! | [`calls::all`] | calls of all kinds, and restarts of either side in between |
//! | [`calls::besieged`] | calls while the peer scribbles, and after it |
//! | [`calls::besieger`] | scribbles while it calls, and calls after it |
//! | [`relay()`] | passes packets on between another link and the second core |
//! | [`ask::Asking`] | messages of five words, one at a time |
//!
//! Each core has one context that uses the link. Interrupt handlers take the doorbell and note that it rang,
//! nothing else, so nothing is masked, and a core may be restarted between any two instructions.
#![no_std]
#![deny(unsafe_code)]

pub mod agreed;
pub mod ask;
pub mod calls;
#[allow(unsafe_code)]
mod chip;
mod pace;
mod relay;
mod scribble;
mod serve;

pub use chip::{Chip, Core, First, SHARED_LEN, open};
pub use pace::look;
pub use relay::relay;
pub use serve::{Statics, answer, serve, serve_and_scribble};
