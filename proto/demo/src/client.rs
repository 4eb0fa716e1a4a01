//! What a client does: the same in every placement.

use sinew::rpc::CallError;

use crate::demo::cache::{AsyncClient, AsyncReach, Client, Reach};
use crate::demo::{GetValueRequest, SetValueRequest};

/// Has the cache remember `value`, asks for it, and returns the answer: two calls.
pub fn exercise<R: Reach>(cache: &mut Client<R>, value: i32) -> Result<i32, CallError> {
    cache.set_value(&SetValueRequest { value })?;
    Ok(cache.get_value(&GetValueRequest {})?.value)
}

/// [`exercise`] for a caller that must not block.
pub async fn exercise_async<R: AsyncReach>(
    cache: &mut AsyncClient<R>,
    value: i32,
) -> Result<i32, CallError> {
    cache.set_value(&SetValueRequest { value }).await?;
    Ok(cache.get_value(&GetValueRequest {}).await?.value)
}
