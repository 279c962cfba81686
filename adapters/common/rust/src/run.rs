//! What crosses the border, as Rust types.

use core::ffi::{CStr, c_char, c_void};
use std::ffi::CString;

use crate::SetupError;
use crate::contract::{
    self, rtm_enum, rtm_fire, rtm_message, rtm_on_fire, rtm_on_match, rtm_on_message, rtm_on_reply, rtm_run,
    rtm_sink, rtm_timer_spec, rtm_timer_traits,
};

/// An enum of the header's: its values count from 0 in the order of the variants.
macro_rules! header_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident),* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant),* }
        impl $name {
            #[allow(dead_code)]
            pub(crate) fn from_header(value: rtm_enum) -> Self {
                *[$(Self::$variant),*].get(value as usize).expect(concat!("a value of ", stringify!($name)))
            }
        }
    };
}

header_enum! {
    /// What is measured.
    #[allow(missing_docs)]
    Measurement { Wakeup, Timer, RoundTrip, Cycle, Request, Chain, Discovery }
}
header_enum! {
    /// Which end of a round trip this process is.
    #[allow(missing_docs)]
    Role { Single, Client, Server, Beside }
}
header_enum! {
    /// How callbacks are reached.
    #[allow(missing_docs)]
    Drive { Spin, SleepThenSpinSome, Poll }
}
header_enum! {
    /// How the callbacks of messages are reached.
    Receive {
        /// `spin`, on a thread of its own.
        Spin,
        /// `wait`, one after the other.
        SpinOnce,
        /// A thread of the middleware's calls back.
        Listener,
        /// `spin_some`, all the time.
        Poll,
        /// A client's call itself, which blocks until the reply has come.
        Call
    }
}
header_enum! {
    /// What a request goes over.
    Interface {
        /// It is called.
        Service,
        /// It is given a goal.
        Action
    }
}
header_enum! {
    /// What comes back for a request.
    Reply {
        /// The service's response, the action's result: the last.
        Result,
        /// The goal was accepted; without a payload.
        Accepted,
        /// Of the action, before the result; without a payload.
        Feedback
    }
}
header_enum! {
    /// The two ends of a topic.
    #[allow(missing_docs)]
    End { Publisher, Subscriber }
}
header_enum! {
    /// Kind of timer.
    #[allow(missing_docs)]
    TimerMode { OneShot, Periodic }
}
header_enum! {
    /// Whether lost messages are sent again.
    #[allow(missing_docs)]
    Reliability { BestEffort, Reliable }
}
header_enum! {
    /// What happens to releases that were missed.
    #[allow(missing_docs)]
    Overrun { CatchUp, Skip }
}
header_enum! {
    /// Which release a periodic timer's callback serves when the middleware does not report it.
    Ticks {
        /// The n-th callback serves release n, however late.
        EveryTick,
        /// Missed ticks are passed over.
        Jumps
    }
}

/// What the adapter may need to know of the run.
pub struct Run<'a>(pub(crate) &'a rtm_run);

#[allow(missing_docs)] // the fields of rtm_run
impl Run<'_> {
    pub fn measurement(&self) -> Measurement {
        Measurement::from_header(self.0.measurement)
    }
    pub fn role(&self) -> Role {
        Role::from_header(self.0.role)
    }
    pub fn drive(&self) -> Drive {
        Drive::from_header(self.0.drive)
    }
    pub fn receive(&self) -> Receive {
        Receive::from_header(self.0.receive)
    }
    pub fn period_ns(&self) -> i64 {
        self.0.period_ns
    }
    pub fn payload_bytes(&self) -> u32 {
        self.0.payload_bytes
    }
    pub fn reliability(&self) -> Reliability {
        Reliability::from_header(self.0.reliability)
    }
    pub fn history_depth(&self) -> u32 {
        self.0.history_depth
    }
    /// The depth that the user gave, if any.
    pub fn history_depth_asked(&self) -> Option<u32> {
        u32::try_from(self.0.history_depth_asked).ok()
    }
    pub fn interface(&self) -> Interface {
        Interface::from_header(self.0.interface)
    }
    /// Of topic ping, the server among them.
    pub fn subscribers(&self) -> usize {
        self.0.subscribers as usize
    }
    /// Of topic ping, the client among them.
    pub fn publishers(&self) -> usize {
        self.0.publishers as usize
    }
    pub fn session(&self) -> String {
        text(self.0.session)
    }

    /// For C functions that take the run.
    pub fn as_raw(&self) -> *const rtm_run {
        self.0
    }

    /// The option's value, or otherwise when it was not given. Options that nobody asks for are refused.
    fn option_or(&self, key: &str, otherwise: &str) -> String {
        let (key, otherwise) = (c_string(key), c_string(otherwise));
        text(unsafe { contract::rtm_option_or(self.0, key.as_ptr(), otherwise.as_ptr()) })
    }
}

