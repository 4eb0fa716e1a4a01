//! `sinew.Reflection`: the schema of what the device serves, in pieces.
//!
//! ```
//! use sinew_services::reflection::{Schemas, Serve};
//!
//! let services = (
//!     sinew_demo::cache::Serve(sinew_demo::CacheService::new()),
//!     Serve(Schemas(&[sinew_demo::SCHEMA])),
//! );
//! # let _ = services;
//! ```
//!
//! A device that serves `sinew.Log` or `sinew.Device` as well has [`log::SCHEMA`](crate::log::SCHEMA) and
//! [`device::SCHEMA`](crate::device::SCHEMA) in the list. They are the same everywhere, so tools have them: where flash is
//! short, `log::SCHEMA.by_hash()` does.

use sinew::heapless::Vec;
use sinew::rpc::{Cx, Responder, Schema, Status, Stop};

pub use crate::made::SCHEMA;
pub use crate::made::sinew::reflection::{Client, Reach, Reflection, Serve, method};
use crate::{DescribeRequest, Description, Piece, ReadRequest};

/// The schemas of a device: one for each run of the generator that its services are from.
#[derive(Clone, Copy, Debug)]
pub struct Schemas(pub &'static [Schema]);

impl Schemas {
    fn get(&self, index: u32) -> Result<&'static Schema, Status> {
        let index = usize::try_from(index).map_err(|_| Status::OUT_OF_RANGE)?;
        self.0.get(index).ok_or(Status::OUT_OF_RANGE)
    }
}

impl Reflection for Schemas {
    fn describe(
        &mut self,
        request: &DescribeRequest,
        _: Cx<'_, Responder<Description>>,
    ) -> Result<Description, Stop> {
        let schema = self.get(request.schema)?;
        Ok(Description {
            schemas: self.0.len() as u32,
            size: schema.set.len() as u32,
            hash: schema.hash,
        })
    }

    fn read(&mut self, request: &ReadRequest, _: Cx<'_, Responder<Piece>>) -> Result<Piece, Stop> {
        let set = self.get(request.schema)?.set;
        let rest = usize::try_from(request.offset)
            .ok()
            .and_then(|offset| set.get(offset..))
            .ok_or(Status::OUT_OF_RANGE)?;
        let mut data = Vec::new();
        let len = rest
            .len()
            .min(data.capacity())
            .min(usize::try_from(request.limit).unwrap_or(usize::MAX));
        // It fits: `len` is at most the capacity.
        let _ = data.extend_from_slice(rest.get(..len).unwrap_or_default());
        Ok(Piece { data })
    }
}
