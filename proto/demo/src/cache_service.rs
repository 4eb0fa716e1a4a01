//! `demo.Cache`: remembers one value.

use sinew::rpc::{Cx, Responder, Stop};

use crate::demo::cache::Cache;
use crate::demo::{GetValueRequest, GetValueResponse, SetValueRequest, SetValueResponse};

/// Remembers one value; 0 at the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct CacheService {
    value: i32,
}

impl CacheService {
    /// A service that remembers 0.
    pub const fn new() -> Self {
        CacheService { value: 0 }
    }

    /// A service that remembers this value.
    pub const fn with(value: i32) -> Self {
        CacheService { value }
    }
}

impl Cache for CacheService {
    fn set_value(
        &mut self,
        request: &SetValueRequest,
        _cx: Cx<'_, Responder<SetValueResponse>>,
    ) -> Result<SetValueResponse, Stop> {
        self.value = request.value;
        Ok(SetValueResponse {})
    }

    fn get_value(
        &mut self,
        _request: &GetValueRequest,
        _cx: Cx<'_, Responder<GetValueResponse>>,
    ) -> Result<GetValueResponse, Stop> {
        Ok(GetValueResponse { value: self.value })
    }
}
