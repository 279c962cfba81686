// The Cyclone DDS adapter, over its C API.
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "../common/dds/options.hpp"
#include "dds/version.h"
#include "domain.hpp"
#include "entities.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_cyclonedds {
namespace {

// Cyclone makes each domain once a process: a second adapter has a participant of the same one.
std::shared_ptr<Entity> domain_of_process(const rtmeter_dds::Options& options,
                                          const rtmeter_common::ThreadPlan& threads) {
  static std::weak_ptr<Entity> known;
  std::shared_ptr<Entity> domain = known.lock();
  if (domain == nullptr) known = domain = std::make_shared<Entity>(create_domain(options, threads));
  return domain;
}

struct Listener {
  Listener(dds_on_data_available_fn on_data_available, void* argument)
      : handle(dds_create_listener(argument)) {
    dds_lset_data_available(handle, on_data_available);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { dds_delete_listener(handle); }
  dds_listener_t* const handle;
};

const rtmeter_dds::OptionSet kOptions(
    {"udp", "shm", "vendor"},
    "UDP on one interface; iceoryx's shared memory, for which iox-roudi must run; or what CYCLONEDDS_URI and "
    "Cyclone's defaults say",
    "fifo:P for all of Cyclone's threads, or recv=fifo:P,tev=fifo:Q,... for some, by its settings");

class Cyclone final : public rtmeter::Adapter {
 public:
  static void describe_static(rtmeter::Sink& sink) {
    sink.put("name", "cyclonedds").put("version", "1");
    sink.put("middleware", "Eclipse Cyclone DDS").put("middleware_version", DDS_VERSION);
    for (const char* what : {"gc: frees what is no longer used", "tev: timed events",
                             "recv*: take in datagrams", "dq.*: deliver what came"})
      sink.put("brings", what);
    sink.put("same_host.transport", "shm");
    rtmeter_dds::describe_measurements(sink);
    rtmeter_dds::describe(kOptions, sink);
  }

  explicit Cyclone(const rtm_run& run)
      : run_(run), options_(run, kOptions, {"vendor"},
                            {"CYCLONEDDS_URI", rtmeter_common::environment("CYCLONEDDS_URI")}),
        threads_(run, kOptions.threads), types_(run, options_),
        domain_(domain_of_process(options_, threads_)) {
    threads_.await_names(options_.transport == "shm" ? 1 : 0);  // iceoryx names one of its two only
    threads_.enforce();
  }

  ~Cyclone() override {
    if (participant_ > 0) dds_delete(participant_);  // the domain may be another's too
  }

  // All components share one participant.
  void* create_node(const std::string& /*name*/) override {
    if (participant_ == 0) {
      participant_ = created(dds_create_participant(options_.domain, nullptr, nullptr), "participant");
      wake_ = created(dds_create_guardcondition(participant_), "guard condition");
      waitset_ = created(dds_create_waitset(participant_), "wait-set");
      created(dds_waitset_attach(waitset_, wake_, kWake), "wait-set");
    }
    return this;
  }

  void watch(void* /*node*/, rtm_on_match on_match, void* user) override {
    on_match_ = on_match;
    watcher_ = user;
  }

  void* create_publisher(void* /*node*/, const std::string& topic) override {
    const dds_entity_t writer =
        dds_create_writer(participant_, make_topic(topic), Qos(run_, options_, true).get(), nullptr);
    ends_.push_back({topic, created(writer, "writer"), true});
    if (on_match_ != nullptr) wait_for_matches(writer, DDS_PUBLICATION_MATCHED_STATUS, kWriterMatched);
    check_transport(ends_.back());
    threads_.enforce();
    return &writers_.emplace_back(types_, writer);
  }

  void* create_subscriber(void* /*node*/, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    Reader& reader = readers_.emplace_back(types_, on_message, user);
    reader.entity =
        created(dds_create_reader(participant_, make_topic(topic), Qos(run_, options_, false).get(), nullptr),
                "reader");
    ends_.push_back({topic, reader.entity, false});
    if (on_match_ != nullptr)
      wait_for_matches(reader.entity, DDS_SUBSCRIPTION_MATCHED_STATUS, kReaderMatched);
    check_transport(ends_.back());
    if (options_.listener) {
      const Listener listener(&Cyclone::on_data_available, &reader);  // only now: it uses the entity
      created(dds_set_listener(reader.entity, listener.handle), "listener");
    } else {
      const dds_entity_t any =
          created(dds_create_readcondition(reader.entity, DDS_ANY_STATE), "read condition");
      created(dds_waitset_attach(waitset_, any, static_cast<dds_attach_t>(readers_.size() - 1)), "wait-set");
    }
    threads_.enforce();
    return &reader;
  }

