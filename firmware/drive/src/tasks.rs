//! The driver that is a task, under any executor, with the time of embassy-time.

use core::future::poll_fn;
use core::task::{Poll, Waker};

use embassy_time::with_deadline;
use sinew::rpc::Service;
use sinew::time::Instant;

use crate::serving::{Links, Serving};

/// Serves in this task: turns, and lets other tasks run in between; waits where there is nothing to do, until a link
/// wakes it or a call is due.
///
/// Interrupt handlers feed the links, and wake them ([`Interrupted::arrived`](crate::bytes::Interrupted::arrived),
/// `End::look`); what ports ring is one of the links, as a bell.
pub async fn serve<L: Links, S: Service, const CALLS: usize>(
    serving: &mut Serving<L, S, CALLS>,
) -> ! {
    loop {
        let now = Instant::from_micros(embassy_time::Instant::now().as_micros());
        if serving.turn(now) {
            woken(Waker::wake_by_ref).await;
            continue;
        }
        let deadline = embassy_time::Instant::try_from_micros(serving.deadline().as_micros());
        let deadline = deadline.unwrap_or(embassy_time::Instant::MAX);
        // What came before is found by one more turn.
        let _ = with_deadline(deadline, woken(|waker| serving.arm(waker))).await;
    }
}

/// Waits for one wake-up; `arm` is told whom to wake. After `Full`:
/// `woken(|waker| writer.arm(waker)).await`, then once more.
pub async fn woken(mut arm: impl FnMut(&Waker)) {
    let mut is_armed = false;
    poll_fn(|cx| {
        if core::mem::replace(&mut is_armed, true) {
            return Poll::Ready(());
        }
        arm(cx.waker());
        Poll::Pending
    })
    .await;
}
