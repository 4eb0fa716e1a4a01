//! Intersection and inclusion, without heap, recursion or retries that multiply.
//!
//! * No wildcard matches a verbatim chunk, so a key has the verbatim chunks of its expression, in
//!   order. Two expressions must have the same ones, and are compared *segment* by segment between
//!   them, where there are none.
//! * Where only one of two segments has `**`, the other one is a text of chunks, and `**` is a star
//!   of ordinary globbing: what stands between two `**` (a block) is best placed as far to the left
//!   as it goes, since that leaves the most to those behind it. So when a chunk does not match, only
//!   the last `**` is tried again, one chunk further on ([`glob`]). A chunk of the text meets
//!   each chunk of a block once.
//! * Where both have `**`, both intersect as soon as what is before the first `**` of either agrees,
//!   and what is behind the last: a key can have all the blocks of the one and then all those of
//!   the other in between ([`ends_meet`]).
//! * Inclusion is globbing too: the smaller one's `**` stands for chunks that nobody has thought
//!   of, as many as one likes or none. So no block can lie across it; only a `**` takes it in. The
//!   stars before a `**` ask for that many chunks at least, and it counts for none there.
//! * Inside of a chunk `$*` is the same again, with bytes for chunks. UTF-8 lets no character begin
//!   inside of another, so bytes agree where characters do.

/// What is asked of two key expressions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Intersects,
    /// The first includes the second.
    Includes,
}

const STAR: &[u8] = b"*";
/// No other chunk has two stars in a row.
const TWO: &[u8] = b"**";

/// Bytes that are looked at: a test bounds how many.
#[inline]
fn look(_bytes: usize) {
    #[cfg(test)]
    work::count(_bytes);
}

/// The first of these chunks, and those behind it. No chunk is empty, so nothing is no chunk.
#[cfg_attr(target_os = "none", inline(never))]
fn first(chunks: &[u8]) -> (&[u8], &[u8]) {
    let slash = chunks.iter().position(|&byte| byte == b'/');
    let (chunk, rest) = chunks
        .split_at_checked(slash.unwrap_or(chunks.len()))
        .unwrap_or_default();
    look(chunk.len() + 1);
    (chunk, rest.get(1..).unwrap_or_default())
}

/// The last of these chunks, and those before it.
#[cfg_attr(target_os = "none", inline(never))]
fn last(chunks: &[u8]) -> (&[u8], &[u8]) {
    let slash = chunks.iter().rposition(|&byte| byte == b'/');
    let (rest, chunk) = chunks
        .split_at_checked(slash.unwrap_or(0))
        .unwrap_or_default();
    look(chunk.len() + 1);
    (chunk.strip_prefix(b"/").unwrap_or(chunk), rest)
}

/// The chunks before the next verbatim one, whether `**` is among them, and what begins with that one.
#[cfg_attr(target_os = "none", inline(never))]
fn segment(chunks: &[u8]) -> (&[u8], bool, &[u8]) {
    let (mut rest, mut two) = (chunks, false);
    while !matches!(rest, [] | [b'@', ..]) {
        two |= behind_two(rest).is_some();
        rest = first(rest).1;
    }
    let before = chunks.len().saturating_sub(rest.len());
    let before = chunks.get(..before).unwrap_or_default();
    (before.strip_suffix(b"/").unwrap_or(before), two, rest)
}

/// What is behind a `**`, where one begins here.
fn behind_two(chunks: &[u8]) -> Option<&[u8]> {
    look(2);
    match chunks {
        [b'*', b'*', rest @ ..] => Some(rest.get(1..).unwrap_or_default()),
        _ => None,
    }
}

/// Whether there are only stars from here to a `**`.
fn stars_before_two(mut chunks: &[u8]) -> bool {
    while let [b'*', b'/', rest @ ..] = chunks {
        look(2);
        chunks = rest;
    }
    behind_two(chunks).is_some()
}

pub(super) fn related(mut a: &[u8], mut b: &[u8], relation: Relation) -> bool {
    loop {
        let ((left, left_two, behind_a), (right, right_two, behind_b)) = (segment(a), segment(b));
        let agree = match (relation, left_two, right_two) {
            (Relation::Intersects, true, true) => ends_meet(left, right),
            (Relation::Intersects, false, true) => glob(right, left, relation),
            _ => glob(left, right, relation),
        };
        if !agree {
            return false;
        }
        if behind_a.is_empty() || behind_b.is_empty() {
            return behind_a.is_empty() && behind_b.is_empty();
        }
        let ((left, behind_a), (right, behind_b)) = (first(behind_a), first(behind_b));
        if left != right {
            return false;
        }
        (a, b) = (behind_a, behind_b);
    }
}

