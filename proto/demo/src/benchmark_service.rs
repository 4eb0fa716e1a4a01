//! `pw.rpc.Benchmark`: what comes in goes back.

use sinew::rpc::{Cx, Responder, Stop, StreamCx, StreamIn, Writer};

use crate::pw::rpc::Payload;
use crate::pw::rpc::benchmark::Benchmark;

/// Sends back what comes in.
#[derive(Clone, Copy, Debug, Default)]
pub struct BenchmarkService;

impl Benchmark for BenchmarkService {
    fn unary_echo(
        &mut self,
        request: &Payload,
        _cx: Cx<'_, Responder<Payload>>,
    ) -> Result<Payload, Stop> {
        Ok(request.clone())
    }

    fn bidirectional_echo(
        &mut self,
        input: StreamIn<'_, Payload>,
        cx: StreamCx<'_, Writer<Payload>>,
    ) -> Result<(), Stop> {
        match input {
            StreamIn::Item(item) => Err(cx.send(item)),
            StreamIn::Open => Err(cx.wait()),
            StreamIn::End | StreamIn::Closed(_) => Ok(()),
        }
    }
}
