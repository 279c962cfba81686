#include "entities.hpp"

#include <cstddef>
#include <cstring>
#include <map>
#include <vector>

#include "../common/ends.hpp"

namespace rtmeter_cyclonedds {
namespace {

struct Block {
  std::uint32_t capacity;
  const dds_topic_descriptor_t* descriptor;
};
constexpr Block kBlocks[] = {{sizeof(rtmeter_dds_Block1K::payload), &rtmeter_dds_Block1K_desc},
                             {sizeof(rtmeter_dds_Block32K::payload), &rtmeter_dds_Block32K_desc},
                             {sizeof(rtmeter_dds_Block128K::payload), &rtmeter_dds_Block128K_desc},
                             {sizeof(rtmeter_dds_Block1M::payload), &rtmeter_dds_Block1M_desc},
                             {sizeof(rtmeter_dds_Block4M::payload), &rtmeter_dds_Block4M_desc}};

// Blocks differ in the size of the payload only, which comes last.
using SmallestBlock = rtmeter_dds_Block1K;
constexpr std::size_t kBlockPayload = offsetof(SmallestBlock, payload);
static_assert(offsetof(rtmeter_dds_Block4M, payload) == kBlockPayload, "blocks begin alike");

rtmeter_common::EndFacts facts_of(const End& end) {
  rtmeter_common::EndFacts facts;
  facts.name = (end.is_writer ? "writer of " : "reader of ") + end.topic;
  const Qos qos;
  dds_get_qos(end.entity, qos.get());
  dds_reliability_kind_t reliability{};
  dds_history_kind_t history{};
  dds_durability_kind_t durability{};
  std::int32_t depth = 0;
  if (dds_qget_reliability(qos.get(), &reliability, nullptr))
    facts.policies["reliability"] = reliability == DDS_RELIABILITY_RELIABLE ? "reliable" : "best_effort";
  if (dds_qget_history(qos.get(), &history, &depth)) {
    facts.policies["history"] = history == DDS_HISTORY_KEEP_LAST ? "keep_last" : "keep_all";
    if (history == DDS_HISTORY_KEEP_LAST) facts.policies["depth"] = std::to_string(depth);
  }
  if (dds_qget_durability(qos.get(), &durability))
    facts.policies["durability"] = durability == DDS_DURABILITY_VOLATILE          ? "volatile"
                                   : durability == DDS_DURABILITY_TRANSIENT_LOCAL ? "transient_local"
                                                                                  : "transient";
  std::uint32_t last_policy = 0;
  if (end.is_writer) {
    dds_publication_matched_status_t matched{};
    dds_offered_incompatible_qos_status_t refused{};
    dds_get_publication_matched_status(end.entity, &matched);
    dds_get_offered_incompatible_qos_status(end.entity, &refused);
    facts.matched = matched.current_count;
    last_policy = refused.last_policy_id;
  } else {
    dds_subscription_matched_status_t matched{};
    dds_requested_incompatible_qos_status_t refused{};
    dds_get_subscription_matched_status(end.entity, &matched);
    dds_get_requested_incompatible_qos_status(end.entity, &refused);
    facts.matched = matched.current_count;
    last_policy = refused.last_policy_id;
  }
  facts.incompatible = rtmeter_dds::policy_name(last_policy);
  return facts;
}

// Participants known, this process's own left out.
int other_participants(dds_entity_t participant) {
  constexpr std::size_t kMost = 4096;
  const Entity reader(dds_create_reader(participant, DDS_BUILTIN_TOPIC_DCPSPARTICIPANT, nullptr, nullptr));
  std::vector<void*> samples(kMost);
  std::vector<dds_sample_info_t> infos(kMost);
  const dds_return_t count = dds_read(reader.get(), samples.data(), infos.data(), kMost, kMost);
  if (count > 0) dds_return_loan(reader.get(), samples.data(), count);
  return count > 0 ? count - 1 : 0;
}

}  // namespace

Types::Types(const rtm_run& run, const rtmeter_dds::Options& options) : payload_bytes_(run.payload_bytes) {
  if (options.loan) {
    for (const Block& block : kBlocks)
      if (!loan() && payload_bytes_ <= block.capacity) descriptor_ = block.descriptor;
    if (!loan()) throw rtmeter_common::too_large_for_loans(payload_bytes_, kBlocks[4].capacity);
  }
  // iceoryx ends a process that asks for more than its largest chunk.
  constexpr std::size_t kLargestChunk = 4 << 20, kHeaders = 256;
  const std::size_t sample_bytes = loan() ? descriptor_->m_size : payload_bytes_;
  if (options.transport == "shm" && sample_bytes + kHeaders > kLargestChunk)
    throw rtmeter::SetupError("payload_bytes", std::to_string(payload_bytes_),
                              loan()
                                  ? "a sample of " + name() + " exceeds the largest chunk of iox-roudi, 4 MiB"
                                  : "iox-roudi's largest chunk, 4 MiB, carries at most " +
                                        std::to_string(kLargestChunk - kHeaders) + " bytes of payload",
                              "choose a smaller payload, or transport=udp");
}

int Writer::write(const rtm_message& message) noexcept {
  if (!loan_) {
    const rtmeter_dds_Message sample{
        message.sequence, {message.bytes, message.bytes, const_cast<std::uint8_t*>(message.data), false}};
    return dds_write(entity_, &sample);
  }
  void* lent = nullptr;
  if (const dds_return_t result = dds_loan_sample(entity_, &lent)) return result;
  auto* block = static_cast<SmallestBlock*>(lent);
  block->number = message.sequence;
  block->bytes = message.bytes;
  std::memcpy(static_cast<std::uint8_t*>(lent) + kBlockPayload, message.data, message.bytes);
  return dds_write(entity_, lent);
}

Reader::Reader(const Types& types, rtm_on_message on_message, void* user)
    : on_message_(on_message), user_(user),
      memory_((types.loan() ? types.descriptor()->m_size : types.payload_bytes()) / sizeof(std::uint64_t) +
              1),
      sample_(types.loan() ? static_cast<void*>(memory_.data()) : &message_) {
  message_.payload = {types.payload_bytes(), 0, reinterpret_cast<std::uint8_t*>(memory_.data()), false};
}

int Reader::take() noexcept {
  dds_sample_info_t info;
  do {
    if (dds_take(entity, &sample_, &info, 1, 1) <= 0) return 0;
  } while (!info.valid_data);  // it tells of a writer that went, and messages may follow
  rtm_message message{message_.number, message_.payload._buffer, message_.payload._length};
  if (sample_ != &message_) {
    const auto* block = static_cast<const SmallestBlock*>(sample_);
    message = {block->number, static_cast<const std::uint8_t*>(sample_) + kBlockPayload, block->bytes};
  }
  on_message_(user_, &message);
  return 1;
}

int Reader::take_all() noexcept {
  int callbacks = 0;
  while (callbacks < rtmeter::kBurst && take() > 0) ++callbacks;
  return callbacks;
}

Qos::Qos(const rtm_run& run, const rtmeter_dds::Options& options, bool of_writer) {
  dds_qset_reliability(
      qos_, run.reliability == RTM_RELIABLE ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT,
      DDS_MSECS(100));
  dds_qset_history(qos_, DDS_HISTORY_KEEP_LAST, static_cast<std::int32_t>(run.history_depth));
  // Who looks for others is not to find itself.
  if (run.measurement == RTM_DISCOVERY) dds_qset_ignorelocal(qos_, DDS_IGNORELOCAL_PARTICIPANT);
  if (of_writer && options.interoperable)
    dds_qset_liveliness(qos_, DDS_LIVELINESS_AUTOMATIC, DDS_SECS(rtmeter_dds::kLeaseS));
}

void describe_ends(rtmeter::Sink& sink, const std::vector<End>& ends, dds_entity_t participant,
                   const std::string& scope) {
  if (participant == 0) return;
  std::vector<rtmeter_common::EndFacts> facts;
  facts.reserve(ends.size());
  for (const End& end : ends) facts.push_back(facts_of(end));
  rtmeter_common::describe_ends(sink, facts, other_participants(participant), scope);
}

}  // namespace rtmeter_cyclonedds
