// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/check.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace orrery {

void check_failed(const char* file, int line, const char* expression, fmt::string_view format,
                  fmt::format_args args) {
  const std::string message = fmt::vformat(format, args);
  std::fprintf(stderr, "orrery: broken invariant at %s:%d: %s: %s\n", file, line, expression,
               message.c_str());
  std::abort();
}

}  // namespace orrery
