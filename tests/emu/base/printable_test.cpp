// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/printable.hpp"

#include "emu/base/log.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace orrery {
namespace {

constexpr const char* kHostile =
    "\x1b]0;title\x07 \x9b"
    "2J\r\n\tok\x7f";

TEST(Printable, WhatATerminalObeysIsWrittenAsANumber) {
  EXPECT_EQ(printable("plain, with 'words'"), "plain, with 'words'");
  EXPECT_EQ(printable(kHostile), "\\x1b]0;title\\x07 \\x9b2J\\x0d\n\tok\\x7f");
  EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
}

TEST(Printable, WhatDoesNotFitIsLeftAwayWhole) {
  std::array<char, 6> out{};
  EXPECT_EQ(std::string(out.data(), printable_into(out, "abc\x1b")), "abc");
  EXPECT_EQ(std::string(out.data(), printable_into(out,
                                                   "a\x1b"
                                                   "bc")),
            "a\\x1bb");
  EXPECT_EQ(printable_into({}, "a"), 0u);
}

// Names of other users' sockets and what other hosts say come into lines of the log.
TEST(Printable, LinesOfTheLog) {
  testing::internal::CaptureStderr();
  log::write_line(log::Level::error, kHostile);
  log::error("socket @{} belongs to another user", "\x1b[2J");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "orrery: error: \\x1b]0;title\\x07 \\x9b2J\\x0d\n\tok\\x7f\n"
            "orrery: error: socket @\\x1b[2J belongs to another user\n");
}

}  // namespace
}  // namespace orrery
