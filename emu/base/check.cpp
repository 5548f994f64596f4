// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace orrery {

void check_failed(const char* file, int line, const char* expression, std::string_view message) {
  std::fprintf(stderr, "orrery: broken invariant at %s:%d: %s: %.*s\n", file, line, expression,
               static_cast<int>(message.size()), message.data());
  std::abort();
}

}  // namespace orrery
