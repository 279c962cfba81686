//! The iceoryx2 adapter: publishers and subscribers over shared memory. Whoever waits, waits at an event of
//! iceoryx2's, which senders notify; whoever polls has none, and is notified by nobody.

mod matches;
mod services;
mod topics;
mod wakeup;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use iceoryx2::port::notifier::Notifier;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::{event, publish_subscribe, request_response};
use rtmeter_adapter::{
    Adapter, Dispatches, Interrupted, Matches, Measurement, OnMatch, OnMessage, OnReply, Receive, Refused,
    Reliability, Role, Run, Services, SetupError, Sink, Topics, pinned_version,
};

use matches::Watch;
use topics::{Reader, Writer};
use wakeup::Wakeup;

/// Between processes; what one thread makes, another may use, as `--receive spin` does.
type Variant = ipc_threadsafe::Service;
type Topic = publish_subscribe::PortFactory<Variant, [u8], u64>;
type Service = request_response::PortFactory<Variant, [u8], u64, [u8], u64>;

/// Participants of a discovery, or processes that hear a stage of a chain: iceoryx2's own default is two publishers
/// and eight subscribers.
const MOST: usize = 128;
/// Notifiers of a participant or process: of its publisher, of its subscriber, and the one that interrupts.
const NOTIFIERS: usize = 3;
/// Of messages that come while others are taken.
const BURST: usize = 1024;

/// What the measured thread receives.
trait Received: Sync {
    /// Calls back for what there is; how many there were. Measured path.
    fn take_all(&self) -> Result<usize, Refused>;
}

/// Tells the process that receives; None where it polls. Measured path.
fn notify(end: Option<&Notifier<Variant>>) -> Result<(), Refused> {
    end.map_or(Ok(()), |end| end.notify().map(|_| ()).map_err(|_| Refused::Call))
}

struct Iceoryx2 {
    role: Role,
    talks: bool,
    polls: bool,
    chains: bool,
    meets: bool,
    /// Ends of a topic, where there may be more than iceoryx2's own defaults.
    most: Option<usize>,
    reliability: Reliability,
    depth: usize,
    payload_bytes: usize,
    prefix: String,
    node: Node<Variant>,
    wakeup: Option<Wakeup>,
    /// The events at which it waits, by name.
    listens_at: Vec<String>,
    inboxes: Vec<Box<dyn Received>>,
    watch: Option<Watch>,
    /// What the ends' quality of service is read back from, by topic.
    made: Mutex<Vec<(String, Topic)>>,
    service: Mutex<Option<Service>>,
    interrupted: AtomicBool,
}

fn failed(field: &str, value: &str, error: &dyn std::fmt::Display) -> SetupError {
    let remedy = "see its messages in the cell's probe.stderr; IOX2_LOG_LEVEL=debug has more of them";
    SetupError::new(field, value, format!("iceoryx2: {error}"), remedy)
}

impl Iceoryx2 {
    fn name(&self, what: &str) -> Result<ServiceName, SetupError> {
        let name = format!("{}/{what}", self.prefix);
        ServiceName::new(&name).map_err(|error| failed("session", &name, &error))
    }

    /// The event at which processes wait for their messages.
    fn event(&self, name: &str) -> Result<event::PortFactory<Variant>, SetupError> {
        let name = self.name(name)?;
        let mut event = self.node.service_builder(&name).event();
        if let Some(most) = self.most {
            event = event.max_nodes(most).max_listeners(most).max_notifiers(NOTIFIERS * most);
        }
        let event = if self.meets { matches::telling(event) } else { event };
        event.open_or_create().map_err(|e| failed("event", &name, &e))
    }

