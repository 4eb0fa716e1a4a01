//! Serves `demo.Cache`, with the packet buffers that images of pw_rpc have: 512 bytes each way.
#![no_std]
#![no_main]

an385::role!(Serves<512>);
