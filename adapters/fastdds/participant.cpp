#include "participant.hpp"

#include <unistd.h>

#include <fastdds/dds/log/Log.hpp>
#include <memory>
#include <mutex>
#include <utility>

namespace rtmeter_fastdds {
namespace {

using eprosima::fastdds::rtps::SharedMemTransportDescriptor;
using eprosima::fastdds::rtps::UDPv4TransportDescriptor;
using rtps::IPLocator;
using rtps::Locator_t;

// What Fast DDS says is wrong while it is listened to, kept besides being printed. A process has one: Fast
// DDS takes consumers and gives none back.
class Complaints final : public dds::LogConsumer {
 public:
  static void begin() {
    static std::once_flag once;
    std::call_once(once, [] { dds::Log::RegisterConsumer(std::make_unique<Complaints>()); });
    const std::lock_guard<std::mutex> lock(kept().mutex);
    kept().open = true;
  }
  static std::string end() {
    dds::Log::Flush();
    const std::lock_guard<std::mutex> lock(kept().mutex);
    kept().open = false;
    return std::exchange(kept().text, {});
  }
  void Consume(const dds::Log::Entry& entry) override {
    const std::lock_guard<std::mutex> lock(kept().mutex);
    if (kept().open && entry.kind == dds::Log::Kind::Error)
      kept().text += (kept().text.empty() ? "" : "; ") + entry.message;
  }

 private:
  struct Kept {
    std::mutex mutex;
    bool open = false;
    std::string text;
  };
  static Kept& kept() {
    static Kept& one = *new Kept;  // the log's thread may outlive what is destroyed at the end
    return one;
  }
};

// Hosts that are asked besides those that a multicast reaches.
void add_peers(const rtmeter_dds::Options& options, dds::DomainParticipantQos& qos) {
  auto& wire = qos.wire_protocol();
  Locator_t everybody;
  IPLocator::setIPv4(everybody, "239.255.0.1");
  everybody.port = wire.port.getMulticastPort(options.domain);
  wire.builtin.initialPeersList.push_back(everybody);
  for (const std::string& peer : options.peers) {
    Locator_t locator;
    if (!IPLocator::setIPv4(locator, peer))
      throw rtmeter::SetupError("option peers", peer, "is no IPv4 address",
                                "give addresses such as 192.168.1.2");
    locator.port = 0;  // those of its first participants
    wire.builtin.initialPeersList.push_back(locator);
  }
}

dds::DomainParticipantQos qos_of(const rtmeter_dds::Options& options, const rtm_run& run) {
  dds::DomainParticipantQos qos =
      dds::DomainParticipantFactory::get_instance()->get_default_participant_qos();
  if (options.transport == "vendor") return qos;
  qos.transport().use_builtin_transports = false;
  qos.transport().user_transports.clear();
  if (options.transport == "shm") {
    const auto shm = std::make_shared<SharedMemTransportDescriptor>();
    constexpr std::uint32_t kOrdinary = 512 << 10;
    const std::uint64_t wanted = std::uint64_t{4} * (run.history_depth + 1) * run.payload_bytes;
    if (wanted > UINT32_MAX / 2)
      throw rtmeter::SetupError("payload_bytes", std::to_string(run.payload_bytes),
                                "with this history depth it needs a segment of " + std::to_string(wanted) +
                                    " bytes, and Fast DDS's shared memory has at most 2 GiB",
                                "choose a smaller payload or history depth");
    shm->segment_size(std::max(kOrdinary, static_cast<std::uint32_t>(wanted)));
    qos.transport().user_transports.push_back(shm);
  } else {
    constexpr std::uint32_t kParticipants = 50;  // on a host, of one domain
    const auto udp = std::make_shared<UDPv4TransportDescriptor>();
    udp->interfaceWhiteList = {options.interface.address};
    udp->maxInitialPeersRange = kParticipants;
    qos.transport().user_transports.push_back(udp);
    add_peers(options, qos);
  }
  return qos;
}

// Two participants of one process (a second topic's is another) announce themselves by calls into each other
// by default, under the locks of both: of version 2.9 now and then (4 of 50 starts on one CPU) each waits for
// the other's for ever. Messages instead; what users send is still handed over.
void keep_discovery_out_of_locks() {
  auto settings = library_settings();
  if (settings.intraprocess_delivery != library::INTRAPROCESS_FULL) return;
  settings.intraprocess_delivery = library::INTRAPROCESS_USER_DATA_ONLY;
  set_library_settings(settings);
}

}  // namespace

rtmeter_dds::UserSettings profiles() {
  const std::string named = rtmeter_common::environment(kProfilesVariable);
  if (!named.empty()) return {kProfilesVariable, named};
  const bool is_used =
      rtmeter_common::environment("SKIP_DEFAULT_XML") != "1" && access(kProfilesFile, F_OK) == 0;
  return {kProfilesFile, is_used ? kProfilesFile : ""};
}

void load_profiles() {
  auto* factory = dds::DomainParticipantFactory::get_instance();
  Complaints::begin();
  const auto [name, file] = profiles();
  // One that is there in the folder Fast DDS loads by itself; loading it twice is an error to version 3.
  const bool loaded = name != kProfilesVariable || factory->load_XML_profiles_file(file) == kOk;
  factory->load_profiles();
  const std::string complaints = Complaints::end();
  if (!loaded || !complaints.empty())
    throw rtmeter::SetupError(name, file, "Fast DDS: " + complaints, "correct the file, or leave it out");
  if (file.empty()) keep_discovery_out_of_locks();
}

std::string delivery_within_process() {
  const auto delivery = library_settings().intraprocess_delivery;
  return delivery == library::INTRAPROCESS_FULL  ? "full"
         : delivery == library::INTRAPROCESS_OFF ? "off"
                                                 : "user_data_only";
}

Participant::Participant(const rtmeter_dds::Options& options, const rtm_run& run) {
  auto* factory = dds::DomainParticipantFactory::get_instance();
  participant_ =
      factory->create_participant(options.domain, qos_of(options, run), this, dds::StatusMask::none());
  if (participant_ == nullptr)
    throw rtmeter::SetupError(
        "option transport", options.transport, "Fast DDS makes no participant",
        "see its messages in the cell's probe.stderr; choose another transport or domain");
}

Participant::~Participant() {
  participant_->set_listener(nullptr);
  participant_->delete_contained_entities();
  dds::DomainParticipantFactory::get_instance()->delete_participant(participant_);
}

void Participant::on_discovery(DiscoveryStatus status) {
  if (status == Discovery::DISCOVERED_PARTICIPANT) ++others_;
  if (status == Discovery::REMOVED_PARTICIPANT || status == Discovery::DROPPED_PARTICIPANT) --others_;
}

}  // namespace rtmeter_fastdds
