// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "include/dmapp/dmapp.h"
#include "lib/common/log/call_line.hpp"

// The log of DMAPP's calls (lib/common/log): how its structures and results are shown.
namespace orrery::dmapp::log {

class Call : public common::log::LoggedCall<Call> {
 public:
  using LoggedCall::LoggedCall;

  using LoggedCall::returned;
  void returned(dmapp_return_t result);
  void returned(const void* memory);

  void show_value(const char* name, dmapp_type_t type);
  void out_value(const char* text);
  void show(const dmapp_seg_desc_t* segment);
  void show(const dmapp_rma_attrs_t* attributes);
  void show(const dmapp_rma_attrs_ext_t* attributes);
  void show(const dmapp_jobinfo_t* info);
  void show(const dmapp_sheap_stats_t* stats);
  void show(const dmapp_amo_t* amo);
  void show(const dmapp_c_pset_desc_t* set);
};

}  // namespace orrery::dmapp::log
