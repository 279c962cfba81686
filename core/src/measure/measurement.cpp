#include "measure/measurement.hpp"

namespace rtmeter {

Json to_json(const Counters& counters, std::uint64_t overflow, std::uint64_t refused_calls) {
  return Json(Json::Object{{"overflow", overflow},
                           {"late_after_lost", counters.late_after_lost.load()},
                           {"duplicate", counters.duplicate.load()},
                           {"out_of_order", counters.out_of_order.load()},
                           {"corrupted", counters.corrupted.load()},
                           {"extra_callbacks", counters.extra_callbacks.load()},
                           {"refused_calls", refused_calls}});
}

std::vector<std::string> columns_of(const Config& config) {
  switch (config.measurement) {
    case RTM_WAKEUP:
      return {"release_ns", "wake_ns", "free_ns", "status"};
    case RTM_TIMER:
      if (config.mode == RTM_ONE_SHOT)
        return {"armed_before_ns",      "armed_after_ns",     "callback_ns",
                "reported_expected_ns", "reported_actual_ns", "status"};
      return {"release_ns", "callback_ns", "reported_expected_ns", "reported_actual_ns", "free_ns", "status"};
    case RTM_ROUNDTRIP:
    case RTM_REQUEST:
      if (config.role == RTM_ROLE_BESIDE) return {"sequence", "received_ns", "status"};
      if (config.kernel_stamps && config.role == RTM_ROLE_SERVER)
        return {"sequence",
                "server_received_ns",
                "server_sent_ns",
                "server_kernel_received_realtime_ns",
                "server_kernel_sent_realtime_ns",
                "status"};
      if (config.kernel_stamps)
        return {"release_ns",
                "sent_ns",
                "received_ns",
                "free_ns",
                "kernel_sent_realtime_ns",
                "kernel_received_realtime_ns",
                "status"};
      if (config.role == RTM_ROLE_SERVER)
        return {"sequence", "server_received_ns", "server_sent_ns", "status"};
      if (config.measurement == RTM_ROUNDTRIP)
        return {"release_ns", "sent_ns", "received_ns", "free_ns", "status"};
      return {"release_ns",  "sent_ns", "accepted_ns", "first_feedback_ns",
              "received_ns", "free_ns", "status"};
    case RTM_CYCLE:
      return {
          "release_ns",           "start_ns", "request_sent_ns", "request_received_ns", "response_sent_ns",
          "response_received_ns", "free_ns",  "status"};
    case RTM_CHAIN:
      return {"stage", "way", "sample", "sample_release_ns", "received_ns", "sent_ns", "status"};
    case RTM_DISCOVERY:
      return {"release_ns", "started_ns", "matched_ns", "first_ns", "status"};
  }
  return {};
}

Judged judged_of(const Config& config) {
  switch (config.measurement) {
    case RTM_WAKEUP:
      return {1, 0, 0};  // latency
    case RTM_TIMER:
      return config.mode == RTM_ONE_SHOT ? Judged{2, 0, config.period_ns}  // measured
                                         : Judged{1, 0, 0};                // latency
    case RTM_ROUNDTRIP:
      if (config.role == RTM_ROLE_BESIDE) return {1, 1, 0};  // nothing
      return config.role == RTM_ROLE_SERVER ? Judged{2, 1, 0} : Judged{2, 0, 0};  // turn-around; response
    case RTM_REQUEST:
      return config.role == RTM_ROLE_SERVER ? Judged{2, 1, 0} : Judged{4, 0, 0};  // likewise
    case RTM_CYCLE:
      return {5, 0, 0};  // completion
    case RTM_CHAIN:
      return {5, 3, 0};  // age
    case RTM_DISCOVERY:
      return {3, 1, 0};  // time_to_first
  }
  return {0, 0, 0};
}

std::unique_ptr<Measurement> make_measurement(Bench& bench) {
  const Config& c = bench.config;
  switch (c.measurement) {
    case RTM_WAKEUP:
      return make_wakeup(bench);
    case RTM_TIMER:
      return c.mode == RTM_ONE_SHOT ? make_one_shot(bench) : make_periodic(bench);
    case RTM_ROUNDTRIP:
      if (c.role == RTM_ROLE_BESIDE) return make_beside(bench);
      return c.role == RTM_ROLE_SERVER ? make_roundtrip_server(bench) : make_roundtrip_client(bench);
    case RTM_REQUEST:
      return c.role == RTM_ROLE_SERVER ? make_request_server(bench) : make_request_client(bench);
    case RTM_CYCLE:
      return make_cycle(bench);
    case RTM_CHAIN:
      return make_chain(bench);
    case RTM_DISCOVERY:
      return make_discovery(bench);
  }
  return nullptr;
}

}  // namespace rtmeter