  void describe(rtmeter::Sink& sink) const override {
    options_.describe_effect(sink);
    threads_.describe(sink);
    sink.put("type", types_.name());
    describe_ends(sink, ends_, participant_, options_.discovery_scope(run_.payload_bytes));
  }

  int publish(void* publisher, const rtm_message& message) override {
    return static_cast<Writer*>(publisher)->write(message);
  }
  int spin(std::int64_t timeout_ns) override { return run(timeout_ns, false); }
  int wait(std::int64_t timeout_ns) override { return run(timeout_ns, true); }
  int spin_some() override {
    if (!options_.listener)
      for (Reader& reader : readers_) reader.take_all();
    return 0;
  }
  void interrupt() override {
    interrupted_.store(true);
    dds_set_guardcondition(wake_, true);
  }

 private:
  dds_entity_t make_topic(const std::string& topic) const {
    return created(dds_create_topic(participant_, types_.descriptor(),
                                    rtmeter_common::topic_name(run_, topic).c_str(), nullptr, nullptr),
                   "topic");
  }

  // A setting that did not take is an error.
  void check_transport(const End& end) const {
    if (options_.transport == "shm" && !dds_is_shared_memory_available(end.entity))
      throw kOptions.transport.error("shm", "topic " + end.topic + " does not go through shared memory",
                                     "see Cyclone's conditions for it: keep last, a depth that iceoryx has");
    if (options_.loan && !dds_is_loan_available(end.entity))
      throw kOptions.loan.error("yes", "Cyclone DDS lends only memory of iceoryx",
                                "add option transport=shm");
  }

  void wait_for_matches(dds_entity_t end, std::uint32_t status, dds_attach_t known_as) {
    created(dds_set_status_mask(end, status), "status mask");
    created(dds_waitset_attach(waitset_, end, known_as), "wait-set");
    (known_as == kWriterMatched ? watched_writer_ : watched_reader_) = end;
  }

  // Reading the status resets it.
  void tell_matches(dds_attach_t of) noexcept {
    if (of == kWriterMatched) {
      dds_publication_matched_status_t matched{};
      dds_get_publication_matched_status(watched_writer_, &matched);
      on_match_(watcher_, RTM_PUBLISHER, static_cast<std::int32_t>(matched.current_count));
    } else {
      dds_subscription_matched_status_t matched{};
      dds_get_subscription_matched_status(watched_reader_, &matched);
      on_match_(watcher_, RTM_SUBSCRIBER, static_cast<std::int32_t>(matched.current_count));
    }
  }

  // A thread of Cyclone's.
  static void on_data_available(dds_entity_t /*reader*/, void* reader) {
    static_cast<Reader*>(reader)->take_all();
  }

  int run(std::int64_t timeout_ns, bool once) noexcept {
    constexpr std::size_t kMost = 8;
    dds_attach_t ready[kMost];
    for (bool ended = false; !ended;) {
      const dds_return_t count = dds_waitset_wait(waitset_, ready, kMost, timeout_ns);
      if (count < 0) return -1;
      ended = once || count == 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(count) && i < kMost; ++i) {
        if (ready[i] == kWriterMatched || ready[i] == kReaderMatched) {
          tell_matches(ready[i]);
        } else if (ready[i] != kWake) {
          readers_[static_cast<std::size_t>(ready[i])].take();
        } else {  // the flag is read after the condition was reset: no interrupt is missed
          bool was_set;
          dds_take_guardcondition(wake_, &was_set);
          if (interrupted_.exchange(false)) ended = true;
        }
      }
    }
    return 0;
  }

  // In the wait-set; others are indices of readers_.
  static constexpr dds_attach_t kWake = -1, kWriterMatched = -2, kReaderMatched = -3;

  const rtm_run run_;
  const rtmeter_dds::Options options_;
  rtmeter_common::ThreadPlan threads_;
  const Types types_;
  dds_entity_t participant_ = 0, wake_ = 0, waitset_ = 0;
  dds_entity_t watched_writer_ = 0, watched_reader_ = 0;
  rtm_on_match on_match_ = nullptr;  // of a discovery
  void* watcher_ = nullptr;
  std::vector<End> ends_;
  std::deque<Writer> writers_;
  std::deque<Reader> readers_;
  std::atomic<bool> interrupted_{false};
  std::shared_ptr<Entity> domain_;  // last: its threads end before the readers go
};

}  // namespace
}  // namespace rtmeter_cyclonedds

RTMETER_ADAPTER_MAIN(rtmeter_cyclonedds::Cyclone)
