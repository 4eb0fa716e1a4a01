//! Declarations: what this side tells the peer, and what the peer tells.
//!
//! What is owed is a flag in each entry. A new declaration, all of them after a reconnect, and what
//! did not go because the link was full are the same thing: [`Session::declare`] sends what is owed, in
//! the order of section 4.5: keys, subscribers, queryables, interests.

use crate::link::Tx;
use crate::pubsub::codec::{
    Declaration, Declare, EntityKind, Interest, Qos, WhatAmI, WireExpr, Writer,
};
use crate::pubsub::keyexpr::KeyExpr;
use crate::time::Instant;

use super::event::{Event, Step};
use super::foreign::{Kind, find};
use super::out::{How, Out, Refused};
use super::own::{self, Entry, Owes};
use super::receive::Cx;
use super::stats::count;
use super::tables::Rows;
use super::{Session, Tables};

/// Where declarations go.
struct Teller<'a, T, X: ?Sized> {
    out: &'a mut Out<T>,
    tx: &'a mut X,
    now: Instant,
    withdrawn: &'a mut u16,
    /// The other side says who subscribes only when asked: a router does, and whoever has a client here.
    asks: bool,
    /// Whether keys of what is gone are kept for a while; whether some time has passed; whether any was
    /// kept.
    keeps: bool,
    ages: bool,
    kept: bool,
}

impl<T: Tables, X: Tx + ?Sized> Teller<'_, T, X> {
    #[inline(never)]
    fn send(&mut self, message: &mut dyn FnMut(&mut Writer<'_>)) -> Result<(), Refused> {
        self.out.send(self.tx, self.now, How::DECLARATION, message)
    }

    #[inline(never)]
    fn declare(
        &mut self,
        interest: Option<u32>,
        declaration: Declaration<'_>,
    ) -> Result<(), Refused> {
        let declare = Declare {
            interest,
            qos: Qos::DEFAULT,
            declaration,
        };
        self.send(&mut |w| declare.encode(w))
    }

    /// Declares the keys of those entries that have not been told of.
    fn keys<K: AsRef<str>>(&mut self, entries: &mut [Option<Entry<K>>]) -> Result<(), Refused> {
        for entry in entries.iter_mut().flatten() {
            if !matches!(entry.owes, Owes::Key | Owes::Again) {
                continue;
            }
            let prefix = entry.parts().0;
            if !prefix.is_empty() {
                let (id, key) = (entry.number, WireExpr::text(prefix));
                self.declare(None, Declaration::Key { id, key })?;
            }
            entry.owes = Owes::Thing;
        }
        Ok(())
    }

    /// Declares those entries whose keys the peer knows.
    fn things<K: AsRef<str>>(&mut self, entries: &mut [Option<Entry<K>>]) -> Result<(), Refused> {
        for entry in entries.iter_mut().flatten() {
            if entry.owes != Owes::Thing {
                continue;
            }
            match Self::kind(entry) {
                Some(kind) => self.thing(None, kind, entry, entry.expr())?,
                None if self.is_interested(entry) => {
                    let interest = Interest {
                        id: u32::from(entry.number),
                        current: true,
                        future: true,
                        options: Interest::KEYS | Interest::SUBSCRIBERS | Interest::AGGREGATE,
                        key: Some(entry.expr()),
                        qos: Qos::DEFAULT,
                    };
                    self.send(&mut |w| interest.encode(w))?;
                }
                None => {}
            }
            entry.owes = Owes::Nothing;
        }
        Ok(())
    }

    /// What the peer is told of an entry; `None`: only its key.
    fn kind<K>(entry: &Entry<K>) -> Option<EntityKind> {
        match T::SUBSCRIBES || T::ANSWERS {
            true => entry.sort.kind(),
            false => None,
        }
    }

    #[inline(never)]
    fn thing<K>(
        &mut self,
        interest: Option<u32>,
        kind: EntityKind,
        entry: &Entry<K>,
        key: WireExpr<'_>,
    ) -> Result<(), Refused> {
        let declaration = Declaration::Entity {
            kind,
            id: u32::from(entry.number),
            key,
            info: u32::from(entry.complete),
        };
        self.declare(interest, declaration)
    }

    /// Whether a publisher asks who subscribes.
    fn is_interested<K>(&self, publisher: &Entry<K>) -> bool {
        self.asks && publisher.options.filter
    }

    /// Takes back those entries that have ended. Where there is room their keys stay for a while, known
    /// to both sides at first and then here only: the peer may name one until it has heard that it is
    /// gone, and what it names it for can be for others too.
    fn withdrawals<K: AsRef<str>>(
        &mut self,
        entries: &mut [Option<Entry<K>>],
    ) -> Result<(), Refused> {
        let has_room = entries.iter().any(Option::is_none);
        for slot in entries {
            let Some(entry) = slot else { continue };
            let id = entry.number;
            let has_key = !entry.parts().0.is_empty();
            let stays = has_key && self.keeps && has_room;
            let mut rests = stays && !self.ages;
            match entry.owes {
                Owes::Withdrawal => {
                    match Self::kind(entry) {
                        Some(kind) => {
                            let (id, key) = (u32::from(id), None);
                            self.declare(None, Declaration::NoEntity { kind, id, key })?;
                        }
                        None if self.is_interested(entry) => {
                            let interest = Interest {
                                id: u32::from(id),
                                ..Interest::default()
                            };
                            self.send(&mut |w| interest.encode(w))?;
                        }
                        None => {}
                    }
                    entry.owes = Owes::Gone;
                    rests = stays;
                }
                Owes::Gone | Owes::Stale => {}
                _ => continue,
            }
            if !rests && has_key && entry.owes == Owes::Gone {
                self.declare(None, Declaration::NoKey { id })?;
                entry.owes = Owes::Stale;
                rests = stays;
            }
            if rests {
                self.kept = true;
                continue;
            }
            *slot = None;
            *self.withdrawn = self.withdrawn.wrapping_add(1);
        }
        Ok(())
    }
}

