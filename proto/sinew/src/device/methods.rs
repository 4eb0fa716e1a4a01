//! What each method has done, in a few words, with the times of its handler in powers of two.

use sinew::rpc::packet::Packet;
use sinew::rpc::{Call, Input, Status};

/// Counts of times: below 1 µs, below 2 µs, below 4 µs and so on; the last has all that took longer.
pub const BUCKETS: usize = 20;
/// Words of each method: calls, errors, bytes in, bytes out, then the counts of times. They wrap.
pub const WORDS: usize = 4 + BUCKETS;

/// The index of the count that has this time: those of `k` are below `2^k` µs.
pub const fn bucket(micros: u64) -> usize {
    let bits = (u64::BITS - micros.leading_zeros()) as usize;
    if bits < BUCKETS { bits } else { BUCKETS - 1 }
}

/// Up to `N` methods.
pub(super) struct Methods<const N: usize> {
    /// How many are there.
    len: usize,
    rows: [Row; N],
    /// Calls of methods for which there was no room.
    no_room: u32,
}

#[derive(Clone, Copy)]
struct Row {
    service: u32,
    method: u32,
    words: [u32; WORDS],
}

impl<const N: usize> Methods<N> {
    pub(super) const NONE: Self = Methods {
        len: 0,
        rows: [Row {
            service: 0,
            method: 0,
            words: [0; WORDS],
        }; N],
        no_room: 0,
    };

    pub(super) fn view(&self) -> View<'_> {
        View {
            rows: self.rows.get(..self.len).unwrap_or_default(),
            no_room: self.no_room,
        }
    }

    /// Counts a step that a service has taken, which took so long.
    pub(super) fn count(&mut self, call: &Call<'_>, input: &Input<'_>, micros: u64) {
        let is_call = matches!(input, Input::Request(_));
        let Some(row) = self.row(call) else {
            add(&mut self.no_room, is_call.into());
            return;
        };
        let came = match input {
            Input::Request(bytes) | Input::Item(bytes) => bytes.len(),
            Input::End | Input::Closed(_) => 0,
        };
        let answer = Packet::decode(call.written()).ok();
        let (status, left) = match (input, &answer) {
            (Input::Closed(status), _) => (*status, 0),
            (_, Some(answer)) => (answer.status, answer.payload.len()),
            (_, None) => (Status::OK, 0),
        };
        let is_error = !matches!(status, Status::OK | Status::CANCELLED);
        let [calls, errors, bytes_in, bytes_out, times @ ..] = &mut row.words;
        add(calls, is_call.into());
        add(errors, is_error.into());
        add(bytes_in, came as u32);
        add(bytes_out, left as u32);
        if !matches!(input, Input::Closed(_))
            && let Some(time) = times.get_mut(bucket(micros))
        {
            add(time, 1);
        }
    }

    /// The row of the method that is called; a new one at its first call.
    fn row(&mut self, call: &Call<'_>) -> Option<&mut Row> {
        let (service, method) = (call.service(), call.method());
        let is_it = |row: &Row| row.method == method && row.service == service;
        let known = self.rows.iter().take(self.len).position(is_it);
        let index = known.unwrap_or(self.len);
        let row = self.rows.get_mut(index)?;
        if known.is_none() {
            (row.service, row.method) = (service, method);
            self.len += 1;
        }
        Some(row)
    }
}

/// The methods, however many there can be.
pub(super) struct View<'m> {
    rows: &'m [Row],
    pub(super) no_room: u32,
}

impl View<'_> {
    /// The ids of service and method.
    pub(super) fn ids(&self, index: usize) -> Option<(u32, u32)> {
        let row = self.rows.get(index)?;
        Some((row.service, row.method))
    }

    /// The words of every method.
    pub(super) fn each(&self, show: &mut dyn FnMut(u32)) {
        for word in self.rows.iter().flat_map(|row| row.words) {
            show(word);
        }
    }
}

fn add(counter: &mut u32, more: u32) {
    *counter = counter.wrapping_add(more);
}
