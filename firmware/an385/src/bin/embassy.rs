//! `demo.Cache` and `demo.Kinds` under embassy, over two links at once: UART0, and memory that the board shares
//! with a Linux process.
//!
//! Interrupt handlers take bytes and rings, and wake. One task serves both links with one server. Calls that take
//! their time are tasks: `Double` is answered a millisecond later, and each `Count` is a stream of its own.
#![no_std]
#![no_main]

use an385::board::{self, UART, Uart0};
use an385::lock::{Late, Masked};
use an385::shared::{self, Board};
use an385::{CALLS, MTU};
use cortex_m as _; // its critical section
use embassy_executor::{Executor, Spawner};
use embassy_time::{Duration, Instant, Timer};
use embassy_time_driver::Driver;
use sinew::rpc::{
    AnswerError, Channels, Cx, Responder, Slot, Status, Stop, StreamCx, StreamIn, Via, Writer,
};
use sinew_demo::kinds::Kinds;
use sinew_demo::{CacheService, KindsService, Num, cache, kinds};
use sinew_drive::bytes::Interrupted;
use sinew_drive::domain::Later;
use sinew_drive::frames::{self, Direct};
use sinew_drive::tasks::{self, woken};
use sinew_drive::{Link, Serving};
use sinew_ports::systick_time::Time;
use sinew_shm::Bell;
use sinew_shm::domain::{End, Incoming, Outgoing, Receiver, Sender};
use static_cell::StaticCell;

type Shared = &'static End<Board<Masked, true>>;
/// A buffer for twenty requests in a row: the emulated UART is as fast as its other end.
type Line = Interrupted<Uart0, Masked, 1024>;

embassy_time_driver::time_driver_impl!(static TIME: Time<25, 8> = Time::new());
sinew_rt::board!("machine=mps2-an385 link=uart mtu={}", MTU);
static SLOTS: [Slot; CALLS] = [const { Slot::new() }; CALLS];
static LINE: Line = Interrupted::new(UART);
static UART_PORT: Direct<&Line, MTU> = Direct(&LINE);
static LINK: Late<End<Board<Masked, true>>> = Late::new();
/// What the port into shared memory rings.
static BELL: Bell<Masked> = Bell::new();

an385::interrupts!(time_passed, byte_came, rung);

extern "C" fn time_passed() {
    TIME.interrupt();
}

extern "C" fn byte_came() {
    UART.acknowledge();
    LINE.arrived();
}

extern "C" fn rung() {
    board::bell_rang();
    look();
}

/// Looks at the shared memory, and wakes who waits for it.
fn look() {
    if let Some(link) = LINK.get() {
        shared::look(link, (TIME.now() >> 10) as u32);
    }
}

/// `demo.Kinds`, with tasks for what takes its time.
struct WithTasks {
    spawner: Spawner,
    others: KindsService<CALLS>,
}

impl Kinds for WithTasks {
    fn double(&mut self, request: &Num, cx: Cx<'_, Responder<Num>>) -> Result<Num, Stop> {
        let n = request.n.checked_mul(2).ok_or(Status::OUT_OF_RANGE)?;
        let (responder, later) = cx.defer()?;
        // Without a task the responder is gone, and the client is told.
        if let Ok(task) = answer(responder, n) {
            self.spawner.spawn(task);
        }
        Err(later)
    }

    fn count(&mut self, request: &Num, cx: Cx<'_, Writer<Num>>) -> Result<(), Stop> {
        let (writer, later) = cx.defer()?;
        if let Ok(task) = count(writer, request.n) {
            self.spawner.spawn(task);
        }
        Err(later)
    }

    fn sum(
        &mut self,
        input: StreamIn<'_, Num>,
        cx: StreamCx<'_, Responder<Num>>,
    ) -> Result<Num, Stop> {
        self.others.sum(input, cx)
    }

    fn echo_all(
        &mut self,
        input: StreamIn<'_, Num>,
        cx: StreamCx<'_, Writer<Num>>,
    ) -> Result<(), Stop> {
        self.others.echo_all(input, cx)
    }
}

#[embassy_executor::task(pool_size = CALLS)]
async fn answer(mut responder: Responder<Num>, n: u32) {
    wait(1000).await;
    while let Err(AnswerError::Full) = responder.answer(&Num { n }) {
        woken(|waker| responder.arm(waker)).await;
    }
}

/// So many microseconds. (`Timer::after` adds by an operation that can panic, which an image must not.)
async fn wait(micros: u64) {
    Timer::at(Instant::now().saturating_add(Duration::from_micros(micros))).await;
}

/// Ends where the call has: cancelled, or its link is gone.
#[embassy_executor::task(pool_size = CALLS)]
async fn count(mut writer: Writer<Num>, end: u32) {
    let mut n = 0;
    loop {
        let sent = match n == end {
            true => writer.finish(Status::OK),
            false => writer.send(&Num { n }),
        };
        match sent {
            Ok(()) if n == end => return,
            Ok(()) => n += 1,
            Err(AnswerError::Full) => {}
            Err(_) => return,
        }
        // Once there is a place again; others run meanwhile in any case.
        woken(|waker| writer.arm(waker)).await;
    }
}

#[embassy_executor::task]
async fn serve(spawner: Spawner, link: Shared) {
    let _ = serve_both(spawner, link).await;
    sinew_rt::exit(3)
}

async fn serve_both(spawner: Spawner, link: Shared) -> Option<()> {
    static PORT: StaticCell<Later<Shared, Masked>> = StaticCell::new();
    let over_uart = Via {
        link: 0,
        channels: Channels::Any,
        port: Some(&UART_PORT),
        bulk: None,
    };
    let over_memory = Via {
        link: 1,
        port: Some(PORT.try_init(Later::new(link, shared::CALLS, &BELL))?),
        ..over_uart
    };
    let uart = Link::new(
        frames::Sender::<_, MTU>::new(&LINE),
        frames::Receiver::<_, MTU>::new(&LINE),
        &over_uart,
    );
    let memory = Link::new(
        Outgoing::new(Sender::new(&link, shared::CALLS)?),
        Incoming::new(Receiver::new(&link, shared::CALLS)?, [0; MTU])?,
        &over_memory,
    );
    let others = KindsService::new();
    let kinds = kinds::Serve(WithTasks { spawner, others });
    let services = (cache::Serve(CacheService::new()), kinds);
    let mut serving = Serving::new(&SLOTS, services, ((uart, memory), &BELL));
    tasks::serve(&mut serving).await
}

/// The sign of life of this side, ten times a second.
#[embassy_executor::task]
async fn live() {
    loop {
        look();
        wait(100_000).await;
    }
}

/// The compiler puts one panic into every `async fn`, for who polls it after its end. No executor does; the runner
/// checks that no other is linked.
#[unsafe(no_mangle)]
extern "C" fn a_panic_can_be_reached_from_here() -> ! {
    sinew_rt::exit(5)
}

fn start() -> Option<()> {
    static END: StaticCell<End<Board<Masked, true>>> = StaticCell::new();
    static EXECUTOR: StaticCell<Executor> = StaticCell::new();
    TIME.start();
    board::start_uart();
    board::start_bell();
    let link: Shared = END.try_init(shared::open()?)?;
    LINK.set(link);
    sinew_rt::unmask();
    EXECUTOR.try_init(Executor::new())?.run(|spawner| {
        if let Ok(task) = serve(spawner, link) {
            spawner.spawn(task);
        }
        if let Ok(task) = live() {
            spawner.spawn(task);
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let _ = start();
    sinew_rt::exit(3)
}
