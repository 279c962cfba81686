//! The C table of an [`Adapter`]: every call across the border, with panics held back; what it lacks is null.

use core::ffi::{c_char, c_int, c_void};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::contract::{
    self, RTM_ADAPTER_ABI, RTM_BROKEN, rtm_adapter, rtm_enum, rtm_error, rtm_fail, rtm_message, rtm_on_match,
    rtm_on_message, rtm_on_reply, rtm_run, rtm_sink, rtm_timer_spec, rtm_timer_traits,
};
use crate::run::{c_string, text};
use crate::{
    Adapter, Client, Interrupted, Matches, Message, OnMatch, OnMessage, OnReply, Polls, Publisher, Refused,
    Reply, Run, Server, Services, SetupError, Sink, Spins, Timer, TimerSpec, Timers, Topics, Waits,
};

/// The adapter and what it made. Handles that cross the border are addresses of boxes: they stay.
struct Started<A: Adapter> {
    adapter: A, // dropped first: the middleware's shutdown
    nodes: Vec<Box<Node<A>>>,
    made: Vec<Box<dyn Any>>,
}

impl<A: Adapter> Started<A> {
    /// Its handle.
    fn keep<T: 'static>(&mut self, made: T) -> *mut c_void {
        let mut kept = Box::new(made);
        let handle = (&raw mut *kept).cast();
        self.made.push(kept);
        handle
    }
}

struct Node<A: Adapter> {
    started: *mut Started<A>,
    number: usize,
}

/// The methods of the table that an adapter has, by the traits that it implements: an inherent constant comes
/// before one of [`Lacks`], and is there only with its trait.
#[doc(hidden)]
pub struct Methods<A>(core::marker::PhantomData<A>);

macro_rules! methods {
    ($($trait:ident { $($name:ident: $type:ty = $function:expr;)* })*) => {
        #[doc(hidden)]
        pub trait Lacks {
            $($(const $name: Option<$type> = None;)*)*
        }
        impl<A> Lacks for Methods<A> {}
        $(#[allow(missing_docs)]
        impl<A: $trait> Methods<A> {
            $(pub const $name: Option<$type> = Some($function);)*
        })*
    };
}

methods! {
    Timers {
        CREATE_TIMER: contract::rtm_create_timer = create_timer::<A>;
        ARM: unsafe extern "C" fn(*mut c_void, i64) -> c_int = arm::<A>;
    }
    Topics {
        CREATE_PUBLISHER: contract::rtm_create_publisher = create_publisher::<A>;
        CREATE_SUBSCRIBER: contract::rtm_create_subscriber = create_subscriber::<A>;
        PUBLISH: contract::rtm_publish = publish::<A>;
    }
    Matches { WATCH: contract::rtm_watch = watch::<A>; }
    Services {
        CREATE_CLIENT: contract::rtm_create_client = create_client::<A>;
        CREATE_SERVER: contract::rtm_create_subscriber = create_server::<A>;
        CALL: contract::rtm_publish = call::<A>;
        REPLY: unsafe extern "C" fn(*mut c_void, rtm_enum, *const rtm_message) -> c_int = reply::<A>;
    }
    Spins { SPIN: contract::rtm_spin = spin::<A>; }
    Waits { WAIT: contract::rtm_spin = wait::<A>; }
    Polls { SPIN_SOME: unsafe extern "C" fn(*mut c_void) -> c_int = spin_some::<A>; }
    Interrupted { INTERRUPT: unsafe extern "C" fn(*mut c_void) = interrupt::<A>; }
}

/// The part of the table that every adapter has.
#[doc(hidden)]
pub const fn table<A: Adapter>() -> rtm_adapter {
    rtm_adapter {
        abi: RTM_ADAPTER_ABI,
        describe: describe::<A>,
        start: start::<A>,
        stop: stop::<A>,
        create_node: create_node::<A>,
        create_timer: None,
        arm: None,
        create_publisher: None,
        create_subscriber: None,
        publish: None,
        spin: None,
        wait: None,
        spin_some: None,
        interrupt: None,
        create_client: None,
        create_server: None,
        call: None,
        reply: None,
        watch: None,
        tell_stamps: None,
    }
}

