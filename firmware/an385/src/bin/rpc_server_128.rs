//! `rpc_server` with buffers of 128 bytes.
#![no_std]
#![no_main]

use an385::rpc;
use sinew::rpc::Via;

an385::line!(LINE, 128);
static VIA: Via = rpc::via(&LINE);

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    rpc::serve(&LINE, &VIA);
    sinew_rt::exit(3)
}
