// A Cyclone DDS domain with its settings: the user's, and those that the run's options ask for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "../common/dds/options.hpp"
#include "dds/dds.h"

namespace rtmeter_cyclonedds {

// An entity, deleted with all that belongs to it.
class Entity {
 public:
  explicit Entity(dds_entity_t handle) : handle_(handle) {}
  Entity(const Entity&) = delete;
  Entity& operator=(const Entity&) = delete;
  ~Entity() { dds_delete(handle_); }
  dds_entity_t get() const noexcept { return handle_; }

 private:
  dds_entity_t handle_;
};

// Starts Cyclone DDS. Its settings are CYCLONEDDS_URI's and, over them, the options'. Throws SetupError
// with Cyclone's own words.
dds_entity_t create_domain(const rtmeter_dds::Options& options, const rtmeter_common::ThreadPlan& threads);

// The result of a call that creates something, or SetupError.
dds_entity_t created(dds_entity_t result, const std::string& what);

}  // namespace rtmeter_cyclonedds
