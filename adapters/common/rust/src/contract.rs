//! core/include/rtmeter/adapter.h, declaration by declaration. A test compares the layouts.
#![allow(missing_docs, non_camel_case_types)] // the header has the documentation, and the names

use core::ffi::{c_char, c_int, c_void};

pub const RTM_ADAPTER_ABI: u32 = 7;
pub const RTM_ABSENT: i64 = i64::MIN;
pub const RTM_BROKEN: c_int = -2;
pub const RTM_SEQUENCE_HELLO: u64 = u64::MAX;

#[repr(C)]
pub struct rtm_error {
    pub field: [c_char; 64],
    pub value: [c_char; 128],
    pub message: [c_char; 384],
    pub remedy: [c_char; 384],
}

// The header's enums are ints whose values count from 0.
pub type rtm_enum = c_int;

#[repr(C)]
pub struct rtm_option {
    pub key: *const c_char,
    pub value: *const c_char,
}

#[repr(C)]
pub struct rtm_run {
    pub measurement: rtm_enum,
    pub role: rtm_enum,
    pub drive: rtm_enum,
    pub receive: rtm_enum,
    pub timer_mode: rtm_enum,
    pub period_ns: i64,
    pub payload_bytes: u32,
    pub reliability: rtm_enum,
    pub history_depth: u32,
    pub session: *const c_char,
    pub overrun_asked: i32,
    pub options: *const rtm_option,
    pub option_count: usize,
    pub components_asked: i32,
    pub history_depth_asked: i32,
    pub interface: rtm_enum,
    pub subscribers: i32,
    pub publishers: i32,
}

#[repr(C)]
pub struct rtm_sink {
    pub put: unsafe extern "C" fn(sink: *mut rtm_sink, key: *const c_char, value: *const c_char),
}

#[repr(C)]
pub struct rtm_message {
    pub sequence: u64,
    pub data: *const u8,
    pub bytes: u32,
}

#[repr(C)]
pub struct rtm_fire {
    pub reported_expected_ns: i64,
    pub reported_actual_ns: i64,
}

pub type rtm_on_fire = unsafe extern "C" fn(user: *mut c_void, fire: *const rtm_fire);
pub type rtm_on_message = unsafe extern "C" fn(user: *mut c_void, message: *const rtm_message);
pub type rtm_on_match = unsafe extern "C" fn(user: *mut c_void, end: rtm_enum, others: i32);
pub type rtm_on_stamp = unsafe extern "C" fn(user: *mut c_void, end: rtm_enum, realtime_ns: i64);
pub type rtm_on_reply = unsafe extern "C" fn(user: *mut c_void, what: rtm_enum, message: *const rtm_message);

#[repr(C)]
pub struct rtm_timer_spec {
    pub mode: rtm_enum,
    pub period_ns: i64,
    pub on_fire: rtm_on_fire,
    pub user: *mut c_void,
}

#[repr(C)]
pub struct rtm_timer_traits {
    pub ticks: rtm_enum,
    pub overrun: rtm_enum,
    pub reports_monotonic: i32,
}

pub type rtm_create_timer = unsafe extern "C" fn(
    *mut c_void,
    *const rtm_timer_spec,
    *mut *mut c_void,
    *mut rtm_timer_traits,
    *mut rtm_error,
) -> c_int;
pub type rtm_create_publisher =
    unsafe extern "C" fn(*mut c_void, *const c_char, *mut *mut c_void, *mut rtm_error) -> c_int;
/// Also of a server, whose requests come as messages do.
pub type rtm_create_subscriber = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    rtm_on_message,
    *mut c_void,
    *mut *mut c_void,
    *mut rtm_error,
) -> c_int;
pub type rtm_create_client = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    rtm_on_reply,
    *mut c_void,
    *mut *mut c_void,
    *mut rtm_error,
) -> c_int;
/// Also of a call.
pub type rtm_publish = unsafe extern "C" fn(*mut c_void, *const rtm_message) -> c_int;
pub type rtm_watch = unsafe extern "C" fn(*mut c_void, rtm_on_match, *mut c_void, *mut rtm_error) -> c_int;
pub type rtm_tell_stamps =
    unsafe extern "C" fn(*mut c_void, rtm_on_stamp, *mut c_void, *mut rtm_error) -> c_int;