/// Whether the pattern matches the text, chunk by chunk.
fn glob(mut pattern: &[u8], mut text: &[u8], relation: Relation) -> bool {
    // What is behind the last `**`, and the text where that was last tried.
    let mut again = None;
    loop {
        if pattern.is_empty() {
            if text.is_empty() {
                return true;
            }
        } else if let Some(behind) = behind_two(pattern) {
            if behind.is_empty() {
                return true;
            }
            pattern = behind;
            again = Some((pattern, text));
            continue;
        } else if text.is_empty() {
            return false; // and later on there is less of it
        } else if let Some(behind) = behind_two(text) {
            if stars_before_two(pattern) {
                text = behind;
                continue;
            }
        } else {
            let ((mine, others), (theirs, behind)) = (first(pattern), first(text));
            if chunks(mine, theirs, relation) {
                (pattern, text) = (others, behind);
                continue;
            }
        }
        let Some((behind, tried)) = again else {
            return false;
        };
        if tried.is_empty() {
            return false;
        }
        (pattern, text) = (behind, first(tried).1);
        again = Some((pattern, text));
    }
}

/// Whether two patterns with a `**` each agree before the first and behind the last.
fn ends_meet(left: &[u8], right: &[u8]) -> bool {
    ends_agree(left, right, first) && ends_agree(left, right, last)
}

/// Takes a chunk off one end: that chunk, and the others.
type Next = fn(&[u8]) -> (&[u8], &[u8]);

/// Whether they agree up to the `**` that comes first, from the end at which `next` takes a chunk off.
#[cfg_attr(target_os = "none", inline(never))]
fn ends_agree(mut left: &[u8], mut right: &[u8], next: Next) -> bool {
    while !left.is_empty() && !right.is_empty() {
        let ((mine, others), (theirs, behind)) = (next(left), next(right));
        if mine == TWO || theirs == TWO {
            break;
        }
        if !chunks(mine, theirs, Relation::Intersects) {
            return false;
        }
        (left, right) = (others, behind);
    }
    true
}

/// Two chunks, neither `**` nor verbatim.
fn chunks(mine: &[u8], theirs: &[u8], relation: Relation) -> bool {
    if mine == STAR {
        return true;
    }
    if relation == Relation::Includes {
        return glob_bytes(mine, theirs);
    }
    if theirs == STAR {
        return true;
    }
    match (has_dollar(mine), has_dollar(theirs)) {
        (true, true) => byte_ends_meet(mine, theirs),
        (false, true) => glob_bytes(theirs, mine),
        _ => glob_bytes(mine, theirs),
    }
}

#[expect(clippy::manual_contains, reason = "the library's search is 180 B")]
fn has_dollar(chunk: &[u8]) -> bool {
    look(chunk.len());
    chunk.iter().any(|&byte| byte == b'$')
}

/// [`glob`], with bytes and `$*`. A `$*` of the text are two bytes that no byte of a pattern
/// equals, so it needs no care.
#[cfg_attr(target_os = "none", inline(never))]
fn glob_bytes(mut pattern: &[u8], mut text: &[u8]) -> bool {
    let mut again = None;
    loop {
        look(2);
        match (pattern, text) {
            ([], []) | ([b'$', _], _) => return true,
            ([b'$', _, behind @ ..], _) => {
                pattern = behind;
                again = Some((pattern, text));
                continue;
            }
            ([_, ..], []) => return false,
            ([mine, others @ ..], [theirs, behind @ ..]) if mine == theirs => {
                (pattern, text) = (others, behind);
                continue;
            }
            _ => {}
        }
        let Some((behind, [_, tried @ ..])) = again else {
            return false;
        };
        (pattern, text) = (behind, tried);
        again = Some((pattern, text));
    }
}

/// [`ends_meet`], with bytes and `$*`.
fn byte_ends_meet(mut left: &[u8], mut right: &[u8]) -> bool {
    while let ([mine, behind_a @ ..], [theirs, behind_b @ ..]) = (left, right)
        && *mine != b'$'
        && *theirs != b'$'
    {
        look(2);
        if mine != theirs {
            return false;
        }
        (left, right) = (behind_a, behind_b);
    }
    while let ([before_a @ .., mine], [before_b @ .., theirs]) = (left, right)
        && *mine != b'*'
        && *theirs != b'*'
    {
        look(2);
        if mine != theirs {
            return false;
        }
        (left, right) = (before_a, before_b);
    }
    true
}

#[cfg(test)]
#[path = "work.rs"]
mod work;
