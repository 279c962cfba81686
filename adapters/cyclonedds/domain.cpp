#include "domain.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <regex>

#include "dds/ddsrt/log.h"

namespace rtmeter_cyclonedds {
namespace {

// The threads that Cyclone's settings can name. The receivers that it starts besides, recvUC and recvMC,
// are not among them.
constexpr const char* kThreads[] = {"gc", "lease", "recv", "tev", "dq.builtins", "dq.user", "xmit.user"};

// What Cyclone says is wrong while this lives; it goes to standard error all the same.
class Complaints {
 public:
  Complaints() { dds_set_log_sink(&Complaints::hear, this); }
  ~Complaints() { dds_set_log_sink(nullptr, nullptr); }
  Complaints(const Complaints&) = delete;
  Complaints& operator=(const Complaints&) = delete;

  std::string text() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return text_.empty() ? "it gives no reason" : text_;
  }

 private:
  static void hear(void* self_pointer, const dds_log_data_t* data) {
    auto* self = static_cast<Complaints*>(self_pointer);
    std::fprintf(stderr, "%s", data->message - data->hdrsize);
    if ((data->priority & (DDS_LC_ERROR | DDS_LC_FATAL | DDS_LC_WARNING)) == 0) return;
    std::string line(data->message, data->size);
    while (!line.empty() && line.back() == '\n') line.pop_back();
    const std::lock_guard<std::mutex> lock(self->mutex_);
    self->text_ += (self->text_.empty() ? "" : "; ") + line;
  }

  std::mutex mutex_;
  std::string text_;
};

// What Cyclone would pass over without a word, or add to what the options say.
void check_settings(const rtmeter_dds::Options& options) {
  std::string text;
  for (const std::string& part : rtmeter_common::split(options.settings, ',')) {
    std::ifstream file(part.compare(0, 7, "file://") == 0 ? part.substr(7) : part);
    text += part.find('<') == std::string::npos
                ? std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>())
                : part;
  }
  if (!options.interface.address.empty() && text.find("<NetworkInterface") != std::string::npos)
    throw rtmeter::SetupError("option transport", options.transport,
                              "CYCLONEDDS_URI chooses interfaces too: Cyclone DDS would use them all",
                              "leave out the option, or the interfaces in " + options.settings);
  static const std::regex id("<Domain\\s[^>]*\\bid\\s*=\\s*[\"']([^\"']*)[\"']", std::regex::icase);
  std::string other;
  for (auto i = std::sregex_iterator(text.begin(), text.end(), id); i != std::sregex_iterator(); ++i) {
    other = (*i)[1].str();
    if (other == "any" || other == std::to_string(options.domain)) return;
  }
  if (other.empty()) return;
  throw rtmeter::SetupError(
      "CYCLONEDDS_URI", options.settings,
      "its settings are for domain " + other + ", and the run uses " + std::to_string(options.domain),
      "write Domain Id=\"any\" there, or give --option domain=" + other);
}

// Cyclone passes over a peer that it does not know, with a word on standard error.
void check_peers(const rtmeter_dds::Options& options) {
  for (const std::string& peer : options.peers) {
    addrinfo wanted{}, *found = nullptr;
    wanted.ai_family = AF_INET;
    const std::string host = peer.substr(0, peer.find(':'));
    if (getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0)
      throw rtmeter::SetupError("option peers", peer, "is no IPv4 address, nor a name that has one here",
                                "give addresses such as 192.168.1.2");
    freeaddrinfo(found);
  }
}

std::string network(const rtmeter_dds::Options& options) {
  if (options.interface.address.empty()) return "";
  std::string peers;
  for (const std::string& peer : options.peers) peers += "<Peer Address=\"" + peer + "\"/>";
  // The loopback interface does not say so, but it can do multicast.
  const bool loopback = options.interface.address.compare(0, 4, "127.") == 0;
  return "<General><Interfaces><NetworkInterface address=\"" + options.interface.address + "\"" +
         (loopback ? " multicast=\"true\"" : "") +
         "/></Interfaces></General>"
         "<Discovery><ParticipantIndex>auto</ParticipantIndex>"
         "<MaxAutoParticipantIndex>50</MaxAutoParticipantIndex><Peers>" +
         peers + "</Peers></Discovery>";
}

// iceoryx ends a process that finds no daemon of its: it is looked for first.
std::string shared_memory(const rtmeter_dds::Options& options) {
  if (options.transport != "shm") return "";
  const int probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un daemon{};
  daemon.sun_family = AF_UNIX;
  std::strcpy(daemon.sun_path, "/tmp/roudi");
  const bool runs = connect(probe, reinterpret_cast<const sockaddr*>(&daemon), sizeof daemon) == 0;
  close(probe);
  if (!runs)
    throw rtmeter::SetupError("option transport", "shm",
                              "iox-roudi does not run: nothing listens at /tmp/roudi",
                              "start iox-roudi (Debian's package iceoryx), or choose transport=udp");
  return "<SharedMemory><Enable>true</Enable></SharedMemory>";
}

std::string priorities(const rtmeter_common::ThreadPlan& threads) {
  std::string xml;
  for (const char* name : kThreads) {
    const rtmeter_common::ThreadPriority* wanted = threads.wanted_for(name);
    if (wanted == nullptr) continue;
    if (wanted->policy != SCHED_FIFO)
      throw threads.error("Cyclone's settings know no round robin", "give fifo:PRIORITY");
    xml += std::string("<Thread Name=\"") + name + "\"><Scheduling><Class>realtime</Class><Priority>" +
           std::to_string(wanted->priority) + "</Priority></Scheduling></Thread>";
  }
  return xml.empty() ? "" : "<Threads>" + xml + "</Threads>";
}

}  // namespace

dds_entity_t create_domain(const rtmeter_dds::Options& options, const rtmeter_common::ThreadPlan& threads) {
  check_settings(options);
  check_peers(options);
  const std::string& user = options.settings;
  const std::string ours = network(options) + shared_memory(options) + priorities(threads);
  std::string settings = user;
  if (!ours.empty())
    settings +=
        (user.empty() ? "" : ",") + ("<CycloneDDS><Domain Id=\"any\">" + ours + "</Domain></CycloneDDS>");

  Complaints complaints;
  const dds_entity_t domain = dds_create_domain(options.domain, settings.c_str());
  if (domain >= 0) return domain;
  const std::string why = "Cyclone DDS does not start: " + complaints.text();
  if (!user.empty())
    throw rtmeter::SetupError("CYCLONEDDS_URI", user, why, "correct the settings, or unset it");
  throw rtmeter::SetupError("option transport", options.transport, why,
                            "choose another transport, interface or domain");
}

dds_entity_t created(dds_entity_t result, const std::string& what) {
  if (result < 0)
    throw rtmeter::SetupError("adapter", what, std::string("Cyclone DDS: ") + dds_strretcode(-result),
                              "see its messages in the cell's probe.stderr");
  return result;
}

}  // namespace rtmeter_cyclonedds
