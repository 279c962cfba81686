// Round trip through shared memory, waiting on a futex or by looking all the time. The memory is a memfd
// that the client opens by its server's /proc entry: it has no name, so nothing is left behind.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "mapping.hpp"
#include "messaging.hpp"
#include "options.hpp"
#include "ring.hpp"
#include "rtmeter/event_count.hpp"
#include "system.hpp"
#include "wire.hpp"

namespace rtmeter_posix {
namespace {

constexpr std::uint32_t kMagic = 0x4d485352, kVersion = 1;

// The start of the memory; the ring to the server follows, then the one to the client.
struct Region {
  std::uint32_t magic, version;
  std::uint64_t tag;        // tag_of(session)
  std::uint32_t max_bytes;  // of a payload
  std::uint32_t busy;       // 1: nobody is notified
  alignas(64) rtmeter::ProcessEventCount events[2];  // for the server, for the client
};

std::size_t bytes_for(std::size_t max_bytes) { return sizeof(Region) + 2 * Ring::size_of(max_bytes); }

class SharedMemory final : public Messaging, private Loop {
 public:
  SharedMemory(const rtm_run& run, bool busy) : busy_(busy), is_server_(run.role == RTM_ROLE_SERVER) {
    if (is_server_)
      create(run);
    else
      attach(run);
    region_ = reinterpret_cast<Region*>(memory_.data());
    const std::size_t max_bytes = region_->max_bytes;
    slots_ = Ring::slots_for(max_bytes);
    Ring to_server(memory_.data() + sizeof(Region), max_bytes);
    Ring to_client(memory_.data() + sizeof(Region) + Ring::size_of(max_bytes), max_bytes);
    in_ = is_server_ ? to_server : to_client;
    out_ = is_server_ ? to_client : to_server;
    while (in_.take([](const rtm_message&) {})) {  // what a client that died did not take
    }
  }

  void* create_publisher(void* /*node*/, const std::string& topic) override {
    only_one(std::exchange(publishes_, true), topic);
    return this;
  }

  void* create_subscriber(void* /*node*/, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    only_one(subscription_.on_message != nullptr, topic);
    subscription_ = {on_message, user};
    return this;
  }