pub type rtm_spin = unsafe extern "C" fn(*mut c_void, i64) -> c_int;

/// What is `None` the adapter lacks: the core refuses what needs it.
#[repr(C)]
pub struct rtm_adapter {
    pub abi: u32,
    pub describe: unsafe extern "C" fn(*const c_void, *mut rtm_sink),
    pub start: unsafe extern "C" fn(*const rtm_run, *mut *mut c_void, *mut rtm_error) -> c_int,
    pub stop: unsafe extern "C" fn(*mut c_void),
    pub create_node:
        unsafe extern "C" fn(*mut c_void, *const c_char, *mut *mut c_void, *mut rtm_error) -> c_int,
    pub create_timer: Option<rtm_create_timer>,
    pub arm: Option<unsafe extern "C" fn(*mut c_void, i64) -> c_int>,
    pub create_publisher: Option<rtm_create_publisher>,
    pub create_subscriber: Option<rtm_create_subscriber>,
    pub publish: Option<rtm_publish>,
    pub spin: Option<rtm_spin>,
    pub wait: Option<rtm_spin>,
    pub spin_some: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub interrupt: Option<unsafe extern "C" fn(*mut c_void)>,
    pub create_client: Option<rtm_create_client>,
    pub create_server: Option<rtm_create_subscriber>,
    pub call: Option<rtm_publish>,
    pub reply: Option<unsafe extern "C" fn(*mut c_void, rtm_enum, *const rtm_message) -> c_int>,
    pub watch: Option<rtm_watch>,
    /// No adapter in Rust has it: there is no trait for it.
    pub tell_stamps: Option<rtm_tell_stamps>,
}

unsafe extern "C" {
    pub fn rtm_option_or(run: *const rtm_run, key: *const c_char, otherwise: *const c_char) -> *const c_char;
    pub fn rtm_fail(
        error: *mut rtm_error,
        field: *const c_char,
        value: *const c_char,
        message: *const c_char,
        remedy: *const c_char,
    ) -> c_int;
}

/// Every size and offset of the types above, under the names that the header has for them.
macro_rules! layout {
    ($($type:ident { $($field:ident),* })*) => {
        &[$((concat!(stringify!($type), "\0"), size_of::<$type>()),
            $((concat!(stringify!($type), ".", stringify!($field), "\0"),
               core::mem::offset_of!($type, $field)),)*)*]
    };
}

pub(crate) const LAYOUT: &[(&str, usize)] = layout! {
    rtm_error { field, value, message, remedy }
    rtm_option { key, value }
    rtm_run { measurement, role, drive, receive, timer_mode, period_ns, payload_bytes, reliability, history_depth,
              session, overrun_asked, options, option_count, components_asked,
              history_depth_asked, interface, subscribers, publishers }
    rtm_sink { put }
    rtm_message { sequence, data, bytes }
    rtm_fire { reported_expected_ns, reported_actual_ns }
    rtm_timer_spec { mode, period_ns, on_fire, user }
    rtm_timer_traits { ticks, overrun, reports_monotonic }
    rtm_adapter { abi, describe, start, stop, create_node, create_timer, arm, create_publisher,
                  create_subscriber, publish, spin, wait, spin_some, interrupt, create_client, create_server,
                  call, reply, watch, tell_stamps }
};

/// For the test: size or offset of `name`, or SIZE_MAX where there is no such declaration.
///
/// # Safety
/// `name` is a string of C's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtm_rust_layout(name: *const c_char) -> usize {
    let name = unsafe { core::ffi::CStr::from_ptr(name) }.to_bytes_with_nul();
    LAYOUT.iter().find(|known| known.0.as_bytes() == name).map_or(usize::MAX, |known| known.1)
}
