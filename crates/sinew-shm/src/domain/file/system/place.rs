//! Where everything lies, and whether it can lie there.

use std::format;
use std::path::{Path, PathBuf};
use std::string::{String, ToString};
use std::vec::Vec;

use super::read::{At, Offset, Raw, RawLink, RawRegion};
use super::spans::{Part, end_of, laid, overlap, range, room};
use super::{MemoryRegion, Mistake, SystemFile, SystemLink, SystemProblem};
use crate::domain::config::Role;
use crate::domain::region::Span;

const SEGMENTS: [&str; 3] = ["first segment", "second segment", "exchange segment"];

/// Looks up what the file names, and places the links: those with an offset there, the others where
/// there is room, in the order of the file.
pub(super) fn place(file: &Path, raw: Raw, mistakes: &mut Vec<Mistake>) -> SystemFile {
    let mut placer = Placer { file, mistakes };
    placer.names("domain", &raw.domains, |domain| &domain.name);
    placer.names("region", &raw.regions, |region| &region.name);
    placer.names("link", &raw.links, |link| &link.name);
    placer.regions(&raw);
    let links = placer.links(&raw);
    let region = |region: At<RawRegion>| {
        let RawRegion {
            name,
            len,
            align,
            bases,
        } = region.value;
        MemoryRegion {
            name,
            len: len.unwrap_or(0),
            align: align.unwrap_or(1),
            bases: bases.into_iter().map(|base| base.value).collect(),
        }
    };
    SystemFile {
        domains: raw.domains.into_iter().map(|it| it.value).collect(),
        regions: raw.regions.into_iter().map(region).collect(),
        links,
    }
}

struct Placer<'a> {
    file: &'a Path,
    mistakes: &'a mut Vec<Mistake>,
}

