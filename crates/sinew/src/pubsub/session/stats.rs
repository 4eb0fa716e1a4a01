//! What a session has counted.

/// What has passed, and what was refused, lost or ignored. Counts wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Sessions that came about.
    pub opened: u32,
    /// Network messages handled.
    pub messages: u32,
    /// Frames that never arrived, by their sequence numbers, of reliable messages.
    pub missed_reliable: u32,
    /// The same of best-effort messages.
    pub missed_best_effort: u32,
    /// How often something was missing.
    pub gaps: u32,
    /// Single numbers that were missing right behind a message in fragments. Zenoh's own nodes leave
    /// one out there, so over a stream nothing was lost; of datagrams it can have been one.
    pub left_out: u32,
    /// Frames ignored, because a later one had arrived: repeated, or overtaken.
    pub old: u32,
    /// Messages of which a fragment was missing.
    pub fragments_lost: u32,
    /// Messages in fragments that are larger than the memory for them.
    pub too_large: u32,
    /// Messages with a key that nobody has declared here.
    pub unknown_key: u32,
    /// Messages with a key that is no key expression, or too long.
    pub bad_key: u32,
    /// What the peer declared beyond the tables. Write filters stay open then.
    pub no_room: u32,
    /// Messages of a kind that this session does not take.
    pub unexpected: u32,
    /// Queries refused, because too many were open.
    pub queries_refused: u32,
    /// Answers to queries that are not open any more.
    pub late_replies: u32,
    /// Packets that could not be read. Each ended a session.
    pub malformed: u32,
    /// One's own samples dropped, because the link was full and their policy said so.
    pub dropped: u32,
}

impl Stats {
    pub(super) const ZERO: Stats = Stats {
        opened: 0,
        messages: 0,
        missed_reliable: 0,
        missed_best_effort: 0,
        gaps: 0,
        left_out: 0,
        old: 0,
        fragments_lost: 0,
        too_large: 0,
        unknown_key: 0,
        bad_key: 0,
        no_room: 0,
        unexpected: 0,
        queries_refused: 0,
        late_replies: 0,
        malformed: 0,
        dropped: 0,
    };

    /// Every counter with its name, for tools.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u32)> {
        [
            ("opened", self.opened),
            ("messages", self.messages),
            ("missed_reliable", self.missed_reliable),
            ("missed_best_effort", self.missed_best_effort),
            ("gaps", self.gaps),
            ("left_out", self.left_out),
            ("old", self.old),
            ("fragments_lost", self.fragments_lost),
            ("too_large", self.too_large),
            ("unknown_key", self.unknown_key),
            ("bad_key", self.bad_key),
            ("no_room", self.no_room),
            ("unexpected", self.unexpected),
            ("queries_refused", self.queries_refused),
            ("late_replies", self.late_replies),
            ("malformed", self.malformed),
            ("dropped", self.dropped),
        ]
        .into_iter()
    }
}

#[inline]
pub(super) fn count(counter: &mut u32) {
    *counter = counter.wrapping_add(1);
}

#[inline]
pub(super) fn count_many(counter: &mut u32, times: u32) {
    *counter = counter.wrapping_add(times);
}
