//! The Dust DDS adapter.

mod ends;
mod factory;
mod shared;
mod transport;
mod waiting;

use std::collections::HashMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use dust_dds::dds_async::domain_participant::DomainParticipantAsync;
use dust_dds::dds_async::publisher::PublisherAsync;
use dust_dds::dds_async::subscriber::SubscriberAsync;
use dust_dds::dds_async::topic::TopicAsync;
use dust_dds::dds_async::wait_set::{ConditionAsync, WaitSetAsync};
use dust_dds::infrastructure::error::{DdsError, DdsResult};
use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::QosKind;
use dust_dds::infrastructure::status::{NO_STATUS, StatusKind};
use rtmeter_adapter::{
    Adapter, Dispatches, Interrupted, OnMessage, Refused, Run, SetupError, Sink, Topics, pinned_version,
};

use ends::{
    EndpointSettings, Gate, Incompatible, Message, Reader, ReaderListener, TYPE_NAME, Writer, WriterListener,
};
use factory::{Factory, factory_of_process};
use shared::Shared;
use waiting::{Ended, Wakeup, block_on, death, gave_way, refused, watch_for_panics};

type Wait = Pin<Box<dyn Future<Output = DdsResult<()>> + Send>>;

/// A participant and what was made of it.
struct Participant {
    participant: DomainParticipantAsync,
    publisher: PublisherAsync,
    subscriber: SubscriberAsync,
}

struct DustDds {
    shared: Shared,
    settings: EndpointSettings,
    factory: &'static Factory,
    participant: Option<Participant>,
    topics: HashMap<String, TopicAsync>,
    writers: Vec<Writer>,
    readers: Vec<Reader>,
    wait_set: WaitSetAsync,
    /// The wait under way: one that was interrupted is gone on with.
    wait: Mutex<Option<Wait>>,
    wakeup: Arc<Wakeup>,
    open: Gate,
}

fn failed(what: &str) -> impl Fn(DdsError) -> SetupError {
    move |error| {
        let remedy = "see its messages in the cell's probe.stderr";
        SetupError::new("adapter", what, format!("Dust DDS makes no {what}: {error:?}"), remedy)
    }
}

impl DustDds {
    fn topic(&mut self, name: &str) -> Result<TopicAsync, SetupError> {
        if let Some(topic) = self.topics.get(name) {
            return Ok(topic.clone());
        }
        let full_name = self.shared.topic_name(name);
        let made = block_on(self.participant()?.participant.create_topic::<Message>(
            &full_name,
            TYPE_NAME,
            QosKind::Default,
            NO_LISTENER,
            NO_STATUS,
        ));
        Ok(self.topics.entry(name.into()).or_insert(made.map_err(failed("topic"))?).clone())
    }

    fn participant(&self) -> Result<&Participant, SetupError> {
        self.participant
            .as_ref()
            .ok_or_else(|| failed("endpoint")(DdsError::PreconditionNotMet(String::new())))
    }

    /// The wait for samples by the wait-set. Where a listener takes them, there is nothing to wait for.
    fn new_wait(&self) -> Wait {
        if self.shared.listener() {
            return Box::pin(std::future::pending());
        }
        let wait_set = self.wait_set.clone();
        Box::pin(async move { wait_set.wait().await.map(|_| ()) })
    }

    /// Measured path.
    fn wait_once(&self, until: Option<Instant>) -> Result<Ended<()>, Refused> {
        if death().is_some() {
            return Err(Refused::Broken);
        }
        let mut under_way = self.wait.lock().map_err(|_| Refused::Call)?;
        let mut wait = under_way.take().unwrap_or_else(|| self.new_wait());
        match self.wakeup.wait_for(&mut wait, until) {
            Ended::Ready(result) => {
                drop(under_way);
                result.map_err(refused)?;
                self.take_all()?;
                Ok(Ended::Ready(()))
            }
            ended => {
                *under_way = Some(block_on(self.put_aside(wait)).map_err(refused)?);
                Ok(if ended == Ended::Interrupted { Ended::Interrupted } else { Ended::TimedOut })
            }
        }
    }

    /// A wait may stop in the middle of a call of Dust DDS's, which then holds up all others: it is gone on
    /// with until a call of ours came through, for then none of its is open.
    async fn put_aside(&self, mut wait: Wait) -> DdsResult<Wait> {
        let Some(reader) = self.readers.first() else { return Ok(wait) };
        let condition = reader.reader.get_statuscondition();
        let mut call = pin!(condition.get_trigger_value());
        tokio::select! {
            called = &mut call => called.map(|_| wait),
            ended = &mut wait => call.await.map(|_| -> Wait { Box::pin(std::future::ready(ended)) }),
        }
    }

    fn take_all(&self) -> Result<(), Refused> {
        if self.shared.listener() {
            return if death().is_some() { Err(Refused::Broken) } else { Ok(()) };
        }
        self.readers.iter().try_for_each(Reader::take_all)
    }
}

impl Adapter for DustDds {
    fn describe_static(sink: &mut Sink) {
        sink.put("name", "dustdds").put("version", env!("CARGO_PKG_VERSION_MAJOR"));
        let version = pinned_version(include_str!("../Cargo.lock"), "dust_dds");
        sink.put("middleware", "Dust DDS").put("middleware_version", version);
        sink.put("brings", "Dust DDS*: the executor, which answers every call");
        sink.put("brings", "SomethingOn*: receive datagrams, of data and of discovery");
        for what in ["wakeup", "roundtrip", "cycle", "chain"] {
            sink.put("measures", what);
        }
        sink.put("receives.chain", "spin_once");
        for what in ["subscribers", "publishers", "background_nodes"] {
            sink.put("beside", what);
        }
        for drive in ["sleep_then_spin_some", "poll"] {
            sink.put("drives.cycle", drive);
        }
        for what in ["roundtrip", "cycle"] {
            sink.put("background", what);
        }
        sink.put("components", "one_thread");
        for place in ["same_node", "same_process"] {
            sink.put("second_topic", place);
        }
        Shared::describe_static(sink);
    }

