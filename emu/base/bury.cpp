// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/bury.hpp"

#include <array>
#include <cstddef>
#include <mutex>
#include <utility>

namespace orrery {

namespace {

struct Grave {
  void* object = nullptr;
  void (*free)(void*) = nullptr;
};

constexpr std::size_t kGraves = 64;
std::mutex g_mu;
std::array<Grave, kGraves> g_graves;  // guarded by g_mu, as is the next line
std::size_t g_next = 0;

}  // namespace

void bury(void* object, void (*free)(void*)) {
  Grave oldest{object, free};
  {
    const std::lock_guard lock(g_mu);
    std::swap(g_graves[g_next], oldest);
    g_next = (g_next + 1) % kGraves;
  }
  if (oldest.object != nullptr) oldest.free(oldest.object);
}

}  // namespace orrery
