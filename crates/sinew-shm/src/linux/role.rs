//! Which side of a link in a region is taken, and whether the other side is there.
//!
//! In a file two processes could be the same side, and write over each other. So each side locks the
//! bytes of its segment ([`Record`]). The other side sees its death by that too, as long as both are
//! processes of one machine.

use std::io;
use std::os::fd::BorrowedFd;

use super::record::{Range, Record};

/// Holding one proves: no other [`Role`] of this machine has the same bytes of the file.
#[derive(Debug)]
pub(super) struct Role {
    record: Record,
    peer: Range,
}

impl Role {
    /// Takes the side whose segment lies at `own`. `None`: it is taken.
    pub(super) fn take(file: BorrowedFd<'_>, own: Range, peer: Range) -> io::Result<Option<Role>> {
        let record = Record::take(file, own)?;
        Ok(record.map(|record| Role { record, peer }))
    }

    /// Whether a process has the other side. Where it cannot be known: yes.
    pub(super) fn has_peer(&self) -> bool {
        self.record.finds(self.peer).unwrap_or(true)
    }
}
