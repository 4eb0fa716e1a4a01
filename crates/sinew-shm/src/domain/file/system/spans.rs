//! Parts of a region: whether they lie on each other, and where there is room.

use core::ops::Range;
use std::string::String;

use crate::domain::region::Span;

/// A part of a region that a link has.
pub(super) struct Part {
    pub name: String,
    pub region: usize,
    pub span: Span,
    pub line: usize,
}

impl Part {
    pub(super) fn named(&self) -> (String, Range<u64>) {
        (self.name.clone(), range(self.span))
    }
}

pub(super) fn range(span: Span) -> Range<u64> {
    span.offset..span.offset.saturating_add(span.len)
}

pub(super) fn overlap(one: Span, other: Span) -> bool {
    let (one, other) = (range(one), range(other));
    !one.is_empty() && !other.is_empty() && one.start < other.end && other.start < one.end
}

/// Segments of these lengths one behind the other, from `start` on, each aligned. `None` where that is
/// beyond all numbers.
pub(super) fn laid(spans: [Span; 3], start: u64, align: u64) -> Option<[Span; 3]> {
    let mut behind = start;
    let mut laid = spans;
    for span in &mut laid {
        span.offset = behind.checked_next_multiple_of(align)?;
        if span.len > 0 {
            behind = span.offset.checked_add(span.len)?;
        }
    }
    Some(laid)
}

pub(super) fn end_of(spans: &[Span; 3]) -> u64 {
    let used = spans.iter().filter(|span| span.len > 0);
    used.map(|span| range(*span).end).max().unwrap_or(0)
}

/// The first place of a region in which segments of these lengths lie one behind the other.
pub(super) fn room(
    spans: [Span; 3],
    (region, len, align): (usize, u64, u64),
    parts: &[Part],
) -> Option<[Span; 3]> {
    let mut start = 0;
    loop {
        let laid = laid(spans, start, align)?;
        let whole = Span {
            offset: start,
            len: end_of(&laid).checked_sub(start)?,
        };
        if range(whole).end > len {
            return None;
        }
        let mut others = parts.iter().filter(|part| part.region == region);
        let Some(other) = others.find(|part| overlap(part.span, whole)) else {
            return Some(laid);
        };
        // Behind it: each part is passed once, at most.
        start = range(other.span).end.checked_next_multiple_of(align)?;
    }
}
