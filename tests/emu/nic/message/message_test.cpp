// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/message/message.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace orrery::nic {
namespace {

constexpr std::size_t kLongest = 70;

TEST(Message, IsItsHeaderAndItsDataAndNothingBeyond) {
  std::array<std::byte, kLongest> header{};
  std::array<std::byte, kLongest> data{};
  for (std::size_t i = 0; i < kLongest; ++i) {
    header[i] = static_cast<std::byte>(1 + i);
    data[i] = static_cast<std::byte>(101 + i);
  }
  constexpr auto kUntouched = static_cast<std::byte>(0xee);
  for (std::size_t h = 0; h <= kLongest; ++h) {
    for (std::size_t d = 0; d <= kLongest; ++d) {
      std::array<std::byte, 2 * kLongest + 16> slot{};
      slot.fill(kUntouched);
      detail::copy_message(slot.data() + 8, {header.data(), h}, {data.data(), d});
      const std::byte* const begin = slot.data();
      const std::byte* const at = begin + 8;
      EXPECT_TRUE(std::equal(at, at + h, header.data())) << h << " and " << d;
      EXPECT_TRUE(std::equal(at + h, at + h + d, data.data())) << h << " and " << d;
      EXPECT_EQ(std::count(begin, at, kUntouched), 8) << h << " and " << d;
      EXPECT_EQ(std::count(at + h + d, begin + slot.size(), kUntouched),
                static_cast<std::ptrdiff_t>(slot.size() - 8 - h - d))
          << h << " and " << d;
    }
  }
}

}  // namespace
}  // namespace orrery::nic
