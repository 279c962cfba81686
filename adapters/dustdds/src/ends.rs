//! Dust DDS's writers and readers: the common type, quality of service, and whom they matched.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use dust_dds::dds_async::data_reader::DataReaderAsync;
use dust_dds::dds_async::data_reader_listener::DataReaderListener;
use dust_dds::dds_async::data_writer::DataWriterAsync;
use dust_dds::dds_async::data_writer_listener::DataWriterListener;
use dust_dds::infrastructure::error::{DdsError, DdsResult};
use dust_dds::infrastructure::qos::{DataReaderQos, DataWriterQos};
use dust_dds::infrastructure::qos_policy::{
    DeadlineQosPolicy, DurabilityQosPolicy, DurabilityQosPolicyKind, HistoryQosPolicy, HistoryQosPolicyKind,
    LivelinessQosPolicy, LivelinessQosPolicyKind, ReliabilityQosPolicy, ReliabilityQosPolicyKind,
};
use dust_dds::infrastructure::sample_info::{ANY_INSTANCE_STATE, ANY_SAMPLE_STATE, ANY_VIEW_STATE};
use dust_dds::infrastructure::status::{OfferedIncompatibleQosStatus, RequestedIncompatibleQosStatus};
use dust_dds::infrastructure::time::{Duration, DurationKind};
use dust_dds::infrastructure::type_support::DdsType;
use rtmeter_adapter::{OnMessage, Publisher, Refused, Reliability, Run};

use crate::shared::{EndFacts, Shared};
use crate::waiting::{block_on, refused};

/// The first type of adapters/common/dds/message.idl.
#[derive(Clone, DdsType)]
#[dust_dds(extensibility = "final")]
pub struct Message {
    number: u64,
    payload: Vec<u8>,
}

pub const TYPE_NAME: &str = "rtmeter_dds::Message";

/// What the run asks of writers and readers.
#[derive(Clone, Copy)]
pub struct EndpointSettings {
    reliability: Reliability,
    depth: u32,
    /// An hour where other implementations' ends may be met, else infinite.
    lease: DurationKind,
}

impl EndpointSettings {
    pub fn new(run: &Run, shared: &Shared) -> Self {
        let finite = |seconds| DurationKind::Finite(Duration::new(seconds, 0));
        let lease = shared.lease_s().map_or(DurationKind::Infinite, finite);
        Self { reliability: run.reliability(), depth: run.history_depth(), lease }
    }

    fn reliability(&self) -> ReliabilityQosPolicy {
        let kind = match self.reliability {
            Reliability::BestEffort => ReliabilityQosPolicyKind::BestEffort,
            Reliability::Reliable => ReliabilityQosPolicyKind::Reliable,
        };
        ReliabilityQosPolicy { kind, max_blocking_time: DurationKind::Finite(Duration::new(0, 100_000_000)) }
    }
    fn history(&self) -> HistoryQosPolicy {
        HistoryQosPolicy { kind: HistoryQosPolicyKind::KeepLast(self.depth) }
    }

    /// An infinite deadline would not match other implementations' infinite ones (options.hpp).
    pub fn of_writer(&self) -> DataWriterQos {
        DataWriterQos {
            reliability: self.reliability(),
            history: self.history(),
            deadline: DeadlineQosPolicy { period: self.lease },
            ..Default::default()
        }
    }
    /// Nor would an infinite lease.
    pub fn of_reader(&self) -> DataReaderQos {
        DataReaderQos {
            reliability: self.reliability(),
            history: self.history(),
            liveliness: LivelinessQosPolicy {
                kind: LivelinessQosPolicyKind::Automatic,
                lease_duration: self.lease,
            },
            ..Default::default()
        }
    }
}

fn policies(
    reliability: &ReliabilityQosPolicy,
    history: &HistoryQosPolicy,
    durability: &DurabilityQosPolicy,
) -> Vec<(&'static str, String)> {
    let reliability = match reliability.kind {
        ReliabilityQosPolicyKind::BestEffort => "best_effort",
        ReliabilityQosPolicyKind::Reliable => "reliable",
    };
    let durability = match durability.kind {
        DurabilityQosPolicyKind::Volatile => "volatile",
        DurabilityQosPolicyKind::TransientLocal => "transient_local",
        DurabilityQosPolicyKind::Transient => "transient",
        DurabilityQosPolicyKind::Persistent => "persistent",
    };
    let mut known = vec![("reliability", reliability.to_string()), ("durability", durability.to_string())];
    match history.kind {
        HistoryQosPolicyKind::KeepAll => known.push(("history", "keep_all".into())),
        HistoryQosPolicyKind::KeepLast(depth) => {
            known.extend([("history", "keep_last".into()), ("depth", depth.to_string())]);
        }
    }
    known
}

/// The policy that kept another end from matching: Dust DDS tells it to listeners only.
#[derive(Clone, Default)]
pub struct Incompatible(Arc<AtomicU32>);

