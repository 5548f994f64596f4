// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/portals3/log/call_log.hpp"

#include "lib/portals3/code_names.hpp"

#include <cstdio>
#include <cstring>

namespace orrery::portals3::log {

namespace {

// Without the prefix that all of them have.
const char* event_name(unsigned type) {
  return type < kEvents.size() ? kEvents[type] + std::strlen("PTL_EVENT_") : "?";
}

unsigned long long wide(std::uint64_t value) { return value; }

bool asks_alone(const char* line) {
  for (const char* name : {"PtlNIStatus(", "PtlNIDist(", "PtlNIHandle(", "PtlGetUid(", "PtlGetId(",
                           "PtlGetJid(", "PtlErrorStr(", "PtlNIFailStr(", "PtlEventKindStr(", "PtlProgress(",
                           "PtlGetRank(", "PtlGetRankId(", "PtlGetNIDMap(", "PtlGetPIDMap("}) {
    if (std::strncmp(line, name, std::strlen(name)) == 0) return true;
  }
  return false;
}

}  // namespace

Call::Call(const char* name) : LoggedCall(name) {}

void Call::returned(int result) {
  char text[24];
  std::snprintf(text, sizeof text, "%d", result);
  const bool known = result >= 0 && static_cast<std::size_t>(result) < kCodes.size();
  CallLine::result(known ? kCodes[static_cast<std::size_t>(result)] : text,
                   result == PTL_OK || result == PTL_EQ_DROPPED, result == PTL_EQ_EMPTY);
}

void Call::returned(unsigned int mask) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%x", mask);
  CallLine::result(text, false, false);
}

void Call::returned(const char* text) { CallLine::result(text != nullptr ? text : "NULL", false, false); }

void Call::show(const ptl_process_id_t* process) {
  if (process == nullptr) return CallLine::show(nullptr);
  add("{nid %u, pid %u}", process->nid, process->pid);
}

void Call::show(const ptl_md_t* md) {
  if (md == nullptr) return CallLine::show(nullptr);
  add("{start %p, length %llu, threshold %d, max_size %llu, options 0x%x, user_ptr %p, eq 0x%x}", md->start,
      wide(md->length), md->threshold, wide(md->max_size), md->options, md->user_ptr, md->eq_handle);
}

void Call::show(const ptl_ni_limits_t* limits) {
  if (limits == nullptr) return CallLine::show(nullptr);
  const ptl_ni_limits_t& l = *limits;
  add("{mes %d, mds %d, eqs %d, ac_index %d, pt_index %d, md_iovecs %d, me_list %d, getput_md %d}", l.max_mes,
      l.max_mds, l.max_eqs, l.max_ac_index, l.max_pt_index, l.max_md_iovecs, l.max_me_list, l.max_getput_md);
}

void Call::show(const ptl_event_t* event) {
  if (event == nullptr) return CallLine::show(nullptr);
  const ptl_event_t& e = *event;
  add("{%s, %s, from ", event_name(static_cast<unsigned>(e.type)),
      e.ni_fail_type == PTL_NI_OK ? "OK" : "FAIL");
  show(&e.initiator);
  add(", pt_index %u, match_bits 0x%llx, rlength %llu, mlength %llu, offset %llu, hdr_data 0x%llx, md_handle "
      "%u, threshold %d, link %u, sequence %u}",
      e.pt_index, wide(e.match_bits), wide(e.rlength), wide(e.mlength), wide(e.offset), wide(e.hdr_data),
      e.md_handle, e.md.threshold, e.link, e.sequence);
}

}  // namespace orrery::portals3::log

const orrery::common::log::Interface orrery::common::log::kLogged = {
    .name = "portals3", .library = "libportals3.so.0", .asks_alone = orrery::portals3::log::asks_alone};
