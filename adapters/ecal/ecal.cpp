// ecal: eCAL 6 by its C++ interface, over shared memory or UDP. A topic's name holds the session's. Messages
// are called back on eCAL's own threads: its subscribers know no other way.
#include <ecal/ecal.h>
#include <sys/statvfs.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "../common/receive_buffer.hpp"
#include "../common/session.hpp"
#include "kept.hpp"
#include "rtmeter/adapter.hpp"

namespace {

using rtmeter::SetupError;
using std::chrono::steady_clock;

struct Options : rtmeter::OptionSet {
  rtmeter::Choice transport{*this, "transport", {"shm", "udp"}, "eCAL's layer that carries messages"};
  rtmeter::Flag zero_copy{*this, "zero_copy",
                          "by shm: a message is written and read where it lies, which is locked meanwhile"};
};

// What eCAL says after these words, to the end of the line; empty: it does not.
std::string after(const std::string& said, const std::string& words) {
  const std::size_t begin = said.find(words);
  if (begin == std::string::npos) return "";
  const std::size_t from = begin + words.size();
  return said.substr(from, said.find('\n', from) - from);
}

// Of a settings file that it cannot read eCAL leaves out what comes from the wrong section on; it says so on
// standard output only.
eCAL::Configuration settings() {
  std::ostringstream heard;
  std::streambuf* const out = std::cout.rdbuf(heard.rdbuf());
  eCAL::Configuration found = eCAL::Init::Configuration();
  std::cout.rdbuf(out);
  const std::string said = heard.str();
  std::cout << said << std::flush;
  const std::string error = after(said, "Error: ");
  if (!error.empty())
    throw SetupError("ecal.yaml", after(said, "Interpreted path: "), "eCAL cannot read it: " + error,
                     "correct it, or name the folder of another one in ECAL_DATA");
  return found;
}

// A message as eCAL has it written where it goes: the sequence number, then the payload.
class Frame final : public eCAL::CPayloadWriter {
 public:
  explicit Frame(const rtm_message& message) : message_(message) {}
  std::size_t GetSize() override { return sizeof message_.sequence + message_.bytes; }
  bool WriteFull(void* buffer, std::size_t size) override {
    if (size < GetSize()) return false;
    std::memcpy(buffer, &message_.sequence, sizeof message_.sequence);
    std::memcpy(static_cast<std::uint8_t*>(buffer) + sizeof message_.sequence, message_.data, message_.bytes);
    return true;
  }

 private:
  const rtm_message& message_;
};

rtm_message unframed(const void* buffer, std::size_t size) {
  rtm_message m{0, static_cast<const std::uint8_t*>(buffer) + sizeof m.sequence,
                static_cast<std::uint32_t>(size - sizeof m.sequence)};
  std::memcpy(&m.sequence, buffer, sizeof m.sequence);
  return m;
}

// Of a discovery: who is told how many ends of other processes one is connected with.
struct Watcher {
  rtm_on_match on_match = nullptr;
  void* user = nullptr;
};

struct Subscriber {
  std::string topic;
  rtm_on_message on_message;
  void* user;
  std::atomic<bool> greeted{false};
  std::unique_ptr<eCAL::CSubscriber> end{};
};

struct Publisher {
  std::string topic;
  std::unique_ptr<eCAL::CPublisher> end;
};

class Ecal final : public rtmeter::Adapter {
 public:
  static void describe_static(rtmeter::Sink& sink) {
    const eCAL::SVersion v = eCAL::GetVersion();
    const auto version =
        std::to_string(v.major) + "." + std::to_string(v.minor) + "." + std::to_string(v.patch);
    sink.put("name", "ecal").put("version", "1").put("wire", "ecal");
    sink.put("middleware", "Eclipse eCAL").put("middleware_version", version);
    for (const char* what : {"wakeup", "roundtrip", "cycle", "chain", "discovery"})
      sink.put("measures", what);
    sink.put("server", "same_host").put("drives.cycle", "sleep_then_spin_some");
    sink.put("receives.roundtrip", "listener").put("receives.cycle", "listener");
    for (const char* what : {"receives.chain", "receives.discovery"}) sink.put(what, "spin_once");
    sink.put("matches", "publisher").put("matches", "subscriber");
    for (const char* who : {"subscribers", "publishers", "background_nodes"}) sink.put("beside", who);
    sink.put("second_topic", "same_node");
    sink.put("brings", "rtmeter-probe-*: register, receive and call back; eCAL names none of its threads");
    Options().describe(sink);
  }

