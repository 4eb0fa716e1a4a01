//! What has passed over each link of a server, for whoever looks on.

use std::sync::{Arc, Mutex};

use crate::link::Traffic;
use crate::lock;

/// The counters of every link of a server; clones are the same ones. [`Server::count_links`](super::Server::count_links)
/// has the server count there.
#[derive(Clone, Default)]
pub struct LinkCounters(Arc<Mutex<Vec<Seated>>>);

/// What passed over the links of one number, one after another.
#[derive(Clone, Copy, Default)]
struct Seated {
    /// Over those that have closed.
    before: Traffic,
    now: Traffic,
}

impl LinkCounters {
    /// Shows every counter: a group for each number that a link has had (`link 0`), its name as in [`Traffic`], and
    /// its value over all links of that number. New ones come behind the last.
    ///
    /// It asks nothing of the server, so a service may call it.
    pub fn each(&self, show: &mut dyn FnMut(&str, &str, u64)) {
        for (number, seated) in lock(&self.0).iter().enumerate() {
            let group = format!("link {number}");
            for (name, value) in seated.before.and(&seated.now).iter() {
                show(&group, name, value);
            }
        }
    }

    /// Notes what has passed over the link that has this number now.
    pub(super) fn note(&self, link: u16, traffic: Traffic) {
        let mut all = lock(&self.0);
        let number = usize::from(link);
        if all.len() <= number {
            all.resize(number + 1, Seated::default());
        }
        if let Some(seated) = all.get_mut(number) {
            seated.now = traffic;
        }
    }

    /// Notes that this link has closed.
    pub(super) fn close(&self, link: u16) {
        if let Some(seated) = lock(&self.0).get_mut(usize::from(link)) {
            seated.before = seated.before.and(&std::mem::take(&mut seated.now));
        }
    }
}
