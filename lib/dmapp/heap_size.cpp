// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/dmapp/heap_size.hpp"

#include <atomic>
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

std::atomic<bool> g_refused{false};

}  // namespace

// Relaxed: it is asked for by the thread whose dmapp_init has failed.
bool heap_refused() { return g_refused.load(std::memory_order_relaxed); }
void set_heap_refused(bool is) { g_refused.store(is, std::memory_order_relaxed); }

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