    /// The name of the event at which those wait who hear what this process sends of the topic, or in a further
    /// process what it hears.
    fn event_of_hearers<'a>(&self, topic: &'a str) -> &'a str {
        match self.role {
            _ if self.chains => topic,
            Role::Client | Role::Beside => "Server",
            Role::Server => "Client",
            Role::Single => "Single",
        }
    }

    /// Waits at that event, too; once, however many subscribers there are: each listener costs who notifies a call.
    fn listen(&mut self, at: &str) -> Result<(), SetupError> {
        if self.listens_at.iter().any(|name| name == at) {
            return Ok(());
        }
        self.listens_at.push(at.into());
        let event = self.event(at)?;
        let listener = event.listener_builder().create().map_err(|e| failed("listener", at, &e))?;
        if let Some(wakeup) = &mut self.wakeup {
            return wakeup.also_at(listener).map_err(|e| failed("wait set", at, &e));
        }
        let interrupts = event.notifier_builder().create().map_err(|e| failed("notifier", at, &e))?;
        self.wakeup = Some(Wakeup::at(listener, interrupts));
        Ok(())
    }

    /// Opened once for all of a process's ends: a service that is left by its last is gone.
    fn topic(&self, topic: &str) -> Result<(), SetupError> {
        let mut made = self.made.lock().expect("nothing panics while it holds the lock");
        if made.iter().any(|(name, _)| name == topic) {
            return Ok(());
        }
        let name = self.name(topic)?;
        let service = self.node.service_builder(&name).publish_subscribe::<[u8]>().user_header::<u64>();
        let mut service = service
            .enable_safe_overflow(self.reliability == Reliability::BestEffort)
            .subscriber_max_buffer_size(self.depth)
            .history_size(0);
        if let Some(most) = self.most {
            service = service.max_nodes(most).max_publishers(most).max_subscribers(most);
        }
        let service = service.open_or_create();
        made.push((topic.into(), service.map_err(|error| failed("topic", topic, &error))?));
        Ok(())
    }

    /// Something of the topic's service, which is open.
    fn of_topic<T>(&self, topic: &str, what: impl FnOnce(&Topic) -> T) -> T {
        let made = self.made.lock().expect("nothing panics while it holds the lock");
        what(&made.iter().find(|(name, _)| name == topic).expect("opened before").1)
    }

    /// What tells the other process; None where it polls.
    fn waker(&self, of: &str) -> Result<Option<Notifier<Variant>>, SetupError> {
        if self.polls {
            return Ok(None);
        }
        let made = self.event(self.event_of_hearers(of))?.notifier_builder().create();
        made.map(Some).map_err(|error| failed("notifier", of, &error))
    }

    /// Something of the service, which is opened if it is not.
    fn of_service<T>(&self, name: &str, what: impl FnOnce(&Service) -> T) -> Result<T, SetupError> {
        let full = self.name(name)?;
        let service = self.node.service_builder(&full).request_response::<[u8], [u8]>();
        let service = service.request_user_header::<u64>().response_user_header::<u64>();
        let service = service.max_active_requests_per_client(services::MOST).open_or_create();
        let service = service.map_err(|error| failed("service", name, &error))?;
        let made = what(&service);
        *self.service.lock().expect("nothing panics while it holds the lock") = Some(service);
        Ok(made)
    }

    /// Calls back for what there is; how many there were. Measured path.
    fn take_all(&self) -> Result<usize, Refused> {
        let mut taken = 0;
        for inbox in &self.inboxes {
            taken += inbox.take_all()?;
        }
        Ok(taken)
    }

    /// Tells of matches that have changed; whether any has. Measured path.
    fn look(&self) -> bool {
        let Some(watch) = &self.watch else { return false };
        let made = self.made.lock().expect("nothing panics while it holds the lock");
        made.first().is_some_and(|(_, topic)| watch.look(topic))
    }

    fn take_interruption(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) && self.interrupted.swap(false, Ordering::AcqRel)
    }
}

