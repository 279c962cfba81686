// What is sent, as roscpp would generate it from
//   uint64 number
//   uint8[] payload
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ros/message_traits.h>
#include <ros/serialization.h>
#include <ros/service_traits.h>

#include <cstdint>
#include <vector>

namespace rtmeter_ros1 {

struct Message {
  std::uint64_t number = 0;  // of the message; UINT64_MAX while a client looks for its server
  std::vector<std::uint8_t> payload;
};

}  // namespace rtmeter_ros1

namespace ros {
namespace message_traits {

template <>
struct IsMessage<rtmeter_ros1::Message> : TrueType {};
template <>
struct MD5Sum<rtmeter_ros1::Message> {
  static const char* value() { return "1c72ea4f2986654bc15151f05797b1f2"; }
  static const char* value(const rtmeter_ros1::Message& /*message*/) { return value(); }
};
template <>
struct DataType<rtmeter_ros1::Message> {
  static const char* value() { return "rtmeter/Message"; }
  static const char* value(const rtmeter_ros1::Message& /*message*/) { return value(); }
};
template <>
struct Definition<rtmeter_ros1::Message> {
  static const char* value() { return "uint64 number\nuint8[] payload\n"; }
  static const char* value(const rtmeter_ros1::Message& /*message*/) { return value(); }
};

}  // namespace message_traits

// A service whose request and response are one such message each.
namespace service_traits {

template <>
struct MD5Sum<rtmeter_ros1::Message> {
  static const char* value() { return "2a0c9056d8ef921a086254858a67b495"; }
  static const char* value(const rtmeter_ros1::Message& /*message*/) { return value(); }
};
template <>
struct DataType<rtmeter_ros1::Message> {
  static const char* value() { return "rtmeter/Call"; }
  static const char* value(const rtmeter_ros1::Message& /*message*/) { return value(); }
};

}  // namespace service_traits

namespace serialization {

template <>
struct Serializer<rtmeter_ros1::Message> {
  template <typename Stream, typename Value>
  inline static void allInOne(Stream& stream, Value message) {
    stream.next(message.number);
    stream.next(message.payload);
  }
  ROS_DECLARE_ALLINONE_SERIALIZER
};

}  // namespace serialization
}  // namespace ros
