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

/// A key expression. Each chunk ends with a slash: one is imagined behind the last.
#[derive(Clone, Copy)]
pub(super) struct Text<'k>(pub(super) &'k [u8]);

/// A chunk without its slash, or chunks with theirs.
#[derive(Clone, Copy)]
struct Span {
    from: usize,
    to: usize,
}

impl Text<'_> {
    fn len(self) -> usize {
        self.0.len().saturating_add(1)
    }

    /// A slash beyond the end, so that every search for one ends.
    fn at(self, index: usize) -> u8 {
        #[cfg(test)]
        work::count();
        self.0.get(index).copied().unwrap_or(b'/')
    }

    #[cfg_attr(target_os = "none", inline(never))]
    fn chunk(self, from: usize) -> Span {
        let mut to = from;
        while self.at(to) != b'/' {
            to += 1;
        }
        Span { from, to }
    }

    /// The last chunk of a span of chunks.
    #[cfg_attr(target_os = "none", inline(never))]
    fn last(self, span: Span) -> Span {
        let to = span.to.saturating_sub(1);
        let mut from = to;
        while from > span.from && self.at(from - 1) != b'/' {
            from -= 1;
        }
        Span { from, to }
    }

    /// The chunks before the next verbatim one, and whether `**` is among them.
    fn segment(self, from: usize) -> (Span, bool) {
        let (mut to, mut two) = (from, false);
        while to < self.len() && self.at(to) != b'@' {
            two |= self.is_two(to);
            to = self.chunk(to).to + 1;
        }
        (Span { from, to }, two)
    }

    /// Whether a `**` begins here.
    #[cfg_attr(target_os = "none", inline(never))]
    fn is_two(self, from: usize) -> bool {
        self.at(from) == b'*' && self.at(from + 1) == b'*'
    }

    fn is_star(self, chunk: Span) -> bool {
        chunk.to - chunk.from == 1 && self.at(chunk.from) == b'*'
    }

    fn has_dollar(self, chunk: Span) -> bool {
        (chunk.from..chunk.to).any(|at| self.at(at) == b'$')
    }

    /// Whether there are only stars from here to a `**`.
    fn stars_before_two(self, mut at: usize) -> bool {
        while self.at(at) == b'*' && self.at(at + 1) == b'/' {
            at += 2;
        }
        self.is_two(at)
    }

    fn same(self, mine: Span, other: Text<'_>, theirs: Span) -> bool {
        mine.to - mine.from == theirs.to - theirs.from
            && (mine.from..mine.to)
                .zip(theirs.from..theirs.to)
                .all(|(i, j)| self.at(i) == other.at(j))
    }
}

pub(super) fn related(a: Text<'_>, b: Text<'_>, relation: Relation) -> bool {
    let (mut i, mut j) = (0, 0);
    loop {
        let ((left, left_two), (right, right_two)) = (a.segment(i), b.segment(j));
        let agree = match (relation, left_two, right_two) {
            (Relation::Intersects, true, true) => ends_meet(a, left, b, right),
            (Relation::Intersects, false, true) => glob(b, right, a, left, relation),
            _ => glob(a, left, b, right, relation),
        };
        if !agree {
            return false;
        }
        if left.to >= a.len() || right.to >= b.len() {
            return left.to >= a.len() && right.to >= b.len();
        }
        let (left, right) = (a.chunk(left.to), b.chunk(right.to));
        if !a.same(left, b, right) {
            return false;
        }
        (i, j) = (left.to + 1, right.to + 1);
    }
}