/// Makes the library's adapter the one that the probe's `main` runs.
#[macro_export]
macro_rules! export {
    ($adapter:ty) => {
        #[unsafe(no_mangle)]
        static rtm_rust_adapter: $crate::contract::rtm_adapter = {
            #[allow(unused_imports)]
            use $crate::Lacks;
            type Has = $crate::Methods<$adapter>;
            $crate::contract::rtm_adapter {
                create_timer: Has::CREATE_TIMER,
                arm: Has::ARM,
                create_publisher: Has::CREATE_PUBLISHER,
                create_subscriber: Has::CREATE_SUBSCRIBER,
                publish: Has::PUBLISH,
                spin: Has::SPIN,
                wait: Has::WAIT,
                spin_some: Has::SPIN_SOME,
                interrupt: Has::INTERRUPT,
                create_client: Has::CREATE_CLIENT,
                create_server: Has::CREATE_SERVER,
                call: Has::CALL,
                reply: Has::REPLY,
                watch: Has::WATCH,
                ..$crate::table::<$adapter>()
            }
        };
    };
}

/// Setup: a failure, or a panic, fills *error.
fn set_up(error: *mut rtm_error, body: impl FnOnce() -> Result<(), SetupError>) -> c_int {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return 0,
        Ok(Err(failure)) => failure,
        Err(panic) => SetupError::new(
            "adapter",
            "",
            format!("the adapter or its middleware panicked: {}", words_of(&*panic)),
            "see the messages in the cell's probe.stderr",
        ),
    };
    let [field, value, message, remedy] =
        [failure.field, failure.value, failure.message, failure.remedy].map(|text| c_string(&text));
    unsafe { rtm_fail(error, field.as_ptr(), value.as_ptr(), message.as_ptr(), remedy.as_ptr()) }
}

/// What a panic said.
pub fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

/// Measured path: there, failure is a value.
fn measured(body: impl FnOnce() -> Result<(), Refused>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(Refused::Broken)) => RTM_BROKEN,
        Ok(Err(Refused::Call)) | Err(_) => -1,
    }
}

// The core passes what the functions below gave it, and null nowhere but as describe's self.

unsafe extern "C" fn describe<A: Adapter>(this: *const c_void, sink: *mut rtm_sink) {
    let body = || {
        let mut sink = Sink(sink);
        A::describe_static(&mut sink);
        if let Some(started) = unsafe { this.cast::<Started<A>>().as_ref() } {
            started.adapter.describe(&mut sink);
        }
    };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        Sink(sink).put("describe_failed.message", words_of(&*panic));
    }
}

unsafe extern "C" fn start<A: Adapter>(
    run: *const rtm_run,
    this: *mut *mut c_void,
    error: *mut rtm_error,
) -> c_int {
    set_up(error, || {
        let adapter = A::start(&Run(unsafe { &*run }))?;
        let started = Started { adapter, nodes: Vec::new(), made: Vec::new() };
        unsafe { *this = Box::into_raw(Box::new(started)).cast() };
        Ok(())
    })
}

unsafe extern "C" fn stop<A: Adapter>(this: *mut c_void) {
    let started = unsafe { Box::from_raw(this.cast::<Started<A>>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(started)));
}

unsafe extern "C" fn create_node<A: Adapter>(
    this: *mut c_void,
    name: *const c_char,
    node: *mut *mut c_void,
    error: *mut rtm_error,
) -> c_int {
    set_up(error, || {
        let this = this.cast::<Started<A>>();
        let started = unsafe { &mut *this };
        let number = started.adapter.create_node(&text(name))?;
        started.nodes.push(Box::new(Node { started: this, number }));
        unsafe {
            *node = started.nodes.last_mut().map_or(core::ptr::null_mut(), |last| (&raw mut **last).cast())
        };
        Ok(())
    })
}

unsafe extern "C" fn create_timer<A: Timers>(
    node: *mut c_void,
    spec: *const rtm_timer_spec,
    timer: *mut *mut c_void,
    traits: *mut rtm_timer_traits,
    error: *mut rtm_error,
) -> c_int {
    set_up(error, || {
        let (started, number) = unsafe { owner_of::<A>(node) };
        let (made, its) = started.adapter.create_timer(number, TimerSpec::from_header(unsafe { &*spec }))?;
        unsafe { *timer = started.keep(made) };
        unsafe { *traits = its.to_header() };
        Ok(())
    })
}

unsafe extern "C" fn create_publisher<A: Topics>(
    node: *mut c_void,
    topic: *const c_char,
    publisher: *mut *mut c_void,
    error: *mut rtm_error,
) -> c_int {
    set_up(error, || {
        let (started, number) = unsafe { owner_of::<A>(node) };
        let made = started.adapter.create_publisher(number, &text(topic))?;
        unsafe { *publisher = started.keep(made) };
        Ok(())
    })
}

