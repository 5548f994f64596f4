// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/asymmetric_fence.hpp"
#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace orrery {
namespace {

TEST(AsymmetricFence, EitherSideSeesTheOther) {
  // Property (Dekker): the frequent side announces itself and looks, with no barrier; the rare side changes
  // what it looks at, fences, and looks for the announcement. In no round do both miss each other.
  // Without the call peers announce themselves with full barriers, and there is no pair of fences to test.
  if (!asymmetric_fence::enrol() || !asymmetric_fence::heavy()) {
    ORRERY_SKIP("membarrier") << "the kernel offers no membarrier(2) of this kind here";
  }
  constexpr std::uint64_t kRounds = 4'000;
  struct alignas(64) Word {
    std::atomic<std::uint64_t> value{0};
  };
  Word announced, changed, frequent_saw, frequent_done, rare_done;
  std::thread frequent([&] {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      announced.value.store(round, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      frequent_saw.value.store(changed.value.load(std::memory_order_relaxed), std::memory_order_relaxed);
      frequent_done.value.store(round, std::memory_order_release);
      while (rare_done.value.load(std::memory_order_acquire) != round) std::this_thread::yield();
    }
  });
  std::uint64_t both_missed = 0;
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    changed.value.store(round, std::memory_order_relaxed);
    if (!asymmetric_fence::heavy()) ADD_FAILURE() << "it was to be had before";
    const bool rare_saw = announced.value.load(std::memory_order_relaxed) == round;
    while (frequent_done.value.load(std::memory_order_acquire) != round) std::this_thread::yield();
    if (!rare_saw && frequent_saw.value.load(std::memory_order_relaxed) != round) ++both_missed;
    rare_done.value.store(round, std::memory_order_release);
  }
  frequent.join();
  EXPECT_EQ(both_missed, 0u);
}

}  // namespace
}  // namespace orrery
