// contract.rs declares what adapter.h declares: every size and offset is the same.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "rtmeter/adapter.h"

extern "C" std::size_t rtm_rust_layout(const char* name);

namespace {

#define EXPECT_SIZE(type) EXPECT_EQ(rtm_rust_layout(#type), sizeof(type))
#define EXPECT_PLACE(type, field) EXPECT_EQ(rtm_rust_layout(#type "." #field), offsetof(type, field))

TEST(RustContract, StructuresAreLaidOutAsInTheHeader) {
  EXPECT_SIZE(rtm_error);
  EXPECT_PLACE(rtm_error, field);
  EXPECT_PLACE(rtm_error, value);
  EXPECT_PLACE(rtm_error, message);
  EXPECT_PLACE(rtm_error, remedy);
  EXPECT_SIZE(rtm_option);
  EXPECT_PLACE(rtm_option, key);
  EXPECT_PLACE(rtm_option, value);
  EXPECT_SIZE(rtm_run);
  EXPECT_PLACE(rtm_run, measurement);
  EXPECT_PLACE(rtm_run, role);
  EXPECT_PLACE(rtm_run, drive);
  EXPECT_PLACE(rtm_run, receive);
  EXPECT_PLACE(rtm_run, timer_mode);
  EXPECT_PLACE(rtm_run, period_ns);
  EXPECT_PLACE(rtm_run, payload_bytes);
  EXPECT_PLACE(rtm_run, reliability);
  EXPECT_PLACE(rtm_run, history_depth);
  EXPECT_PLACE(rtm_run, session);
  EXPECT_PLACE(rtm_run, overrun_asked);
  EXPECT_PLACE(rtm_run, options);
  EXPECT_PLACE(rtm_run, option_count);
  EXPECT_PLACE(rtm_run, components_asked);
  EXPECT_PLACE(rtm_run, history_depth_asked);
  EXPECT_PLACE(rtm_run, interface);
  EXPECT_PLACE(rtm_run, subscribers);
  EXPECT_PLACE(rtm_run, publishers);
  EXPECT_SIZE(rtm_sink);
  EXPECT_PLACE(rtm_sink, put);
  EXPECT_SIZE(rtm_message);
  EXPECT_PLACE(rtm_message, sequence);
  EXPECT_PLACE(rtm_message, data);
  EXPECT_PLACE(rtm_message, bytes);
  EXPECT_SIZE(rtm_fire);
  EXPECT_PLACE(rtm_fire, reported_expected_ns);
  EXPECT_PLACE(rtm_fire, reported_actual_ns);
  EXPECT_SIZE(rtm_timer_spec);
  EXPECT_PLACE(rtm_timer_spec, mode);
  EXPECT_PLACE(rtm_timer_spec, period_ns);
  EXPECT_PLACE(rtm_timer_spec, on_fire);
  EXPECT_PLACE(rtm_timer_spec, user);
  EXPECT_SIZE(rtm_timer_traits);
  EXPECT_PLACE(rtm_timer_traits, ticks);
  EXPECT_PLACE(rtm_timer_traits, overrun);
  EXPECT_PLACE(rtm_timer_traits, reports_monotonic);
}

TEST(RustContract, TheTableHasItsFunctionsInTheHeadersOrder) {
  EXPECT_SIZE(rtm_adapter);
  EXPECT_PLACE(rtm_adapter, abi);
  EXPECT_PLACE(rtm_adapter, describe);
  EXPECT_PLACE(rtm_adapter, start);
  EXPECT_PLACE(rtm_adapter, stop);
  EXPECT_PLACE(rtm_adapter, create_node);
  EXPECT_PLACE(rtm_adapter, create_timer);
  EXPECT_PLACE(rtm_adapter, arm);
  EXPECT_PLACE(rtm_adapter, create_publisher);
  EXPECT_PLACE(rtm_adapter, create_subscriber);
  EXPECT_PLACE(rtm_adapter, publish);
  EXPECT_PLACE(rtm_adapter, spin);
  EXPECT_PLACE(rtm_adapter, wait);
  EXPECT_PLACE(rtm_adapter, spin_some);
  EXPECT_PLACE(rtm_adapter, interrupt);
  EXPECT_PLACE(rtm_adapter, create_client);
  EXPECT_PLACE(rtm_adapter, create_server);
  EXPECT_PLACE(rtm_adapter, call);
  EXPECT_PLACE(rtm_adapter, reply);
  EXPECT_PLACE(rtm_adapter, watch);
  EXPECT_PLACE(rtm_adapter, tell_stamps);
}

TEST(RustContract, AnUnknownNameHasNoPlace) { EXPECT_EQ(rtm_rust_layout("rtm_run.nothing"), SIZE_MAX); }

}  // namespace