unsafe extern "C" fn create_subscriber<A: Topics>(
    node: *mut c_void,
    topic: *const c_char,
    on_message: rtm_on_message,
    user: *mut c_void,
    subscriber: *mut *mut c_void,
    error: *mut rtm_error,
) -> c_int {
    set_up(error, || {
        let (started, number) = unsafe { owner_of::<A>(node) };
        let on_message = OnMessage { function: on_message, user };
        started.adapter.create_subscriber(number, &text(topic), on_message)?;
        unsafe { *subscriber = node }; // nothing is ever asked of it
        Ok(())
    })
}

unsafe extern "C" fn create_client<A: Services>(
    node: *mut c_void,
    service: *const c_char,
    on_reply: rtm_on_reply,
    user: *mut c_void,
    client: *mut *mut c_void,
    error: *mut rtm_error,
) -> c_int {
    set_up(error, || {
        let (started, number) = unsafe { owner_of::<A>(node) };
        let on_reply = OnReply { function: on_reply, user };
        let made = started.adapter.create_client(number, &text(service), on_reply)?;
        unsafe { *client = started.keep(made) };
        Ok(())
    })
}

unsafe extern "C" fn create_server<A: Services>(
    node: *mut c_void,
    service: *const c_char,
    on_request: rtm_on_message,
    user: *mut c_void,
    server: *mut *mut c_void,
    error: *mut rtm_error,
) -> c_int {
    set_up(error, || {
        let (started, number) = unsafe { owner_of::<A>(node) };
        let on_request = OnMessage { function: on_request, user };
        let made = started.adapter.create_server(number, &text(service), on_request)?;
        unsafe { *server = started.keep(made) };
        Ok(())
    })
}

unsafe extern "C" fn watch<A: Matches>(
    node: *mut c_void,
    on_match: rtm_on_match,
    user: *mut c_void,
    error: *mut rtm_error,
) -> c_int {
    set_up(error, || {
        let (started, number) = unsafe { owner_of::<A>(node) };
        started.adapter.watch(number, OnMatch { function: on_match, user })
    })
}

unsafe fn owner_of<'a, A: Adapter>(node: *mut c_void) -> (&'a mut Started<A>, usize) {
    let node = node.cast::<Node<A>>();
    unsafe { (&mut *(*node).started, (*node).number) }
}

unsafe extern "C" fn arm<A: Timers>(timer: *mut c_void, now_ns: i64) -> c_int {
    measured(|| unsafe { &*timer.cast::<A::Timer>() }.arm(now_ns))
}

unsafe extern "C" fn publish<A: Topics>(publisher: *mut c_void, message: *const rtm_message) -> c_int {
    measured(|| {
        let message = unsafe { Message::from_header(&*message) };
        unsafe { &*publisher.cast::<A::Publisher>() }.publish(&message)
    })
}

unsafe extern "C" fn call<A: Services>(client: *mut c_void, request: *const rtm_message) -> c_int {
    measured(|| {
        let request = unsafe { Message::from_header(&*request) };
        unsafe { &*client.cast::<A::Client>() }.call(&request)
    })
}

unsafe extern "C" fn reply<A: Services>(
    server: *mut c_void,
    what: rtm_enum,
    message: *const rtm_message,
) -> c_int {
    measured(|| {
        let message = unsafe { Message::from_header(&*message) };
        unsafe { &*server.cast::<A::Server>() }.reply(Reply::from_header(what), &message)
    })
}

unsafe fn adapter_of<'a, A: Adapter>(this: *mut c_void) -> &'a A {
    unsafe { &(*this.cast::<Started<A>>()).adapter }
}

unsafe extern "C" fn spin<A: Spins>(this: *mut c_void, timeout_ns: i64) -> c_int {
    measured(|| unsafe { adapter_of::<A>(this) }.spin(timeout_ns))
}

unsafe extern "C" fn wait<A: Waits>(this: *mut c_void, timeout_ns: i64) -> c_int {
    measured(|| unsafe { adapter_of::<A>(this) }.wait(timeout_ns))
}

unsafe extern "C" fn spin_some<A: Polls>(this: *mut c_void) -> c_int {
    measured(|| unsafe { adapter_of::<A>(this) }.spin_some())
}

unsafe extern "C" fn interrupt<A: Interrupted>(this: *mut c_void) {
    measured(|| {
        unsafe { adapter_of::<A>(this) }.interrupt();
        Ok(())
    });
}
