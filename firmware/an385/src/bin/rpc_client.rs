//! `rpc_server_call` that also calls `demo.Cache` at the other side.
#![no_std]
#![no_main]

an385::role!(ServesAndCalls<512, 1>);