impl<T: Tables> Session<T> {
    /// Lets everything be declared once more: who has heard of it takes no notice.
    pub(super) fn declare_again(&mut self) {
        for entries in &mut self.tables.all().own() {
            own::again(entries);
        }
        self.owed = true;
        self.said_all = false;
    }

    /// Sends what is owed, as far as there are places.
    pub(super) fn declare<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        now: Instant,
    ) -> Result<(), Refused> {
        let is_peer = self.config.whatami == WhatAmI::Peer;
        let theirs = self.peer.map(|peer| peer.whatami);
        let with_peer = is_peer && theirs == Some(WhatAmI::Peer);
        let mut all = self.tables.all();
        let mut teller = Teller {
            out: &mut self.out,
            tx,
            now,
            withdrawn: &mut self.withdrawn,
            asks: T::LISTENS && (!is_peer || theirs == Some(WhatAmI::Router)),
            keeps: T::SUBSCRIBES || T::ANSWERS || T::ASKS,
            ages: self.forget <= now,
            kept: false,
        };
        for entries in &mut all.own() {
            teller.keys(entries)?;
        }
        let [publishers, subscribers, queryables] = all.own();
        for entries in &mut [subscribers, queryables, publishers] {
            teller.things(entries)?;
        }
        for entries in &mut all.own() {
            teller.withdrawals(entries)?;
        }
        if T::SUBSCRIBES {
            let id = self.known.stranger;
            if id != 0 && all.tables().own_key(id).is_none() {
                teller.declare(None, Declaration::NoKey { id })?;
            }
            self.known.stranger = 0;
        }
        if T::LISTENS {
            for (row, slot) in all.foreign.iter_mut().enumerate() {
                let Some(entry) = slot else { continue };
                let Kind::Interest { options, told } = &mut entry.kind else {
                    continue;
                };
                let options = *options;
                let mut asked = Asked {
                    id: entry.id,
                    options,
                    key: all.keys.get(row, entry.len),
                    told,
                    before: 0,
                };
                for (wanted, entries) in [
                    (Interest::SUBSCRIBERS, &*all.subscribers),
                    (Interest::QUERYABLES, &*all.queryables),
                ] {
                    if options & wanted != 0 {
                        teller.answer(&mut asked, entries)?;
                    }
                    asked.before = asked.before.saturating_add(entries.len());
                }
                teller.declare(Some(asked.id), Declaration::Final)?;
                *slot = None;
                all.keys.free(row);
            }
        }
        let (kept, aged) = (teller.kept, teller.ages);
        if !self.said_all {
            // Between peers, what is there is said unasked, and that it was all.
            if with_peer {
                teller.declare(Some(UNASKED), Declaration::Final)?;
            }
            self.said_all = true;
        }
        if !kept {
            self.forget = Instant::FAR;
        } else if aged || self.forget == Instant::FAR {
            self.forget = now.later(self.silence());
        }
        self.owed = false;
        Ok(())
    }
}

