//! One pass over the bytes: valid, and canonical.

use super::KeyExprError;

/// Where in its chunk the check is.
#[derive(Clone, Copy)]
enum At {
    Start,
    /// Behind some characters.
    Name,
    /// Behind `*` at the start.
    One,
    /// Behind `**` at the start.
    Two,
    /// Behind a `$`; all before it in the chunk is `$*`.
    LoneDollar,
    /// The chunk is `$*` so far, or several.
    LoneWild,
    Dollar,
    /// Behind `$*`.
    Wild,
}

struct Checker {
    at: At,
    /// The chunk before was `**`.
    after_two: bool,
    canonical: bool,
}

impl Checker {
    const fn byte(&mut self, byte: u8) -> Result<(), KeyExprError> {
        self.at = match (self.at, byte) {
            (_, b'#' | b'?') => return Err(KeyExprError::Forbidden),
            (At::LoneDollar, b'*') => At::LoneWild,
            (At::Dollar, b'*') => At::Wild,
            (At::LoneDollar | At::Dollar, _) => return Err(KeyExprError::Dollar),
            (At::Start, b'/') => return Err(KeyExprError::EmptyChunk),
            (At::Start, b'*') => At::One,
            (At::One, b'*') => At::Two,
            (At::One | At::Two, b'/') => {
                // Stars go before `**`, of which there is one in a row.
                self.canonical &= !self.after_two;
                self.after_two = matches!(self.at, At::Two);
                At::Start
            }
            (At::One | At::Two, _) | (_, b'*') => return Err(KeyExprError::Star),
            (at, b'/') => {
                // `$*` alone is `*`.
                self.canonical &= !matches!(at, At::LoneWild);
                self.after_two = false;
                At::Start
            }
            (at @ (At::LoneWild | At::Wild), b'$') => {
                self.canonical = false;
                if matches!(at, At::Wild) {
                    At::Dollar
                } else {
                    At::LoneDollar
                }
            }
            (At::Start, b'$') => At::LoneDollar,
            (At::Name, b'$') => At::Dollar,
            _ => At::Name,
        };
        Ok(())
    }
}

/// Whether it is valid and canonical; `NotCanonical` only where it is valid.
#[inline(never)]
pub(super) const fn check(mut key: &[u8]) -> Result<(), KeyExprError> {
    let mut checker = Checker {
        at: At::Start,
        after_two: false,
        canonical: true,
    };
    while let Some((byte, rest)) = key.split_first() {
        if let Err(error) = checker.byte(*byte) {
            return Err(error);
        }
        key = rest;
    }
    // A slash ends the last chunk, which is empty behind one and where there is nothing at all.
    match checker.byte(b'/') {
        Ok(()) if checker.canonical => Ok(()),
        Ok(()) => Err(KeyExprError::NotCanonical),
        error => error,
    }
}
