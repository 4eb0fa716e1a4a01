//! Serves `demo.Cache`, with the packet buffers that images of pw_rpc have: 512 bytes each way.
#![no_std]
#![no_main]

use an385::rpc;
use sinew::rpc::Via;

an385::line!(LINE, 512);
static VIA: Via = rpc::via(&LINE);

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    rpc::serve(&LINE, &VIA);
    sinew_rt::exit(3)
}