/// An interest of the peer.
struct Asked<'a> {
    id: u32,
    options: u8,
    /// Empty: in everything.
    key: &'a str,
    /// So many entries have been looked at, of all tables one after another.
    told: &'a mut u16,
    /// Entries of the tables before.
    before: usize,
}

impl Asked<'_> {
    /// The next entry to look at in this table.
    fn from(&self) -> usize {
        usize::from(*self.told).saturating_sub(self.before)
    }

    /// Those before `index` in this table have been looked at.
    fn told(&mut self, index: usize) {
        let all = self.before.saturating_add(index) as u16;
        *self.told = all.max(*self.told);
    }

    fn is_in(&self, key: &str) -> bool {
        self.key.is_empty() || KeyExpr::unchecked(self.key).intersects(KeyExpr::unchecked(key))
    }
}

impl<T: Tables, X: Tx + ?Sized> Teller<'_, T, X> {
    /// Tells those entries that the peer is interested in; with AGGREGATE one, on its own key, which
    /// is what Zenoh-Pico's publishers wait for.
    fn answer<K: AsRef<str>>(
        &mut self,
        asked: &mut Asked<'_>,
        entries: &[Option<Entry<K>>],
    ) -> Result<(), Refused> {
        for (index, entry) in entries.iter().enumerate().skip(asked.from()) {
            let Some(entry) = entry else { continue };
            let Some(kind) = Self::kind(entry) else {
                continue;
            };
            if entry.owes != Owes::Nothing || !asked.is_in(entry.key.as_ref()) {
                continue;
            }
            let aggregate = asked.options & Interest::AGGREGATE != 0 && !asked.key.is_empty();
            let key = match aggregate {
                true => WireExpr::text(asked.key),
                false => entry.expr(),
            };
            self.thing(Some(asked.id), kind, entry, key)?;
            if aggregate {
                break;
            }
            asked.told(index.saturating_add(1));
        }
        asked.told(entries.len());
        Ok(())
    }
}

/// Somebody subscribes to `key`, or does no longer. Whether who is heard has changed.
#[inline(never)]
fn heard<K: AsRef<str>>(publishers: &mut [Option<Entry<K>>], key: KeyExpr<'_>, more: bool) -> bool {
    let mut changed = false;
    for publisher in publishers.iter_mut().flatten() {
        if key.intersects(KeyExpr::unchecked(publisher.key.as_ref())) {
            publisher.heard = match more {
                true => publisher.heard.saturating_add(1),
                false => publisher.heard.saturating_sub(1),
            };
            changed |= publisher.heard == u16::from(more);
        }
    }
    changed
}

/// The interest that a peer is taken to have without saying so.
const UNASKED: u32 = 0;

