// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/state/thread_word.hpp"

#include "emu/nic/state/hazard.hpp"

#include <atomic>
#include <bit>

namespace orrery::nic {

constinit thread_local std::uint64_t t_thread_tag = 0;

namespace {

std::atomic<std::uint64_t> g_taken{0};  // bit i: the i-th word has a thread

// The shared word and the engine's lie among those of the first line.
constexpr std::uint32_t place_of(std::uint32_t word) { return word < kSharedHazardSlot ? word : word + 2; }
constexpr std::uint32_t word_at(std::uint32_t place) { return place < kSharedHazardSlot ? place : place - 2; }
static_assert(kSharedHazardSlot + 1 == kEngineHazardSlot && kEngineHazardSlot + 1 == kHazardSlots);

// Gives the word back when the thread ends. What posts after that, in another destructor, has none.
struct Place {
  bool over = false;
  ~Place() {
    over = true;
    const auto place = static_cast<std::uint32_t>(t_thread_tag >> kThreadTagShift);
    t_thread_tag = 0;
    // Release: the next thread that has the word comes after this one's last access.
    if (place != 0) g_taken.fetch_and(~(std::uint64_t{1} << word_at(place - 1)), std::memory_order_release);
  }
};
thread_local Place t_place;

}  // namespace

std::uint32_t assign_thread_word() {
  if (t_place.over) return kSharedHazardSlot;
  std::uint64_t taken = g_taken.load(std::memory_order_relaxed);
  for (;;) {
    const auto word = static_cast<std::uint32_t>(std::countr_one(taken));
    if (word >= kThreadWords) return kSharedHazardSlot;
    // Acquire: pairs with the last owner's release.
    if (!g_taken.compare_exchange_weak(taken, taken | std::uint64_t{1} << word, std::memory_order_acquire))
      continue;
    const std::uint32_t place = place_of(word);
    t_thread_tag = std::uint64_t{place + 1} << kThreadTagShift;
    return place;
  }
}

}  // namespace orrery::nic
