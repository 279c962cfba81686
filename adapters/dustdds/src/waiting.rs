//! Waiting for Dust DDS on Tokio, the runtime that its documentation names for its asynchronous API.

use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::thread;
use std::time::{Duration, Instant};

use dust_dds::infrastructure::error::{DdsError, DdsResult};
use rtmeter_adapter::{Refused, words_of};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::time::sleep_until;

thread_local! {
    /// Each thread that calls Dust DDS has the runtime of its example, a current-thread one.
    static RUNTIME: (Runtime, Waker) = {
        let runtime =
            Builder::new_current_thread().enable_time().build().expect("it takes nothing of the system");
        let waker = steady(runtime.block_on(poll_fn(|context| Poll::Ready(context.waker().clone()))));
        (runtime, waker)
    };
}

/// How often one wait may look again in vain before it gives way, and for how long: a call of Dust DDS's takes
/// a handful of looks.
const LOOKS: u32 = 100;
const GIVES_WAY: Duration = Duration::from_millis(1);

/// How often waits of this process gave way.
static GAVE_WAY: AtomicU64 = AtomicU64::new(0);

/// The future's result, waited for on this thread's runtime.
///
/// The lock in front of Dust DDS keeps one waker, and wakes whom it takes the place from: two threads that
/// wait for it wake each other in turn until it is free. Where they are more urgent than who holds it, or
/// than Dust DDS's executor, on the same CPU, that is for ever; so a wait that was woken in vain so often
/// sleeps.
fn on_runtime<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut looks = 0;
    RUNTIME.with(|(runtime, waker)| {
        runtime.block_on(poll_fn(|_| {
            looks += 1;
            if looks % LOOKS == 0 {
                GAVE_WAY.fetch_add(1, Ordering::Relaxed);
                thread::sleep(GIVES_WAY);
            }
            future.as_mut().poll(&mut Context::from_waker(waker))
        }))
    })
}

/// How often a wait was woken in vain so often that it slept: see on_runtime().
pub fn gave_way() -> u64 {
    GAVE_WAY.load(Ordering::Relaxed)
}

/// A waker whose copies are equal, kept for good. Two of Tokio's for one task may not be, since each is known
/// by a constant of which there may be copies; the lock in front of Dust DDS then takes the second for
/// another task's and wakes the first, so that a thread that waits for the lock runs round, and where it is
/// more urgent than who holds the lock, on the same CPU, for ever.
fn steady(waker: Waker) -> Waker {
    let kept: &'static Waker = Box::leak(Box::new(waker));
    // Safety: what the functions of STEADY are given lives for ever, and a Waker is Sync.
    unsafe { Waker::from_raw(copy(std::ptr::from_ref(kept).cast())) }
}

static STEADY: RawWakerVTable = RawWakerVTable::new(copy, wake, wake, forget);

unsafe fn copy(kept: *const ()) -> RawWaker {
    RawWaker::new(kept, &STEADY)
}

unsafe fn wake(kept: *const ()) {
    // Safety: it is that of steady().
    unsafe { &*kept.cast::<Waker>() }.wake_by_ref();
}

unsafe fn forget(_kept: *const ()) {}

/// Ends a wait.
#[derive(Default)]
pub struct Wakeup(Notify);

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ended<T> {
    Ready(T),
    Interrupted,
    TimedOut,
}

impl Wakeup {
    /// One interruption that comes before a wait ends that wait at once.
    pub fn interrupt(&self) {
        self.0.notify_one();
    }

    /// Until the future is ready, an interruption comes, or the moment has passed, which Tokio sees by the
    /// millisecond.
    pub fn wait_for<T>(
        &self,
        future: &mut Pin<Box<dyn Future<Output = T> + Send>>,
        until: Option<Instant>,
    ) -> Ended<T> {
        let passed = async {
            match until {
                Some(moment) => sleep_until(moment.into()).await,
                None => pending().await,
            }
        };
        on_runtime(async {
            tokio::select! {
                biased;
                result = future => Ended::Ready(result),
                () = self.0.notified() => Ended::Interrupted,
                () = passed => Ended::TimedOut,
            }
        })
    }
}

/// What killed a thread of Dust DDS's. Nothing is answered any more.
static DEATH: OnceLock<String> = OnceLock::new();
static DIED: Notify = Notify::const_new();

/// Notes when a thread of Dust DDS's panics, and ends the wait under way.
pub fn watch_for_panics(wakeup: Arc<Wakeup>) {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        let thread = std::thread::current();
        let name = thread.name().unwrap_or_default();
        if name.starts_with("Dust DDS") || name.starts_with("SomethingOn") {
            let words = words_of(panic.payload());
            let _ = DEATH.set(format!("its thread {name} panicked: {words}"));
            DIED.notify_waiters();
            wakeup.interrupt();
        }
    }));
}

/// What killed a thread of Dust DDS's, if one is dead.
pub fn death() -> Option<&'static str> {
    DEATH.get().map(String::as_str)
}

/// Why a call of Dust DDS's did not succeed, for the measured path.
pub fn refused(_error: DdsError) -> Refused {
    if death().is_some() { Refused::Broken } else { Refused::Call }
}

/// The future's result; an error if Dust DDS is dead. Never given up before: in Dust DDS 0.16 a call that is
/// dropped before its answer leaves that answer to the next call.
pub fn block_on<T>(future: impl Future<Output = DdsResult<T>>) -> DdsResult<T> {
    let died = async {
        let told = DIED.notified();
        if death().is_none() {
            told.await;
        }
    };
    on_runtime(async {
        tokio::select! {
            biased;
            result = future => result,
            () = died => Err(DdsError::AlreadyDeleted),
        }
    })
}
