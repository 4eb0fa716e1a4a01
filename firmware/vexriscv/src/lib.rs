//! A VexRiscv core, cycle by cycle: the CPU of Xous's published figures, in a simulator that
//! `bench.cpp` puts on a memory.
//!
//! Two contexts, a client and a server, have a stack each, and switch by a trap that saves all 31
//! registers of the one and restores those of the other. On the core with an MMU each has an address space
//! as well, in which it writes its own segment and reads the peer's.
//!
//! | image | what it shows |
//! |---|---|
//! | `scalar` | a call of five words through a message channel |
//! | `lend` | 53 bytes lent and changed through a message channel |
//! | `floor` | both by hand, without any check; the clear of a page, which calibrates the memory |
//! | `rpc` | a typed RPC call: generated code, both engines, a queue each way |
//! | `puts` | a sample of 8 bytes published into a batch, in one context |
#![no_std]

extern crate sinew_mem;

mod context;
mod device;
pub mod link;
mod space;

pub use context::{start, switch};
pub use device::{Part, begin, measure};
pub use space::shared;

/// The image's contexts: what each runs, which gives `None` where it fails. The client ends it.
#[macro_export]
macro_rules! contexts {
    ($client:path, $server:path) => {
        extern "C" fn client() -> ! {
            $crate::end(if $client().is_some() { 0 } else { 3 })
        }

        extern "C" fn server() -> ! {
            let _ = $server();
            $crate::end(4)
        }

        #[unsafe(no_mangle)]
        extern "C" fn main() -> ! {
            $crate::start(client, server)
        }
    };
}

pub use sinew_rt::exit as end;
