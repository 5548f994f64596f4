// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <fmt/core.h>

#include <string_view>

namespace orrery {

// Writes the message to stderr and aborts. Async-signal-unsafe; for bugs of ours only.
[[noreturn]] void check_failed(const char* file, int line, const char* expression, std::string_view message);

}  // namespace orrery

// Our own broken invariant: aborts with the values. Never for bytes from a peer or a user; those are
// validated and come back as Errc.
#define ORRERY_CHECK(condition, ...)                                                            \
  do {                                                                                          \
    if (!(condition)) [[unlikely]]                                                              \
      ::orrery::check_failed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__));    \
  } while (0)
