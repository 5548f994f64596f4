// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "include/portals/p3rt/p3rt.h"
#include "include/portals/portals3.h"
#include "lib/common/log/call_line.hpp"

// The log of the calls of Portals 3.3 (lib/common/log): how its structures and results are shown.
namespace orrery::portals3::log {

class Call : public common::log::LoggedCall<Call> {
 public:
  explicit Call(const char* name);

  using LoggedCall::returned;
  void returned(int result);
  void returned(unsigned int mask);
  void returned(const char* text);

  void show(const ptl_process_id_t* process);
  void show(const ptl_md_t* md);
  void show(const ptl_ni_limits_t* limits);
  void show(const ptl_event_t* event);
};

}  // namespace orrery::portals3::log
