//! The task that keeps a node up.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ::tokio::task::{JoinHandle, spawn_blocking};
use ::tokio::time::{Sleep, sleep};

use super::super::Source;
use super::super::driver::{Driver, Next};
use super::LONG;
use crate::apart::Apart;
use crate::connect_error::ConnectError;
use crate::tokio::{Relay, after};

/// Turns in a row before other tasks get theirs.
const TURNS: usize = 16;

/// Takes a long time, and is done elsewhere.
type Opening = JoinHandle<(Source, Option<Result<Apart, Arc<ConnectError>>>)>;

/// Drives until the node ends.
pub(super) async fn drive(mut driver: Driver) {
    let shared = driver.shared().clone();
    let relay = Arc::new(Relay::default());
    let waker = Waker::from(relay.clone());
    let mut opening: Option<Opening> = None;
    let mut timer = pin!(sleep(Duration::ZERO));
    poll_fn(|cx| {
        relay.set(cx.waker());
        for _ in 0..TURNS {
            if let Some(task) = &mut opening {
                let Poll::Ready(done) = Pin::new(task).poll(cx) else {
                    return Poll::Pending;
                };
                opening = None;
                // It does not panic; where it was cancelled, the runtime ends.
                let Ok((source, link)) = done else {
                    return Poll::Ready(());
                };
                *driver.source() = Some(source);
                driver.opened(link, |_| waker.clone());
            }
            let span = match driver.step() {
                Next::Turn => continue,
                Next::Ended => return Poll::Ready(()),
                Next::Link => {
                    let Some(mut source) = driver.source().take() else {
                        return Poll::Ready(());
                    };
                    opening = Some(spawn_blocking(move || {
                        let link = source.link();
                        (source, link)
                    }));
                    continue;
                }
                Next::Rest(seen, _) if shared.room.has_changed(seen, &waker) => continue,
                Next::Rest(_, span) | Next::Pause(span) => span,
                Next::Packet(span) => {
                    if let Some(rx) = driver.receiving() {
                        rx.arm(&waker);
                    }
                    span.unwrap_or(LONG)
                }
            };
            if !is_over(timer.as_mut(), span, cx) {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Whether the time is up already; else the task is woken when it is.
fn is_over(mut timer: Pin<&mut Sleep>, span: Duration, cx: &mut Context<'_>) -> bool {
    timer.as_mut().reset(after(span));
    timer.poll(cx).is_ready()
}
