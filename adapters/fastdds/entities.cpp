#include "entities.hpp"

#include <cstring>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>

namespace rtmeter_fastdds {
namespace {

// How blocks begin in memory; the payload follows. They are plain: memory and wire look alike.
struct BlockHead {
  std::uint64_t number;
  std::uint32_t bytes;
};
constexpr std::size_t kBlockPayload = 12;
constexpr std::uint32_t kLargestBlock = 4194304;

dds::TypeSupport block_for(std::uint32_t payload_bytes) {
  if (payload_bytes <= 1024) return dds::TypeSupport(new rtmeter_dds::Block1KPubSubType);
  if (payload_bytes <= 32768) return dds::TypeSupport(new rtmeter_dds::Block32KPubSubType);
  if (payload_bytes <= 131072) return dds::TypeSupport(new rtmeter_dds::Block128KPubSubType);
  if (payload_bytes <= 1048576) return dds::TypeSupport(new rtmeter_dds::Block1MPubSubType);
  if (payload_bytes <= kLargestBlock) return dds::TypeSupport(new rtmeter_dds::Block4MPubSubType);
  throw rtmeter_common::too_large_for_loans(payload_bytes, kLargestBlock);
}

// The generator counts a sequence without a bound as one of 100: room is made for the payload to come.
dds::TypeSupport message_for(std::uint32_t payload_bytes) {
  constexpr std::uint32_t kEncapsulation = 4, kNumberAndLength = 12, kPadding = 4;
  auto* type = new rtmeter_dds::MessagePubSubType;
  make_room(*type, kEncapsulation + kNumberAndLength + payload_bytes + kPadding);
  return dds::TypeSupport(type);
}

template <typename Endpoint>
Endpoint* created(Endpoint* endpoint, const EndpointSettings& settings, const std::string& name) {
  if (endpoint == nullptr)
    throw rtmeter::SetupError("option transport", settings.transport, "Fast DDS makes no " + name,
                              "see its messages in the cell's probe.stderr");
  return endpoint;
}

template <typename EndpointQos>
void add_policies(const EndpointQos& qos, rtmeter_common::EndFacts& facts) {
  facts.policies["reliability"] =
      qos.reliability().kind == dds::RELIABLE_RELIABILITY_QOS ? "reliable" : "best_effort";
  const bool keep_last = qos.history().kind == dds::KEEP_LAST_HISTORY_QOS;
  facts.policies["history"] = keep_last ? "keep_last" : "keep_all";
  facts.policies["depth"] = std::to_string(qos.history().depth);
  facts.policies["durability"] = qos.durability().kind == dds::VOLATILE_DURABILITY_QOS ? "volatile"
                                 : qos.durability().kind == dds::TRANSIENT_LOCAL_DURABILITY_QOS
                                     ? "transient_local"
                                     : "transient";
  const auto sharing = qos.data_sharing().kind();
  facts.policies["data_sharing"] = sharing == dds::ON ? "on" : sharing == dds::OFF ? "off" : "auto";
}

// Whether both are of one participant.
bool is_own(const dds::InstanceHandle_t& matched, const rtps::GUID_t& end) {
  rtps::GUID_t other;
  rtps::iHandle2GUID(other, matched);
  return other.guidPrefix == end.guidPrefix;
}

}  // namespace

EndpointSettings::EndpointSettings(const rtm_run& run, const rtmeter_dds::Options& options)
    : loan(options.loan), listener(options.listener), interoperable(options.interoperable),
      transport(options.transport),
      reliability(run.reliability == RTM_RELIABLE ? dds::RELIABLE_RELIABILITY_QOS
                                                  : dds::BEST_EFFORT_RELIABILITY_QOS),
      depth(static_cast<std::int32_t>(run.history_depth)), payload_bytes(run.payload_bytes),
      type(loan ? block_for(payload_bytes) : message_for(payload_bytes)) {}

template <typename EndpointQos>
EndpointQos EndpointSettings::applied_to(EndpointQos qos) const {
  qos.reliability().kind = reliability;
  qos.history().kind = dds::KEEP_LAST_HISTORY_QOS;
  qos.history().depth = depth;
  qos.durability().kind = dds::VOLATILE_DURABILITY_QOS;
  // No memory is taken for more than the history holds.
  qos.resource_limits().max_samples_per_instance =
      std::max(depth, qos.resource_limits().max_samples_per_instance);
  qos.resource_limits().max_samples = std::max(depth, qos.resource_limits().max_samples);
  qos.resource_limits().allocated_samples = std::min(depth, qos.resource_limits().allocated_samples);
  if (transport == "data_sharing") qos.data_sharing().on("");
  if (transport == "udp" || transport == "shm") qos.data_sharing().off();
  return qos;
}

void Watcher::tell(rtm_end end, std::int32_t matched, int own) const {
  on_match(user, end, matched - own);
  wake->set_trigger_value(true);
}

Writer::Writer(const EndpointSettings& settings, dds::Publisher* publisher, dds::Topic* topic,
               const std::string& name, const Watcher& watcher)
    : loan_(settings.loan), name_("writer of " + name), watcher_(watcher) {
  message_.payload().reserve(settings.payload_bytes);
  dds::DataWriterQos qos = settings.applied_to(publisher->get_default_datawriter_qos());
  const bool is_infinite = qos.liveliness().lease_duration == infinite();
  if (settings.interoperable && is_infinite) {  // no profile says else
    qos.liveliness().lease_duration = {rtmeter_dds::kLeaseS, 0};
    qos.liveliness().announcement_period = {rtmeter_dds::kLeaseS / 2, 0};
  }
  const bool watched = watcher_.on_match != nullptr;
  const auto statuses = watched ? dds::StatusMask::publication_matched() : dds::StatusMask::none();
  writer_ =
      created(publisher->create_datawriter(topic, qos, watched ? this : nullptr, statuses), settings, name_);
}

void Writer::on_publication_matched(dds::DataWriter* writer, const dds::PublicationMatchedStatus& status) {
  if (is_own(status.last_subscription_handle, writer->guid()))
    own_ += status.current_count_change;
  else
    watcher_.tell(RTM_PUBLISHER, status.current_count, own_);
}

int Writer::write(const rtm_message& message) {
  if (!loan_) {
    message_.number(message.sequence);
    message_.payload().assign(message.data, message.data + message.bytes);
    return is_written(writer_->write(&message_)) ? 0 : -1;
  }
  void* lent = nullptr;
  if (writer_->loan_sample(lent) != kOk) return -1;
  const BlockHead head{message.sequence, message.bytes};
  std::memcpy(lent, &head, kBlockPayload);
  std::memcpy(static_cast<std::uint8_t*>(lent) + kBlockPayload, message.data, message.bytes);
  if (is_written(writer_->write(lent))) return 0;
  writer_->discard_loan(lent);
  return -1;
}

rtmeter_common::EndFacts Writer::facts() const {
  rtmeter_common::EndFacts facts;
  facts.name = name_;
  add_policies(writer_->get_qos(), facts);
  facts.policies["publish_mode"] = writer_->get_qos().publish_mode().kind == dds::SYNCHRONOUS_PUBLISH_MODE
                                       ? "synchronous"
                                       : "asynchronous";
  dds::PublicationMatchedStatus matched;
  dds::OfferedIncompatibleQosStatus refused;
  writer_->get_publication_matched_status(matched);
  writer_->get_offered_incompatible_qos_status(refused);
  facts.matched = static_cast<std::size_t>(matched.current_count);
  facts.incompatible = rtmeter_dds::policy_name(refused.last_policy_id);
  return facts;
}

Reader::Reader(const EndpointSettings& settings, dds::Subscriber* subscriber, dds::Topic* topic,
               const std::string& name, rtm_on_message on_message, void* user, const Watcher& watcher)
    : loan_(settings.loan), name_("reader of " + name), watcher_(watcher), on_message_(on_message),
      user_(user) {
  message_.payload().reserve(settings.payload_bytes);
  const dds::DataReaderQos qos = settings.applied_to(subscriber->get_default_datareader_qos());
  const bool watched = watcher_.on_match != nullptr;
  const auto statuses = watched ? dds::StatusMask::subscription_matched() : dds::StatusMask::none();
  reader_ =
      created(subscriber->create_datareader(topic, qos, watched ? this : nullptr, statuses), settings, name_);
  if (settings.listener) reader_->set_listener(this, dds::StatusMask::data_available());  // it uses reader_
  condition().set_enabled_statuses(dds::StatusMask::data_available());
}

// A sample without data tells of a writer that went; messages may follow.
bool Reader::take() {
  dds::SampleInfo info;
  if (reader_->take_next_sample(&message_, &info) != kOk) return false;
  const rtm_message message{message_.number(), message_.payload().data(),
                            static_cast<std::uint32_t>(message_.payload().size())};
  if (info.valid_data) on_message_(user_, &message);
  return true;
}

bool Reader::take_lent() {
  dds::LoanableSequence<std::uint8_t> samples;  // their first bytes: Fast DDS aligns samples to four only
  dds::SampleInfoSeq infos;
  if (reader_->take(samples, infos, 1) != kOk) return false;
  for (dds::LoanableCollection::size_type i = 0; i < samples.length(); ++i) {
    if (!infos[i].valid_data) continue;
    const std::uint8_t* block = &samples[i];
    BlockHead head;
    std::memcpy(&head, block, kBlockPayload);
    const rtm_message message{head.number, block + kBlockPayload, head.bytes};
    on_message_(user_, &message);
  }
  reader_->return_loan(samples, infos);
  return true;
}

int Reader::take_all() {
  int samples = 0;
  while (samples < rtmeter::kBurst && (loan_ ? take_lent() : take())) ++samples;
  return samples;
}

void Reader::on_subscription_matched(dds::DataReader* reader, const dds::SubscriptionMatchedStatus& status) {
  if (is_own(status.last_publication_handle, reader->guid()))
    own_ += status.current_count_change;
  else
    watcher_.tell(RTM_SUBSCRIBER, status.current_count, own_);
}

void Reader::on_data_available(dds::DataReader* /*reader*/) { take_all(); }

rtmeter_common::EndFacts Reader::facts() const {
  rtmeter_common::EndFacts facts;
  facts.name = name_;
  add_policies(reader_->get_qos(), facts);
  dds::SubscriptionMatchedStatus matched;
  dds::RequestedIncompatibleQosStatus refused;
  reader_->get_subscription_matched_status(matched);
  reader_->get_requested_incompatible_qos_status(refused);
  facts.matched = static_cast<std::size_t>(matched.current_count);
  facts.incompatible = rtmeter_dds::policy_name(refused.last_policy_id);
  return facts;
}

}  // namespace rtmeter_fastdds