  void describe(rtmeter::Sink& sink) const override {
    sink.put("qos.reliability", "reliable");
    sink.put("qos.history", "queue of " + std::to_string(slots_) + " messages, refusing more");
    if (is_server_)
      sink.put_chosen("endpoint", "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd_.get()));
  }

  int publish(void* /*publisher*/, const rtm_message& message) noexcept override {
    if (!out_.put(message)) return -1;
    if (!busy_) region_->events[is_server_ ? 1 : 0].notify();
    return 0;
  }

  Loop& loop() noexcept override { return *this; }

 private:
  int block(std::int64_t timeout_ns) noexcept override {
    return busy_ ? look(timeout_ns) : sleep(timeout_ns);
  }

  int sleep(std::int64_t timeout_ns) noexcept {
    rtmeter::ProcessEventCount& event = own_event();
    const std::uint32_t ticket = event.ticket();
    return !in_.empty() || interrupted() ? 0 : event.wait(ticket, timeout_ns);
  }

  int look(std::int64_t timeout_ns) noexcept {
    constexpr int kLooksPerClock = 64;
    const std::int64_t deadline_ns = deadline_after(timeout_ns);
    for (int looks = 1; in_.empty() && !interrupted(); ++looks) {
      if (looks % kLooksPerClock == 0 && time_left(deadline_ns) == 0) return 0;
      relax();
    }
    return 0;
  }

  int dispatch(int at_most) noexcept override {
    int callbacks = 0;
    const auto call = [this](const rtm_message& m) noexcept {
      subscription_.on_message(subscription_.user, &m);
    };
    while (callbacks < at_most && subscription_.on_message != nullptr && !interrupted() && in_.take(call))
      ++callbacks;
    return callbacks;
  }

  void wake() noexcept override { own_event().notify(); }

  rtmeter::ProcessEventCount& own_event() noexcept { return region_->events[is_server_ ? 0 : 1]; }

  static void only_one(bool is_second, const std::string& topic) {
    if (is_second)
      throw rtmeter::SetupError("topic", topic, "shared memory carries one topic each way",
                                "choose transport=unix or udp");
  }

  void create(const rtm_run& run) {
    const std::size_t bytes = bytes_for(run.payload_bytes);
    fd_ = Fd(memfd_create("rtmeter", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    // Memory is had now, and keeps its size: nobody's access can fail later.
    if (fd_.get() >= 0 && fallocate(fd_.get(), 0, 0, static_cast<off_t>(bytes)) == 0 &&
        fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
      memory_ = Mapping(bytes, fd_.get());
    if (!memory_)
      throw system_error("payload_bytes", std::to_string(run.payload_bytes),
                         "no shared memory of " + std::to_string(bytes) + " bytes",
                         "choose a smaller payload, or raise the memory limits (ulimit -l, -v; cgroup)");
    auto* region = reinterpret_cast<Region*>(memory_.data());
    region->version = kVersion;
    region->tag = tag_of(run.session);
    region->max_bytes = run.payload_bytes;
    region->busy = busy_ ? 1 : 0;
    region->magic = kMagic;
  }

  void attach(const rtm_run& run) {
    const std::string endpoint = kOptions.endpoint.of(run);
    const auto fail = [&endpoint](const std::string& why) {
      return kOptions.endpoint.error(
          endpoint, why, "give the endpoint that the ready line of the server of this session names");
    };
    if (endpoint.empty()) throw fail("a client needs its server's shared memory");
    fd_ = Fd(open(endpoint.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (fd_.get() < 0) throw fail(std::string("cannot open it: ") + std::strerror(errno));
    struct stat status{};
    const int seals = fcntl(fd_.get(), F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd_.get(), &status) != 0 ||
        status.st_size < static_cast<off_t>(sizeof(Region)))
      throw fail("this is not the shared memory of a server");
    // Also between clients that know nothing of each other; the lock goes with the process.
    if (flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) throw fail("another client uses this server");
    memory_ = Mapping(static_cast<std::size_t>(status.st_size), fd_.get());
    if (!memory_) throw fail(std::string("cannot map it: ") + std::strerror(errno));
    check(*reinterpret_cast<const Region*>(memory_.data()), static_cast<std::size_t>(status.st_size), run,
          fail);
  }

  template <typename Fail>
  void check(const Region& region, std::size_t bytes, const rtm_run& run, Fail&& fail) const {
    if (region.magic != kMagic || region.version != kVersion || region.max_bytes > kLargestSharedPayload ||
        bytes != bytes_for(region.max_bytes))
      throw fail("this is not the shared memory of a server of this version");
    if (region.tag != tag_of(run.session)) throw fail("the server belongs to another session");
    if ((region.busy != 0) != busy_) throw fail("the server has the other shared-memory transport");
    if (run.payload_bytes > region.max_bytes)
      throw payload_error(run, "this server", region.max_bytes, "start the server with the same payload");
  }

  const bool busy_, is_server_;
  Fd fd_;
  Mapping memory_;
  Region* region_ = nullptr;
  Ring in_, out_;
  std::uint32_t slots_ = 0;
  Subscription subscription_;
  bool publishes_ = false;
};

std::unique_ptr<Messaging> make_shared_memory(const rtm_run& run, bool busy) {
  if (run.payload_bytes > kLargestSharedPayload)
    throw payload_error(run, "shared memory", kLargestSharedPayload, "choose a smaller payload");
  return std::make_unique<SharedMemory>(run, busy);
}

}  // namespace

std::unique_ptr<Messaging> make_shared_memory_with_futex(const rtm_run& run) {
  return make_shared_memory(run, false);
}
std::unique_ptr<Messaging> make_shared_memory_with_polling(const rtm_run& run) {
  return make_shared_memory(run, true);
}

}  // namespace rtmeter_posix
