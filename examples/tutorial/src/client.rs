use sinew::rpc::CallError;

use crate::home::lamp::{Client, Reach};
use crate::home::{GetRequest, SetRequest, State};

pub fn evening<R: Reach>(lamp: &mut Client<R>) -> Result<State, CallError> {
    let reason = "sunset".try_into()?;
    let percent = 40;
    lamp.set(&SetRequest { percent, reason })?;
    lamp.get(&GetRequest {})
}
