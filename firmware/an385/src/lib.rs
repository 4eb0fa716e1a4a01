//! The demo services on mps2-an385, called through UART0, or through memory that it shares with a
//! Linux process.
//!
//! | image | what it shows |
//! |---|---|
//! | `direct` | no queue: answers and streams are escaped straight into the UART |
//! | `queued` | the block queue between the engine and the UART |
//! | `shared` | a domain link to a Linux process, with doorbells by UART1 |
//! | `rpc_server` | a service with two methods, with all memory in statics |
//! | `rpc_server_128` | the same with small buffers |
//! | `rpc_server_call` | the same with a slot for a call that outlives its step |
//! | `rpc_client` | the same, and a client on the same link |
//! | `embassy` | both links at once, under embassy: handlers, a task that serves, and tasks that answer |
//! | `zenoh_pub` | a node of Zenoh over the UART that publishes, and nothing else |
//! | `zenoh_pubsub` | one that publishes and subscribes |
//! | `zenoh_all` | one that publishes, subscribes, asks and answers |
//! | `sensor` | a node of Zenoh that publishes a count and a temperature, over a domain link |
//! | `sensor_uart` | the same sensor over the UART |
//! | `puts` | instructions per published sample, printed on the UART |
//! | `count` | instructions per call, printed on the UART |
//! | `messages` | instructions per message through a domain channel, printed on the UART |
//! | `calls` | instructions per call through a message channel, printed on the UART |
//! | `channel` | echoes messages of a domain channel: for the flash that a channel takes |
//! | `link` | `channel` without messages: only a link that opens and finds its peer |
//! | `scribbler` | garbage in its own memory and rings without end: what a peer must stand |
//! | `blank` | `link` without a link: what both are compared with |
//! | `blank_uart` | `zenoh_pub` without Zenoh: what the nodes are compared with |
//!
//! One context: the main loop polls, and interrupts only wake it. In `shared` the doorbell's handler
//! also looks at the link; in `embassy` every interrupt has a handler.
#![no_std]
#![deny(unsafe_code)]

extern crate sinew_mem;

use sinew_demo::{KindsService, kinds};

pub mod agreed;
#[allow(unsafe_code)]
pub mod board;
pub mod count;
#[allow(unsafe_code)]
pub mod lock;
pub mod rpc;
pub mod sensor;
#[allow(unsafe_code)]
pub mod shared;
pub mod uart;
pub mod zenoh;

pub use agreed::{BATCH, MTU};

/// Calls that outlive their receive step, at a time.
pub const CALLS: usize = 4;

/// `demo.Kinds` for an image.
pub type Kinds = kinds::Serve<KindsService<CALLS>>;

/// [`Kinds`] without calls.
pub const fn kinds() -> Kinds {
    kinds::Serve(KindsService::new())
}
