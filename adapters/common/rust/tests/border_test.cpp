// The border of a Rust adapter, on the table of adapters/template/rust.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "rtmeter/adapter.h"

extern "C" const rtm_adapter rtm_rust_adapter;

namespace {

struct Facts : rtm_sink {
  std::map<std::string, std::string> texts;
  Facts() : rtm_sink{&Facts::note} {}
  static void note(rtm_sink* self, const char* key, const char* value) {
    static_cast<Facts*>(self)->texts[key] = value;
  }
};

struct Received {
  std::vector<std::uint64_t> sequences;
  std::string last;
  static void note(void* self, const rtm_message* message) {
    auto* received = static_cast<Received*>(self);
    received->sequences.push_back(message->sequence);
    received->last.assign(reinterpret_cast<const char*>(message->data), message->bytes);
  }
};

class RustBorder : public ::testing::Test {
 protected:
  void SetUp() override {
    run_.history_depth = 2;
    run_.session = "session";
    ASSERT_EQ(rtm_rust_adapter.start(&run_, &self_, &error_), 0) << error_.message;
    ASSERT_EQ(rtm_rust_adapter.create_node(self_, "node", &node_, &error_), 0) << error_.message;
  }
  void TearDown() override { rtm_rust_adapter.stop(self_); }

  // Of a topic whose messages are noted there.
  void* publisher_to(Received& received) {
    void *publisher = nullptr, *subscriber = nullptr;
    EXPECT_EQ(rtm_rust_adapter.create_publisher(node_, "topic", &publisher, &error_), 0);
    EXPECT_EQ(
        rtm_rust_adapter.create_subscriber(node_, "topic", &Received::note, &received, &subscriber, &error_),
        0);
    return publisher;
  }

  rtm_run run_{};
  rtm_error error_{};
  void *self_ = nullptr, *node_ = nullptr;
};

// The core then refuses what needs it, when the adapter is built.
TEST_F(RustBorder, WhatAnAdapterLacksIsNull) {
  const rtm_adapter& a = rtm_rust_adapter;
  EXPECT_EQ(a.create_timer, nullptr);
  EXPECT_EQ(a.arm, nullptr);
  EXPECT_EQ(a.create_client, nullptr);
  EXPECT_EQ(a.create_server, nullptr);
  EXPECT_EQ(a.call, nullptr);
  EXPECT_EQ(a.reply, nullptr);
  EXPECT_EQ(a.watch, nullptr);
  EXPECT_EQ(a.tell_stamps, nullptr);
  for (const bool has :
       {a.create_publisher != nullptr, a.create_subscriber != nullptr, a.publish != nullptr,
        a.spin != nullptr, a.wait != nullptr, a.spin_some != nullptr, a.interrupt != nullptr})
    EXPECT_TRUE(has);
}

TEST_F(RustBorder, MessagesCrossIt) {
  Received received;
  void* const publisher = publisher_to(received);
  const std::string text = "payload";
  for (std::uint64_t k = 1; k <= 3; ++k) {
    const rtm_message message{k, reinterpret_cast<const std::uint8_t*>(text.data()),
                              static_cast<std::uint32_t>(text.size())};
    EXPECT_EQ(rtm_rust_adapter.publish(publisher, &message), 0);
  }
  EXPECT_EQ(rtm_rust_adapter.spin_some(self_), 0);
  EXPECT_EQ(received.sequences, (std::vector<std::uint64_t>{2, 3}));  // the history holds two
  EXPECT_EQ(received.last, text);
}

TEST_F(RustBorder, AMessageMayBeEmpty) {
  Received received;
  void* const publisher = publisher_to(received);
  const rtm_message message{7, nullptr, 0};
  EXPECT_EQ(rtm_rust_adapter.publish(publisher, &message), 0);
  EXPECT_EQ(rtm_rust_adapter.wait(self_, 1000), 0);
  EXPECT_EQ(received.sequences, std::vector<std::uint64_t>{7});
}

TEST_F(RustBorder, AnInterruptionThatComesBeforeASpinEndsIt) {
  rtm_rust_adapter.interrupt(self_);
  EXPECT_EQ(rtm_rust_adapter.spin(self_, INT64_MAX), 0);
}

TEST_F(RustBorder, DescribeTellsBeforeTheStartAndAfter) {
  Facts before, after;
  rtm_rust_adapter.describe(nullptr, &before);
  rtm_rust_adapter.describe(self_, &after);
  EXPECT_EQ(before.texts["name"], "rust-template");
  EXPECT_EQ(before.texts.count("qos.depth"), 0U);
  EXPECT_EQ(after.texts["qos.depth"], "2");
}

TEST_F(RustBorder, AnErrorOfSetupHasItsFourTexts) {
  const rtm_option option{"history", "keep_all"};
  run_.options = &option;
  run_.option_count = 1;
  void* other = nullptr;
  EXPECT_NE(rtm_rust_adapter.start(&run_, &other, &error_), 0);
  EXPECT_STREQ(error_.field, "option history");
  EXPECT_STREQ(error_.value, "keep_all");
  EXPECT_STREQ(error_.message, "no such choice");
  EXPECT_STREQ(error_.remedy, "choose one of keep_last");
}

TEST_F(RustBorder, APanicBecomesAnError) {
  const int none = 9;  // of those that the header has
  std::memcpy(&run_.reliability, &none, sizeof run_.reliability);
  void* other = nullptr;
  EXPECT_NE(rtm_rust_adapter.start(&run_, &other, &error_), 0);
  EXPECT_STREQ(error_.message, "the adapter or its middleware panicked: a value of Reliability");
}

}  // namespace
