// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "include/cci/cci.h"
#include "lib/common/log/call_line.hpp"

// The log of CCI's calls (lib/common/log): how its structures and results are shown.
namespace orrery::cci::log {

class Call : public common::log::LoggedCall<Call> {
 public:
  using LoggedCall::LoggedCall;

  using LoggedCall::returned;
  void returned(int status);
  void returned(const char* text);

  void show_value(const char* name, enum cci_status status);
  void show_value(const char* name, cci_conn_attribute_t attribute);
  void show_value(const char* name, cci_opt_name_t option);
  void show(const char* text);
  void show(const timeval* time);
  void show(const union cci_event* event);
  void out_value(const union cci_event* event) { show(event); }
};

}  // namespace orrery::cci::log
