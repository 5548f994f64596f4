// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/copy.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace orrery {
namespace {

constexpr std::size_t kMargin = 64;
constexpr std::byte kUntouched{0xee};

TEST(CopyBlock, MovesExactlyTheBytesAskedForFromAnyAlignmentToAny) {
  // Both sides of each size at which another way is taken, and of whole groups of vectors.
  const std::array<std::size_t, 15> sizes = {0,    1,    31,   2047,  2048,  2049,  2175, 2176,
                                             2177, 4096, 4100, 16383, 16384, 16385, 65536};
  const std::array<std::size_t, 6> offsets = {0, 1, 7, 31, 32, 63};
  for (const std::size_t size : sizes) {
    for (const std::size_t to : offsets) {
      for (const std::size_t from : offsets) {
        std::vector<std::byte> source(from + size + kMargin);
        for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 37 + i / 256);
        std::vector<std::byte> target(kMargin + to + size + kMargin, kUntouched);
        copy_block(target.data() + kMargin + to, source.data() + from, size);
        for (std::size_t i = 0; i < target.size(); ++i) {
          const bool inside = i >= kMargin + to && i < kMargin + to + size;
          const std::byte expected = inside ? source[from + i - kMargin - to] : kUntouched;
          ASSERT_EQ(target[i], expected) << size << " bytes, to " << to << ", from " << from << ", at " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace orrery
