//! Devices that links, doorbells and clocks are made of, a file each: nothing but their registers.
//!
//! A board names each device once, by where its registers are, as a constant without size:
//!
//! ```
//! use sinew_ports::cmsdk_uart::Uart;
//!
//! // SAFETY: mps2-an385 has a CMSDK UART there, and nothing else drives it.
//! const UART0: Uart<0x4000_4000> = unsafe { Uart::new() };
//! ```
//!
//! That is the one promise that is asked for; everything else is safe. Methods take `&self`: registers are
//! shared with hardware and interrupt handlers anyway, and each method says who may call it when.
//!
//! | port | what it is | where it was run |
//! |---|---|---|
//! | [`cmsdk_uart`] | bytes, and one byte as a doorbell | QEMU mps2-an385 |
//! | [`systick`] | a clock | QEMU mps2-an385 |
//! | `systick_time` (feature `embassy`) | the time of embassy, with alarms | QEMU mps2-an385 |
#![no_std]
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod register;

#[allow(unsafe_code)]
pub mod cmsdk_uart;
#[allow(unsafe_code)]
pub mod systick;
#[cfg(feature = "embassy")]
pub mod systick_time;
