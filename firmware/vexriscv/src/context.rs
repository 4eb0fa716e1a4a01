//! Two contexts, and the trap from one to the other.

use core::arch::{asm, global_asm};

use sinew_shm::domain::Role;

use crate::space::{self, HAS_MMU};

/// What is saved of a context. Its offsets are those of the trap.
#[repr(C, align(32))]
struct Frame {
    pc: usize,
    /// `x1` to `x31`.
    registers: [usize; 31],
    /// The one that goes on when this one traps.
    next: *mut Frame,
    /// Its address space, where the core has some.
    space: usize,
}

impl Frame {
    const EMPTY: Frame = Frame {
        pc: 0,
        registers: [0; 31],
        next: core::ptr::null_mut(),
        space: 0,
    };
}

#[unsafe(link_section = ".kernel.frames")]
static mut FRAMES: [Frame; 2] = [const { Frame::EMPTY }; 2];

// `mscratch` is the frame of the context that runs. Any trap but an ecall ends everything: there is nothing
// that a context could do wrong, and nothing that interrupts it.
global_asm!(
    ".section .text.hot.switch, \"ax\"",
    ".balign 32",
    "sinew_switch:",
    "csrrw sp, mscratch, sp",
    "sw x1, 4(sp)",
    "sw x3, 12(sp)",
    "sw x4, 16(sp)",
    "sw x5, 20(sp)",
    "sw x6, 24(sp)",
    "sw x7, 28(sp)",
    "sw x8, 32(sp)",
    "sw x9, 36(sp)",
    "sw x10, 40(sp)",
    "sw x11, 44(sp)",
    "sw x12, 48(sp)",
    "sw x13, 52(sp)",
    "sw x14, 56(sp)",
    "sw x15, 60(sp)",
    "sw x16, 64(sp)",
    "sw x17, 68(sp)",
    "sw x18, 72(sp)",
    "sw x19, 76(sp)",
    "sw x20, 80(sp)",
    "sw x21, 84(sp)",
    "sw x22, 88(sp)",
    "sw x23, 92(sp)",
    "sw x24, 96(sp)",
    "sw x25, 100(sp)",
    "sw x26, 104(sp)",
    "sw x27, 108(sp)",
    "sw x28, 112(sp)",
    "sw x29, 116(sp)",
    "sw x30, 120(sp)",
    "sw x31, 124(sp)",
    "csrr t0, mscratch", // the context's sp
    "sw t0, 8(sp)",
    "csrr t0, mepc",
    "addi t0, t0, 4", // behind the ecall
    "sw t0, 0(sp)",
    "csrr t1, mcause",
    "li t2, {ecall}",
    "bne t1, t2, sinew_fault",
    "lw sp, 128(sp)",
    "sinew_resume:", // the context whose frame is in sp
    "csrw mscratch, sp",
    ".if {has_mmu}",
    "lw t0, 132(sp)",
    "csrw satp, t0",
    "sfence.vma",
    ".endif",
    "lw t0, 0(sp)",
    "csrw mepc, t0",
    "lw x1, 4(sp)",
    "lw x3, 12(sp)",
    "lw x4, 16(sp)",
    "lw x5, 20(sp)",
    "lw x6, 24(sp)",
    "lw x7, 28(sp)",
    "lw x8, 32(sp)",
    "lw x9, 36(sp)",
    "lw x10, 40(sp)",
    "lw x11, 44(sp)",
    "lw x12, 48(sp)",
    "lw x13, 52(sp)",
    "lw x14, 56(sp)",
    "lw x15, 60(sp)",
    "lw x16, 64(sp)",
    "lw x17, 68(sp)",
    "lw x18, 72(sp)",
    "lw x19, 76(sp)",
    "lw x20, 80(sp)",
    "lw x21, 84(sp)",
    "lw x22, 88(sp)",
    "lw x23, 92(sp)",
    "lw x24, 96(sp)",
    "lw x25, 100(sp)",
    "lw x26, 104(sp)",
    "lw x27, 108(sp)",
    "lw x28, 112(sp)",
    "lw x29, 116(sp)",
    "lw x30, 120(sp)",
    "lw x31, 124(sp)",
    "lw x2, 8(sp)",
    "mret",
    // Of user mode, or of machine mode.
    ecall = const if HAS_MMU { 8 } else { 11 },
    has_mmu = const HAS_MMU as usize,
);

/// Goes on with the other context, until that one switches back.
#[inline(always)]
pub fn switch() {
    // SAFETY: the trap gives back every register, and the stack is this context's own. What memory the other
    // context changes meanwhile, this one reads by volatile or atomic loads.
    unsafe { asm!("ecall", options(nostack)) }
}

/// Runs the client, and the server where the client switches to it, or the other way round. Neither
/// returns. Called once, at the start.
pub fn start(client: extern "C" fn() -> !, server: extern "C" fn() -> !) -> ! {
    unsafe extern "C" {
        static __client_stack: u8;
        static __server_stack: u8;
    }
    let frames = &raw mut FRAMES as *mut Frame;
    // SAFETY: this runs once, before anything else uses the frames; both are inside of the static.
    // The stacks are the linker's.
    unsafe {
        let (first, second) = (frames, frames.add(1));
        let frame = |entry: extern "C" fn() -> !, stack: *const u8, next, role| {
            let mut frame = Frame {
                pc: entry as usize,
                next,
                space: space::of(role),
                ..Frame::EMPTY
            };
            frame.registers[1] = stack as usize;
            frame
        };
        first.write(frame(
            client,
            &raw const __client_stack,
            second,
            Role::First,
        ));
        second.write(frame(
            server,
            &raw const __server_stack,
            first,
            Role::Second,
        ));
        asm!(
            "la t0, sinew_switch",
            "csrw mtvec, t0",
            "li t0, 0x1800", // the mode that mret goes to: user mode where there is one
            "csrc mstatus, t0",
            ".if {has_mmu} == 0",
            "csrs mstatus, t0",
            ".endif",
            "mv sp, {frame}",
            "j sinew_resume",
            frame = in(reg) first,
            has_mmu = const HAS_MMU as usize,
            options(noreturn),
        )
    }
}