impl Placer<'_> {
    fn mistake(&mut self, line: usize, problem: SystemProblem) {
        self.mistakes.push(Mistake {
            file: PathBuf::from(self.file),
            line: Some(line),
            problem,
        });
    }

    /// Each name stands once.
    fn names<T>(&mut self, what: &'static str, all: &[At<T>], name: impl Fn(&T) -> &str) {
        for (at, one) in all.iter().enumerate() {
            let before = all.iter().take(at);
            let same = before
                .clone()
                .find(|other| name(&other.value) == name(&one.value));
            if let Some(other) = same {
                let problem = SystemProblem::Duplicate {
                    what,
                    name: name(&one.value).to_string(),
                    line: other.line,
                };
                self.mistake(one.line, problem);
            }
        }
    }

    /// What a name means, by its place.
    fn find<T>(
        &mut self,
        (what, wanted): (&'static str, &At<String>),
        all: &[At<T>],
        name: impl Fn(&T) -> &str,
    ) -> Option<usize> {
        let found = all.iter().position(|it| name(&it.value) == wanted.value);
        if found.is_none() {
            let problem = SystemProblem::NoSuch {
                what,
                name: wanted.value.clone(),
                known: all.iter().map(|it| name(&it.value).to_string()).collect(),
            };
            self.mistake(wanted.line, problem);
        }
        found
    }

    /// Where the domains see the regions: aligned, within their addresses, and nothing twice.
    fn regions(&mut self, raw: &Raw) {
        /// What a domain sees, so far: the domain, the region, where.
        struct Seen<'a> {
            domain: usize,
            region: &'a str,
            span: Span,
            line: usize,
        }
        let mut seen: Vec<Seen<'_>> = Vec::new();
        for region in &raw.regions {
            let region = &region.value;
            for At {
                value: (name, base),
                line,
            } in &region.bases
            {
                let wanted = At {
                    value: name.clone(),
                    line: *line,
                };
                let domain = self.find(("domain", &wanted), &raw.domains, |it| &it.name);
                if let Some(align) = region.align
                    && !base.is_multiple_of(align)
                {
                    let problem = SystemProblem::Misaligned {
                        part: format!("region `{}`, as `{name}` sees it,", region.name),
                        offset: *base,
                        align,
                    };
                    self.mistake(*line, problem);
                }
                let (Some(domain), Some(len)) = (domain, region.len) else {
                    continue;
                };
                let Some(bits) = raw.domains.get(domain).map(|it| it.value.bits) else {
                    continue;
                };
                let end = u128::from(*base) + u128::from(len);
                if end > 1 << bits {
                    let problem = SystemProblem::Bits {
                        region: region.name.clone(),
                        domain: name.clone(),
                        end,
                        bits,
                    };
                    self.mistake(*line, problem);
                }
                let span = Span { offset: *base, len };
                let other = seen
                    .iter()
                    .find(|it| it.domain == domain && overlap(it.span, span));
                if let Some(other) = other {
                    let problem = SystemProblem::Overlap {
                        within: format!("what `{name}` sees"),
                        part: (format!("region `{}`", region.name), range(span)),
                        other: (format!("region `{}`", other.region), range(other.span)),
                        line: other.line,
                    };
                    self.mistake(*line, problem);
                }
                seen.push(Seen {
                    domain,
                    region: &region.name,
                    span,
                    line: *line,
                });
            }
        }
    }

    fn links(&mut self, raw: &Raw) -> Vec<SystemLink> {
        let mut parts = Vec::new();
        let mut placed: Vec<Option<SystemLink>> =
            raw.links.iter().map(|link| self.known(raw, link)).collect();
        // Those that say where they are first, so that the others find the room between them.
        for is_fixed in [true, false] {
            for (link, placed) in raw.links.iter().zip(&mut placed) {
                let Some(offset) = &link.value.offset else {
                    continue;
                };
                if matches!(offset, Offset::Anywhere) == is_fixed {
                    continue;
                }
                if let Some(placed) = placed {
                    self.put(raw, link, (offset, placed), &mut parts);
                }
            }
        }
        placed.into_iter().flatten().collect()
    }

    /// A link of which everything is known but its place; every name that means nothing is a mistake.
    fn known(&mut self, raw: &Raw, link: &At<RawLink>) -> Option<SystemLink> {
        let RawLink {
            name,
            region,
            sides,
            offset: _,
            file,
        } = &link.value;
        let region = region.as_ref().and_then(|region| {
            let found = self.find(("region", region), &raw.regions, |it| &it.name);
            raw.regions.get(found?)
        });
        let domains = sides.each_ref().map(|side| {
            let side = side.as_ref()?;
            self.find(("domain", side), &raw.domains, |it| &it.name)?;
            Some(side)
        });
        if let [Some(first), Some(second)] = domains
            && first.value == second.value
        {
            let problem = SystemProblem::SameSides(second.value.clone());
            self.mistake(second.line, problem);
        }
        let bases = domains.map(|domain| {
            let (region, domain) = (region?, domain?);
            let bases = &region.value.bases;
            let found = bases.iter().find(|base| base.value.0 == domain.value);
            if found.is_none() {
                let problem = SystemProblem::NoBase {
                    region: region.value.name.clone(),
                    domain: domain.value.clone(),
                };
                self.mistake(region.line, problem);
            }
            Some(found?.value.1)
        });
        let ([Some(first), Some(second)], [Some(mine), Some(theirs)]) = (domains, bases) else {
            return None;
        };
        let file = file.clone()?;
        let config = file.config();
        let lens = [
            config.segment_len(Role::First),
            config.segment_len(Role::Second),
            config.exchange_len(),
        ];
        let region = region?;
        if let Some(align) = region.value.align
            && align < 1 << config.line_log2
        {
            let problem = SystemProblem::AlignBelowLine {
                region: region.value.name.clone(),
                align,
                line: 1 << config.line_log2,
            };
            self.mistake(link.line, problem);
        }
        Some(SystemLink {
            name: name.clone(),
            region: region.value.name.clone(),
            domains: [first.value.clone(), second.value.clone()],
            bases: [mine, theirs],
            spans: lens.map(|len| Span {
                offset: 0,
                len: len as u64,
            }),
            file,
        })
    }

    /// Gives the segments of a link their places.
    fn put(
        &mut self,
        raw: &Raw,
        link: &At<RawLink>,
        (offset, placed): (&Offset, &mut SystemLink),
        parts: &mut Vec<Part>,
    ) {
        let same = |it: &At<RawRegion>| it.value.name == placed.region;
        let Some(region) = raw.regions.iter().position(same) else {
            return;
        };
        let Some(RawRegion {
            len: Some(len),
            align: Some(align),
            ..
        }) = raw.regions.get(region).map(|it| &it.value)
        else {
            return;
        };
        let (len, align) = (*len, *align);
        let mut lines = [link.line; 3];
        match offset {
            Offset::Anywhere => {
                let Some(found) = room(placed.spans, (region, len, align), parts) else {
                    let laid = laid(placed.spans, 0, align);
                    let needed = laid.map_or(u64::MAX, |it| end_of(&it));
                    let problem = SystemProblem::NoPlace {
                        link: placed.name.clone(),
                        needed,
                        region: placed.region.clone(),
                        len,
                    };
                    return self.mistake(link.line, problem);
                };
                placed.spans = found;
            }
            Offset::Whole(at) => {
                lines = [at.line; 3];
                if !at.value.is_multiple_of(align) {
                    let problem = SystemProblem::Misaligned {
                        part: format!("link `{}`", placed.name),
                        offset: at.value,
                        align,
                    };
                    return self.mistake(at.line, problem);
                }
                let Some(found) = laid(placed.spans, at.value, align) else {
                    let problem = SystemProblem::Beyond {
                        part: (format!("link `{}`", placed.name), at.value..u64::MAX),
                        region: placed.region.clone(),
                        len,
                    };
                    return self.mistake(at.line, problem);
                };
                placed.spans = found;
            }
            Offset::Each(all) => {
                for (index, at) in all.iter().enumerate() {
                    let span = &mut placed.spans[index];
                    match at {
                        Some(at) => {
                            lines[index] = at.line;
                            span.offset = at.value;
                            if !at.value.is_multiple_of(align) {
                                let problem = SystemProblem::Misaligned {
                                    part: format!(
                                        "link `{}`: its {}",
                                        placed.name, SEGMENTS[index]
                                    ),
                                    offset: at.value,
                                    align,
                                };
                                self.mistake(at.line, problem);
                            }
                        }
                        None if span.len > 0 => {
                            let problem = super::Problem::MissingKey("exchange");
                            self.mistake(link.line, SystemProblem::Link(problem));
                            return;
                        }
                        None => {}
                    }
                }
            }
        }
        for (index, span) in placed.spans.into_iter().enumerate() {
            if span.len == 0 {
                continue;
            }
            let part = Part {
                name: format!("the {} of link `{}`", SEGMENTS[index], placed.name),
                region,
                span,
                line: lines[index],
            };
            if range(span).end > len {
                let problem = SystemProblem::Beyond {
                    part: part.named(),
                    region: placed.region.clone(),
                    len,
                };
                self.mistake(part.line, problem);
            }
            let mut others = parts.iter().filter(|it| it.region == region);
            if let Some(other) = others.find(|it| overlap(it.span, span)) {
                let problem = SystemProblem::Overlap {
                    within: format!("region `{}`", placed.region),
                    part: part.named(),
                    other: other.named(),
                    line: other.line,
                };
                self.mistake(part.line, problem);
            }
            parts.push(part);
        }
    }
}