impl Adapter for Iceoryx2 {
    fn describe_static(sink: &mut Sink) {
        sink.put("name", "iceoryx2").put("version", env!("CARGO_PKG_VERSION_MAJOR"));
        sink.put("middleware", "Eclipse iceoryx2").put("wire", "iceoryx2");
        sink.put("middleware_version", pinned_version(include_str!("../Cargo.lock"), "iceoryx2"));
        for what in ["wakeup", "roundtrip", "request", "cycle", "chain", "discovery"] {
            sink.put("measures", what);
        }
        sink.put("interfaces", "service");
        for drive in ["sleep_then_spin_some", "poll"] {
            sink.put("drives.cycle", drive);
        }
        for way in ["spin", "spin_once", "poll"] {
            sink.put("receives.roundtrip", way).put("receives.request", way);
        }
        for way in ["spin_once", "poll"] {
            sink.put("receives.cycle", way);
        }
        for what in ["subscribers", "publishers", "background_nodes"] {
            sink.put("beside", what);
        }
        sink.put("receives.chain", "spin_once").put("receives.discovery", "spin_once");
        sink.put("matches", "publisher").put("matches", "subscriber");
        sink.put("components", "one_thread").put("second_topic", "same_node").put("server", "same_host");
    }

    fn start(run: &Run) -> Result<Self, SetupError> {
        set_log_level_from_env_or(LogLevel::Warn);
        let prefix = format!("rtmeter/{}", run.session());
        // The probe ends by its own signals.
        let node = NodeBuilder::new().signal_handling_mode(SignalHandlingMode::Disabled);
        let node = node.create::<Variant>().map_err(|error| failed("node", &prefix, &error))?;
        let chains = run.measurement() == Measurement::Chain;
        let meets = run.measurement() == Measurement::Discovery;
        let ends = run.subscribers() + run.publishers();
        let mut adapter = Self {
            role: run.role(),
            talks: run.measurement() != Measurement::Wakeup,
            polls: run.receive() == Receive::Poll,
            chains,
            meets,
            most: if chains || meets { Some(MOST) } else { (ends > 2).then_some(ends) },
            reliability: run.reliability(),
            depth: run.history_depth() as usize,
            payload_bytes: run.payload_bytes() as usize,
            prefix,
            node,
            wakeup: None,
            listens_at: Vec::new(),
            inboxes: Vec::new(),
            watch: None,
            made: Mutex::default(),
            service: Mutex::default(),
            interrupted: AtomicBool::new(false),
        };
        // Of a chain each topic that it hears has an event; and a further process one besides, that nobody notifies.
        if adapter.talks && !adapter.polls && !chains {
            let further = format!("process {}", std::process::id());
            let role = format!("{:?}", adapter.role);
            adapter.listen(if adapter.role == Role::Beside { &further } else { &role })?;
        }
        Ok(adapter)
    }

    fn describe(&self, sink: &mut Sink) {
        if !self.talks {
            return;
        }
        sink.put("transport", "shared_memory");
        sink.put("waits_at", if self.polls { "nothing" } else { "event" });
        if let Some(service) = &*self.service.lock().expect("nothing panics while it holds the lock") {
            let qos = service.static_config();
            let overflows = qos.has_safe_overflow_for_requests() || qos.has_safe_overflow_for_responses();
            sink.put("qos.reliability", if overflows { "best_effort" } else { "reliable" });
            sink.put("qos.history", if overflows { "keep_last" } else { "wait_for_room" });
            sink.put("qos.depth", qos.max_active_requests_per_client().to_string());
            let now = service.dynamic_config();
            let (clients, servers) = (now.number_of_clients(), now.number_of_servers());
            let found = format!("found {clients} clients and {servers} servers");
            sink.put("discovery", format!("service {}: {found}", self.prefix)).put("chosen", "discovery");
        }
        let made = self.made.lock().expect("nothing panics while it holds the lock");
        for (topic, service) in made.iter().take(1) {
            let qos = service.static_config();
            let overflows = qos.has_safe_overflow();
            sink.put("qos.reliability", if overflows { "best_effort" } else { "reliable" });
            sink.put("qos.history", if overflows { "keep_last" } else { "wait_for_room" });
            sink.put("qos.depth", qos.subscriber_max_buffer_size().to_string());
            if self.role != Role::Single || self.meets {
                let now = service.dynamic_config();
                let (publishers, subscribers) = (now.number_of_publishers(), now.number_of_subscribers());
                let found = format!("found {publishers} publishers and {subscribers} subscribers");
                sink.put("discovery", format!("service {}/{topic}: {found}", self.prefix));
                sink.put("chosen", "discovery");
            }
        }
    }
}