impl Incompatible {
    fn note(&self, policy: i32) {
        self.0.store(policy.unsigned_abs(), Ordering::Relaxed);
    }
    fn id(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

thread_local! {
    /// What callbacks published while a listener ran: in its thread, which is the one that writes, no write
    /// can be waited for.
    static OUTBOX: RefCell<Option<Vec<(Writer, Message)>>> = const { RefCell::new(None) };
}

#[derive(Clone)]
pub struct Writer(Arc<WriterParts>);

struct WriterParts {
    writer: DataWriterAsync<Message>,
    topic: String,
    incompatible: Incompatible,
    refused_later: AtomicU32, // writes of an outbox
}

impl Writer {
    pub fn new(writer: DataWriterAsync<Message>, topic: &str, incompatible: Incompatible) -> Self {
        let refused_later = AtomicU32::new(0);
        Self(Arc::new(WriterParts { writer, topic: topic.into(), incompatible, refused_later }))
    }

    pub fn facts(&self) -> EndFacts {
        let Self(parts) = self;
        let qos = block_on(parts.writer.get_qos());
        let matched = block_on(parts.writer.get_publication_matched_status());
        EndFacts {
            name: format!("writer of {}", parts.topic),
            policies: qos.map_or(vec![], |q| policies(&q.reliability, &q.history, &q.durability)),
            matched: matched.map_or(0, |status| status.current_count.max(0) as usize),
            incompatible_policy: parts.incompatible.id(),
        }
    }
}

impl Publisher for Writer {
    fn publish(&self, message: &rtmeter_adapter::Message) -> Result<(), Refused> {
        let message = Message { number: message.sequence, payload: message.data.to_vec() };
        let queued = OUTBOX.with_borrow_mut(|outbox| match outbox {
            Some(outbox) => {
                outbox.push((self.clone(), message));
                None
            }
            None => Some(message),
        });
        if let Some(message) = queued {
            return block_on(self.0.writer.write(message, None)).map_err(refused);
        }
        let refused =
            self.0.refused_later.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        refused.map_or(Ok(()), |_| Err(Refused::Call))
    }
}

pub struct WriterListener(pub Incompatible);

impl DataWriterListener<Message> for WriterListener {
    async fn on_offered_incompatible_qos(
        &mut self,
        _writer: DataWriterAsync<Message>,
        status: OfferedIncompatibleQosStatus,
    ) {
        self.0.note(status.last_policy_id);
    }
}

pub struct Reader {
    pub reader: DataReaderAsync<Message>,
    pub topic: String,
    pub on_message: OnMessage,
    pub incompatible: Incompatible,
}

impl Reader {
    /// Calls back for every sample there is. Measured path.
    pub fn take_all(&self) -> Result<(), Refused> {
        for message in block_on(taken(&self.reader)).map_err(refused)? {
            self.on_message.call(message.number, &message.payload);
        }
        Ok(())
    }

    pub fn facts(&self) -> EndFacts {
        let qos = block_on(self.reader.get_qos());
        let matched = block_on(self.reader.get_subscription_matched_status());
        EndFacts {
            name: format!("reader of {}", self.topic),
            policies: qos.map_or(vec![], |q| policies(&q.reliability, &q.history, &q.durability)),
            matched: matched.map_or(0, |status| status.current_count.max(0) as usize),
            incompatible_policy: self.incompatible.id(),
        }
    }
}

/// All samples there are: Dust DDS forgets that there are more once one was taken.
async fn taken(reader: &DataReaderAsync<Message>) -> DdsResult<Vec<Message>> {
    match reader.take(i32::MAX, ANY_SAMPLE_STATE, ANY_VIEW_STATE, ANY_INSTANCE_STATE).await {
        Ok(samples) => Ok(samples.into_iter().filter_map(|sample| sample.data).collect()),
        Err(DdsError::NoData) => Ok(vec![]),
        Err(error) => Err(error),
    }
}

/// Whom a listener calls: nobody once the adapter stops.
pub type Gate = Arc<Mutex<bool>>;

pub struct ReaderListener {
    pub incompatible: Incompatible,
    pub on_message: OnMessage,
    pub open: Gate,
}

impl DataReaderListener<Message> for ReaderListener {
    // Dust DDS's thread.
    async fn on_data_available(&mut self, reader: DataReaderAsync<Message>) {
        let messages = taken(&reader).await.unwrap_or_default();
        for message in &messages {
            for (writer, answer) in self.called_back(message) {
                if writer.0.writer.write(answer, None).await.is_err() {
                    writer.0.refused_later.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
    async fn on_requested_incompatible_qos(
        &mut self,
        _reader: DataReaderAsync<Message>,
        status: RequestedIncompatibleQosStatus,
    ) {
        self.incompatible.note(status.last_policy_id);
    }
}

impl ReaderListener {
    /// Calls back; what the callback published.
    fn called_back(&self, message: &Message) -> Vec<(Writer, Message)> {
        let open = self.open.lock().expect("nothing panics while it holds the lock");
        if !*open {
            return vec![];
        }
        OUTBOX.set(Some(vec![]));
        self.on_message.call(message.number, &message.payload);
        OUTBOX.take().unwrap_or_default()
    }
}
