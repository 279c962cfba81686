#include "component.hpp"

#include <exception>

namespace rtmeter_orocos {

Component::~Component() {
  stop();
  getActivity()->stop();
}

RTT::OutputPort<Message>& Component::add_output(const std::string& topic, const Message& sample) {
  outputs_.emplace_back(topic, false);
  ports()->addPort(outputs_.back());
  outputs_.back().setDataSample(sample);  // connections have room for as much
  return outputs_.back();
}

RTT::InputPort<Message>& Component::add_input(const std::string& topic, const Message& sample,
                                              rtm_on_message on_message, void* user) {
  inputs_.emplace_back(topic, sample, on_message, user);
  ports()->addEventPort(inputs_.back().port,
                        [this](RTT::base::PortInterface*) { noted("port callback", [&] { read_all(); }); });
  return inputs_.back().port;
}

void Component::updateHook() {
  noted("updateHook", [&] {
    if (spec_.on_fire != nullptr) {
      std::int64_t expected_ns = RTM_ABSENT;
      if (mark_ != nullptr)
        expected_ns =
            static_cast<std::int64_t>(mark_->tv_sec) * 1000000000 + mark_->tv_nsec - spec_.period_ns;
      const rtm_fire fire{expected_ns, RTM_ABSENT};
      spec_.on_fire(spec_.user, &fire);
    }
    if (slave_ == nullptr) return;
    slave_->execute();
    read_all();
  });
}

void Component::read_all() {
  for (Input& input : inputs_)
    while (input.port.read(input.latest, false) == RTT::NewData) {
      const rtm_message message{input.latest.number, input.latest.payload.data(),
                                static_cast<std::uint32_t>(input.latest.payload.size())};
      input.on_message(input.user, &message);
      if (signals_.tells_of_messages) signals_.called.notify();
    }
}

// RTT stops a component that throws, and goes on. The measured thread is told instead.
template <typename Call>
void Component::noted(const char* where, Call&& call) {
  const auto note = [&](const char* what) {
    if (signals_.breaking.test_and_set()) return;
    signals_.why_broken = "component " + getName() + " threw in its " + where + ": " + what;
    signals_.broken.store(true);
    signals_.end();
  };
  try {
    call();
  } catch (const std::exception& e) {
    note(e.what());
    throw;
  } catch (...) {
    note("something that is no exception");
    throw;
  }
}

}  // namespace rtmeter_orocos
