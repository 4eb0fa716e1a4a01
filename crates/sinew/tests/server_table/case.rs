//! What a case of the table says.

use crate::support::wire::P;

/// One case: what is sent before, what then, and everything that must come of it.
pub struct Case {
    pub row: &'static str,
    pub before: Vec<P>,
    pub packet: Vec<u8>,
    /// As [`Seen`] shows it; `-` for nothing.
    pub reply: &'static str,
    /// The counters that move.
    pub counted: &'static str,
    /// What handlers saw, joined by blanks.
    pub handlers: &'static str,
    /// A call, and whether it is open afterwards.
    pub open: Option<(u32, u32, bool)>,
    /// Takes calls away.
    pub defer: bool,
}

pub fn case(row: &'static str, packet: P, reply: &'static str, counted: &'static str) -> Case {
    Case {
        row,
        before: Vec::new(),
        packet: packet.bytes(),
        reply,
        counted,
        handlers: "",
        open: None,
        defer: false,
    }
}

impl Case {
    pub fn after(mut self, before: &[P]) -> Case {
        self.before = before.to_vec();
        self
    }

    pub fn handlers(mut self, handlers: &'static str) -> Case {
        self.handlers = handlers;
        self
    }

    pub fn open(mut self, method: u32, call_id: u32) -> Case {
        self.open = Some((method, call_id, true));
        self
    }

    pub fn closed(mut self, method: u32, call_id: u32) -> Case {
        self.open = Some((method, call_id, false));
        self
    }

    pub fn deferred(mut self) -> Case {
        self.defer = true;
        self
    }

    pub fn bytes(mut self, packet: &[u8]) -> Case {
        self.packet = packet.to_vec();
        self
    }
}
