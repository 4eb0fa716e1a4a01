//! The tutorial's lamp on a Cortex-M3, called through its UART.
#![no_std]
#![no_main]

extern crate sinew_mem; // links its memory functions

use sinew::rpc::{Channels, Slot, Via};
use sinew::time::Instant;
use sinew_drive::bytes::Polled;
use sinew_drive::frames::{Direct, Receiver, Sender};
use sinew_drive::{Link, Serving, run};
use sinew_ports::cmsdk_uart::Uart;
use sinew_ports::nvic;
use sinew_ports::systick::{Clock, SysTick};

#[path = "../../tutorial/src/service.rs"]
mod service;

use home::lamp;
use service::LampService;

sinew::include_proto!("lamp");

/// The largest packet: `HEADER_MAX` (36 bytes) and the largest message (24).
const MTU: usize = 64;
/// Calls that outlive their receive step. `Lamp` has none; a stream or `defer` takes one.
const CALLS: usize = 1;

sinew_rt::board!("machine=mps2-an385 link=uart mtu={}", MTU);

type Uart0 = Uart<0x4000_4000>;
// SAFETY: mps2-an385 has a CMSDK UART there, and nothing else drives it.
const UART: Uart0 = unsafe { Uart::new() };
const UART_IRQ: usize = 0;

/// What arrives while the core does something else: the UART keeps one byte.
static BYTES: Polled<Uart0, 128> = Polled::new(UART);
static SLOTS: [Slot; CALLS] = [const { Slot::new() }; CALLS];
static VIA: Via = Via {
    link: 0,
    channels: Channels::Any,
    port: Some(&Direct::<_, MTU>(&BYTES)),
    bulk: None,
};

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    UART.start(217); // 115,200 baud of 25 MHz
    nvic::enable(UART_IRQ);
    SysTick.start();
    let mut clock = Clock::<25>::start();
    let link = Link::new(
        Sender::<_, MTU>::new(&BYTES),
        Receiver::<_, MTU>::new(&BYTES),
        &VIA,
    );
    let services = lamp::Serve(LampService::default());
    let mut serving = Serving::new(&SLOTS, services, link);
    // Interrupts are masked, and only end the sleep: what woke the core is taken back before it looks.
    let look = || {
        UART.acknowledge();
        nvic::acknowledge(UART_IRQ);
        SysTick.acknowledge();
        Instant::from_micros(clock.micros())
    };
    run(&mut serving, look, sinew_rt::sleep)
}
