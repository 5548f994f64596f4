// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/common/raw_value.hpp"

#include <gtest/gtest.h>

namespace orrery::common {
namespace {

enum Small : std::uint32_t { kOne = 1 };

TEST(RawValue, IsAnyNumberThatAClientStored) {
  Small value = kOne;
  EXPECT_EQ(raw_value(value), 1u);
  const std::uint32_t other = 0xdead'beef;
  std::memcpy(&value, &other, sizeof other);
  EXPECT_EQ(raw_value(value), other);
}

}  // namespace
}  // namespace orrery::common
