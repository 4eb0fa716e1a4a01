//! What a context sees: its own stack and segment, the peer's segment to read, and the code.

use core::ptr::NonNull;

use sinew_shm::Segment;
use sinew_shm::domain::Role;

use crate::device::DEVICE;

/// The core with an MMU is the one without compressed instructions.
pub const HAS_MMU: bool = !cfg!(target_feature = "c");

unsafe extern "C" {
    static __text_end: u8;
    static __statics_end: u8;
    static __client_start: u8;
    static __client_end: u8;
    static __server_start: u8;
    static __server_end: u8;
    static __first_start: u8;
    static __first_end: u8;
    static __second_start: u8;
    static __second_end: u8;
}

const RAM: usize = 0x4000_0000;
const PAGE: usize = 4096;
/// What one entry of the upper table covers.
const LARGE_PAGE: usize = 4 << 20;

// Bits of an entry. It is marked as read and written already, as cores want it that leave that to software.
const VALID: usize = 1;
const READ: usize = 2;
const WRITE: usize = 4;
const EXECUTE: usize = 8;
const USER: usize = 16;
const USED: usize = 1 << 6 | 1 << 7;

/// An upper table, and a lower one for the RAM.
#[repr(C, align(4096))]
struct Tables {
    upper: [usize; 1024],
    lower: [usize; 1024],
}

#[unsafe(link_section = ".kernel.tables")]
static mut TABLES: [Tables; 2] = [const {
    Tables {
        upper: [0; 1024],
        lower: [0; 1024],
    }
}; 2];

fn entry(physical: usize, bits: usize) -> usize {
    physical >> 12 << 10 | bits
}

/// The value of `satp` for this context's address space, which is made: called once for each.
pub(crate) fn of(role: Role) -> usize {
    if !HAS_MMU {
        return 0;
    }
    let tables = &raw mut TABLES as *mut Tables;
    // SAFETY: nobody else uses the tables before this returns, and both are inside of the static; the
    // section is not cleared at the start, so it is here. Addresses are the linker's.
    unsafe {
        let tables = &mut *tables.add(usize::from(role == Role::Second));
        tables.upper = [0; 1024];
        tables.lower = [0; 1024];
        let leaf = VALID | READ | USER | USED;
        let lower = (&raw const tables.lower) as usize;
        tables.upper[RAM / LARGE_PAGE] = entry(lower, VALID);
        // The bench's device, and the one that ends it: they lie where nothing else does.
        for device in [DEVICE, 0] {
            tables.upper[device / LARGE_PAGE] = entry(device, leaf | WRITE);
        }
        let mut map = |start: *const u8, end: *const u8, bits: usize| {
            let (mut at, end) = (start as usize, end as usize);
            while at < end {
                if let Some(place) = tables.lower.get_mut((at - RAM) / PAGE) {
                    *place = entry(at, leaf | bits);
                }
                at += PAGE;
            }
        };
        map(RAM as *const u8, &raw const __text_end, EXECUTE);
        let is_client = role == Role::First;
        let writes = |does| if does { WRITE } else { 0 };
        map(
            &raw const __first_start,
            &raw const __first_end,
            writes(is_client),
        );
        map(
            &raw const __second_start,
            &raw const __second_end,
            writes(!is_client),
        );
        if is_client {
            map(&raw const __client_start, &raw const __client_end, WRITE);
        } else {
            map(&raw const __text_end, &raw const __statics_end, WRITE);
            map(&raw const __server_start, &raw const __server_end, WRITE);
        }
        1 << 31 | (&raw const tables.upper) as usize >> 12
    }
}

/// What this context writes and the other one reads: where it begins, and how many bytes it has. Then the
/// same of the other one's.
pub fn shared(role: Role) -> [(*mut u8, usize); 2] {
    let area = |start: *const u8, end: *const u8| (start.cast_mut(), end as usize - start as usize);
    let first = area(&raw const __first_start, &raw const __first_end);
    let second = area(&raw const __second_start, &raw const __second_end);
    match role {
        Role::First => [first, second],
        Role::Second => [second, first],
    }
}

/// The segment that this context writes, and the one that it reads. Each is asked for once.
pub(crate) fn own_and_foreign(role: Role) -> Option<(Segment, Segment)> {
    let [own, foreign] = shared(role).map(|(start, len)| {
        // SAFETY: the linker keeps these bytes for this alone, for ever.
        unsafe { Segment::from_raw(NonNull::new(start)?, len) }
    });
    Some((own?, foreign?))
}
