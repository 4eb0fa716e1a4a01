//! Serves one link in a task.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use sinew::link::{Rx, Tx};
use sinew::rpc::Service;

use super::{Relay, after};
use crate::link::{Link, Want};
use crate::serve::{Next, Server};

/// Turns in a row before other tasks get theirs.
const TURNS: usize = 16;

/// Serves one link until it closes; `false` where the server has too many. Dropping the future
/// ends the link's calls.
pub async fn serve<S: Service, const CALLS: usize>(
    server: &Server<S, CALLS>,
    tx: impl Tx,
    rx: impl Rx,
    channel: u32,
) -> bool {
    let mut link = Armed { tx, rx };
    let Some(mut turns) = server.turns(&mut link, channel) else {
        return false;
    };
    let relay = Arc::new(Relay::default());
    let waker = Waker::from(relay.clone());
    let mut timer = pin!(::tokio::time::sleep(Duration::ZERO));
    poll_fn(move |cx| {
        relay.set(cx.waker());
        for _ in 0..TURNS {
            match turns.turn(&mut link) {
                Next::Turn => {}
                Next::End => return Poll::Ready(()),
                Next::Sleep(want, timeout) => {
                    turns.arm(&waker, want);
                    // A packet cannot be taken up without a place: it would wake again and again.
                    match want {
                        Want::Place => link.tx.arm(&waker),
                        Want::Packet | Want::Idle => link.rx.arm(&waker),
                    }
                    if let Some(timeout) = timeout {
                        timer.as_mut().reset(after(timeout));
                        if timer.as_mut().poll(cx).is_ready() {
                            continue;
                        }
                    }
                    return Poll::Pending;
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    true
}

/// A link that is armed and never slept on.
struct Armed<T, R> {
    tx: T,
    rx: R,
}

impl<T: Tx, R: Rx> Link for Armed<T, R> {
    type Tx = T;
    type Rx = R;

    fn halves(&mut self) -> (&mut T, &mut R) {
        (&mut self.tx, &mut self.rx)
    }

    fn wait(&mut self, _want: Want, _timeout: Option<Duration>) {}

    fn waker(&mut self) -> Waker {
        Waker::noop().clone()
    }
}
