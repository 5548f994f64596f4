// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/program_code.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

namespace orrery::clock {
namespace {

bool reads(std::vector<unsigned char> code) { return reads_counter(std::as_bytes(std::span(code))); }

TEST(ProgramCode, ReadingsOfTheCounterAreFoundHoweverTheyAreCompiled) {
  EXPECT_TRUE(reads({0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0, 0xc3})) << "rdtsc, optimised";
  EXPECT_TRUE(reads({0x90, 0x0f, 0x01, 0xf9, 0x48, 0xc1, 0xe2, 0x20})) << "rdtscp";
  EXPECT_TRUE(
      reads({0x0f, 0x31, 0x89, 0x45, 0xf8, 0x89, 0x55, 0xfc, 0x8b, 0x45, 0xfc, 0x48, 0xc1, 0xe0, 0x20}))
      << "both halves stored first";
  EXPECT_TRUE(reads({0x0f, 0x31, 0x49, 0xc1, 0xe7, 0x20}));
}

TEST(ProgramCode, OtherCodeReadsNothing) {
  EXPECT_FALSE(reads({}));
  EXPECT_FALSE(reads({0x0f}));
  EXPECT_FALSE(reads({0x0f, 0x31})) << "the two bytes alone are in many a constant";
  EXPECT_FALSE(reads({0x48, 0xc1, 0xe2, 0x20, 0x0f, 0x31})) << "the shift stands before";
  EXPECT_FALSE(reads({0x0f, 0x01, 0xf8, 0x48, 0xc1, 0xe2, 0x20})) << "swapgs";
  std::vector<unsigned char> far(60, 0x90);
  far[0] = 0x0f;
  far[1] = 0x31;
  const unsigned char shift[] = {0x48, 0xc1, 0xe2, 0x20};
  std::copy(std::begin(shift), std::end(shift), far.begin() + 50);
  EXPECT_FALSE(reads(far));
}

}  // namespace
}  // namespace orrery::clock
