//! `rpc_server` with a slot for a call that outlives its step, as a stream or a late answer does.
#![no_std]
#![no_main]

an385::role!(Serves<512, 1>);