  explicit Ecal(const rtm_run& run) : run_(run), config_(settings()) {
    if (run.measurement != RTM_WAKEUP) choose_layer();
    kept_ = rtmeter_ecal::Kept<Subscriber>(depth());
    if (!eCAL::Initialize(config_, "rtmeter"))
      throw SetupError("adapter", "eCAL::Initialize", "eCAL does not start",
                       "see its messages in the cell's probe.stderr, and its ecal.yaml");
  }
  // That ends have left eCAL tells with its next registration, which Finalize() does not wait for.
  ~Ecal() override {
    for (const Subscriber& one : subscribers_)
      if (one.end != nullptr) one.end->RemoveReceiveCallback();  // waits for one under way
    subscribers_.clear();
    publishers_.clear();
    if (run_.measurement == RTM_DISCOVERY)
      std::this_thread::sleep_for(std::chrono::milliseconds(config_.registration.registration_refresh));
    eCAL::Finalize();
  }

  void describe(rtmeter::Sink& sink) const override {
    if (!config_.GetConfigurationFilePath().empty())
      sink.put("ecal_yaml", config_.GetConfigurationFilePath());
    if (run_.measurement == RTM_WAKEUP) return;
    sink.put("transport", shm_ ? "shm" : "udp")
        .put("qos.reliability", reliable() ? "reliable" : "best_effort");
    if (shm_) sink.put("zero_copy", config_.publisher.layer.shm.zero_copy_mode ? "yes" : "no");
    describe_history(sink);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!incompatible_.empty()) sink.put("incompatible_qos", incompatible_);
    }
    std::string found;
    for (const Publisher& one : publishers_)
      found += ", " + std::to_string(one.end->GetSubscriberCount()) + " subscribers of " + one.topic;
    for (const Subscriber& one : subscribers_)
      found += ", " + std::to_string(one.end->GetPublisherCount()) + " publishers of " + one.topic;
    if (found.empty()) return;
    const bool local = config_.communication_mode == eCAL::eCommunicationMode::local;
    const std::string where = std::string(shm_ ? "shm" : "udp") + (local ? ", this host" : ", the network");
    const std::string doubt = shm_ ? "" : rtmeter_common::too_large_to_receive(run_.payload_bytes);
    sink.put_chosen("discovery", "eCAL's registration, " + where + ": found" + found.substr(1) + doubt);
  }

  void watch(void* /*node*/, rtm_on_match on_match, void* user) override { watcher_ = {on_match, user}; }

  void* create_publisher(void* /*node*/, const std::string& topic) override {
    const std::string name = rtmeter_common::topic_name(run_, topic);
    const auto on_event = when_met<eCAL::ePublisherEvent>(RTM_PUBLISHER, "publisher of " + topic,
                                                          &eCAL::SPubEventCallbackData::subscriber_datatype);
    publishers_.push_back(
        {name, std::make_unique<eCAL::CPublisher>(name, type(), on_event, config_.publisher)});
    return &publishers_.back();
  }

  void* create_subscriber(void* /*node*/, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    Subscriber& subscriber = subscribers_.emplace_back();
    subscriber.topic = rtmeter_common::topic_name(run_, topic);
    subscriber.on_message = on_message;
    subscriber.user = user;
    const auto on_event = when_met<eCAL::eSubscriberEvent>(RTM_SUBSCRIBER, "subscriber of " + topic,
                                                           &eCAL::SSubEventCallbackData::publisher_datatype);
    subscriber.end =
        std::make_unique<eCAL::CSubscriber>(subscriber.topic, type(), on_event, config_.subscriber);
    subscriber.end->SetReceiveCallback([this, &subscriber](const eCAL::STopicId& publisher,
                                                           const eCAL::SDataTypeInformation& /*type*/,
                                                           const eCAL::SReceiveCallbackData& data) {
      if (data.buffer_size >= sizeof(rtm_message::sequence))
        hear(subscriber, publisher.topic_id.entity_id, data);
    });
    if (run_.measurement == RTM_CYCLE) await_publisher(subscriber);
    return &subscriber;
  }

  // What nobody has subscribed to eCAL does not send, and returns false as for a failure.
  int publish(void* publisher, const rtm_message& message) override {
    eCAL::CPublisher& end = *static_cast<Publisher*>(publisher)->end;
    Frame frame(message);
    return end.Send(frame) || end.GetSubscriberCount() == 0 ? 0 : -1;
  }

  int spin(std::int64_t timeout_ns) override { return wait(timeout_ns); }
  // Until interrupt(), the timeout or, of a chain or discovery, a message or a match.
  int wait(std::int64_t timeout_ns) override {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto woken = [this] { return interrupted_ || matched_ || !kept_.empty(); };
    if (timeout_ns >= kForever)
      changed_.wait(lock, woken);
    else
      changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), woken);
    interrupted_ = matched_ = false;
    kept_.take(taken_);
    lock.unlock();
    for (const auto& one : taken_) {
      const rtm_message m = unframed(one.bytes.data(), one.bytes.size());
      one.subscriber->on_message(one.subscriber->user, &m);
    }
    taken_.clear();
    return 0;
  }
  void interrupt() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      interrupted_ = true;
    }
    changed_.notify_all();
  }

 private:
  static constexpr std::int64_t kForever = std::int64_t{1} << 60;

  bool reliable() const { return run_.reliability == RTM_RELIABLE; }
  // Messages are handled by the measured thread, for which they are kept.
  bool keeps() const { return run_.measurement == RTM_CHAIN || run_.measurement == RTM_DISCOVERY; }
  // The sender waits for the callback, or in time for none.
  bool acknowledges() const { return shm_ && config_.publisher.layer.shm.acknowledge_timeout_ms > 0; }
  // Of a publisher, as its files are; by UDP it has none. 0: all that the sender has waited for.
  std::uint32_t depth() const {
    return acknowledges() ? 0 : shm_ ? config_.publisher.layer.shm.memfile_buffer_count : run_.history_depth;
  }

  // By which layer a message comes is part of its type: ends of different layers count as connected, and hear
  // nothing of each other.
  eCAL::SDataTypeInformation type() const { return {"rtmeter message", shm_ ? "shm" : "udp", ""}; }

  // Ends of other processes that one is connected with, told at each change.
  template <typename Event, typename Data>
  std::function<void(const eCAL::STopicId&, const Data&)> when_met(
      rtm_end end, const std::string& name, eCAL::SDataTypeInformation Data::* its_type) {
    return [this, watcher = watcher_, end, name, its_type, others = std::set<eCAL::EntityIdT>()](
               const eCAL::STopicId& other, const Data& data) mutable {
      const auto& id = other.topic_id;
      if (data.event_type == Event::connected && data.*its_type != type()) {
        const std::lock_guard<std::mutex> lock(mutex_);
        incompatible_ = "transport (" + name + ")";
      }
      if (watcher.on_match == nullptr || id.process_id == eCAL::Process::GetProcessID()) return;
      if (data.event_type == Event::connected) others.insert(id.entity_id);
      if (data.event_type == Event::disconnected) others.erase(id.entity_id);
      watcher.on_match(watcher.user, end, static_cast<std::int32_t>(others.size()));
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        matched_ = true;
      }
      changed_.notify_all();
    };
  }

  // What ecal.yaml says of a layer holds as far as the run says nothing else.
  void choose_layer() {
    const Options options;
    shm_ = options.transport.of(run_) == "shm";
    auto& publisher = config_.publisher.layer;
    auto& subscriber = config_.subscriber.layer;
    publisher.shm.enable = subscriber.shm.enable = shm_;
    publisher.udp.enable = subscriber.udp.enable = !shm_;
    publisher.tcp.enable = subscriber.tcp.enable = false;
    using eCAL::TransportLayer::eType;
    config_.publisher.layer_priority_local =
        config_.publisher.layer_priority_remote = {shm_ ? eType::shm : eType::udp_mc};
    if (!shm_ && reliable())
      throw SetupError("reliability", "reliable", "by UDP eCAL does not repeat what is lost",
                       "choose best_effort, or option transport=shm");
    if (!shm_ && !keeps() && run_.history_depth_asked > 0)
      throw SetupError("history_depth", std::to_string(run_.history_depth_asked),
                       "by UDP messages wait in the socket's buffer, which counts bytes",
                       "leave it out, or choose option transport=shm");
    if (!shm_) return;
    auto& memory = publisher.shm;
    if (options.zero_copy.given(run_)) memory.zero_copy_mode = options.zero_copy.of(run_);
    if (!reliable() && run_.history_depth_asked > 0)
      memory.memfile_buffer_count = files_for(run_.history_depth);
    // As eCAL's own latency_snd has it.
    if (reliable() && memory.acknowledge_timeout_ms == 0) memory.acknowledge_timeout_ms = 100;
    // A message for which a file is too small has it made anew, and all told of it.
    memory.memfile_min_size_bytes += run_.payload_bytes;
    find_room(std::uint64_t{memory.memfile_buffer_count} * memory.memfile_min_size_bytes);
  }
  // eCAL takes memory for its files when it first writes to them; where there is none a signal ends it.
  void find_room(std::uint64_t bytes_of_an_end) const {
    struct statvfs there{};
    if (statvfs("/dev/shm", &there) != 0) return;
    const std::uint64_t room = std::uint64_t{there.f_bavail} * there.f_frsize;
    if (2 * bytes_of_an_end <= room) return;
    throw SetupError("payload_bytes", std::to_string(run_.payload_bytes),
                     "/dev/shm has room for " + std::to_string(room) +
                         " bytes, the files of both ends take " + std::to_string(2 * bytes_of_an_end),
                     "make room there (mount -o remount,size=1G /dev/shm), or choose a smaller payload or "
                     "history depth");
  }
  // eCAL's files of messages have no limit of their own, but each has a thread at whoever reads it.
  static unsigned files_for(std::uint32_t depth) {
    constexpr std::uint32_t kMost = 100;
    if (depth > kMost)
      throw SetupError(
          "history_depth", std::to_string(depth), "each message has a file, and a thread that reads it",
          "give at most " + std::to_string(kMost) + ", or reliability=reliable, which needs one");
    return depth;
  }
  void describe_history(rtmeter::Sink& sink) const {
    if (acknowledges()) {
      sink.put("qos.history", keeps() ? "wait_for_reader, which keeps all" : "wait_for_reader");
      sink.put("acknowledge_timeout_ms", std::to_string(config_.publisher.layer.shm.acknowledge_timeout_ms));
    } else if (shm_ || keeps()) {
      sink.put("qos.history", "keep_last").put("qos.depth", std::to_string(depth()));
    } else {
      sink.put("qos.history", "the receiving socket's buffer, dropping what is new");
    }
  }

  // On a thread of eCAL's, one at a time for a subscriber. Measured path.
  void hear(Subscriber& subscriber, std::uint64_t publisher, const eCAL::SReceiveCallbackData& data) {
    const rtm_message m = unframed(data.buffer, data.buffer_size);
    if (run_.measurement == RTM_CYCLE && m.sequence == RTM_SEQUENCE_HELLO) {
      subscriber.greeted.store(true);
    } else if (keeps()) {
      const auto* bytes = static_cast<const std::uint8_t*>(data.buffer);
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        kept_.add(subscriber, publisher, {bytes, bytes + data.buffer_size});
      }
      changed_.notify_all();
    } else {
      subscriber.on_message(subscriber.user, &m);
    }
  }

  // eCAL brings ends together within seconds; in one process that has to be over before the first request.
  void await_publisher(const Subscriber& subscriber) {
    const std::vector<std::uint8_t> payload(run_.payload_bytes);
    const rtm_message hello{RTM_SEQUENCE_HELLO, payload.data(), run_.payload_bytes};
    for (const auto give_up = steady_clock::now() + std::chrono::seconds(20); !subscriber.greeted.load();) {
      if (steady_clock::now() > give_up)
        throw SetupError("topic", subscriber.topic, "eCAL does not bring its ends together",
                         "see its messages in the cell's probe.stderr, and its ecal.yaml");
      for (Publisher& one : publishers_)
        if (one.topic == subscriber.topic) publish(&one, hello);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  const rtm_run run_;
  eCAL::Configuration config_;
  bool shm_ = false;
  Watcher watcher_;
  mutable std::mutex mutex_;
  std::string incompatible_;
  std::condition_variable changed_;
  bool interrupted_ = false, matched_ = false;
  rtmeter_ecal::Kept<Subscriber> kept_;
  rtmeter_ecal::Kept<Subscriber>::Messages taken_;
  std::deque<Publisher> publishers_;
  std::deque<Subscriber> subscribers_;
};

}  // namespace

RTMETER_ADAPTER_MAIN(Ecal)
