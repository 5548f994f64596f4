// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Values by name, for messages.
#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <string_view>

#include <portals4_ext.h>

namespace {

template <std::size_t count>
const char* name_of(const std::array<const char*, count>& names, int value) {
  return value < 0 || static_cast<std::size_t>(value) >= count ? "unknown"
                                                               : names[static_cast<std::size_t>(value)];
}

const char* name_of_event(int kind) {
  static constexpr std::array kNames{"PTL_EVENT_GET",          "PTL_EVENT_GET_OVERFLOW",
                                     "PTL_EVENT_PUT",          "PTL_EVENT_PUT_OVERFLOW",
                                     "PTL_EVENT_ATOMIC",       "PTL_EVENT_ATOMIC_OVERFLOW",
                                     "PTL_EVENT_FETCH_ATOMIC", "PTL_EVENT_FETCH_ATOMIC_OVERFLOW",
                                     "PTL_EVENT_REPLY",        "PTL_EVENT_SEND",
                                     "PTL_EVENT_ACK",          "PTL_EVENT_PT_DISABLED",
                                     "PTL_EVENT_LINK",         "PTL_EVENT_AUTO_UNLINK",
                                     "PTL_EVENT_AUTO_FREE",    "PTL_EVENT_SEARCH"};
  static_assert(kNames.size() == PTL_EVENT_SEARCH + 1);
  return name_of(kNames, kind);
}

const char* name_of_failure(int fail) {
  static constexpr std::array kNames{"PTL_NI_OK",
                                     "PTL_NI_UNDELIVERABLE",
                                     "PTL_NI_DROPPED",
                                     "PTL_NI_PT_DISABLED",
                                     "PTL_NI_PERM_VIOLATION",
                                     "PTL_NI_OP_VIOLATION",
                                     "PTL_NI_NO_MATCH",
                                     "PTL_NI_SEGV"};
  static_assert(kNames.size() == PTL_NI_SEGV + 1);
  return name_of(kNames, fail);
}

// "PTL_EVENT_PUT" as "PUT".
const char* without(std::string_view prefix, const char* name) {
  return std::string_view(name).starts_with(prefix) ? name + prefix.size() : name;
}

class Line {
 public:
  explicit Line(char* text) : text_(text) {}

  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) {
    std::va_list values;
    va_start(values, format);
    const int length = std::vsnprintf(text_ + used_, PTL_EV_STR_SIZE - used_, format, values);
    va_end(values);
    used_ = std::min<std::size_t>(used_ + static_cast<std::size_t>(std::max(length, 0)), PTL_EV_STR_SIZE - 1);
  }
  int used() const { return static_cast<int>(used_); }

 private:
  char* text_;
  std::size_t used_ = 0;
};

unsigned long long wide(std::uint64_t value) { return value; }

// What a message was at its target.
void add_message(Line& line, unsigned int ni_options, const ptl_event_t& event) {
  if ((ni_options & PTL_NI_LOGICAL) != 0) {
    line.add(", init=(%u)", event.initiator.rank);
  } else {
    line.add(", init=(%u:%u)", event.initiator.phys.nid, event.initiator.phys.pid);
  }
  line.add(", uid=%u, bits=%llx, rlen=%llx, pt=%u", event.uid, wide(event.match_bits), wide(event.rlength),
           event.pt_index);
  if (event.type != PTL_EVENT_GET && event.type != PTL_EVENT_GET_OVERFLOW) {
    line.add(", hdr=%llx", wide(event.hdr_data));
  }
  line.add(", uptr=%p, mlen=%llx, roffs=%llx, start=%p", event.user_ptr, wide(event.mlength),
           wide(event.remote_offset), event.start);
}

}  // namespace

extern "C" {

const char* ptl_rc_str(int code) {
  static constexpr std::array kNames{
      "PTL_OK",       "PTL_ARG_INVALID", "PTL_CT_NONE_REACHED", "PTL_EQ_DROPPED",    "PTL_EQ_EMPTY",
      "PTL_FAIL",     "PTL_IGNORED",     "PTL_IN_USE",          "PTL_LIST_TOO_LONG", "PTL_NO_INIT",
      "PTL_NO_SPACE", "PTL_PID_IN_USE",  "PTL_PT_FULL",         "PTL_PT_EQ_NEEDED",  "PTL_PT_IN_USE",
      "PTL_ABORTED",  "PTL_SIZE_INVALID"};
  static_assert(kNames.size() == PTL_SIZE_INVALID + 1);
  return name_of(kNames, code);
}

const char* ptl_event_kind_str(ptl_event_kind_t kind) { return name_of_event(kind); }

const char* ptl_fail_type_str(ptl_ni_fail_t fail) { return name_of_failure(fail); }

const char* PtlToStr(int code, ptl_str_type_t type) {
  switch (type) {
    case PTL_STR_ERROR:
      return ptl_rc_str(code);
    case PTL_STR_EVENT:
      return name_of_event(code);
    case PTL_STR_FAIL_TYPE:
      return name_of_failure(code);
  }
  return "unknown";
}

int PtlEvToStr(unsigned int ni_options, const ptl_event_t* event, char* msg) {
  if (event == nullptr || msg == nullptr) return 0;
  Line line(msg);
  line.add("type=%s fail=%s", without("PTL_EVENT_", ptl_event_kind_str(event->type)),
           without("PTL_NI_", ptl_fail_type_str(event->ni_fail_type)));
  switch (event->type) {
    case PTL_EVENT_SEND:
      line.add(", uptr=%p, mlen=%llx", event->user_ptr, wide(event->mlength));
      break;
    case PTL_EVENT_ACK:
    case PTL_EVENT_REPLY:
      line.add(", list=%d, uptr=%p, mlen=%llx, roffs=%llx", static_cast<int>(event->ptl_list),
               event->user_ptr, wide(event->mlength), wide(event->remote_offset));
      break;
    case PTL_EVENT_PT_DISABLED:
      line.add(", pt=%u", event->pt_index);
      break;
    case PTL_EVENT_LINK:
    case PTL_EVENT_AUTO_UNLINK:
    case PTL_EVENT_AUTO_FREE:
      line.add(", pt=%u, uptr=%p", event->pt_index, event->user_ptr);
      break;
    default:
      add_message(line, ni_options, *event);
  }
  line.add("\n");
  return line.used();
}

}  // extern "C"
