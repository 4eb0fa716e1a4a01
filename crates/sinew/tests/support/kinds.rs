//! A service with a method of each kind, written by hand.

use sinew::rpc::{
    Call, Cx, Input, MethodId, MethodKind, Raw, Responder, Service, Status, Stop, StreamCx,
    StreamIn, Writer, id,
};

use super::wire::Num;

pub const SERVICE: u32 = id("demo.Kinds");
/// Unary: answers twice the number.
pub const DOUBLE: u32 = id("Double");
/// Server stream: always taken away; the test writes.
pub const COUNT: u32 = id("Count");
/// Client stream: answers the sum.
pub const SUM: u32 = id("Sum");
/// Both: sends every item back.
pub const ECHO_ALL: u32 = id("EchoAll");
/// Unary: answers n bytes.
pub const BIG: u32 = id("Big");
/// Both: answers the opening and every item with 200 bytes.
pub const BIG_ECHO: u32 = id("BigEcho");

/// `Double` of this number is refused, as by a service whose own queue is full.
pub const QUEUE_FULL: u32 = 88;

pub const fn method(method: u32, kind: MethodKind) -> MethodId {
    MethodId {
        service: SERVICE,
        method,
        kind,
    }
}

/// What the tests look into.
#[derive(Debug, Default)]
pub struct Kinds {
    /// Take `Double`, `Sum` (when its stream opens) and `EchoAll` (likewise) away.
    pub defer: bool,
    /// Send an item even where the call has ended.
    pub stubborn: bool,
    /// `Method:what` for every step of a handler since the last look.
    pub log: Vec<String>,
    pub sums: [u32; 32],
    pub responders: Vec<Responder<Num>>,
    pub writers: Vec<Writer<Num>>,
}

impl Kinds {
    fn double(&mut self, request: &Num, cx: Cx<'_, Responder<Num>>) -> Result<Num, Stop> {
        self.log.push(format!("Double:{}", request.0));
        if request.0 == QUEUE_FULL {
            return Err(Status::RESOURCE_EXHAUSTED.into());
        }
        if self.defer {
            let (responder, later) = cx.defer()?;
            self.responders.push(responder);
            return Err(later);
        }
        Ok(Num(request.0.wrapping_mul(2)))
    }

    fn count(&mut self, request: &Num, cx: Cx<'_, Writer<Num>>) -> Result<(), Stop> {
        self.log.push(format!("Count:{}", request.0));
        let (writer, later) = cx.defer()?;
        self.writers.push(writer);
        Err(later)
    }

    fn sum(
        &mut self,
        input: StreamIn<'_, Num>,
        cx: StreamCx<'_, Responder<Num>>,
    ) -> Result<Num, Stop> {
        self.log.push(format!("Sum:{}", short(&input)));
        let slot = cx.slot();
        match input {
            StreamIn::Open => {
                self.sums[slot] = 0;
                if self.defer {
                    let (responder, later) = cx.defer()?;
                    self.responders.push(responder);
                    return Err(later);
                }
            }
            StreamIn::Item(item) => self.sums[slot] = self.sums[slot].wrapping_add(item.0),
            StreamIn::End if self.defer => {}
            StreamIn::End => return Ok(Num(self.sums[slot])),
            StreamIn::Closed(_) => {}
        }
        Err(cx.wait())
    }

    fn echo_all(
        &mut self,
        input: StreamIn<'_, Num>,
        cx: StreamCx<'_, Writer<Num>>,
    ) -> Result<(), Stop> {
        self.log.push(format!("EchoAll:{}", short(&input)));
        match input {
            StreamIn::Open if self.defer => {
                let (writer, later) = cx.defer()?;
                self.writers.push(writer);
                Err(later)
            }
            StreamIn::Item(item) => Err(cx.send(item)),
            StreamIn::End if !self.defer => Ok(()),
            StreamIn::Closed(_) if self.stubborn => Err(cx.send(&Num(77))),
            _ => Err(cx.wait()),
        }
    }
}

fn short(input: &StreamIn<'_, Num>) -> String {
    match input {
        StreamIn::Item(num) => num.0.to_string(),
        other => format!("{other:?}"),
    }
}

impl Service for Kinds {
    fn kind(&self, service: u32, method: u32) -> Option<MethodKind> {
        match (service, method) {
            (SERVICE, DOUBLE | BIG) => Some(MethodKind::Unary),
            (SERVICE, COUNT) => Some(MethodKind::ServerStream),
            (SERVICE, SUM) => Some(MethodKind::ClientStream),
            (SERVICE, ECHO_ALL | BIG_ECHO) => Some(MethodKind::Bidi),
            _ => None,
        }
    }

    fn handle(&mut self, call: &mut Call<'_>, input: Input<'_>) -> bool {
        match (call.service(), call.method()) {
            (SERVICE, DOUBLE) => call.unary(input, |q: &Num, cx| self.double(q, cx)),
            (SERVICE, COUNT) => call.server_stream(input, |q: &Num, cx| self.count(q, cx)),
            (SERVICE, SUM) => call.client_stream(input, |q, cx| self.sum(q, cx)),
            (SERVICE, ECHO_ALL) => call.bidi(input, |q, cx| self.echo_all(q, cx)),
            (SERVICE, BIG) => call.unary(input, |q: &Num, _: Cx<'_, Responder<Raw<512>>>| {
                Raw::new(&vec![7; q.0 as usize]).ok_or(Status::INVALID_ARGUMENT.into())
            }),
            (SERVICE, BIG_ECHO) => call.bidi(
                input,
                |_: StreamIn<'_, Num>, cx: StreamCx<'_, Writer<Raw<512>>>| {
                    Err(cx.send(&Raw::new(&[7; 200]).unwrap_or_default()))
                },
            ),
            _ => false,
        }
    }
}
