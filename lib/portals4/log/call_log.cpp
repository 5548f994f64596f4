// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/portals4/log/call_log.hpp"

#include <array>
#include <cstdio>
#include <cstring>

namespace orrery::portals4::log {

namespace {

constexpr std::array kResults = {
    "PTL_OK",       "PTL_ARG_INVALID", "PTL_CT_NONE_REACHED", "PTL_EQ_DROPPED",    "PTL_EQ_EMPTY",
    "PTL_FAIL",     "PTL_IGNORED",     "PTL_IN_USE",          "PTL_LIST_TOO_LONG", "PTL_NO_INIT",
    "PTL_NO_SPACE", "PTL_PID_IN_USE",  "PTL_PT_FULL",         "PTL_PT_EQ_NEEDED",  "PTL_PT_IN_USE",
    "PTL_ABORTED",  "PTL_SIZE_INVALID"};
constexpr std::array kEvents = {
    "GET",          "GET_OVERFLOW",          "PUT",       "PUT_OVERFLOW", "ATOMIC", "ATOMIC_OVERFLOW",
    "FETCH_ATOMIC", "FETCH_ATOMIC_OVERFLOW", "REPLY",     "SEND",         "ACK",    "PT_DISABLED",
    "LINK",         "AUTO_UNLINK",           "AUTO_FREE", "SEARCH"};
constexpr std::array kFailures = {"OK",           "UNDELIVERABLE", "DROPPED", "PT_DISABLED", "PERM_VIOLATION",
                                  "OP_VIOLATION", "NO_MATCH",      "SEGV"};

template <std::size_t kCount>
const char* name_of(const std::array<const char*, kCount>& names, unsigned value) {
  return value < kCount ? names[value] : "?";
}

unsigned long long wide(std::uint64_t value) { return value; }

bool asks_alone(const char* line) {
  for (const char* name : {"PtlCTGet(", "PtlGetUid(", "PtlGetId(", "PtlGetPhysId(", "PtlHandleIsEqual(",
                           "PtlNIHandle(", "PtlNIStatus(", "PtlGetMap("}) {
    if (std::strncmp(line, name, std::strlen(name)) == 0) return true;
  }
  return false;
}

}  // namespace

Call::Call(const char* name) : LoggedCall(name), name_(name) {}

void Call::returned(int result) {
  char text[24];
  std::snprintf(text, sizeof text, "%d", result);
  // PtlHandleIsEqual says yes or no.
  const bool is_code = std::strcmp(name_, "PtlHandleIsEqual") != 0;
  const bool known = is_code && result >= 0 && static_cast<std::size_t>(result) < kResults.size();
  CallLine::result(known ? kResults[static_cast<std::size_t>(result)] : text,
                   result == PTL_OK || result == PTL_EQ_DROPPED,
                   is_code && (result == PTL_EQ_EMPTY || result == PTL_CT_NONE_REACHED));
}

void Call::show(const ptl_process_t* process) {
  if (process == nullptr) return CallLine::show(nullptr);
  // Which of the two it is, is known to the interface alone.
  add("{nid or rank %u, pid %u}", process->phys.nid, process->phys.pid);
}

void Call::show(const ptl_md_t* md) {
  if (md == nullptr) return CallLine::show(nullptr);
  add("{start %p, length %llu, options 0x%x, eq 0x%x, ct 0x%x}", md->start, wide(md->length), md->options,
      md->eq_handle, md->ct_handle);
}

void Call::show(const ptl_le_t* le) {
  if (le == nullptr) return CallLine::show(nullptr);
  add("{start %p, length %llu, options 0x%x, ct 0x%x, uid %u}", le->start, wide(le->length), le->options,
      le->ct_handle, le->uid);
}

void Call::show(const ptl_me_t* me) {
  if (me == nullptr) return CallLine::show(nullptr);
  add("{start %p, length %llu, options 0x%x, ct 0x%x, uid %u, match_id ", me->start, wide(me->length),
      me->options, me->ct_handle, me->uid);
  show(&me->match_id);
  add(", match_bits 0x%llx, ignore_bits 0x%llx, min_free %llu}", wide(me->match_bits), wide(me->ignore_bits),
      wide(me->min_free));
}

void Call::show(const ptl_ni_limits_t* limits) {
  if (limits == nullptr) return CallLine::show(nullptr);
  const ptl_ni_limits_t& l = *limits;
  add("{entries %d, unexpected_headers %d, mds %d, cts %d, eqs %d, pt_index %d, iovecs %d, list_size %d, "
      "triggered_ops %d, msg_size %llu, atomic_size %llu, features 0x%x}",
      l.max_entries, l.max_unexpected_headers, l.max_mds, l.max_cts, l.max_eqs, l.max_pt_index, l.max_iovecs,
      l.max_list_size, l.max_triggered_ops, wide(l.max_msg_size), wide(l.max_atomic_size), l.features);
}

void Call::show(const ptl_ct_event_t* event) {
  if (event == nullptr) return CallLine::show(nullptr);
  add("{success %llu, failure %llu}", wide(event->success), wide(event->failure));
}

void Call::show(const ptl_event_t* event) {
  if (event == nullptr) return CallLine::show(nullptr);
  const ptl_event_t& e = *event;
  add("{%s, %s", name_of(kEvents, e.type), name_of(kFailures, e.ni_fail_type));
  if (e.type <= PTL_EVENT_FETCH_ATOMIC_OVERFLOW || e.type == PTL_EVENT_SEARCH) {
    add(", from ");
    show(&e.initiator);
    add(", match_bits 0x%llx, rlength %llu, hdr_data 0x%llx", wide(e.match_bits), wide(e.rlength),
        wide(e.hdr_data));
  }
  add(", pt_index %u, mlength %llu, remote_offset %llu, start %p, user_ptr %p}", e.pt_index, wide(e.mlength),
      wide(e.remote_offset), e.start, e.user_ptr);
}

}  // namespace orrery::portals4::log

const orrery::common::log::Interface orrery::common::log::kLogged = {
    .name = "portals4", .library = "libportals.so.0", .asks_alone = orrery::portals4::log::asks_alone};
