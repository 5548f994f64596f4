// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "include/portals/portals4.h"
#include "lib/common/log/call_line.hpp"

// The log of the calls of Portals 4 (lib/common/log): how its structures and results are shown.
namespace orrery::portals4::log {

class Call : public common::log::LoggedCall<Call> {
 public:
  explicit Call(const char* name);

  using LoggedCall::returned;
  void returned(int result);

  void show(const ptl_process_t* process);
  void show(const ptl_md_t* md);
  void show(const ptl_le_t* le);
  void show(const ptl_me_t* me);
  void show(const ptl_ni_limits_t* limits);
  void show(const ptl_ct_event_t* event);
  void show(const ptl_event_t* event);

 private:
  const char* name_;
};

}  // namespace orrery::portals4::log
