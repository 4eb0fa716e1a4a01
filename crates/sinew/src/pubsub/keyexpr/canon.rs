//! The canonical form, chunk by chunk into the caller's place.

use super::KeyExprError;

struct Out<'p> {
    place: &'p mut [u8],
    len: usize,
}

impl<'p> Out<'p> {
    fn push(&mut self, text: &str) -> Result<(), KeyExprError> {
        let end = self.len.saturating_add(text.len());
        self.place
            .get_mut(self.len..end)
            .ok_or(KeyExprError::TooLong)?
            .copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }

    fn chunk(&mut self) -> Result<(), KeyExprError> {
        if self.len == 0 {
            Ok(())
        } else {
            self.push("/")
        }
    }

    fn finish(self) -> Result<&'p str, KeyExprError> {
        let (done, _) = self
            .place
            .split_at_checked(self.len)
            .ok_or(KeyExprError::TooLong)?;
        // Pieces of strings, cut beside ASCII characters, are a string.
        core::str::from_utf8(done).map_err(|_| KeyExprError::TooLong)
    }
}

/// `key` is valid.
pub(super) fn canonize<'p>(key: &str, place: &'p mut [u8]) -> Result<&'p str, KeyExprError> {
    let mut out = Out { place, len: 0 };
    // A `**` waits for the stars behind it, and takes in further ones.
    let mut two = false;
    for chunk in key.split('/') {
        if chunk == "**" {
            two = true;
            continue;
        }
        // `*` is left of both `*` and a row of `$*`.
        let star = chunk == "*" || chunk.split("$*").all(str::is_empty);
        if two && !star {
            out.chunk()?;
            out.push("**")?;
            two = false;
        }
        out.chunk()?;
        if star {
            out.push("*")?;
            continue;
        }
        let mut open = false;
        for (n, piece) in chunk.split("$*").enumerate() {
            if n > 0 && !open {
                out.push("$*")?;
            }
            // Empty between two `$*`, which are one.
            open = n > 0 && piece.is_empty();
            out.push(piece)?;
        }
    }
    if two {
        out.chunk()?;
        out.push("**")?;
    }
    out.finish()
}
