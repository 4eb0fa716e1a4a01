//! `demo.Kinds` with trapdoors: the service that the interop matrix calls.
//!
//! | request or item | what happens |
//! |---|---|
//! | `Double(HOLD)` | the call is kept open, until the client cancels it |
//! | `Double(GIVE_UP)` | a responder is dropped, so the server ends the call with ABORTED |
//! | `Double(CANCELS)` | answers how many cancels the service has seen |
//! | `Count(GIVE_UP)` | three items, then ABORTED |
//! | `Count(2^32 - 1)` | items until the client cancels, which is then counted |
//! | `EchoAll`, item `GIVE_UP` | ABORTED |
//!
//! Anything else is the demo service's.
#![forbid(unsafe_code)]

use sinew::rpc::{AnswerError, Cx, Responder, Status, Stop, StreamCx, StreamIn, Writer};
use sinew::time::Instant;
use sinew_demo::kinds::Kinds;
use sinew_demo::{KindsService, Num};

/// See the table of this crate.
pub const HOLD: u32 = 1_000_000_001;
/// See the table of this crate.
pub const GIVE_UP: u32 = 1_000_000_002;
/// See the table of this crate.
pub const CANCELS: u32 = 1_000_000_003;

const CALLS: usize = 64;

/// The demo service with trapdoors.
#[derive(Debug, Default)]
pub struct Trapdoors {
    demo: KindsService<CALLS>,
    held: Vec<Responder<Num>>,
    counting: Vec<Counting>,
    cancels: u32,
}

/// A stream that ends with ABORTED behind its last item, if it ever gets there.
#[derive(Debug)]
struct Counting {
    writer: Writer<Num>,
    next: u32,
    end: u32,
}

impl Counting {
    fn advance(&mut self) -> Result<(), AnswerError> {
        for _ in 0..8 {
            if self.next == self.end {
                return self.writer.finish(Status::ABORTED);
            }
            self.writer.send(&Num { n: self.next })?;
            self.next += 1;
        }
        Ok(())
    }
}

impl Trapdoors {
    /// Counts the held calls that were cancelled since the last look.
    fn look(&mut self) {
        let before = self.held.len();
        self.held.retain(Responder::is_open);
        self.cancels += (before - self.held.len()) as u32;
    }

    fn cancelled<T>(&mut self, input: StreamIn<'_, T>) {
        if let StreamIn::Closed(_) = input {
            self.cancels += 1;
        }
    }
}

impl Kinds for Trapdoors {
    fn double(&mut self, request: &Num, cx: Cx<'_, Responder<Num>>) -> Result<Num, Stop> {
        match request.n {
            HOLD => {
                let (responder, later) = cx.defer()?;
                self.held.push(responder);
                Err(later)
            }
            GIVE_UP => Err(cx.defer()?.1), // the responder is dropped here
            CANCELS => {
                self.look();
                Ok(Num { n: self.cancels })
            }
            _ => self.demo.double(request, cx),
        }
    }

    fn count(&mut self, request: &Num, cx: Cx<'_, Writer<Num>>) -> Result<(), Stop> {
        let end = match request.n {
            GIVE_UP => 3,
            u32::MAX => u32::MAX,
            _ => return self.demo.count(request, cx),
        };
        let (writer, later) = cx.defer()?;
        self.counting.push(Counting {
            writer,
            next: 0,
            end,
        });
        Err(later)
    }

    fn sum(
        &mut self,
        input: StreamIn<'_, Num>,
        cx: StreamCx<'_, Responder<Num>>,
    ) -> Result<Num, Stop> {
        self.cancelled(input);
        self.demo.sum(input, cx)
    }

    fn echo_all(
        &mut self,
        input: StreamIn<'_, Num>,
        cx: StreamCx<'_, Writer<Num>>,
    ) -> Result<(), Stop> {
        self.cancelled(input);
        if input == StreamIn::Item(&Num { n: GIVE_UP }) {
            return Err(Status::ABORTED.into());
        }
        self.demo.echo_all(input, cx)
    }

    fn poll(&mut self, now: Instant) -> bool {
        self.look();
        self.counting.retain_mut(|count| match count.advance() {
            Ok(()) => count.writer.is_open(),
            Err(AnswerError::Full) => true,
            Err(_) => {
                self.cancels += 1;
                false
            }
        });
        // Not short-circuited: the demo service gets its turn.
        self.demo.poll(now) | !self.counting.is_empty()
    }
}
