//! Records how punctual a program's own loop is, for `rtmeter verdict` and its kind: librtmeter for Rust.
//!
//! ```no_run
//! use std::time::Duration;
//! let mut loop_ = rtmeter_loop::Loop::open("arm", Duration::from_millis(1), Default::default())?;
//! for _ in 0..1000 {
//!     loop_.sleep();
//!     // the work
//!     loop_.done();
//! }
//! loop_.close()?;
//! # Ok::<(), rtmeter_loop::Error>(())
//! ```

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::{NonNull, null, null_mut};
use std::time::Duration;

/// What is wrong, and what helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// A late or skipped release: its k, the release and the stamp, in ns of CLOCK_MONOTONIC.
pub type OnLate = Box<dyn FnMut(i64, i64, i64) + Send>;

/// `Options::default()` has the defaults of rtm_loop_options. Times that are given are longer than zero.
#[derive(Default)]
pub struct Options {
    /// FOLDER/NAME/<start>.loop is written; "results" by default.
    pub folder: Option<String>,
    /// Of the end of the work, from its release; the period by default.
    pub deadline: Option<Duration>,
    /// Of releases that may miss it; none by default.
    pub miss_ratio: f64,
    pub warm_up: Option<Duration>,
    /// How long the last releases are kept whole.
    pub whole: Option<Duration>,
    pub late_bytes: i64,
    pub catch_up: bool,
    pub trace_marker: bool,
    pub break_trace: bool,
    /// Called by the loop's thread right after the stamp. A panic in it ends the process.
    pub on_late: Option<OnLate>,
}

#[repr(C)]
struct RawOptions {
    size: usize,
    folder: *const c_char,
    deadline_ns: i64,
    miss_ratio: f64,
    warm_up_ns: i64,
    whole_ns: i64,
    late_bytes: i64,
    flags: u32,
    on_late: Option<extern "C" fn(*mut c_void, i64, i64, i64)>,
    context: *mut c_void,
}

#[repr(C)]
struct RawLoop {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn rtm_loop_open(
        name: *const c_char,
        period_ns: i64,
        options: *const RawOptions,
        error: *mut c_char,
        error_bytes: usize,
    ) -> *mut RawLoop;
    fn rtm_loop_sleep(loop_: *mut RawLoop) -> i64;
    fn rtm_loop_wake(loop_: *mut RawLoop, due_ns: i64);
    fn rtm_loop_done(loop_: *mut RawLoop);
    fn rtm_loop_close(loop_: *mut RawLoop, error: *mut c_char, error_bytes: usize) -> c_int;
}

const DUE_UNKNOWN: i64 = i64::MIN;
const ERROR_BYTES: usize = 1024;

extern "C" fn call(context: *mut c_void, k: i64, release_ns: i64, stamp_ns: i64) {
    // SAFETY: the box lives as long as the loop, whose thread alone calls.
    let on_late = unsafe { &mut *context.cast::<OnLate>() };
    on_late(k, release_ns, stamp_ns);
}

/// A loop that is recorded. Closes itself when it is dropped. One thread at a time uses it.
pub struct Loop {
    raw: NonNull<RawLoop>,
    on_late: *mut OnLate,
    _not_sync: PhantomData<*mut ()>,
}

// SAFETY: the library asks for one thread at a time, not for a certain one.
unsafe impl Send for Loop {}

impl Loop {
    /// Begins to record.
    pub fn open(name: &str, period: Duration, options: Options) -> Result<Self, Error> {
        let text =
            |what: &str| CString::new(what).map_err(|_| Error(format!("{what:?} has a NUL byte in it")));
        let (name, folder) = (text(name)?, options.folder.as_deref().map(text).transpose()?);
        let ns = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let given = |field: &str, time: Option<Duration>| match time {
            Some(Duration::ZERO) => {
                Err(Error(format!("{field} 0ns: must be longer than zero; leave it out for the default")))
            }
            time => Ok(time.map_or(0, ns)), // which the library takes for what was not given
        };
        let deadline_ns = given("deadline", options.deadline)?;
        let warm_up_ns = given("warm_up", options.warm_up)?;
        let whole_ns = given("whole", options.whole)?;
        let on_late = options.on_late.map_or(null_mut(), |f| Box::into_raw(Box::new(f)));
        let raw_options = RawOptions {
            size: size_of::<RawOptions>(),
            folder: folder.as_ref().map_or(null(), |f| f.as_ptr()),
            deadline_ns,
            miss_ratio: options.miss_ratio,
            warm_up_ns,
            whole_ns,
            late_bytes: options.late_bytes,
            flags: u32::from(options.catch_up)
                | u32::from(options.trace_marker) << 1
                | u32::from(options.break_trace) << 2,
            on_late: if on_late.is_null() { None } else { Some(call) },
            context: on_late.cast(),
        };
        let mut error = [0 as c_char; ERROR_BYTES];
        // SAFETY: all pointers are good until it returns, and on_late until close.
        let raw = unsafe {
            rtm_loop_open(name.as_ptr(), ns(period), &raw_options, error.as_mut_ptr(), ERROR_BYTES)
        };
        match NonNull::new(raw) {
            Some(raw) => Ok(Self { raw, on_late, _not_sync: PhantomData }),
            None => {
                free(on_late);
                Err(said(&error))
            }
        }
    }

    /// Sleeps until the next release, stamps the wake-up, and returns the release in ns.
    pub fn sleep(&mut self) -> i64 {
        // SAFETY: open, here and below.
        unsafe { rtm_loop_sleep(self.raw.as_ptr()) }
    }

    /// Stamps a wake-up from a sleep until `due_ns` of CLOCK_MONOTONIC, if that is known.
    pub fn wake(&mut self, due_ns: Option<i64>) {
        unsafe { rtm_loop_wake(self.raw.as_ptr(), due_ns.unwrap_or(DUE_UNKNOWN)) }
    }

    /// Stamps the end of the work.
    pub fn done(&mut self) {
        unsafe { rtm_loop_done(self.raw.as_ptr()) }
    }

    /// Writes what is left, and says what could not be written.
    pub fn close(self) -> Result<(), Error> {
        let mut this = std::mem::ManuallyDrop::new(self);
        this.end()
    }

    fn end(&mut self) -> Result<(), Error> {
        let mut error = [0 as c_char; ERROR_BYTES];
        let code = unsafe { rtm_loop_close(self.raw.as_ptr(), error.as_mut_ptr(), ERROR_BYTES) };
        free(self.on_late);
        if code == 0 { Ok(()) } else { Err(said(&error)) }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = self.end(); // close() tells
    }
}

fn free(on_late: *mut OnLate) {
    if !on_late.is_null() {
        // SAFETY: made by Box::into_raw in open(), and nobody calls it any more.
        drop(unsafe { Box::from_raw(on_late) });
    }
}

fn said(error: &[c_char; ERROR_BYTES]) -> Error {
    // SAFETY: the library ends it with a NUL.
    Error(unsafe { CStr::from_ptr(error.as_ptr()) }.to_string_lossy().into_owned())
}
