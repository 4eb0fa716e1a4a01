//! What is kept of a call between two looks of its handle.

use std::time::Duration;

use sinew::rpc::{CallError, ClientCall, Event, Inbox, Overrun, Received, Status};

/// How a call ended.
#[derive(Clone, Copy)]
pub(crate) enum End {
    /// Completed; whether the last message in the inbox is the response.
    Done(Status, bool),
    Failed(CallError),
    /// The handle has been told.
    Told,
}

/// One call: free where it has no [`ClientCall`].
#[derive(Default)]
pub(crate) struct State<const INBOX: usize> {
    pub(crate) call: Option<ClientCall>,
    pub(crate) timeout: Duration,
    pub(crate) inbox: Inbox<INBOX>,
    pub(crate) end: Option<End>,
}

impl<const INBOX: usize> State<INBOX> {
    pub(crate) fn open(&mut self, call: ClientCall, timeout: Duration) {
        self.inbox.clear();
        self.end = None;
        self.timeout = timeout;
        self.call = Some(call);
    }

    /// Keeps what has arrived. Where it does not fit, the call has failed.
    pub(crate) fn put(&mut self, event: &Event<'_>) -> Result<(), Overrun> {
        // The call has taken over the id of the packet, if it had an open one.
        self.call = Some(event.call);
        let result = match event.received {
            Received::Item(item) => self.inbox.push(item),
            Received::Completed(status, []) => {
                self.end = Some(End::Done(status, false));
                Ok(())
            }
            Received::Completed(status, response) => {
                self.end = Some(End::Done(status, true));
                self.inbox.push(response)
            }
            Received::Failed(status) => {
                self.end = Some(End::Failed(CallError::Status(status)));
                Ok(())
            }
        };
        if result.is_err() {
            self.end = Some(End::Failed(CallError::Overrun));
        }
        result
    }
}
