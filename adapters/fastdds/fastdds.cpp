// The Fast DDS adapter, over version 2 or 3.
#include <atomic>
#include <cstring>
#include <deque>
#include <fastdds/dds/core/condition/GuardCondition.hpp>
#include <fastdds/dds/core/condition/WaitSet.hpp>
#include <fastdds/dds/subscriber/qos/SubscriberQos.hpp>
#include <memory>

#include "../common/dds/options.hpp"
#include "../common/loaded.hpp"
#include "entities.hpp"
#include "participant.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_fastdds {
namespace {

const rtmeter_dds::OptionSet kOptions(
    {"udp", "shm", "data_sharing", "vendor"},
    "UDP on one interface; the shared-memory transport; data sharing, which needs loan=yes; or what the "
    "profiles and Fast DDS's defaults say",
    kNamesThreads ? "fifo:P or rr:P for all of Fast DDS's threads, NAME=fifo:P,... for some, by the system"
                  : "fifo:P or rr:P for all of Fast DDS's threads, which have no names, by the system");

// Of the library that is loaded, as its file's name has it; if none is, it is linked in.
std::string version() {
  const std::string library = rtmeter_common::loaded_library({kLibrary});
  return library.empty() ? kBuiltWith : library.substr(std::strlen(kLibrary));
}

class FastDds final : public rtmeter::Adapter {
 public:
  static void describe_static(rtmeter::Sink& sink) {
    sink.put("name", kName).put("version", "1");
    sink.put("middleware", "eProsima Fast DDS").put("middleware_version", version());
    sink.put("brings", kNamesThreads ? "dds.*: receivers, events, flow controllers, log"
                                     : "rtmeter-probe-*: receivers, events, flow controllers; none is named");
    for (const char* transport : {"shm", "data_sharing"}) sink.put("same_host.transport", transport);
    rtmeter_dds::describe_measurements(sink);
    rtmeter_dds::describe(kOptions, sink);
  }

  explicit FastDds(const rtm_run& run)
      : run_(run), options_(run, kOptions, {"shm", "vendor"}, profiles()), threads_(run, kOptions.threads),
        settings_(run, options_) {
    if (options_.transport == "data_sharing" && !options_.loan)
      throw kOptions.transport.error("data_sharing", "Fast DDS shares samples of fixed size only",
                                     "add option loan=yes");
    for (const auto& wanted : threads_.wanted())
      if (!wanted.thread.empty() && !kNamesThreads)
        throw threads_.error("Fast DDS gives its threads no names", "give fifo:PRIORITY for all of them");
    load_profiles();
    wait_.attach_condition(wake_);
  }

  // All components share one participant.
  void* create_node(const std::string& /*name*/) override {
    if (participant_ == nullptr) {
      participant_ = std::make_unique<Participant>(options_, run_);
      settings_.type.register_type(participant_->get());
      publisher_ = participant_->get()->create_publisher(dds::PUBLISHER_QOS_DEFAULT);
      subscriber_ = participant_->get()->create_subscriber(dds::SUBSCRIBER_QOS_DEFAULT);
      enforce_threads();
    }
    return this;
  }

  void watch(void* /*node*/, rtm_on_match on_match, void* user) override {
    watcher_ = {on_match, user, &wake_};
  }

  void* create_publisher(void* /*node*/, const std::string& topic) override {
    writers_.emplace_back(settings_, publisher_, make_topic(topic), topic, watcher_);
    enforce_threads();
    return &writers_.back();
  }

  void* create_subscriber(void* /*node*/, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    Reader& reader =
        readers_.emplace_back(settings_, subscriber_, make_topic(topic), topic, on_message, user, watcher_);
    if (!options_.listener) wait_.attach_condition(reader.condition());
    enforce_threads();
    return &reader;
  }

  void describe(rtmeter::Sink& sink) const override {
    options_.describe_effect(sink);
    threads_.describe(sink);
    sink.put("type", settings_.type.get_type_name());
    sink.put("delivery_within_process", delivery_within_process());
    if (participant_ == nullptr) return;
    std::vector<rtmeter_common::EndFacts> ends;
    for (const Writer& writer : writers_) ends.push_back(writer.facts());
    for (const Reader& reader : readers_) ends.push_back(reader.facts());
    rtmeter_common::describe_ends(sink, ends, participant_->others(),
                                  options_.discovery_scope(run_.payload_bytes));
  }

  int publish(void* publisher, const rtm_message& message) override {
    return static_cast<Writer*>(publisher)->write(message);
  }
  int spin(std::int64_t timeout_ns) override { return run(timeout_ns, false); }
  int wait(std::int64_t timeout_ns) override { return run(timeout_ns, true); }
  int spin_some() override {
    if (!options_.listener) take_all();
    return 0;
  }
  void interrupt() override {
    interrupted_.store(true);
    wake_.set_trigger_value(true);
  }

 private:
  dds::Topic* make_topic(const std::string& topic) {
    const std::string name = rtmeter_common::topic_name(run_, topic);
    if (auto* known = dynamic_cast<dds::Topic*>(participant_->get()->lookup_topicdescription(name)))
      return known;
    auto* made =
        participant_->get()->create_topic(name, settings_.type.get_type_name(), dds::TOPIC_QOS_DEFAULT);
    if (made == nullptr)
      throw rtmeter::SetupError("session", run_.session, "Fast DDS makes no topic " + name,
                                "see its messages in the cell's probe.stderr");
    return made;
  }

  void enforce_threads() {
    if (kNamesThreads) threads_.await_names(0);
    threads_.enforce();
  }

  void take_all() {
    for (Reader& reader : readers_) reader.take_all();
  }

  int run(std::int64_t timeout_ns, bool once) {
    constexpr std::int64_t kSecond = 1000000000;
    const bool endless = timeout_ns / kSecond >= INT32_MAX;
    const Duration_t timeout = endless ? infinite()
                                       : Duration_t(static_cast<std::int32_t>(timeout_ns / kSecond),
                                                    static_cast<std::uint32_t>(timeout_ns % kSecond));
    for (bool ended = false; !ended;) {
      const auto result = wait_.wait(ready_, timeout);
      if (result == kTimeout) return 0;
      if (result != kOk) return -1;
      if (!options_.listener) take_all();
      ended = once;
      // The flag is read after the condition was reset: no interrupt is missed.
      if (wake_.get_trigger_value()) {
        wake_.set_trigger_value(false);
        if (interrupted_.exchange(false)) ended = true;
      }
    }
    return 0;
  }

  const rtm_run run_;
  const rtmeter_dds::Options options_;
  rtmeter_common::ThreadPlan threads_;
  EndpointSettings settings_;
  dds::WaitSet wait_;
  dds::ConditionSeq ready_;
  dds::GuardCondition wake_;
  std::atomic<bool> interrupted_{false};
  Watcher watcher_;
  dds::Publisher* publisher_ = nullptr;
  dds::Subscriber* subscriber_ = nullptr;
  std::deque<Writer> writers_;
  std::deque<Reader> readers_;
  std::unique_ptr<Participant> participant_;  // last: its threads end before the readers go
};

}  // namespace
}  // namespace rtmeter_fastdds

RTMETER_ADAPTER_MAIN(rtmeter_fastdds::FastDds)
