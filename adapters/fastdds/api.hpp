// What Fast DDS 2 and 3 call by other names, under one: the adapter is one source for both. RTMETER_FASTDDS
// is the version, and each has its own types of samples in messagePubSubTypes.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#if RTMETER_FASTDDS == 2
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>
#include <fastrtps/config.h>
#include <fastrtps/utils/IPLocator.h>
#include <fastrtps/xmlparser/XMLProfileManager.h>
#else
#include <fastdds/config.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.hpp>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.hpp>
#include <fastdds/utils/IPLocator.hpp>
#endif

#include <cstdint>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <string>

namespace rtmeter_fastdds {

namespace dds = eprosima::fastdds::dds;

#if RTMETER_FASTDDS == 2
namespace rtps = eprosima::fastrtps::rtps;
using eprosima::fastrtps::Duration_t;
using Discovery = rtps::ParticipantDiscoveryInfo;
using DiscoveryStatus = Discovery::DISCOVERY_STATUS;

constexpr const char* kName = "fastdds";
constexpr const char* kLibrary = "libfastrtps.so.";
constexpr const char* kBuiltWith = FASTRTPS_VERSION_STR;
constexpr const char* kProfilesVariable = "FASTRTPS_DEFAULT_PROFILES_FILE";
constexpr const char* kProfilesFile = "DEFAULT_FASTRTPS_PROFILES.xml";
constexpr bool kNamesThreads = false;
constexpr auto kOk = ReturnCode_t::RETCODE_OK;
constexpr auto kTimeout = ReturnCode_t::RETCODE_TIMEOUT;

inline const Duration_t& infinite() { return eprosima::fastrtps::c_TimeInfinite; }
inline bool is_written(bool written) { return written; }
// Room in the histories for samples of that size, with their encapsulation.
inline void make_room(dds::TopicDataType& type, std::uint32_t bytes) { type.m_typeSize = bytes; }

namespace library = eprosima::fastrtps;
inline library::LibrarySettingsAttributes library_settings() {
  return library::xmlparser::XMLProfileManager::library_settings();
}
// For the participants to come.
inline void set_library_settings(const library::LibrarySettingsAttributes& settings) {
  library::xmlparser::XMLProfileManager::library_settings(settings);
}
#else
namespace rtps = eprosima::fastdds::rtps;
using dds::Duration_t;
using Discovery = rtps::ParticipantDiscoveryStatus;
using DiscoveryStatus = Discovery;

constexpr const char* kName = "fastdds3";
constexpr const char* kLibrary = "libfastdds.so.";
constexpr const char* kBuiltWith = FASTDDS_VERSION_STR;
constexpr const char* kProfilesVariable = "FASTDDS_DEFAULT_PROFILES_FILE";
constexpr const char* kProfilesFile = "DEFAULT_FASTDDS_PROFILES.xml";
constexpr bool kNamesThreads = true;
constexpr auto kOk = dds::RETCODE_OK;
constexpr auto kTimeout = dds::RETCODE_TIMEOUT;

inline const Duration_t& infinite() { return dds::c_TimeInfinite; }
inline bool is_written(dds::ReturnCode_t code) { return code == kOk; }
inline void make_room(dds::TopicDataType& type, std::uint32_t bytes) {
  type.max_serialized_type_size = bytes;
}

namespace library = eprosima::fastdds;
inline library::LibrarySettings library_settings() {
  library::LibrarySettings settings;
  dds::DomainParticipantFactory::get_instance()->get_library_settings(settings);
  return settings;
}
// Refused once a participant is enabled: the first one's hold for all.
inline void set_library_settings(const library::LibrarySettings& settings) {
  dds::DomainParticipantFactory::get_instance()->set_library_settings(settings);
}
#endif

// Told of other participants; Fast DDS's threads call it.
class ParticipantListener : public dds::DomainParticipantListener {
 private:
  virtual void on_discovery(DiscoveryStatus status) = 0;
#if RTMETER_FASTDDS == 2
  void on_participant_discovery(dds::DomainParticipant* /*participant*/, Discovery&& info) final {
    on_discovery(info.status);
  }
#else
  void on_participant_discovery(dds::DomainParticipant* /*participant*/, DiscoveryStatus status,
                                const dds::ParticipantBuiltinTopicData& /*data*/, bool& ignore) final {
    ignore = false;
    on_discovery(status);
  }
#endif
};

}  // namespace rtmeter_fastdds
