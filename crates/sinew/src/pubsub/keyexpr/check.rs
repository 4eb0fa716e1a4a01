//! One pass over the bytes: valid, and canonical.

use super::KeyExprError;

/// Whether it is valid and canonical; `NotCanonical` only where it is valid.
#[inline(never)]
pub(super) const fn check(mut key: &[u8]) -> Result<(), KeyExprError> {
    let (mut canonical, mut after_two) = (true, false);
    // Chunk by chunk.
    loop {
        let (stars, behind) = match key {
            [] | [b'/', ..] => return Err(KeyExprError::EmptyChunk),
            [b'*', b'*', behind @ ..] => (2, behind),
            [b'*', behind @ ..] => (1, behind),
            _ => (0, key),
        };
        key = behind;
        if stars == 0 {
            // `$*` alone is `*`.
            canonical &= !matches!(key, [b'$', b'*'] | [b'$', b'*', b'/', ..]);
            loop {
                key = match key {
                    [] | [b'/', ..] => break,
                    [b'#' | b'?', ..] => return Err(KeyExprError::Forbidden),
                    [b'*', ..] => return Err(KeyExprError::Star),
                    [b'$', b'*', behind @ ..] => {
                        canonical &= !matches!(behind, [b'$', ..]);
                        behind
                    }
                    [b'$', ..] => return Err(KeyExprError::Dollar),
                    [_, behind @ ..] => behind,
                };
            }
        } else {
            // Stars go before `**`, of which there is one in a row.
            canonical &= !after_two;
        }
        after_two = stars == 2;
        key = match key {
            [] if canonical => return Ok(()),
            [] => return Err(KeyExprError::NotCanonical),
            [b'/', behind @ ..] => behind,
            _ => return Err(KeyExprError::Star),
        };
    }
}
