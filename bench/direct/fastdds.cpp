// The smallest round trip over Fast DDS, 2 or 3: best effort, keep last 1, wait-sets, UDP over loopback.
#if RTMETER_FASTDDS == 3
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.hpp>
#else
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#endif
#include <unistd.h>

#include <fastdds/dds/core/condition/WaitSet.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <memory>
#include <thread>

#include "messagePubSubTypes.h"
#include "ping_pong.hpp"

using namespace eprosima::fastdds::dds;
using eprosima::fastdds::rtps::UDPv4TransportDescriptor;

namespace {
#if RTMETER_FASTDDS == 3
void make_room(TopicDataType& type, std::uint32_t bytes) { type.max_serialized_type_size = bytes; }
const auto kForever = c_TimeInfinite;
const auto kOk = RETCODE_OK;
#else
void make_room(TopicDataType& type, std::uint32_t bytes) { type.m_typeSize = bytes; }
const auto kForever = eprosima::fastrtps::c_TimeInfinite;
const auto kOk = ReturnCode_t::RETCODE_OK;
#endif
}  // namespace

int main(int argc, char** argv) {
  const direct::Plan plan = direct::plan(argc, argv);
  DomainParticipantQos qos;
  const auto udp = std::make_shared<UDPv4TransportDescriptor>();
  udp->interfaceWhiteList = {"127.0.0.1"};
  qos.transport().use_builtin_transports = false;
  qos.transport().user_transports.push_back(udp);
  DomainParticipant* participant = DomainParticipantFactory::get_instance()->create_participant(84, qos);

  auto* plain = new rtmeter_dds::MessagePubSubType;
  make_room(*plain, 64 + direct::kPayload);
  TypeSupport type(plain);
  type.register_type(participant);
  Topic* ping = participant->create_topic("direct_ping", type.get_type_name(), TOPIC_QOS_DEFAULT);
  Topic* pong = participant->create_topic("direct_pong", type.get_type_name(), TOPIC_QOS_DEFAULT);

  DataWriterQos writing = DATAWRITER_QOS_DEFAULT;
  writing.reliability().kind = BEST_EFFORT_RELIABILITY_QOS;
  writing.durability().kind = VOLATILE_DURABILITY_QOS;
  writing.data_sharing().off();
  DataReaderQos reading = DATAREADER_QOS_DEFAULT;
  reading.data_sharing().off();
  DataWriter* writer = participant->create_publisher(PUBLISHER_QOS_DEFAULT)
                           ->create_datawriter(plan.is_ping ? ping : pong, writing);
  DataReader* reader = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT)
                           ->create_datareader(plan.is_ping ? pong : ping, reading);
  WaitSet wait;
  reader->get_statuscondition().set_enabled_statuses(StatusMask::data_available());
  wait.attach_condition(reader->get_statuscondition());

  rtmeter_dds::Message message, received;
  message.payload().resize(direct::kPayload);
  ConditionSeq ready;
  SampleInfo info;
  const auto take = [&] { return reader->take_next_sample(&received, &info) == kOk && info.valid_data; };
  if (!plan.is_ping) {
    for (;;) {
      wait.wait(ready, kForever);
      while (take()) writer->write(&received);
    }
  }
  PublicationMatchedStatus matched;
  SubscriptionMatchedStatus answered;
  do {
    usleep(1000);
    writer->get_publication_matched_status(matched);
    reader->get_subscription_matched_status(answered);
  } while (matched.current_count == 0 || answered.current_count == 0);
  usleep(500000);  // the other side may be a little later
  direct::Trips trips(plan);
  std::thread([&] {
    for (;;) {
      wait.wait(ready, kForever);
      while (take()) trips.came(received.number());
    }
  }).detach();
  trips.ping([&](std::size_t n) {
    message.number(n);
    writer->write(&message);
  });
}