    fn start(run: &Run) -> Result<Self, SetupError> {
        let shared = Shared::open(run)?;
        let factory = factory_of_process(&shared)?;
        shared.enforce_threads()?;
        let wakeup: Arc<Wakeup> = Arc::default();
        watch_for_panics(wakeup.clone());
        Ok(Self {
            settings: EndpointSettings::new(run, &shared),
            shared,
            factory,
            participant: None,
            topics: HashMap::new(),
            writers: Vec::new(),
            readers: Vec::new(),
            wait_set: WaitSetAsync::new(),
            wait: Mutex::new(None),
            wakeup,
            open: Arc::new(Mutex::new(true)),
        })
    }

    fn describe(&self, sink: &mut Sink) {
        sink.put("type", TYPE_NAME);
        sink.put("gave_way", gave_way().to_string()).put("chosen", "gave_way");
        if let Some(words) = death() {
            sink.put("broken", words); // it answers nothing any more: who asks it may panic
            return self.shared.describe(&[], 0, sink);
        }
        let facts: Vec<_> =
            self.writers.iter().map(Writer::facts).chain(self.readers.iter().map(Reader::facts)).collect();
        let others = self.participant.as_ref().and_then(|p| {
            let known = block_on(p.participant.get_discovered_participants()).ok()?;
            let own = p.participant.get_instance_handle();
            Some(known.iter().filter(|other| **other != own).count())
        });
        self.shared.describe(&facts, others.unwrap_or(0), sink);
    }

    // All components share one participant.
    fn create_node(&mut self, _name: &str) -> Result<usize, SetupError> {
        if self.participant.is_none() {
            let domain = self.shared.domain();
            let made = self.factory.create_participant(domain, QosKind::Default, NO_LISTENER, NO_STATUS);
            let participant = block_on(made).map_err(failed("participant"))?;
            let publisher = block_on(participant.create_publisher(QosKind::Default, NO_LISTENER, NO_STATUS))
                .map_err(failed("publisher"))?;
            let subscriber =
                block_on(participant.create_subscriber(QosKind::Default, NO_LISTENER, NO_STATUS))
                    .map_err(failed("subscriber"))?;
            self.participant = Some(Participant { participant, publisher, subscriber });
            self.shared.enforce_threads()?;
        }
        Ok(0)
    }
}

impl Topics for DustDds {
    type Publisher = Writer;

    fn create_publisher(&mut self, _node: usize, topic: &str) -> Result<Writer, SetupError> {
        let incompatible = Incompatible::default();
        let made_topic = self.topic(topic)?;
        let made = block_on(self.participant()?.publisher.create_datawriter::<Message>(
            &made_topic,
            QosKind::Specific(self.settings.of_writer()),
            Some(WriterListener(incompatible.clone())),
            &[StatusKind::OfferedIncompatibleQos],
        ));
        let writer = Writer::new(made.map_err(failed("writer"))?, topic, incompatible);
        self.writers.push(writer.clone());
        Ok(writer)
    }

    fn create_subscriber(
        &mut self,
        _node: usize,
        topic: &str,
        on_message: OnMessage,
    ) -> Result<(), SetupError> {
        let incompatible = Incompatible::default();
        let listener =
            ReaderListener { incompatible: incompatible.clone(), on_message, open: self.open.clone() };
        let data = self.shared.listener().then_some(StatusKind::DataAvailable);
        let statuses: Vec<_> = data.into_iter().chain([StatusKind::RequestedIncompatibleQos]).collect();
        let made_topic = self.topic(topic)?;
        let made = block_on(self.participant()?.subscriber.create_datareader::<Message>(
            &made_topic,
            QosKind::Specific(self.settings.of_reader()),
            Some(listener),
            &statuses,
        ));
        let reader = made.map_err(failed("reader"))?;
        let condition = reader.get_statuscondition();
        block_on(condition.set_enabled_statuses(&[StatusKind::DataAvailable]))
            .map_err(failed("condition"))?;
        block_on(self.wait_set.attach_condition(ConditionAsync::StatusCondition(condition)))
            .map_err(failed("wait-set"))?;
        self.readers.push(Reader { reader, topic: topic.into(), on_message, incompatible });
        Ok(())
    }
}

impl Dispatches for DustDds {
    fn dispatch(&self, until: Option<Instant>) -> Result<bool, Refused> {
        Ok(self.wait_once(until)? == Ended::Ready(()))
    }

    fn dispatch_ready(&self) -> Result<(), Refused> {
        self.take_all()
    }
}

impl Interrupted for DustDds {
    fn interrupt(&self) {
        self.wakeup.interrupt();
    }
}

impl Drop for DustDds {
    fn drop(&mut self) {
        *self.open.lock().expect("nothing panics while it holds the lock") = false;
        if let Some(Participant { participant, .. }) = &self.participant {
            let _ = block_on(participant.delete_contained_entities());
            let _ = block_on(self.factory.delete_participant(participant));
        }
    }
}

rtmeter_adapter::export!(DustDds);
