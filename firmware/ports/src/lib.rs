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
//! | [`cmsdk_uart`] | bytes, and one byte as a doorbell | QEMU mps2-an385, mps2-an521 |
//! | [`nvic`] | which device interrupts a Cortex-M | QEMU mps2-an385, mps2-an521 |
//! | [`systick`] | a clock | QEMU mps2-an385, mps2-an521 |
//! | [`gic`] | an interrupt of Arm's GIC as a doorbell | QEMU xlnx-zcu102 |
//! | `systick_time` (feature `embassy`) | the time of embassy, with alarms | QEMU mps2-an385 |
//! | [`mhu`] | a doorbell between two cores of Arm's SSE-200 | QEMU mps2-an521 |
//! | [`clint`] | MSIP as a doorbell between RISC-V harts, and a clock | QEMU virt |
//! | [`plic`] | which device interrupts a RISC-V hart | QEMU virt |
//! | [`uart16550`] | bytes | QEMU virt |
//! | [`rp2_sio`] | doorbells of RP2040 and RP2350 | nowhere: reference manual, unit tests |
//! | [`imx_mu`] | a doorbell of i.MX | nowhere: reference manual, unit tests |
//! | [`imx_sema4`] | a hardware lock of i.MX | nowhere: reference manual, unit tests |
//! | [`stm32_ipcc`] | a doorbell of STM32WB, WL, MP1 | nowhere: reference manual, unit tests |
//! | [`stm32_hsem`] | a hardware lock of STM32H7, WB, WL, MP1 | nowhere: reference manual, unit tests |
//! | [`zynqmp_ipi`] | a doorbell of Zynq UltraScale+ | nowhere: reference manual, unit tests |
#![no_std]
#![deny(unsafe_code)]

#[cfg(test)]
extern crate std;

#[cfg(test)]
#[allow(unsafe_code)]
mod fake;
#[allow(unsafe_code)]
mod register;

#[allow(unsafe_code)]
pub mod clint;
#[allow(unsafe_code)]
pub mod cmsdk_uart;
#[allow(unsafe_code)]
pub mod gic;
#[allow(unsafe_code)]
pub mod imx_mu;
#[allow(unsafe_code)]
pub mod imx_sema4;
#[allow(unsafe_code)]
pub mod mhu;
#[allow(unsafe_code)]
pub mod nvic;
#[allow(unsafe_code)]
pub mod plic;
#[allow(unsafe_code)]
pub mod rp2_sio;
#[allow(unsafe_code)]
pub mod stm32_hsem;
#[allow(unsafe_code)]
pub mod stm32_ipcc;
#[allow(unsafe_code)]
pub mod systick;
#[cfg(feature = "embassy")]
pub mod systick_time;
#[allow(unsafe_code)]
pub mod uart16550;
#[allow(unsafe_code)]
pub mod zynqmp_ipi;
