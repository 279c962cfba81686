// A probe in C++14 whose middleware throws. Option throws says where: in a call of setup, or on the measured
// path in the third call of publish, spin_some or interrupt and in all that follow; option with: what.
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

#include "rtmeter/adapter.hpp"

namespace {

struct Options : rtmeter::OptionSet {
  rtmeter::Choice throws{*this,
                         "throws",
                         {"nowhere", "start", "describe", "node", "publisher", "subscriber", "publish",
                          "spin_some", "interrupt"},
                         "the call that throws"};
  rtmeter::ChoiceOf<int> with{
      *this, "with", {{"words", 0}, {"a_number", 1}}, "an exception with words, or a number"};
  rtmeter::Choice only_in{*this, "only_in", {"cycle", "timer"}, "the measurement"};
  rtmeter::Number rate{*this, "rate", -5, 1000, "7 by default"};
  rtmeter::Flag unknown{*this, "unknown", "one that is left out"};
  Options() { leave_out(unknown); }
};

class Throwing final : public rtmeter::Adapter {
 public:
  static void describe_static(rtmeter::Sink& sink) {
    sink.put("name", "throwing").put("version", "1").put("middleware", "none").put("middleware_version", "1");
    sink.put("measures", "cycle").put("drives.cycle", "sleep_then_spin_some").put("receives.cycle", "poll");
    Options().describe(sink);
  }
  explicit Throwing(const rtm_run& run)
      : throws_(Options().throws.of(run)), number_(throws_ != "nowhere" && Options().with.of(run) == 1),
        rate_(Options().rate.of(run, 7)) {
    Options().only_in.of(run, {"cycle"});
    may_throw("start");
  }

  void describe(rtmeter::Sink& sink) const override {
    sink.put("rate_in_effect", std::to_string(rate_));
    may_throw("describe");
  }
  void* create_node(const std::string& /*name*/) override {
    may_throw("node");
    return this;
  }
  void* create_publisher(void* /*node*/, const std::string& topic) override {
    may_throw("publisher");
    topics_.push_back(topic);
    return &topics_.back();
  }
  void* create_subscriber(void* /*node*/, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    may_throw("subscriber");
    subscribers_.push_back({topic, on_message, user});
    return this;
  }
  int publish(void* topic, const rtm_message& message) override {
    if (throws_ == "publish" && ++calls_ > 2) may_throw("publish");
    sent_.push_back(
        {*static_cast<std::string*>(topic), message.sequence, {message.data, message.data + message.bytes}});
    return 0;
  }
  int spin_some() override {
    for (; !sent_.empty(); sent_.pop_front()) {
      const Message& sent = sent_.front();
      const rtm_message message{sent.sequence, sent.data.data(),
                                static_cast<std::uint32_t>(sent.data.size())};
      for (const Subscriber& one : subscribers_)
        if (one.topic == sent.topic) one.on_message(one.user, &message);
    }
    if (throws_ == "spin_some" && ++calls_ > 2) may_throw("spin_some");
    return 0;
  }
  void interrupt() override { may_throw("interrupt"); }

 private:
  struct Message {
    std::string topic;
    std::uint64_t sequence;
    std::vector<std::uint8_t> data;
  };
  struct Subscriber {
    std::string topic;
    rtm_on_message on_message;
    void* user;
  };

  void may_throw(const char* where) const {
    if (throws_ != where) return;
    if (number_) throw 42;
    throw std::runtime_error("planted in " + throws_);
  }

  const std::string throws_;
  const bool number_;
  const std::int64_t rate_;
  int calls_ = 0;
  std::deque<std::string> topics_;
  std::deque<Subscriber> subscribers_;
  std::deque<Message> sent_;
};

}  // namespace

RTMETER_ADAPTER_MAIN(Throwing)
