// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "include/gni/gni_pub.h"
#include "lib/common/log/call_line.hpp"

#include <cstdint>

// The log of uGNI's calls (lib/common/log): how its structures and events are shown.
namespace orrery::gni::log {

class Call : public common::log::LoggedCall<Call> {
 public:
  using LoggedCall::LoggedCall;

  // Before a call that may give an event: what its place held, so that event() tells whether it did.
  void before(const gni_cq_entry_t* entry);
  using LoggedCall::returned;
  void returned(gni_return_t result);
  // The event of a completion queue.
  void event(const char* name, const gni_cq_entry_t* entry);

  void out_value(gni_post_state_t value) { state(value); }
  void show(const gni_mem_handle_t* handle);
  void show(const gni_post_descriptor_t* descriptor);
  void show(const gni_smsg_attr_t* attributes);
  void show(const gni_job_limits_t* limits);
  void show(const gni_msgq_attr_t* attributes);
  void show(const gni_dqueue_in_attr_t* attributes);
  void show(const gni_mem_segment_t* segment);

 private:
  void state(gni_post_state_t state);

  gni_return_t result_ = GNI_RC_SUCCESS;
  gni_cq_entry_t entry_before_ = 0;
};

}  // namespace orrery::gni::log
