//! Registers in memory, for the unit tests of ports: what was read and written, in which order.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::vec::Vec;

/// What a port did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// It ordered what came before.
    Barrier,
    /// It read the register there.
    Read(usize),
    /// It wrote a value there.
    Write(usize, u32),
}

/// The registers, by their addresses. What is not there reads as 0.
pub type Registers = BTreeMap<usize, u32>;

/// What the device does when it is written: plain registers keep the value.
pub type Device = fn(&mut Registers, usize, u32);

/// What the device does when it is read, and what it then shows: plain registers show their value.
pub type Shown = fn(&mut Registers, usize) -> u32;

#[derive(Default)]
struct Fake {
    registers: Registers,
    device: Option<Device>,
    shown: Option<Shown>,
    done: Vec<Access>,
}

std::thread_local! {
    static FAKE: RefCell<Fake> = RefCell::default();
}

fn with<R>(f: impl FnOnce(&mut Fake) -> R) -> R {
    FAKE.with(|fake| f(&mut fake.borrow_mut()))
}

/// From now on writes do this.
pub fn device(device: Device) {
    with(|fake| fake.device = Some(device));
}

/// From now on reads show this.
pub fn shown(shown: Shown) {
    with(|fake| fake.shown = Some(shown));
}

/// Gives a register a value, as the hardware or the other core does.
pub fn set(address: usize, value: u32) {
    change(|registers| {
        registers.insert(address, value);
    });
}

/// Changes registers, as the hardware does.
pub fn change(f: impl FnOnce(&mut Registers)) {
    with(|fake| f(&mut fake.registers));
}

/// What was done since the last time.
pub fn done() -> Vec<Access> {
    with(|fake| core::mem::take(&mut fake.done))
}

pub unsafe fn read(address: usize) -> u32 {
    with(|fake| {
        fake.done.push(Access::Read(address));
        match fake.shown {
            Some(shown) => shown(&mut fake.registers, address),
            None => fake.registers.get(&address).copied().unwrap_or_default(),
        }
    })
}

pub unsafe fn write(address: usize, value: u32) {
    with(|fake| {
        fake.done.push(Access::Write(address, value));
        match fake.device {
            Some(device) => device(&mut fake.registers, address, value),
            None => drop(fake.registers.insert(address, value)),
        }
    });
}

pub unsafe fn read8(address: usize) -> u8 {
    // SAFETY: memory of the test.
    unsafe { read(address) as u8 }
}

pub unsafe fn write8(address: usize, value: u8) {
    // SAFETY: memory of the test.
    unsafe { write(address, value.into()) }
}

pub unsafe fn write16(address: usize, value: u16) {
    // SAFETY: memory of the test.
    unsafe { write(address, value.into()) }
}

pub fn barrier() {
    with(|fake| fake.done.push(Access::Barrier));
}
