//! Serves `demo.Cache`, with the packet buffers that images of pw_rpc have: 512 bytes each way. Neither of its
//! methods outlives its step, so there is no slot for a call.
#![no_std]
#![no_main]

an385::role!(Serves<512, 0>);
