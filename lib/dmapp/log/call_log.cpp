// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/dmapp/log/call_log.hpp"

#include <array>
#include <cstdio>
#include <cstring>

namespace orrery::dmapp::log {

namespace {

constexpr std::array kResults = {
    "SUCCESS",  "INVALID_PARAM", "ALIGNMENT_ERROR", "TRANSACTION_ERROR", "RESOURCE_ERROR", "PERMISSION_ERROR",
    "NO_SPACE", "NOT_DONE",      "NOT_SUPPORTED",   "NOT_FOUND",         "BUSY",           "NOT_USED"};
constexpr std::array kTypes = {"BYTE", "DW", "QW", "DQW"};

bool asks_alone(const char* line) {
  for (const char* name : {"dmapp_get_", "dmapp_progress", "dmapp_initialized", "dmapp_explain_error",
                           "dmapp_sheap_stats", "dmapp_c_greduce_nelems_max"}) {
    if (std::strncmp(line, name, std::strlen(name)) != 0) continue;
    // Transfers, which begin like questions.
    return std::strncmp(line, "dmapp_get_nb", 12) != 0 && std::strncmp(line, "dmapp_get_flag", 14) != 0;
  }
  return std::strstr(line, "_test(") != nullptr && std::strstr(line, "flag 0") != nullptr;
}

}  // namespace

void Call::returned(dmapp_return_t result) {
  char text[24];
  const auto value = static_cast<unsigned>(result);
  std::snprintf(text, sizeof text, "%u", value);
  const bool said = result == DMAPP_RC_SUCCESS;
  CallLine::result(value < kResults.size() ? kResults[value] : text, said,
                   result == DMAPP_RC_NOT_DONE || result == DMAPP_RC_BUSY);
}

void Call::returned(const void* memory) {
  char text[24];
  std::snprintf(text, sizeof text, "%p", memory);
  CallLine::result(memory == nullptr ? "NULL" : text, true, false);
}

void Call::show_value(const char* name, dmapp_type_t type) {
  const auto value = static_cast<unsigned>(type);
  if (value < kTypes.size()) return add("%s", kTypes[value]);
  number(name, value, sizeof value);
}

void Call::out_value(const char* text) { add("\"%.100s\"", text == nullptr ? "" : text); }

void Call::show(const dmapp_seg_desc_t* segment) {
  if (segment == nullptr) return CallLine::show(nullptr);
  add("{%p, %zu bytes}", segment->addr, segment->len);
}

void Call::show(const dmapp_rma_attrs_t* attributes) {
  if (attributes == nullptr) return CallLine::show(nullptr);
  const dmapp_rma_attrs_t& a = *attributes;
  add("{max_outstanding_nb %u, offload_threshold %u, put_relaxed_ordering %u, get_relaxed_ordering %u, "
      "max_concurrency %u}",
      a.max_outstanding_nb, a.offload_threshold, a.put_relaxed_ordering, a.get_relaxed_ordering,
      a.max_concurrency);
}

void Call::show(const dmapp_rma_attrs_ext_t* attributes) {
  if (attributes == nullptr) return CallLine::show(nullptr);
  const dmapp_rma_attrs_ext_t& a = *attributes;
  add("{max_outstanding_nb %u, offload_threshold %u, put_relaxed_ordering %u, get_relaxed_ordering %u, "
      "max_concurrency %u, PI_ordering %u, queue_depth %u, queue_nelems %u, queue_flags 0x%llx}",
      a.max_outstanding_nb, a.offload_threshold, a.put_relaxed_ordering, a.get_relaxed_ordering,
      a.max_concurrency, a.PI_ordering, a.queue_depth, a.queue_nelems,
      static_cast<unsigned long long>(a.queue_flags));
}

void Call::show(const dmapp_jobinfo_t* info) {
  if (info == nullptr) return CallLine::show(nullptr);
  add("{pe %d of %d, data_seg ", info->pe, info->npes);
  show(&info->data_seg);
  add(", sheap_seg ");
  show(&info->sheap_seg);
  add("}");
}

void Call::show(const dmapp_sheap_stats_t* stats) {
  if (stats == nullptr) return CallLine::show(nullptr);
  add("{size %llu, in_use %llu, largest_free %llu}", static_cast<unsigned long long>(stats->size),
      static_cast<unsigned long long>(stats->in_use), static_cast<unsigned long long>(stats->largest_free));
}

void Call::show(const dmapp_amo_t* amo) {
  if (amo == nullptr) return CallLine::show(nullptr);
  add("{op %d, ", static_cast<int>(amo->op));
  show_value("type", amo->type);
  add(", operands 0x%llx 0x%llx}", static_cast<unsigned long long>(amo->operand1),
      static_cast<unsigned long long>(amo->operand2));
}

void Call::show(const dmapp_c_pset_desc_t* set) {
  if (set == nullptr) return CallLine::show(nullptr);
  if (set->type == DMAPP_C_PSET_DELIMITER_STRIDED) {
    const dmapp_c_pset_delimiter_strided_t& s = set->u.stride_type;
    return add("{%d PEs from %d, stride %d}", s.n_pes, s.base_pe, s.stride_pe);
  }
  add("{list of %d PEs}", set->u.list_type.n_pes);
}

}  // namespace orrery::dmapp::log

const orrery::common::log::Interface orrery::common::log::kLogged = {
    .name = "dmapp", .library = "libdmapp.so.0", .asks_alone = orrery::dmapp::log::asks_alone};
