// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/portals4/process.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

// What PTL_LIM_* make of an interface's limits.
namespace orrery::portals4 {
namespace {

TEST(Limits, AVariableLowersALimitAndDoesNotRaiseIt) {
  const ptl_ni_limits_t most = limits_for(nullptr);
  ASSERT_GT(most.max_eqs, 3);
  setenv("PTL_LIM_MAX_EQS", "3", 1);
  EXPECT_EQ(limits_for(nullptr).max_eqs, 3);
  setenv("PTL_LIM_MAX_EQS", "0x2", 1);
  EXPECT_EQ(limits_for(nullptr).max_eqs, 2);
  setenv("PTL_LIM_MAX_EQS", "99999999999", 1);
  EXPECT_EQ(limits_for(nullptr).max_eqs, most.max_eqs);
  unsetenv("PTL_LIM_MAX_EQS");
}

TEST(Limits, AVariableThatIsNoNumberIsToldInOneLine) {
  const ptl_ni_limits_t most = limits_for(nullptr);
  for (const std::string value :
       {"many", "-1", "-18446744073709551613", "99999999999999999999", "4K", "", " 3", "+3", "1.5"}) {
    setenv("PTL_LIM_MAX_MSG_SIZE", value.c_str(), 1);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(limits_for(nullptr).max_msg_size, most.max_msg_size) << value;
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "orrery: error: PTL_LIM_MAX_MSG_SIZE=" + value +
                  " is not accepted: expected a whole number, 0x perhaps before it; " +
                  std::to_string(most.max_msg_size) + " is used\n");
  }
  unsetenv("PTL_LIM_MAX_MSG_SIZE");
}

}  // namespace
}  // namespace orrery::portals4