impl Topics for Iceoryx2 {
    type Publisher = Writer;

    fn create_publisher(&mut self, _node: usize, topic: &str) -> Result<Writer, SetupError> {
        self.topic(topic)?;
        let strategy = match self.reliability {
            Reliability::BestEffort => BackpressureStrategy::DiscardData,
            Reliability::Reliable => BackpressureStrategy::RetryUntilDelivered,
        };
        let port = self.of_topic(topic, |service| {
            let port = service.publisher_builder().backpressure_strategy(strategy);
            port.initial_max_slice_len(self.payload_bytes).create()
        });
        let port = port.map_err(|error| failed("topic", topic, &error))?;
        let wakes = self.waker(topic)?;
        Ok(Writer { port, wakes })
    }

    fn create_subscriber(
        &mut self,
        _node: usize,
        topic: &str,
        on_message: OnMessage,
    ) -> Result<(), SetupError> {
        self.topic(topic)?;
        let port = self.of_topic(topic, |service| service.subscriber_builder().create());
        let port = port.map_err(|error| failed("topic", topic, &error))?;
        let _tells = if self.meets { self.waker(topic)? } else { None };
        if !self.polls && (self.chains || self.role == Role::Beside) {
            self.listen(self.event_of_hearers(topic))?;
        }
        self.inboxes.push(Box::new(Reader { port, on_message, _tells }));
        Ok(())
    }
}

impl Matches for Iceoryx2 {
    fn watch(&mut self, _node: usize, on_match: OnMatch) -> Result<(), SetupError> {
        self.watch = Some(Watch { on_match, told: Mutex::default() });
        Ok(())
    }
}

impl Services for Iceoryx2 {
    type Client = services::Caller;
    type Server = services::Answers;

    fn create_client(&mut self, _: usize, name: &str, on_reply: OnReply) -> Result<Self::Client, SetupError> {
        let port = self.of_service(name, |service| {
            service.client_builder().initial_max_slice_len(self.payload_bytes).create()
        })?;
        let port = port.map_err(|error| failed("service", name, &error))?;
        let (caller, responses) = services::client(port, self.waker(name)?, on_reply);
        self.inboxes.push(Box::new(responses));
        Ok(caller)
    }

    fn create_server(
        &mut self,
        _: usize,
        name: &str,
        on_request: OnMessage,
    ) -> Result<Self::Server, SetupError> {
        let port = self.of_service(name, |service| {
            service.server_builder().initial_max_slice_len(self.payload_bytes).create()
        })?;
        let port = port.map_err(|error| failed("service", name, &error))?;
        let (answers, requests) = services::server(port, self.waker(name)?, on_request);
        self.inboxes.push(Box::new(requests));
        Ok(answers)
    }
}

impl Dispatches for Iceoryx2 {
    fn dispatch(&self, until: Option<Instant>) -> Result<bool, Refused> {
        loop {
            let matched = self.look();
            if self.take_all()? > 0 || matched {
                return Ok(!self.take_interruption());
            }
            if self.take_interruption() {
                return Ok(false);
            }
            let left = until.map(|moment| moment.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
            let Some(wakeup) = &self.wakeup else { continue };
            wakeup.wait(left)?;
        }
    }

    fn dispatch_ready(&self) -> Result<(), Refused> {
        self.take_all().map(|_| ())
    }
}

impl Interrupted for Iceoryx2 {
    fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Release);
        if let Some(wakeup) = &self.wakeup {
            wakeup.interrupt();
        }
    }
}

rtmeter_adapter::export!(Iceoryx2);
