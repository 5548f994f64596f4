// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/service_memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace orrery {
namespace {

void on_service_thread(const std::function<void()>& work) {
  std::thread([&] {
    service_memory::begin();
    work();
  }).join();
}

TEST(ServiceMemory, OtherThreadsAreSentToTheHeap) {
  EXPECT_EQ(service_memory::take(64, 16), nullptr);
  void* const block = std::malloc(64);
  EXPECT_FALSE(service_memory::give_back(block));
  std::free(block);
}

TEST(ServiceMemory, BlocksAreAsLargeAndAlignedAsAskedAndDoNotOverlap) {
  on_service_thread([] {
    std::vector<std::pair<unsigned char*, std::size_t>> blocks;
    for (std::size_t bytes = 0; bytes < 200'000; bytes = bytes * 3 / 2 + 7) {
      for (const std::size_t alignment : {8, 16, 64, 4096}) {
        auto* const block = static_cast<unsigned char*>(service_memory::take(bytes, alignment));
        ASSERT_NE(block, nullptr);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
        std::memset(block, static_cast<int>(blocks.size()), bytes);
        blocks.emplace_back(block, bytes);
      }
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      for (std::size_t at = 0; at < blocks[i].second; ++at)
        ASSERT_EQ(blocks[i].first[at], static_cast<unsigned char>(i));
      EXPECT_TRUE(service_memory::give_back(blocks[i].first));
    }
  });
}

TEST(ServiceMemory, WhatWasGivenBackIsUsedAgainWhateverThreadGaveIt) {
  on_service_thread([] {
    std::set<void*> seen;
    for (int round = 0; round < 1000; ++round) {
      void* const own = service_memory::take(100, 16);
      void* const others = service_memory::take(1000, 16);
      seen.insert(own);
      seen.insert(others);
      EXPECT_TRUE(service_memory::give_back(own));
      std::thread([others] { EXPECT_TRUE(service_memory::give_back(others)); }).join();
    }
    EXPECT_LE(seen.size(), 4u);
  });
}

TEST(ServiceMemory, WhatAServiceThreadFreesOfTheHeapIsFreedByAnother) {
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(std::malloc(40));
  on_service_thread([&] {
    for (void* const block : blocks) EXPECT_TRUE(service_memory::give_back(block));
  });
  EXPECT_EQ(service_memory::take(1, 1), nullptr);  // AddressSanitizer looks for what is lost
}

}  // namespace
}  // namespace orrery
