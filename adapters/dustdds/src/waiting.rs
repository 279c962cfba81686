//! Waiting for Dust DDS on Tokio, the runtime that its documentation names for its asynchronous API.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use dust_dds::infrastructure::error::{DdsError, DdsResult};
use rtmeter_adapter::{Refused, words_of};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::time::sleep_until;

thread_local! {
    /// Each thread that calls Dust DDS has the runtime of its example, a current-thread one.
    static RUNTIME: Runtime =
        Builder::new_current_thread().enable_time().build().expect("it takes nothing of the system");
}

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
        RUNTIME.with(|runtime| {
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    result = future => Ended::Ready(result),
                    () = self.0.notified() => Ended::Interrupted,
                    () = passed => Ended::TimedOut,
                }
            })
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
    RUNTIME.with(|runtime| {
        runtime.block_on(async {
            tokio::select! {
                biased;
                result = future => result,
                () = died => Err(DdsError::AlreadyDeleted),
            }
        })
    })
}
