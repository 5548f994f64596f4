// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/require.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace orrery::test {
namespace {

TEST(Require, ACauseIsRequiredWhereTheListHasItsWholeName) {
  EXPECT_TRUE(is_required("root", "ptrace,root"));
  EXPECT_TRUE(is_required("root", "root,ptrace"));
  EXPECT_FALSE(is_required("root", "ptrace"));
  EXPECT_FALSE(is_required("root", ""));
}

TEST(Require, NamesThatAreNoneAreNotPassedOver) {
  EXPECT_TRUE(is_required("root", "roots"));
  EXPECT_TRUE(is_required("no-such-cause", ""));
}

void needs_root() { ORRERY_SKIP("root") << "of a test"; }

TEST(Require, WhatIsRequiredAndNotThereFails) {
  setenv("ORRERY_TESTS_REQUIRE", "root", 1);
  EXPECT_FATAL_FAILURE(needs_root(), "required, and not here: root");
  unsetenv("ORRERY_TESTS_REQUIRE");
}

}  // namespace
}  // namespace orrery::test
