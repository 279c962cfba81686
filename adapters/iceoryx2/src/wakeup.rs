//! Where a process waits for its messages: at one event, or at the events of all topics that it hears.

use std::ptr;
use std::time::Duration;

use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::prelude::*;
use rtmeter_adapter::Refused;

use crate::Variant;

type Guard = WaitSetGuard<'static, 'static, Variant>;

/// A timerfd: a wait set itself counts milliseconds.
#[derive(Debug)]
struct Timer(FileDescriptor);

impl FileDescriptorBased for Timer {
    fn file_descriptor(&self) -> &FileDescriptor {
        &self.0
    }
}
impl SynchronousMultiplexing for Timer {}

impl Timer {
    fn new() -> Option<Self> {
        let made = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK) };
        FileDescriptor::new(made).map(Self)
    }

    /// Comes once the time has passed, and not before; never without one. Measured path.
    fn set(&self, left: Option<Duration>) {
        let left = left.unwrap_or_default();
        let it_value = libc::timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos().into() };
        let it_interval = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let once = libc::itimerspec { it_interval, it_value };
        unsafe { libc::timerfd_settime(self.0.native_handle(), 0, &raw const once, ptr::null_mut()) };
    }
}

/// Until something is to be read there, or the time has passed. A listener's own limit is its socket's, which counts
/// the kernel's ticks, and less than a microsecond as no limit. Measured path.
fn await_readable(descriptor: &FileDescriptor, left: Duration) {
    let left = libc::timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos().into() };
    let fd = unsafe { descriptor.native_handle() };
    let mut watched = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    unsafe { libc::ppoll(&raw mut watched, 1, &raw const left, ptr::null()) }; // what is amiss there, a take tells
}

/// Where there are several listeners.
struct Several {
    wait_set: WaitSet<Variant>,
    timer: Timer,
}

/// Dropped in this order: guards refer to the wait set and to what is attached to it, which stays where it is.
pub struct Wakeup {
    guards: Vec<Guard>,
    _timer: Option<Guard>,
    several: Option<Box<Several>>,
    listeners: Vec<Box<Listener<Variant>>>,
    interrupts: Notifier<Variant>,
}

/// For a guard, which must not outlive it.
unsafe fn kept<T>(attached: &T) -> &'static T {
    unsafe { &*ptr::from_ref(attached) }
}

// A wait set is of one thread: of a process with several listeners that is the measured one, whatever others notify.
unsafe impl Send for Wakeup {}
unsafe impl Sync for Wakeup {}

impl Wakeup {
    /// At one event, whose notifier interrupts.
    pub fn at(listener: Listener<Variant>, interrupts: Notifier<Variant>) -> Self {
        let listeners = vec![Box::new(listener)];
        Self { guards: Vec::new(), _timer: None, several: None, listeners, interrupts }
    }

    /// At one more; what failed, if that did.
    pub fn also_at(&mut self, listener: Listener<Variant>) -> Result<(), String> {
        self.listeners.push(Box::new(listener));
        if self.several.is_none() {
            let wait_set = WaitSetBuilder::new().signal_handling_mode(SignalHandlingMode::Disabled).create();
            let wait_set = wait_set.map_err(|error| error.to_string())?;
            let timer = Timer::new().ok_or("no timerfd can be had")?;
            let several = self.several.insert(Box::new(Several { wait_set, timer }));
            let (wait_set, timer) = unsafe { (kept(&several.wait_set), kept(&several.timer)) }; // in a box
            let made = wait_set.attach_notification(timer);
            self._timer = Some(made.map_err(|error| error.to_string())?);
        }
        let wait_set = &self.several.as_deref().expect("made above").wait_set;
        for listener in &self.listeners[self.guards.len()..] {
            let (wait_set, listener) = unsafe { (kept(wait_set), kept(&**listener)) }; // in boxes
            self.guards.push(wait_set.attach_notification(listener).map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    /// Until somebody notifies, or the time has passed. Measured path.
    pub fn wait(&self, left: Option<Duration>) -> Result<(), Refused> {
        let Some(several) = &self.several else {
            let listener = &self.listeners[0];
            let woken = match left {
                None => listener.blocking_wait(|_| {}),
                Some(left) => {
                    await_readable(listener.file_descriptor(), left);
                    listener.try_wait(|_| {})
                }
            };
            return woken.map(|_| ()).map_err(|_| Refused::Call);
        };
        let heard = |which: WaitSetAttachmentId<Variant>| {
            for (guard, listener) in self.guards.iter().zip(&self.listeners) {
                if which.has_event_from(guard) {
                    let _ = listener.try_wait(|_| {}); // what it was notified of is taken anyway
                }
            }
            CallbackProgression::Continue
        };
        several.timer.set(left);
        let woken = several.wait_set.wait_and_process_once(heard);
        woken.map(|_| ()).map_err(|_| Refused::Call)
    }

    /// Ends a wait, under way or the next.
    pub fn interrupt(&self) {
        let _ = self.interrupts.notify();
    }
}
