//! The zenoh adapter. A process has one session; what is received goes through zenoh's own channels to the
//! measured thread, or is called back on zenoh's.

mod inbox;
mod settings;

use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use rtmeter_adapter::{
    Adapter, Interrupted, Measurement, Message, OnMessage, Polls, Publisher, Receive, Refused, Reliability,
    Role, Run, SetupError, Sink, Spins, Topics, Waits, pinned_version,
};
use zenoh::handlers::Callback;
use zenoh::qos::CongestionControl;
use zenoh::sample::Sample;
use zenoh::{Session, Wait};

use inbox::{Inbox, OwnQueue, Wakeup, call};
use settings::{Settings, failed};

/// A publisher of zenoh's, shared with the adapter, which asks it what is in effect.
#[derive(Clone)]
struct Writer {
    publisher: Arc<zenoh::pubsub::Publisher<'static>>,
    own: OwnQueue,
}

impl Publisher for Writer {
    fn publish(&self, message: &Message) -> Result<(), Refused> {
        if self.own.is_full() {
            return Err(Refused::Call);
        }
        let mut bytes = Vec::with_capacity(size_of::<u64>() + message.data.len());
        bytes.extend_from_slice(&message.sequence.to_le_bytes());
        bytes.extend_from_slice(message.data);
        self.publisher.put(bytes).wait().map_err(|_| Refused::Call)
    }
}

struct Zenoh {
    settings: Settings,
    role: Role,
    topics: bool,
    listens: bool,
    reliability: Reliability,
    depth: usize,
    prefix: String,
    session: Session,
    router: Option<Session>,
    writers: Vec<Writer>,
    inboxes: Vec<Inbox>,
    own: HashMap<String, OwnQueue>,
    wakeup: Arc<Wakeup>,
    /// Whether callbacks may still come; held while one runs.
    open: Arc<RwLock<bool>>,
}

/// None: never.
fn after(timeout_ns: i64) -> Option<Instant> {
    Instant::now().checked_add(Duration::from_nanos(timeout_ns.unsigned_abs()))
}

impl Zenoh {
    fn key(&self, topic: &str) -> String {
        format!("{}/{topic}", self.prefix)
    }

    fn take_all(&self) -> Result<usize, Refused> {
        let mut taken = 0;
        for inbox in &self.inboxes {
            taken += inbox.take_all()?;
        }
        Ok(taken)
    }

    /// Waits for messages and calls back for what there is. False if it was interrupted, or came to its end
    /// without any. Measured path.
    fn dispatch(&self, until: Option<Instant>) -> Result<bool, Refused> {
        loop {
            if self.take_all()? > 0 {
                return Ok(!self.wakeup.take_interruption());
            }
            if !self.wakeup.wait(until) {
                return Ok(false);
            }
        }
    }

    /// What is called on zenoh's thread: the core, as z_pong has it, or what fills a channel.
    fn on_sample(&mut self, topic: &str, on_message: OnMessage) -> Callback<Sample> {
        if self.listens {
            let open = self.open.clone();
            return Callback::from(move |sample: Sample| {
                if *open.read().expect("nothing panics while it holds the lock") {
                    call(&on_message, &sample);
                }
            });
        }
        let (inbox, put) = Inbox::new(self.reliability, self.depth, on_message);
        if let Some(queue) = inbox.queue() {
            self.own.entry(topic.into()).or_default().set(queue);
        }
        self.inboxes.push(inbox);
        let wakeup = self.wakeup.clone();
        Callback::from(move |sample| {
            put.call(sample);
            wakeup.wake();
        })
    }
}

impl Adapter for Zenoh {
    fn describe_static(sink: &mut Sink) {
        sink.put("name", "zenoh").put("version", env!("CARGO_PKG_VERSION_MAJOR"));
        sink.put("middleware", "Eclipse Zenoh");
        sink.put("middleware_version", pinned_version(include_str!("../Cargo.lock"), "zenoh"));
        for (threads, what) in [
            ("rx-*", "receive, and call back"),
            ("tx-*", "send"),
            ("acc-*", "accept connections"),
            ("net-*", "look after connections and routes"),
            ("app-*", "the session's own tasks"),
        ] {
            sink.put("brings", format!("{threads}: {what}"));
        }
        for what in ["wakeup", "roundtrip", "cycle"] {
            sink.put("measures", what);
        }
        for drive in ["sleep_then_spin_some", "poll"] {
            sink.put("drives.cycle", drive);
        }
        for way in ["spin", "spin_once", "listener", "poll"] {
            sink.put("receives.roundtrip", way);
        }
        for way in ["spin_once", "poll"] {
            sink.put("receives.cycle", way);
        }
        sink.put("background", "roundtrip").put("components", "one_thread");
        sink.put("same_host.transport", "unixsock-stream");
        for place in ["same_node", "same_process"] {
            sink.put("second_topic", place);
        }
        settings::describe_static(sink);
    }

