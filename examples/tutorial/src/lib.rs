#![no_std]

mod client;
mod service;

sinew::include_proto!("lamp");

pub use client::evening;
pub use service::LampService;
