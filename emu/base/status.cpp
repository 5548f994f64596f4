// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/status.hpp"

#include <array>

namespace orrery {

namespace {
constexpr std::array<std::string_view, kErrcCount> kNames = {
    "ok",        "not_done",       "no_resource", "no_memory", "invalid_param", "invalid_state",
    "alignment", "permission",     "no_match",    "size",      "timeout",       "illegal_op",
    "bounds",    "invalid_handle", "unreachable", "overrun",   "corrupt",       "unsupported",
    "system",    "terminated",     "protection",  "duplicate"};
}  // namespace

std::string_view errc_name(Errc code) {
  const auto index = static_cast<std::size_t>(code);
  return index < kNames.size() ? kNames[index] : "unknown";
}

}  // namespace orrery