/// An option that is one of some words, the first by default. One declaration is what `rtmeter adapters` lists,
/// what is read, and what is refused.
pub struct Choice {
    /// Its name.
    pub key: &'static str,
    /// What it can be.
    pub words: &'static [&'static str],
    /// What it means.
    pub about: &'static str,
}

impl Choice {
    /// For `describe_static`.
    pub fn describe(&self, sink: &mut Sink) {
        sink.put(&format!("option.{}", self.key), format!("{}: {}", self.words.join("|"), self.about));
    }

    /// The run's; an error if that is none of the words.
    pub fn of(&self, run: &Run) -> Result<&'static str, SetupError> {
        let value = run.option_or(self.key, self.words[0]);
        self.words.iter().find(|word| **word == value).copied().ok_or_else(|| {
            let remedy = format!("choose one of {}", self.words.join(", "));
            SetupError::new(format!("option {}", self.key), value, "no such choice", remedy)
        })
    }
}

/// An option that is any text, which the adapter checks itself.
pub struct Text {
    /// Its name.
    pub key: &'static str,
    /// What it is where nobody gave it.
    pub otherwise: &'static str,
    /// Its form, what it is by default, and what it means.
    pub about: &'static str,
}

impl Text {
    /// For `describe_static`.
    pub fn describe(&self, sink: &mut Sink) {
        sink.put(&format!("option.{}", self.key), self.about);
    }

    /// The run's.
    pub fn of(&self, run: &Run) -> String {
        run.option_or(self.key, self.otherwise)
    }
}

/// The version of a package that was compiled in, out of the adapter's Cargo.lock, which pins it.
pub fn pinned_version(lock: &'static str, package: &str) -> &'static str {
    let pinned = lock.split_once(&format!("name = \"{package}\"\nversion = \""));
    pinned.and_then(|(_, rest)| rest.split_once('"')).map_or("unknown", |(version, _)| version)
}

/// Where `describe` puts what it knows.
pub struct Sink(pub(crate) *mut rtm_sink);

impl Sink {
    /// A key and its value as text; a key that is repeated makes a list.
    pub fn put(&mut self, key: &str, value: impl AsRef<str>) -> &mut Self {
        let (key, value) = (c_string(key), c_string(value.as_ref()));
        unsafe { ((*self.0).put)(self.0, key.as_ptr(), value.as_ptr()) };
        self
    }
    /// For C functions that take the sink.
    pub fn as_raw(&mut self) -> *mut rtm_sink {
        self.0
    }
}

/// A message to publish. The data are the core's, valid during the call only.
pub struct Message<'a> {
    /// A field beside the payload.
    pub sequence: u64,
    /// The payload.
    pub data: &'a [u8],
}

impl Message<'_> {
    pub(crate) unsafe fn from_header(message: &rtm_message) -> Self {
        let data = match message.bytes {
            0 => &[],
            bytes => unsafe { core::slice::from_raw_parts(message.data, bytes as usize) },
        };
        Self { sequence: message.sequence, data }
    }
}

