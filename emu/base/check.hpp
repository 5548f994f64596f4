// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <fmt/core.h>

namespace orrery {

// Writes the formatted message to stderr and aborts. Async-signal-unsafe; for bugs of ours only.
[[noreturn]] void check_failed(const char* file, int line, const char* expression, fmt::string_view format,
                               fmt::format_args args);

// The same from a format string that is checked at compile time.
template <typename... Args>
[[noreturn]] void check_failed_with(const char* file, int line, const char* expression,
                                    fmt::format_string<Args...> format, const Args&... args) {
  check_failed(file, line, expression, format, fmt::make_format_args(args...));
}

}  // namespace orrery

// Our own broken invariant: aborts with the values. Never for bytes from a peer or a user; those are
// validated and come back as Errc.
#define ORRERY_CHECK(condition, ...)                                               \
  do {                                                                             \
    if (!(condition)) [[unlikely]]                                                 \
      ::orrery::check_failed_with(__FILE__, __LINE__, #condition, "" __VA_ARGS__); \
  } while (0)
