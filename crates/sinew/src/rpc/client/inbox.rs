//! A call's bounded inbox: what arrived and has not been read yet.
//!
//! For drivers that receive for several calls at once. The capacity is the user's; what does not
//! fit is refused, and the driver then ends the call with RESOURCE_EXHAUSTED.

/// The inbox is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overrun;

/// A ring of messages in `BYTES` bytes; each takes its length and 2 bytes more, in one piece.
#[derive(Clone, Debug)]
pub struct Inbox<const BYTES: usize> {
    bytes: [u8; BYTES],
    /// Where the oldest message starts.
    head: usize,
    /// Where the next one goes.
    tail: usize,
    messages: usize,
}

/// Marks the end of the used part, where a message did not fit before the end of the buffer.
const WRAP: u16 = u16::MAX;

impl<const BYTES: usize> Inbox<BYTES> {
    /// An empty inbox.
    pub const fn new() -> Self {
        Inbox {
            bytes: [0; BYTES],
            head: 0,
            tail: 0,
            messages: 0,
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        (self.head, self.tail, self.messages) = (0, 0, 0);
    }

    /// How many messages wait.
    pub fn len(&self) -> usize {
        self.messages
    }

    /// Whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.messages == 0
    }

    /// Copies a message in.
    pub fn push(&mut self, message: &[u8]) -> Result<(), Overrun> {
        let len = u16::try_from(message.len())
            .ok()
            .filter(|&len| len != WRAP)
            .ok_or(Overrun)?;
        let need = message.len() + 2;
        if self.messages == 0 {
            (self.head, self.tail) = (0, 0);
        }
        let full = self.messages > 0 && self.tail == self.head;
        if full {
            return Err(Overrun);
        }
        if self.tail >= self.head && self.tail + need > BYTES {
            if need > self.head {
                return Err(Overrun);
            }
            if let Some(mark) = self.bytes.get_mut(self.tail..self.tail + 2) {
                mark.copy_from_slice(&WRAP.to_le_bytes());
            }
            self.tail = 0;
        } else if self.tail < self.head && self.tail + need > self.head {
            return Err(Overrun);
        }
        let place = self
            .bytes
            .get_mut(self.tail..self.tail + need)
            .ok_or(Overrun)?;
        let (head, body) = place.split_at_mut(2);
        head.copy_from_slice(&len.to_le_bytes());
        body.copy_from_slice(message);
        self.tail += need;
        self.messages += 1;
        Ok(())
    }

    /// The oldest message; it stays until [`Inbox::pop`].
    pub fn front(&self) -> Option<&[u8]> {
        let (start, len) = self.oldest()?;
        self.bytes.get(start..start + len)
    }

    /// Drops the oldest message.
    pub fn pop(&mut self) {
        if let Some((start, len)) = self.oldest() {
            self.head = start + len;
            self.messages -= 1;
        }
    }

    fn oldest(&self) -> Option<(usize, usize)> {
        if self.messages == 0 {
            return None;
        }
        let read = |at: usize| {
            let bytes = self.bytes.get(at..at + 2)?;
            Some(u16::from_le_bytes([*bytes.first()?, *bytes.last()?]))
        };
        match read(self.head) {
            Some(len) if len != WRAP => Some((self.head + 2, len as usize)),
            _ => Some((2, read(0)? as usize)),
        }
    }
}

impl<const BYTES: usize> Default for Inbox<BYTES> {
    fn default() -> Self {
        Inbox::new()
    }
}
