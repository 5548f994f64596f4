// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/dmapp/heap_size.hpp"

#include <cstdlib>
#include <optional>

namespace orrery::dmapp {

namespace {

constexpr const char* kVariable = "XT_SYMMETRIC_HEAP_SIZE";
constexpr const char* kDefault = "64M";

std::optional<HeapSize>& said() {
  static std::optional<HeapSize> size;
  return size;
}

}  // namespace

void set_heap_size(const HeapSize& size) { said() = size; }

HeapSize heap_size() {
  if (said()) return *said();
  const char* const set = ::secure_getenv(kVariable);
  return {.variable = kVariable,
          .text = set == nullptr ? kDefault : set,
          .is_default = set == nullptr,
          .added = 0};
}

}  // namespace orrery::dmapp
