//! Blocking on the futures of Dust DDS: for a result, or for whatever comes first.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use dust_dds::infrastructure::error::{DdsError, DdsResult};
use rtmeter_adapter::{Refused, words_of};

#[derive(Default)]
struct State {
    woken: bool,
    interrupted: bool,
}

/// What a thread waits at: futures wake it when they can go on, and so does whoever interrupts.
#[derive(Default)]
pub struct Wakeup {
    state: Mutex<State>,
    changed: Condvar,
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.set(|state| state.woken = true);
    }
}

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
        self.set(|state| state.interrupted = true);
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().expect("nothing panics while it holds the lock"));
        self.changed.notify_one();
    }

    /// Polls until the future is ready, an interruption comes, or the moment has passed.
    pub fn wait_for<T>(
        self: &Arc<Self>,
        future: &mut Pin<Box<dyn Future<Output = T> + Send>>,
        until: Option<Instant>,
    ) -> Ended<T> {
        let waker = Waker::from(self.clone());
        loop {
            if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Ended::Ready(result);
            }
            let mut state = self.state.lock().expect("nothing panics while it holds the lock");
            while !state.woken && !state.interrupted {
                let left = until.map(|moment| moment.saturating_duration_since(Instant::now()));
                state = match left {
                    None => self.changed.wait(state).expect("as above"),
                    Some(Duration::ZERO) => return Ended::TimedOut,
                    Some(left) => self.changed.wait_timeout(state, left).expect("as above").0,
                };
            }
            state.woken = false;
            if std::mem::take(&mut state.interrupted) {
                return Ended::Interrupted;
            }
        }
    }
}

/// What killed a thread of Dust DDS's. Nothing is answered any more.
static DEATH: OnceLock<String> = OnceLock::new();

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
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    const LOOK: Duration = Duration::from_millis(100); // for its death, which wakes nobody
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending if death().is_some() => return Err(DdsError::AlreadyDeleted),
            Poll::Pending => std::thread::park_timeout(LOOK),
        }
    }
}
