//! `demo.Kinds`: one method of each kind.

use sinew::rpc::{AnswerError, Cx, Responder, Status, Stop, StreamCx, StreamIn, Writer};
use sinew::time::Instant;

use crate::demo::Num;
use crate::demo::kinds::Kinds;

/// Items that one stream sends in one [`Kinds::poll`]: the bound of its work.
const BURST: usize = 8;

/// One method of each kind, for a server with up to `CALLS` call slots.
#[derive(Debug)]
pub struct KindsService<const CALLS: usize> {
    /// Totals of the open `Sum` calls, by call slot.
    totals: [u32; CALLS],
    counts: [Option<Counting>; CALLS],
}

/// An open `Count` call.
#[derive(Debug)]
struct Counting {
    writer: Writer<Num>,
    next: u32,
    end: u32,
}

impl<const CALLS: usize> KindsService<CALLS> {
    /// A service without calls.
    pub const fn new() -> Self {
        KindsService {
            totals: [0; CALLS],
            counts: [const { None }; CALLS],
        }
    }
}

impl<const CALLS: usize> Default for KindsService<CALLS> {
    fn default() -> Self {
        Self::new()
    }
}

impl Counting {
    /// Sends a few items; `Ok(false)` once the call has ended. An item that met a full link is
    /// sent again in the next turn.
    fn advance(&mut self) -> Result<bool, AnswerError> {
        for _ in 0..BURST {
            if self.next == self.end {
                self.writer.finish(Status::OK)?;
                return Ok(false);
            }
            self.writer.send(&Num { n: self.next })?;
            self.next += 1;
        }
        Ok(true)
    }
}

impl<const CALLS: usize> Kinds for KindsService<CALLS> {
    fn double(&mut self, request: &Num, _cx: Cx<'_, Responder<Num>>) -> Result<Num, Stop> {
        let n = request.n.checked_mul(2).ok_or(Status::OUT_OF_RANGE)?;
        Ok(Num { n })
    }

    fn count(&mut self, request: &Num, cx: Cx<'_, Writer<Num>>) -> Result<(), Stop> {
        let mut free = self.counts.iter_mut().filter(|count| count.is_none());
        let place = free.next().ok_or(Status::RESOURCE_EXHAUSTED)?;
        let (writer, later) = cx.defer()?;
        *place = Some(Counting {
            writer,
            next: 0,
            end: request.n,
        });
        Err(later)
    }

    fn sum(
        &mut self,
        input: StreamIn<'_, Num>,
        cx: StreamCx<'_, Responder<Num>>,
    ) -> Result<Num, Stop> {
        let total = self
            .totals
            .get_mut(cx.slot())
            .ok_or(Status::RESOURCE_EXHAUSTED)?;
        match input {
            StreamIn::Open => *total = 0,
            StreamIn::Item(item) => {
                *total = total.checked_add(item.n).ok_or(Status::OUT_OF_RANGE)?;
            }
            StreamIn::End => return Ok(Num { n: *total }),
            StreamIn::Closed(_) => {}
        }
        Err(cx.wait())
    }

    fn echo_all(
        &mut self,
        input: StreamIn<'_, Num>,
        cx: StreamCx<'_, Writer<Num>>,
    ) -> Result<(), Stop> {
        match input {
            StreamIn::Item(item) => Err(cx.send(item)),
            StreamIn::Open => Err(cx.wait()),
            StreamIn::End | StreamIn::Closed(_) => Ok(()),
        }
    }

    fn poll(&mut self, _now: Instant) -> bool {
        let mut more = false;
        for place in &mut self.counts {
            let Some(count) = place else { continue };
            match count.advance() {
                Ok(true) | Err(AnswerError::Full) => more = true,
                // Finished, cancelled, or the link is gone.
                Ok(false) | Err(_) => *place = None,
            }
        }
        more
    }
}
