use sinew::rpc::{Cx, Responder, Status, Stop};

use crate::home::lamp::Lamp;
use crate::home::{GetRequest, SetRequest, State};

#[derive(Default)]
pub struct LampService {
    state: State,
}

impl Lamp for LampService {
    fn set(&mut self, request: &SetRequest, _: Cx<'_, Responder<State>>) -> Result<State, Stop> {
        if request.percent > 100 {
            return Err(Status::OUT_OF_RANGE.into());
        }
        self.state.percent = request.percent;
        self.state.reason = request.reason.clone();
        Ok(self.state.clone())
    }

    fn get(&mut self, _: &GetRequest, _: Cx<'_, Responder<State>>) -> Result<State, Stop> {
        Ok(self.state.clone())
    }
}
