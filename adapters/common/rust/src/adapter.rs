//! What an adapter implements.

use core::ffi::c_int;
use std::time::{Duration, Instant};

use crate::contract::rtm_error;
use crate::run::text;
use crate::{Message, OnMatch, OnMessage, OnReply, Reply, Run, Sink, TimerSpec, TimerTraits};

/// Why setup failed: which field, its value, what is wrong, and what to do about it.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct SetupError {
    pub field: String,
    pub value: String,
    pub message: String,
    pub remedy: String,
}

impl SetupError {
    /// The four texts, in the order in which they are shown.
    pub fn new(
        field: impl Into<String>,
        value: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { field: field.into(), value: value.into(), message: message.into(), remedy: remedy.into() }
    }

    /// Calls a C function of setup: one that returns non-zero, and fills the error that it is given.
    pub fn check(call: impl FnOnce(*mut rtm_error) -> c_int) -> Result<(), Self> {
        let mut error = rtm_error { field: [0; 64], value: [0; 128], message: [0; 384], remedy: [0; 384] };
        if call(&mut error) == 0 {
            return Ok(());
        }
        let [field, value] = [error.field.as_ptr(), error.value.as_ptr()].map(text);
        let [message, remedy] = [error.message.as_ptr(), error.remedy.as_ptr()].map(text);
        Err(Self { field, value, message, remedy })
    }
}

/// Why a call on the measured path did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The middleware refused it; it is counted, and the run goes on.
    Call,
    /// The middleware is gone for good; it ends the run. `describe` then puts `broken`, the reason.
    Broken,
}

/// A timer that the adapter made.
pub trait Timer: Sync {
    /// Starts it, or arms a one-shot again. now_ns is the core's stamp just taken. [measured path]
    fn arm(&self, now_ns: i64) -> Result<(), Refused>;
}

/// A publisher that the adapter made.
pub trait Publisher: Sync {
    /// Sends a message, from any thread. [measured path]
    fn publish(&self, message: &Message) -> Result<(), Refused>;
}

/// A client of a service or an action that the adapter made.
pub trait Client: Sync {
    /// Sends a request or a goal; returns at once, but with `Receive::Call` when the result has come.
    /// [measured path]
    fn call(&self, request: &Message) -> Result<(), Refused>;
}

/// A service or an action that the adapter made.
pub trait Server: Sync {
    /// From within the callback of a request: what comes back for it. [measured path]
    fn reply(&self, what: Reply, message: &Message) -> Result<(), Refused>;
}

/// A middleware that can be measured. Dropping it is the middleware's shutdown: afterwards nothing may call
/// back. What it made (timers, publishers, …) lives until then and is dropped after it.
///
/// What it can do are the traits below, as many as it has: [`Timers`], [`Topics`], [`Matches`], [`Services`],
/// and how callbacks are reached, [`Spins`], [`Waits`], [`Polls`], or [`Dispatches`] for all three. A list of
/// `describe_static` that needs one which it lacks is refused when the adapter is built.
///
/// Methods that take `&mut self` are setup: one thread calls them, before anything is measured. Those that
/// take `&self` are the measured path, but for `describe`; `interrupt` may come from any thread.
pub trait Adapter: Sync + Sized + 'static {
    /// What is known before the start.
    fn describe_static(sink: &mut Sink);
    /// The middleware's init.
    fn start(run: &Run) -> Result<Self, SetupError>;
    /// What is in effect.
    fn describe(&self, _sink: &mut Sink) {}
    /// A node, participant or component. The number is the adapter's own: it gets it back as `node`.
    fn create_node(&mut self, _name: &str) -> Result<usize, SetupError> {
        Ok(0)
    }
}

/// It has timers.
pub trait Timers: Adapter {
    #[allow(missing_docs)]
    type Timer: Timer + 'static;
    /// A timer, and what it does with missed ticks.
    fn create_timer(
        &mut self,
        node: usize,
        spec: TimerSpec,
    ) -> Result<(Self::Timer, TimerTraits), SetupError>;
}

/// It has publishers and subscribers.
pub trait Topics: Adapter {
    #[allow(missing_docs)]
    type Publisher: Publisher + 'static;
    /// A publisher for the topic.
    fn create_publisher(&mut self, node: usize, topic: &str) -> Result<Self::Publisher, SetupError>;
    /// Has the callback called for every message on the topic.
    fn create_subscriber(
        &mut self,
        node: usize,
        topic: &str,
        on_message: OnMessage,
    ) -> Result<(), SetupError>;
}

/// It tells of matches.
pub trait Matches: Topics {
    /// Of a node without ends: from now on the callback is called when the matches of one of them change.
    fn watch(&mut self, node: usize, on_match: OnMatch) -> Result<(), SetupError>;
}

/// It has services or actions, by what `Run::interface` says.
pub trait Services: Adapter {
    #[allow(missing_docs)]
    type Client: Client + 'static;
    #[allow(missing_docs)]
    type Server: Server + 'static;
    /// A client of the service or action of that name.
    fn create_client(
        &mut self,
        node: usize,
        service: &str,
        on_reply: OnReply,
    ) -> Result<Self::Client, SetupError>;
    /// The service or action; the callback is called for every request, and replies.
    fn create_server(
        &mut self,
        node: usize,
        service: &str,
        on_request: OnMessage,
    ) -> Result<Self::Server, SetupError>;
}

/// It has a spin of its own.
pub trait Spins: Interrupted {
    /// The middleware's own blocking spin, until interrupted.
    fn spin(&self, timeout_ns: i64) -> Result<(), Refused>;
}

/// Somebody can wait for its callbacks.
pub trait Waits: Interrupted {
    /// Blocks until at least one callback ran or the timeout has passed.
    fn wait(&self, timeout_ns: i64) -> Result<(), Refused>;
}

/// It can be asked for what is ready.
pub trait Polls: Adapter {
    /// Dispatches what is ready; does not block.
    fn spin_some(&self) -> Result<(), Refused>;
}

/// What blocks in it can be ended.
pub trait Interrupted: Adapter {
    /// Makes spin and wait return; one that comes just before them is not lost.
    fn interrupt(&self);
}

/// It calls back in one place, of which all three ways to reach its callbacks are made: [`Spins`], [`Waits`]
/// and [`Polls`].
pub trait Dispatches: Interrupted {
    /// Waits until the moment (None: for ever) for what to call back for, and calls back. False if it was
    /// interrupted, or the moment came first. [measured path]
    fn dispatch(&self, until: Option<Instant>) -> Result<bool, Refused>;
    /// Calls back for what is ready; does not block. [measured path]
    fn dispatch_ready(&self) -> Result<(), Refused>;
}

/// None: never.
fn after(timeout_ns: i64) -> Option<Instant> {
    (timeout_ns < i64::MAX).then(|| Instant::now() + Duration::from_nanos(timeout_ns.unsigned_abs()))
}

impl<A: Dispatches> Spins for A {
    fn spin(&self, timeout_ns: i64) -> Result<(), Refused> {
        let until = after(timeout_ns);
        while self.dispatch(until)? {}
        Ok(())
    }
}

impl<A: Dispatches> Waits for A {
    fn wait(&self, timeout_ns: i64) -> Result<(), Refused> {
        self.dispatch(after(timeout_ns)).map(|_| ())
    }
}

impl<A: Dispatches> Polls for A {
    fn spin_some(&self) -> Result<(), Refused> {
        self.dispatch_ready()
    }
}
