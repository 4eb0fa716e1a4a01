//! `rpc_server` with buffers of 128 bytes.
#![no_std]
#![no_main]

an385::role!(Serves<128, 0>);