/// Whether the pattern `p` matches the text `t`, chunk by chunk.
fn glob(p: Text<'_>, pattern: Span, t: Text<'_>, text: Span, relation: Relation) -> bool {
    let (mut i, mut j) = (pattern.from, text.from);
    // Behind the last `**`, and where the text was when what follows was last tried.
    let mut again = None;
    loop {
        if i >= pattern.to {
            if j >= text.to {
                return true;
            }
        } else if p.is_two(i) {
            i += 3;
            if i >= pattern.to {
                return true;
            }
            again = Some((i, j));
            continue;
        } else if j >= text.to {
            return false; // and later on there is less of it
        } else if t.is_two(j) {
            if p.stars_before_two(i) {
                j += 3;
                continue;
            }
        } else {
            let (mine, theirs) = (p.chunk(i), t.chunk(j));
            if chunks(p, mine, t, theirs, relation) {
                (i, j) = (mine.to + 1, theirs.to + 1);
                continue;
            }
        }
        let Some((behind, tried)) = again else {
            return false;
        };
        if tried >= text.to {
            return false;
        }
        (i, j) = (behind, t.chunk(tried).to + 1);
        again = Some((i, j));
    }
}

/// Whether two patterns with a `**` each agree before the first and behind the last.
fn ends_meet(a: Text<'_>, mut left: Span, b: Text<'_>, mut right: Span) -> bool {
    let (mut i, mut j) = (left.from, right.from);
    while i < left.to && j < right.to && !a.is_two(i) && !b.is_two(j) {
        let (mine, theirs) = (a.chunk(i), b.chunk(j));
        if !chunks(a, mine, b, theirs, Relation::Intersects) {
            return false;
        }
        (i, j) = (mine.to + 1, theirs.to + 1);
    }
    while left.to > left.from && right.to > right.from {
        let (mine, theirs) = (a.last(left), b.last(right));
        if a.is_two(mine.from) || b.is_two(theirs.from) {
            break;
        }
        if !chunks(a, mine, b, theirs, Relation::Intersects) {
            return false;
        }
        (left.to, right.to) = (mine.from, theirs.from);
    }
    true
}

/// Two chunks, neither `**` nor verbatim.
fn chunks(a: Text<'_>, mine: Span, b: Text<'_>, theirs: Span, relation: Relation) -> bool {
    if a.is_star(mine) {
        return true;
    }
    if relation == Relation::Includes {
        return glob_bytes(a, mine, b, theirs);
    }
    if b.is_star(theirs) {
        return true;
    }
    match (a.has_dollar(mine), b.has_dollar(theirs)) {
        (true, true) => byte_ends_meet(a, mine, b, theirs),
        (false, true) => glob_bytes(b, theirs, a, mine),
        _ => glob_bytes(a, mine, b, theirs),
    }
}

/// [`glob`], with bytes and `$*`. A `$*` of the text are two bytes that no byte of a pattern
/// equals, so it needs no care.
#[cfg_attr(target_os = "none", inline(never))]
fn glob_bytes(p: Text<'_>, pattern: Span, t: Text<'_>, text: Span) -> bool {
    let (mut i, mut j) = (pattern.from, text.from);
    let mut again = None;
    loop {
        if i >= pattern.to {
            if j >= text.to {
                return true;
            }
        } else if p.at(i) == b'$' {
            i += 2;
            if i >= pattern.to {
                return true;
            }
            again = Some((i, j));
            continue;
        } else if j >= text.to {
            return false;
        } else if p.at(i) == t.at(j) {
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let Some((behind, tried)) = again else {
            return false;
        };
        if tried >= text.to {
            return false;
        }
        (i, j) = (behind, tried + 1);
        again = Some((i, j));
    }
}

/// [`ends_meet`], with bytes and `$*`.
fn byte_ends_meet(a: Text<'_>, mut left: Span, b: Text<'_>, mut right: Span) -> bool {
    let (mut i, mut j) = (left.from, right.from);
    while i < left.to && j < right.to && a.at(i) != b'$' && b.at(j) != b'$' {
        if a.at(i) != b.at(j) {
            return false;
        }
        (i, j) = (i + 1, j + 1);
    }
    while left.to > left.from && right.to > right.from {
        let (mine, theirs) = (a.at(left.to - 1), b.at(right.to - 1));
        if mine == b'*' || theirs == b'*' {
            break;
        }
        if mine != theirs {
            return false;
        }
        (left.to, right.to) = (left.to - 1, right.to - 1);
    }
    true
}

#[cfg(test)]
#[path = "work.rs"]
mod work;