/// The core's callback for a message: call it first thing in the middleware's own callback.
#[derive(Clone, Copy)]
pub struct OnMessage {
    pub(crate) function: rtm_on_message,
    pub(crate) user: *mut c_void,
}
// The contract: callbacks may come on any thread, one at a time for a handle.
unsafe impl Send for OnMessage {}
unsafe impl Sync for OnMessage {}

impl OnMessage {
    /// Measured path.
    pub fn call(&self, sequence: u64, data: &[u8]) {
        let message = rtm_message { sequence, data: data.as_ptr(), bytes: data.len() as u32 };
        unsafe { (self.function)(self.user, &message) }
    }
}

/// The core's callback for what comes back: call it first thing in the middleware's own callback.
#[derive(Clone, Copy)]
pub struct OnReply {
    pub(crate) function: rtm_on_reply,
    pub(crate) user: *mut c_void,
}
unsafe impl Send for OnReply {}
unsafe impl Sync for OnReply {}

impl OnReply {
    /// With the sequence number of the request that it belongs to. Measured path.
    pub fn call(&self, what: Reply, sequence: u64, data: &[u8]) {
        let message = rtm_message { sequence, data: data.as_ptr(), bytes: data.len() as u32 };
        unsafe { (self.function)(self.user, what as rtm_enum, &message) }
    }
}

/// The core's callback for a match: call it first thing when the middleware tells of a change.
#[derive(Clone, Copy)]
pub struct OnMatch {
    pub(crate) function: rtm_on_match,
    pub(crate) user: *mut c_void,
}
unsafe impl Send for OnMatch {}
unsafe impl Sync for OnMatch {}

impl OnMatch {
    /// With how many ends of other participants the node's publisher (subscriber) is matched now.
    pub fn call(&self, end: End, others: usize) {
        unsafe { (self.function)(self.user, end as rtm_enum, i32::try_from(others).unwrap_or(i32::MAX)) }
    }
}

/// What a timer callback knows, in the middleware's words; `None` where it does not say.
#[derive(Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Fire {
    pub reported_expected_ns: Option<i64>,
    pub reported_actual_ns: Option<i64>,
}

/// The core's callback for a timer: call it first thing in the middleware's own callback.
#[derive(Clone, Copy)]
pub struct OnFire {
    function: rtm_on_fire,
    user: *mut c_void,
}
unsafe impl Send for OnFire {}
unsafe impl Sync for OnFire {}

impl OnFire {
    /// Measured path.
    pub fn call(&self, fire: Fire) {
        let fire = rtm_fire {
            reported_expected_ns: fire.reported_expected_ns.unwrap_or(contract::RTM_ABSENT),
            reported_actual_ns: fire.reported_actual_ns.unwrap_or(contract::RTM_ABSENT),
        };
        unsafe { (self.function)(self.user, &fire) }
    }
}

/// The timer to make.
#[allow(missing_docs)]
pub struct TimerSpec {
    pub mode: TimerMode,
    /// Period, or the one-shot's timeout.
    pub period_ns: i64,
    pub on_fire: OnFire,
}

impl TimerSpec {
    pub(crate) fn from_header(spec: &rtm_timer_spec) -> Self {
        let on_fire = OnFire { function: spec.on_fire, user: spec.user };
        Self { mode: TimerMode::from_header(spec.mode), period_ns: spec.period_ns, on_fire }
    }
}

/// What the timer that was made does.
#[allow(missing_docs)]
pub struct TimerTraits {
    pub ticks: Ticks,
    /// What the timer does with ticks that were missed.
    pub overrun: Overrun,
    /// Whether reported times are CLOCK_MONOTONIC.
    pub reports_monotonic: bool,
}

impl TimerTraits {
    pub(crate) fn to_header(&self) -> rtm_timer_traits {
        rtm_timer_traits {
            ticks: self.ticks as rtm_enum,
            overrun: self.overrun as rtm_enum,
            reports_monotonic: self.reports_monotonic.into(),
        }
    }
}

/// Text of C's; bytes that are no UTF-8 are replaced.
pub(crate) fn text(pointer: *const c_char) -> String {
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// Text for C, which ends at the first NUL.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).expect("no NUL is left")
}
