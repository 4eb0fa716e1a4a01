//! `rpc_server` that also calls `demo.Cache` at the other side.
#![no_std]
#![no_main]

use an385::rpc;
use sinew::rpc::Via;

an385::line!(LINE, 512);
static VIA: Via = rpc::via(&LINE);

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    rpc::serve_and_call(&LINE, &VIA);
    sinew_rt::exit(3)
}
