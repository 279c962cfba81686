//! The zenoh adapter. A process has one session; what is received goes through zenoh's own channels to the
//! measured thread, or is called back on zenoh's.

mod inbox;
mod matches;
mod services;
mod settings;

use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use std::time::Instant;

use rtmeter_adapter::{
    Adapter, Dispatches, End, Interrupted, Matches, Measurement, Message, OnMatch, OnMessage, OnReply,
    Publisher, Receive, Refused, Reliability, Role, Run, Services, SetupError, Sink, Topics, pinned_version,
};
use zenoh::handlers::{Callback, FifoChannelHandler};
use zenoh::liveliness::LivelinessToken;
use zenoh::qos::CongestionControl;
use zenoh::query::{Querier, Query, Reply};
use zenoh::sample::Sample;
use zenoh::{Session, Wait};

use inbox::{Inbox, OwnQueue, Received, Wakeup, framed, unframed};
use services::{Answers, Caller, hear};
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
        self.publisher.put(framed(message)).wait().map_err(|_| Refused::Call)
    }
}

struct Zenoh {
    settings: Settings,
    role: Role,
    talks: bool,
    listens: bool,
    reliability: Reliability,
    depth: usize,
    prefix: String,
    session: Session,
    router: Option<Session>,
    writers: Vec<Writer>,
    querier: Option<Arc<Querier<'static>>>,
    inboxes: Vec<Box<dyn Received>>,
    /// Whether ends tell the others of themselves.
    watched: bool,
    tokens: Vec<LivelinessToken>,
    own: HashMap<String, OwnQueue>,
    wakeup: Arc<Wakeup>,
    /// Whether callbacks may still come; held while one runs.
    open: Arc<RwLock<bool>>,
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

    /// What is called on zenoh's thread: the core, as z_pong has it, or what fills a channel; and that
    /// channel, where it makes the sender wait.
    fn received<T: Clone + Send + 'static>(
        &mut self,
        call_back: impl Fn(T) + Send + Sync + 'static,
    ) -> (Callback<T>, Option<FifoChannelHandler<T>>) {
        if self.listens {
            let open = self.open.clone();
            let call = Callback::from(move |one: T| {
                if *open.read().expect("nothing panics while it holds the lock") {
                    call_back(one);
                }
            });
            return (call, None);
        }
        let (inbox, put) = Inbox::new(self.reliability, self.depth, call_back);
        let queue = inbox.queue();
        (self.waking(inbox, put), queue)
    }

    /// What is put into the inbox, and ends a wait.
    fn waking<T: Send + 'static>(&mut self, inbox: Inbox<T>, put: Callback<T>) -> Callback<T>
    where
        Inbox<T>: Received,
    {
        self.inboxes.push(Box::new(inbox));
        let wakeup = self.wakeup.clone();
        Callback::from(move |one| {
            put.call(one);
            wakeup.wake();
        })
    }

    /// Of a discovery: once the end is there.
    fn tell_of(&mut self, end: End, topic: &str) -> Result<(), SetupError> {
        if self.watched {
            let made = matches::token(&self.session, &self.key(topic), end);
            self.tokens.push(made.map_err(|error| failed("token", topic, &*error))?);
        }
        Ok(())
    }
}

impl Adapter for Zenoh {
    fn describe_static(sink: &mut Sink) {
        sink.put("name", "zenoh").put("version", env!("CARGO_PKG_VERSION_MAJOR"));
        sink.put("middleware", "Eclipse Zenoh").put("wire", "zenoh");
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
        for what in ["wakeup", "roundtrip", "request", "cycle", "chain", "discovery"] {
            sink.put("measures", what);
        }
        sink.put("interfaces", "service");
        for drive in ["sleep_then_spin_some", "poll"] {
            sink.put("drives.cycle", drive);
        }
        for way in ["spin", "spin_once", "listener", "poll"] {
            sink.put("receives.roundtrip", way).put("receives.request", way);
        }
        for way in ["spin_once", "poll"] {
            sink.put("receives.cycle", way);
        }
        sink.put("receives.chain", "spin_once").put("receives.discovery", "spin_once");
        sink.put("matches", "publisher").put("matches", "subscriber");
        for what in ["subscribers", "publishers", "background_nodes"] {
            sink.put("beside", format!("{what} via=router")); // peers reach the server alone
        }
        sink.put("background", "roundtrip").put("background", "request").put("components", "one_thread");
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
        let requests = run.measurement() == Measurement::Request;
        let exchanges = requests || run.measurement() == Measurement::RoundTrip;
        let reliability = if requests { Reliability::Reliable } else { run.reliability() };
        // A ring replaces what is old, as KEEP_LAST does. A queue does not: zenoh's own default holds 256.
        let depth = match (reliability, run.history_depth_asked()) {
            (Reliability::Reliable, None) => 256,
            (Reliability::Reliable, Some(asked)) => asked,
            (Reliability::BestEffort, _) => run.history_depth(),
        };
        Ok(Self {
            settings,
            role: run.role(),
            talks: exchanges
                || matches!(
                    run.measurement(),
                    Measurement::Cycle | Measurement::Chain | Measurement::Discovery
                ),
            listens: exchanges && run.receive() == Receive::Listener,
            reliability,
            depth: depth as usize,
            prefix: format!("rtmeter/{}", run.session()),
            session,
            router,
            writers: Vec::new(),
            querier: None,
            inboxes: Vec::new(),
            watched: false,
            tokens: Vec::new(),
            own: HashMap::new(),
            wakeup: Arc::default(),
            open: Arc::new(RwLock::new(true)),
        })
    }

