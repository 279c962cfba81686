//! The adapter contract for Rust: implement [`Adapter`] and the traits of what
//! the middleware can, then `rtmeter_adapter::export!(YourAdapter)`.
//!
//! The methods are those of `rtm_adapter` in core/include/rtmeter/adapter.h, which says what each does.
//! Setup methods return a [`SetupError`]; those on the measured path return [`Refused`]. A panic crosses
//! the border as an error, never as an unwinding.
// SPDX-License-Identifier: Apache-2.0
#![warn(missing_docs)]

mod adapter;
pub mod contract;
mod run;
mod table;

pub use adapter::{
    Adapter, Client, Dispatches, Interrupted, Matches, Polls, Publisher, Refused, Server, Services,
    SetupError, Spins, Timer, Timers, Topics, Waits,
};
pub use run::{
    Choice, Drive, End, Fire, Interface, Measurement, Message, OnFire, OnMatch, OnMessage, OnReply, Overrun,
    Receive, Reliability, Reply, Role, Run, Sink, Text, Ticks, TimerMode, TimerSpec, TimerTraits,
    pinned_version,
};
pub use table::words_of;
#[doc(hidden)]
pub use table::{Lacks, Methods, table};
