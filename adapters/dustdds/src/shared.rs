//! adapters/common/dds/shared.h: what the DDS adapters have in common.

use core::ffi::{CStr, c_char, c_int};
use std::ffi::CString;
use std::sync::Mutex;

use rtmeter_adapter::contract::{rtm_error, rtm_run, rtm_sink};
use rtmeter_adapter::{Run, SetupError, Sink};

const NETWORKLESS: &CStr = c"vendor";
/// What Dust DDS lacks: it lends no memory, it looks for others by multicast alone, and two of its three
/// receivers have one name.
fn options() -> rtm_dds_options {
    rtm_dds_options {
        transports: c"udp,vendor".as_ptr(),
        transport_about: c"UDP on one interface, or on all as Dust DDS has it by default".as_ptr(),
        threads_about: c"fifo:P or rr:P for all of Dust DDS's threads, by the system".as_ptr(),
        lacks: c"loan,peers,names".as_ptr(),
    }
}

#[allow(non_camel_case_types)]
#[repr(C)]
struct rtm_dds_options {
    transports: *const c_char,
    transport_about: *const c_char,
    threads_about: *const c_char,
    lacks: *const c_char,
}

#[allow(non_camel_case_types)]
enum rtm_dds {}

unsafe extern "C" {
    fn rtm_dds_describe_static(sink: *mut rtm_sink, of: *const rtm_dds_options);
    fn rtm_dds_open(
        run: *const rtm_run,
        of: *const rtm_dds_options,
        networkless: *const c_char,
        dds: *mut *mut rtm_dds,
        error: *mut rtm_error,
    ) -> c_int;
    fn rtm_dds_close(dds: *mut rtm_dds);
    fn rtm_dds_lease_s(dds: *const rtm_dds) -> i32;
    fn rtm_dds_interface_name(dds: *const rtm_dds) -> *const c_char;
    fn rtm_dds_interface_address(dds: *const rtm_dds) -> *const c_char;
    fn rtm_dds_domain(dds: *const rtm_dds) -> u32;
    fn rtm_dds_listener(dds: *const rtm_dds) -> c_int;
    fn rtm_dds_topic_name(dds: *mut rtm_dds, topic: *const c_char) -> *const c_char;
    fn rtm_dds_enforce_threads(dds: *mut rtm_dds, error: *mut rtm_error) -> c_int;
    fn rtm_dds_add_end(dds: *mut rtm_dds, name: *const c_char);
    fn rtm_dds_add_policy(dds: *mut rtm_dds, policy: *const c_char, value: *const c_char);
    fn rtm_dds_add_matches(dds: *mut rtm_dds, matched: usize, incompatible_policy: u32);
    fn rtm_dds_describe(dds: *mut rtm_dds, other_participants: c_int, sink: *mut rtm_sink);
}

/// The options as the run gave them, names and threads.
pub struct Shared(Mutex<*mut rtm_dds>);
unsafe impl Send for Shared {}
unsafe impl Sync for Shared {} // the lock

/// A writer or reader, in words.
pub struct EndFacts {
    pub name: String,
    pub policies: Vec<(&'static str, String)>,
    pub matched: usize,
    /// The id of the policy that kept another from matching, or 0.
    pub incompatible_policy: u32,
}

impl Shared {
    pub fn describe_static(sink: &mut Sink) {
        unsafe { rtm_dds_describe_static(sink.as_raw(), &options()) }
    }

    /// Threads that come from now on are the middleware's.
    pub fn open(run: &Run) -> Result<Self, SetupError> {
        let mut dds = core::ptr::null_mut();
        SetupError::check(|error| unsafe {
            rtm_dds_open(run.as_raw(), &options(), NETWORKLESS.as_ptr(), &mut dds, error)
        })?;
        Ok(Self(Mutex::new(dds)))
    }

    /// Of liveliness and deadlines that must be finite to match other implementations; None: those are not met.
    pub fn lease_s(&self) -> Option<i32> {
        Some(unsafe { rtm_dds_lease_s(*self.raw()) }).filter(|seconds| *seconds > 0)
    }
    /// None: the transport is the vendor's own choice.
    pub fn interface(&self) -> Option<(String, String)> {
        let dds = self.raw();
        let (name, address) =
            unsafe { (text(rtm_dds_interface_name(*dds)), text(rtm_dds_interface_address(*dds))) };
        (!name.is_empty()).then_some((name, address))
    }
    pub fn domain(&self) -> i32 {
        unsafe { rtm_dds_domain(*self.raw()) as i32 }
    }
    pub fn listener(&self) -> bool {
        unsafe { rtm_dds_listener(*self.raw()) != 0 }
    }
    pub fn topic_name(&self, topic: &str) -> String {
        unsafe { text(rtm_dds_topic_name(*self.raw(), c_string(topic).as_ptr())) }
    }
    /// Sets what option threads asks for, of the threads that are there.
    pub fn enforce_threads(&self) -> Result<(), SetupError> {
        SetupError::check(|error| unsafe { rtm_dds_enforce_threads(*self.raw(), error) })
    }

    pub fn describe(&self, ends: &[EndFacts], other_participants: usize, sink: &mut Sink) {
        let dds = self.raw();
        for end in ends {
            unsafe { rtm_dds_add_end(*dds, c_string(&end.name).as_ptr()) };
            for (policy, value) in &end.policies {
                let (policy, value) = (c_string(policy), c_string(value));
                unsafe { rtm_dds_add_policy(*dds, policy.as_ptr(), value.as_ptr()) };
            }
            unsafe { rtm_dds_add_matches(*dds, end.matched, end.incompatible_policy) };
        }
        unsafe { rtm_dds_describe(*dds, other_participants as c_int, sink.as_raw()) };
    }

    fn raw(&self) -> std::sync::MutexGuard<'_, *mut rtm_dds> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        unsafe { rtm_dds_close(*self.raw()) }
    }
}

fn text(pointer: *const c_char) -> String {
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

fn c_string(text: &str) -> CString {
    CString::new(text).expect("no text of ours has a NUL")
}
