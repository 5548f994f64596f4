// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/bury.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace orrery {
namespace {

struct Counted {
  explicit Counted(int* alive) : alive(alive) { ++*alive; }
  ~Counted() { --*alive; }
  int* alive;
};

TEST(Bury, WhatIsBuriedLivesUntil64OthersAre) {
  static int first = 0;
  static int others = 0;
  bury(std::make_unique<Counted>(&first));
  for (int i = 0; i < 63; ++i) bury(std::make_unique<Counted>(&others));
  EXPECT_EQ(first, 1);
  EXPECT_EQ(others, 63);
  bury(std::make_unique<Counted>(&others));
  EXPECT_EQ(first, 0);
  bury(std::unique_ptr<Counted>());  // which is none
  EXPECT_EQ(others, 64);
}

}  // namespace
}  // namespace orrery
