// The types of ../common/dds/message.idl for Fast DDS 3. Debian's fastddsgen makes code for version 2 only,
// and that of version 3 is in no registry: what it would make of these few is here, as far as the adapter
// uses it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>

#include <array>
#include <cstdint>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <string>
#include <vector>

namespace rtmeter_dds {

class Message {
 public:
  static constexpr bool kIsPlain = false;
  static constexpr std::uint32_t kRoom = 0;  // no bound
  static std::string name() { return "Message"; }

  std::uint64_t number() const { return number_; }
  void number(std::uint64_t value) { number_ = value; }
  std::vector<std::uint8_t>& payload() { return payload_; }

  std::uint32_t bytes_on_wire() const { return 12 + static_cast<std::uint32_t>(payload_.size()); }
  void write_to(eprosima::fastcdr::Cdr& cdr) const { cdr << number_ << payload_; }
  void read_from(eprosima::fastcdr::Cdr& cdr) { cdr >> number_ >> payload_; }

 private:
  std::uint64_t number_ = 0;
  std::vector<std::uint8_t> payload_;
};

// Of fixed size: in memory as on the wire.
template <std::uint32_t kBytes>
struct Block {
  static constexpr bool kIsPlain = true;
  static constexpr std::uint32_t kRoom = 12 + kBytes;
  static std::string name() {
    return "Block" +
           (kBytes < 1048576 ? std::to_string(kBytes >> 10) + "K" : std::to_string(kBytes >> 20) + "M");
  }

  static std::uint32_t bytes_on_wire() { return kRoom; }
  void write_to(eprosima::fastcdr::Cdr& cdr) const { cdr << number << bytes << payload; }
  void read_from(eprosima::fastcdr::Cdr& cdr) { cdr >> number >> bytes >> payload; }

  std::uint64_t number;
  std::uint32_t bytes;
  std::array<std::uint8_t, kBytes> payload;
};

// Either encoding, of XCDR 1 and of XCDR 2, lays these types out alike: only what stands before them differs.
template <typename Sample>
class PubSubType final : public eprosima::fastdds::dds::TopicDataType {
 public:
  using Payload = eprosima::fastdds::rtps::SerializedPayload_t;
  using Representation = eprosima::fastdds::dds::DataRepresentationId_t;
  using Key = eprosima::fastdds::rtps::InstanceHandle_t;
  using Cdr = eprosima::fastcdr::Cdr;

  PubSubType() {
    set_name("rtmeter_dds::" + Sample::name());
    constexpr std::uint32_t kWord = 4;
    max_serialized_type_size = kEncapsulation + (Sample::kRoom + kWord - 1) / kWord * kWord;
  }

  bool serialize(const void* data, Payload& payload, Representation representation) override {
    const bool is_first = representation == eprosima::fastdds::dds::XCDR_DATA_REPRESENTATION;
    eprosima::fastcdr::FastBuffer buffer(reinterpret_cast<char*>(payload.data), payload.max_size);
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN,
            is_first ? eprosima::fastcdr::CdrVersion::XCDRv1 : eprosima::fastcdr::CdrVersion::XCDRv2);
    cdr.set_encoding_flag(is_first ? eprosima::fastcdr::EncodingAlgorithmFlag::PLAIN_CDR
                                   : eprosima::fastcdr::EncodingAlgorithmFlag::PLAIN_CDR2);
    payload.encapsulation = cdr.endianness() == Cdr::BIG_ENDIANNESS ? CDR_BE : CDR_LE;
    return attempted([&] {
      cdr.serialize_encapsulation();
      static_cast<const Sample*>(data)->write_to(cdr);
      cdr.set_dds_cdr_options({0, 0});
      payload.length = static_cast<std::uint32_t>(cdr.get_serialized_data_length());
    });
  }

  bool deserialize(Payload& payload, void* data) override {
    eprosima::fastcdr::FastBuffer buffer(reinterpret_cast<char*>(payload.data), payload.length);
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN);
    return attempted([&] {
      cdr.read_encapsulation();
      payload.encapsulation = cdr.endianness() == Cdr::BIG_ENDIANNESS ? CDR_BE : CDR_LE;
      static_cast<Sample*>(data)->read_from(cdr);
    });
  }

  std::uint32_t calculate_serialized_size(const void* data, Representation /*either*/) override {
    return kEncapsulation + static_cast<const Sample*>(data)->bytes_on_wire();
  }

  void* create_data() override { return new Sample; }
  void delete_data(void* data) override { delete static_cast<Sample*>(data); }
  bool compute_key(Payload& /*payload*/, Key& /*key*/, bool /*md5*/) override { return false; }
  bool compute_key(const void* /*data*/, Key& /*key*/, bool /*md5*/) override { return false; }
  bool is_bounded() const override { return Sample::kIsPlain; }
  bool is_plain(Representation /*either*/) const override { return Sample::kIsPlain; }

 private:
  static constexpr std::uint32_t kEncapsulation = Payload::representation_header_size;

  template <typename Body>
  static bool attempted(const Body& body) {
    try {
      body();
    } catch (const eprosima::fastcdr::exception::Exception&) {  // too little room, or too few bytes
      return false;
    }
    return true;
  }
};

using MessagePubSubType = PubSubType<Message>;
using Block1KPubSubType = PubSubType<Block<1024>>;
using Block32KPubSubType = PubSubType<Block<32768>>;
using Block128KPubSubType = PubSubType<Block<131072>>;
using Block1MPubSubType = PubSubType<Block<1048576>>;
using Block4MPubSubType = PubSubType<Block<4194304>>;

}  // namespace rtmeter_dds