impl<'s, T: Tables> Cx<'s, T> {
    /// What the peer declares.
    pub(super) fn declared(mut self, declare: &Declare<'_>) -> Step<'s> {
        let changed = match declare.declaration {
            Declaration::Key { id, key } => {
                let of_sender = true; // it has no other, and no flag that says so
                self.entered(Kind::Key, u32::from(id), &WireExpr { of_sender, ..key });
                false
            }
            Declaration::NoKey { id } => {
                self.gone(Kind::Key, u32::from(id));
                false
            }
            Declaration::Entity {
                kind: EntityKind::Subscriber,
                id,
                key,
                ..
            } => self.entered(Kind::Subscriber, id, &key),
            Declaration::NoEntity {
                kind: EntityKind::Subscriber,
                id,
                ..
            } => self.gone(Kind::Subscriber, id),
            // Where queries go is the other side's to decide; tokens are not taken in.
            Declaration::Entity { .. } | Declaration::NoEntity { .. } => false,
            Declaration::Final => self.said_all(declare.interest),
        };
        match changed {
            true => {
                self.place.stay(None);
                Step::Event(Event::Heard)
            }
            false => self.place.next(),
        }
    }

    /// Enters a key or a subscriber. Whether who is heard has changed.
    fn entered(&mut self, kind: Kind, id: u32, key: &WireExpr<'_>) -> bool {
        let scratch = core::mem::take(&mut self.all.key);
        let tables = self.all.tables();
        let key = tables.copy(key, scratch, self.stats);
        if key.is_some() && key == tables.declared(kind, id) {
            return false;
        }
        let changed = self.gone(kind, id);
        match key.and_then(|key| self.enter(kind, id, key)) {
            // It can be for any key.
            None if kind == Kind::Subscriber => {
                !core::mem::replace(&mut self.known.overflowed, true) || changed
            }
            entered => entered.unwrap_or(false) || changed,
        }
    }

    /// Enters it, and says whether who is heard has changed. `None`, and counted: it cannot be known.
    fn enter(&mut self, kind: Kind, id: u32, key: &str) -> Option<bool> {
        let expr = KeyExpr::new(key);
        // A key that stands for a part of others need not be one itself.
        if expr.is_err() && kind != Kind::Key {
            count(&mut self.stats.bad_key);
            return None;
        }
        if !self.all.enter(kind, id, key) {
            count(&mut self.stats.no_room);
            return None;
        }
        Some(match expr {
            Ok(expr) if kind == Kind::Subscriber => heard(self.all.publishers, expr, true),
            _ => false,
        })
    }

    /// Takes out a key or a subscriber. Whether who is heard has changed.
    fn gone(&mut self, kind: Kind, id: u32) -> bool {
        let Some(index) = find(self.all.foreign, kind, id) else {
            return false;
        };
        let Some(entry) = self.all.foreign.get_mut(index).and_then(Option::take) else {
            return false;
        };
        let expr = KeyExpr::unchecked(self.all.keys.get(index, entry.len));
        let changed = kind == Kind::Subscriber && heard(self.all.publishers, expr, false);
        self.all.keys.free(index);
        changed
    }

    /// All that an interest asked for has been said: what is not heard now is not heard.
    fn said_all(&mut self, interest: Option<u32>) -> bool {
        match interest {
            Some(UNASKED) => {
                let mut changed = !core::mem::replace(&mut self.known.told, true);
                for publisher in self.all.publishers.iter_mut().flatten() {
                    changed |= !core::mem::replace(&mut publisher.known, true);
                }
                changed
            }
            Some(id) => {
                let is = |publisher: &&mut Entry<T::Key>| u32::from(publisher.number) == id;
                let found = self.all.publishers.iter_mut().flatten().find(is);
                found.is_some_and(|publisher| !core::mem::replace(&mut publisher.known, true))
            }
            None => false,
        }
    }

    /// What the peer wants to be told. All that is declared later is told to everybody, so only what
    /// there is now needs an answer.
    pub(super) fn interest<X: Tx + ?Sized>(
        mut self,
        interest: &Interest<'_>,
        tx: &mut X,
    ) -> Step<'s> {
        if !interest.current {
            return self.place.next();
        }
        let scratch = core::mem::take(&mut self.all.key);
        let key = match &interest.key {
            Some(key) => self.all.tables().copy(key, scratch, self.stats),
            None => Some(""),
        };
        let key = key.filter(|key| key.is_empty() || KeyExpr::new(key).is_ok());
        let kind = Kind::Interest {
            options: interest.options,
            told: 0,
        };
        if key.is_some_and(|key| self.all.enter(kind, interest.id, key)) {
            *self.owed = true;
            return self.place.next();
        }
        // Without room to keep the question, the answer is that there is nothing.
        count(&mut self.stats.no_room);
        let end = Declare {
            interest: Some(interest.id),
            qos: Qos::DEFAULT,
            declaration: Declaration::Final,
        };
        match self
            .out
            .send(tx, self.now, How::CONTROL, &mut |w| end.encode(w))
        {
            Ok(()) => self.place.next(),
            Err(_) => Step::Full,
        }
    }
}
