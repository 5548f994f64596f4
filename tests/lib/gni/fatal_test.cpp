// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What an error does to a process, by the modes of its domain: whole jobs of one PE.
#include "tests/tools/orrery/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace orrery::tool::test {
namespace {

struct Case {
  const char* name;
  const char* modes;
  const char* fault;
  const char* what;
  int code;
  const char* said;  // on stdout when it lives, on stderr when it was killed
};
class ErrorModes : public ::testing::TestWithParam<Case> {};

TEST_P(ErrorModes, DecideWhoDies) {
  const Case& c = GetParam();
  std::vector<std::string> args{"run"};
  if (*c.fault != '\0') args.insert(args.end(), {"--fault", c.fault});
  args.insert(args.end(), {std::getenv("FATAL_WORKER"), c.modes, c.what});
  const Ran ran = orrery(args);
  EXPECT_EQ(ran.code, c.code) << ran.err;
  EXPECT_THAT(c.code == 0 ? ran.out : ran.err, ::testing::HasSubstr(c.said));
}

constexpr const char* kDefault = "0";
constexpr const char* kNoKill = "0x8";
constexpr const char* kAllKill = "0x10";

INSTANTIATE_TEST_SUITE_P(
    Table, ErrorModes,
    ::testing::Values(Case{"DefaultBadHandle", kDefault, "", "bad", 137,
                           "ended in AT_MDD_INV (0x0f), which ends this process"},
                      Case{"NoKillBadHandle", kNoKill, "", "bad", 0, "status 0xf"},
                      Case{"AllKillBadHandle", kAllKill, "", "bad", 137, "AT_MDD_INV"},
                      Case{"DefaultLost", kDefault, "drop=1", "good", 0, "status 0x39"},
                      Case{"DefaultDamaged", kDefault, "corrupt=1", "good", 0, "status 0xb"},
                      Case{"DefaultDead", kDefault, "dead=1", "good", 0, "status 0x3d"},
                      Case{"DefaultRevoked", kDefault, "revoke=1", "good", 137, "AT_MDD_INV"},
                      Case{"NoKillRevoked", kNoKill, "revoke=1", "good", 0, "status 0xf"},
                      Case{"AllKillDamaged", kAllKill, "corrupt=1", "good", 137, "DATA_ERR"},
                      Case{"AllKillCorrected", kAllKill, "link=@1", "good", 0, "alive after GNI_RC_SUCCESS"},
                      Case{"AllKillNothing", kAllKill, "", "good", 0, "alive after GNI_RC_SUCCESS"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ErrorModes, WhatWasMetIsSaidAtTheEnd) {
  const Ran ran = orrery({"run", "--fault", "link=@1", std::getenv("FATAL_WORKER"), "8", "good"});
  EXPECT_THAT(ran.err, ::testing::HasSubstr("1 link CRC errors with a retry each"));
}

}  // namespace
}  // namespace orrery::tool::test