    fn start(run: &Run) -> Result<Self, SetupError> {
        zenoh::init_log_from_env_or("error");
        let mut settings = Settings::of(run)?;
        let (session, router) = settings.open(run)?;
        // A ring replaces what is old, as KEEP_LAST does. A queue does not: zenoh's own default holds 256.
        let depth = match (run.reliability(), run.history_depth_asked()) {
            (Reliability::Reliable, None) => 256,
            (Reliability::Reliable, Some(asked)) => asked,
            (Reliability::BestEffort, _) => run.history_depth(),
        };
        Ok(Self {
            settings,
            role: run.role(),
            topics: matches!(run.measurement(), Measurement::RoundTrip | Measurement::Cycle),
            listens: run.measurement() == Measurement::RoundTrip && run.receive() == Receive::Listener,
            reliability: run.reliability(),
            depth: depth as usize,
            prefix: format!("rtmeter/{}", run.session()),
            session,
            router,
            writers: Vec::new(),
            inboxes: Vec::new(),
            own: HashMap::new(),
            wakeup: Arc::default(),
            open: Arc::new(RwLock::new(true)),
        })
    }

    fn describe(&self, sink: &mut Sink) {
        if !self.topics {
            return;
        }
        self.settings.describe(self.role, sink);
        if let Some(Writer { publisher, .. }) = self.writers.first() {
            let blocks = publisher.congestion_control() == CongestionControl::Block;
            sink.put("qos.reliability", if blocks { "reliable" } else { "best_effort" });
            sink.put("qos.congestion_control", if blocks { "block" } else { "drop" });
            sink.put("qos.priority", format!("{:?}", publisher.priority()));
        }
        if self.listens {
            sink.put("qos.history", "none");
        } else {
            let history =
                if self.reliability == Reliability::Reliable { "wait_for_room" } else { "keep_last" };
            sink.put("qos.history", history).put("qos.depth", self.depth.to_string());
        }
        if self.role != Role::Single {
            let info = self.session.info();
            let (peers, routers) = (info.peers_zid().wait().count(), info.routers_zid().wait().count());
            let at = &self.settings.endpoint;
            let words = format!("no scouting, at {at} alone: found {peers} peers and {routers} routers");
            sink.put("discovery", words).put("chosen", "discovery");
        }
    }
}

impl Topics for Zenoh {
    type Publisher = Writer;

    fn create_publisher(&mut self, _node: usize, topic: &str) -> Result<Writer, SetupError> {
        let congestion_control = match self.reliability {
            Reliability::BestEffort => CongestionControl::Drop,
            Reliability::Reliable => CongestionControl::Block,
        };
        let made = self.session.declare_publisher(self.key(topic));
        let made = made.congestion_control(congestion_control).express(self.settings.express).wait();
        let publisher = Arc::new(made.map_err(|error| failed("topic", topic, &error))?);
        let writer = Writer { publisher, own: self.own.entry(topic.into()).or_default().clone() };
        self.writers.push(writer.clone());
        Ok(writer)
    }

    fn create_subscriber(
        &mut self,
        _node: usize,
        topic: &str,
        on_message: OnMessage,
    ) -> Result<(), SetupError> {
        let on_sample = self.on_sample(topic, on_message);
        let made = self.session.declare_subscriber(self.key(topic)).with(on_sample).background().wait();
        made.map_err(|error| failed("topic", topic, &error))
    }
}

impl Spins for Zenoh {
    fn spin(&self, timeout_ns: i64) -> Result<(), Refused> {
        let until = after(timeout_ns);
        while self.dispatch(until)? {}
        Ok(())
    }
}

impl Waits for Zenoh {
    fn wait(&self, timeout_ns: i64) -> Result<(), Refused> {
        self.dispatch(after(timeout_ns)).map(|_| ())
    }
}

impl Polls for Zenoh {
    fn spin_some(&self) -> Result<(), Refused> {
        self.take_all().map(|_| ())
    }
}

impl Interrupted for Zenoh {
    fn interrupt(&self) {
        self.wakeup.interrupt();
    }
}

impl Drop for Zenoh {
    fn drop(&mut self) {
        *self.open.write().expect("nothing panics while it holds the lock") = false;
        for session in std::iter::once(&self.session).chain(&self.router) {
            let _ = session.close().wait();
        }
        if let (Role::Server, Some(file)) = (self.role, self.settings.socket_file()) {
            for left in [file.to_string(), format!("{file}.lock")] {
                let _ = std::fs::remove_file(left);
            }
        }
    }
}

rtmeter_adapter::export!(Zenoh);