    fn describe(&self, sink: &mut Sink) {
        if !self.talks {
            return;
        }
        self.settings.describe(self.role, sink);
        let of_publisher = self
            .writers
            .first()
            .map(|Writer { publisher, .. }| (publisher.congestion_control(), publisher.priority()));
        let of_querier = self.querier.as_ref().map(|one| (one.congestion_control(), one.priority()));
        if let Some((control, priority)) = of_publisher.or(of_querier) {
            let blocks = control == CongestionControl::Block;
            sink.put("qos.reliability", if blocks { "reliable" } else { "best_effort" });
            sink.put("qos.congestion_control", if blocks { "block" } else { "drop" });
            sink.put("qos.priority", format!("{priority:?}"));
        }
        if self.listens {
            sink.put("qos.history", "none");
        } else {
            let history =
                if self.reliability == Reliability::Reliable { "wait_for_room" } else { "keep_last" };
            sink.put("qos.history", history).put("qos.depth", self.depth.to_string());
        }
        if let Some(place) = self.settings.place(self.role) {
            let info = self.session.info();
            let (peers, routers) = (info.peers_zid().wait().count(), info.routers_zid().wait().count());
            let words = format!("{place}: found {peers} peers and {routers} routers");
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
        self.tell_of(End::Publisher, topic)?;
        Ok(writer)
    }

    fn create_subscriber(
        &mut self,
        _node: usize,
        topic: &str,
        on_message: OnMessage,
    ) -> Result<(), SetupError> {
        let (on_sample, queue) = self.received(move |sample: Sample| {
            unframed(sample.payload(), |sequence, payload| on_message.call(sequence, payload));
        });
        if let Some(queue) = queue {
            self.own.entry(topic.into()).or_default().set(queue);
        }
        let made = self.session.declare_subscriber(self.key(topic)).with(on_sample).background().wait();
        made.map_err(|error| failed("topic", topic, &error))?;
        self.tell_of(End::Subscriber, topic)
    }
}

impl Matches for Zenoh {
    fn watch(&mut self, _node: usize, on_match: OnMatch) -> Result<(), SetupError> {
        let (inbox, put) = matches::inbox(&self.session, on_match);
        let told = self.waking(inbox, put);
        let ends = format!("{}/*/*/*", self.prefix);
        let made = self.session.liveliness().declare_subscriber(ends.as_str()).history(true).with(told);
        made.background().wait().map_err(|error| failed("liveliness", &ends, &error))?;
        self.watched = true;
        Ok(())
    }
}

impl Services for Zenoh {
    type Client = Caller;
    type Server = Answers;

    fn create_client(&mut self, _: usize, service: &str, on_reply: OnReply) -> Result<Caller, SetupError> {
        let (heard, _) = self.received(move |reply: Reply| hear(&on_reply, &reply));
        let made = self.session.declare_querier(self.key(service)).express(self.settings.express);
        let made = made.consolidation(self.settings.consolidation).wait();
        let querier = Arc::new(made.map_err(|error| failed("service", service, &error))?);
        self.querier = Some(querier.clone());
        Ok(Caller { querier, heard })
    }

    fn create_server(
        &mut self,
        _: usize,
        service: &str,
        on_request: OnMessage,
    ) -> Result<Answers, SetupError> {
        let answers = Answers::default();
        let asked = answers.clone();
        let (on_query, _) = self.received(move |query: Query| asked.ask(&on_request, query));
        let made = self.session.declare_queryable(self.key(service)).with(on_query).background().wait();
        made.map_err(|error| failed("service", service, &error)).map(|()| answers)
    }
}

impl Dispatches for Zenoh {
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

    fn dispatch_ready(&self) -> Result<(), Refused> {
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
