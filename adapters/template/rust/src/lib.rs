//! An adapter in Rust to copy; docs/add-a-middleware.md goes through it. What each method has to do stands in
//! core/include/rtmeter/adapter.h; what a middleware cannot do is simply left out: the trait `Timers` here.
//! The middleware is the toy of tiny.rs: put yours in its place.

mod tiny;

use std::sync::Arc;
use std::time::Duration;

use rtmeter_adapter::{
    Adapter, Choice, Interrupted, Message, OnMessage, Polls, Publisher, Refused, Reliability, Run,
    SetupError, Sink, Spins, Topics, Waits,
};

const HISTORY: Choice =
    Choice { key: "history", words: &["keep_last"], about: "as many messages as --history-depth says" };

struct Template {
    depth: u32,
    context: Arc<tiny::Context>,
}

struct Topic {
    name: String,
    context: Arc<tiny::Context>,
}

impl Publisher for Topic {
    // The data are the core's, and valid during the call only.
    fn publish(&self, message: &Message) -> Result<(), Refused> {
        self.context.publish(&self.name, message.sequence, message.data);
        Ok(())
    }
}

/// Timeouts may be as long as `i64::MAX`: never.
fn timeout(timeout_ns: i64) -> Duration {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    DAY.min(Duration::from_nanos(timeout_ns.unsigned_abs()))
}

impl Adapter for Template {
    // What is known before the middleware starts: `rtmeter adapters` shows it. Give the version of the
    // middleware that is really there.
    fn describe_static(sink: &mut Sink) {
        sink.put("name", "rust-template").put("version", "1");
        sink.put("middleware", "tiny").put("middleware_version", "1");
        for what in ["wakeup", "cycle"] {
            sink.put("measures", what);
        }
        for drive in ["sleep_then_spin_some", "poll"] {
            sink.put("drives.cycle", drive);
        }
        sink.put("components", "one_thread");
        HISTORY.describe(sink);
    }

    // The middleware's init. An option is read where it means something; one that nobody reads is refused.
    fn start(run: &Run) -> Result<Self, SetupError> {
        HISTORY.of(run)?;
        if run.reliability() == Reliability::Reliable {
            let why = "where a topic is full its oldest message is dropped";
            return Err(SetupError::new("reliability", "reliable", why, "choose best_effort"));
        }
        let depth = run.history_depth();
        Ok(Self { depth, context: Arc::new(tiny::Context::new(depth as usize)) })
    }

    // What is in effect, quality of service above all. It goes into every result.
    fn describe(&self, sink: &mut Sink) {
        sink.put("qos.reliability", "best_effort")
            .put("qos.history", "keep_last")
            .put("qos.depth", self.depth.to_string());
    }
}

impl Topics for Template {
    type Publisher = Topic;

    fn create_publisher(&mut self, _node: usize, topic: &str) -> Result<Topic, SetupError> {
        Ok(Topic { name: topic.into(), context: self.context.clone() })
    }

    // The callback calls on_message first thing. The sequence number is a field beside the payload.
    fn create_subscriber(
        &mut self,
        _node: usize,
        topic: &str,
        on_message: OnMessage,
    ) -> Result<(), SetupError> {
        self.context.subscribe(topic, move |sequence, data| on_message.call(sequence, data));
        Ok(())
    }
}

impl Spins for Template {
    // Dispatches until interrupt(), or until the timeout has passed: the middleware's own spin.
    fn spin(&self, timeout_ns: i64) -> Result<(), Refused> {
        while self.context.spin_once(timeout(timeout_ns)) {}
        Ok(())
    }
}

impl Waits for Template {
    // Returns after one callback at least.
    fn wait(&self, timeout_ns: i64) -> Result<(), Refused> {
        self.context.spin_once(timeout(timeout_ns));
        Ok(())
    }
}

impl Polls for Template {
    // Dispatches what is ready; never blocks.
    fn spin_some(&self) -> Result<(), Refused> {
        while self.context.spin_once(Duration::ZERO) {}
        Ok(())
    }
}

impl Interrupted for Template {
    // From any thread, and from within a callback.
    fn interrupt(&self) {
        self.context.interrupt();
    }
}

rtmeter_adapter::export!(Template);
